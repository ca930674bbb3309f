//! One run, started by hand: start, follow, judge.

pub mod follow;
pub mod judge;
pub mod start;
