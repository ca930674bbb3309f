//! deploy
fn main() {}
