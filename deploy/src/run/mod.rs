//! One run, started by hand: start, follow, judge.

pub mod ending;
pub mod judge;
