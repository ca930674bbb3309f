//! ingest
fn main() {}
