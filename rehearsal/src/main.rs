//! rehearsal
fn main() {}
