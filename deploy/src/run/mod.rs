//! One run, started by hand: start, follow, judge.

pub mod ending;
pub mod follow;
pub mod history;
pub mod judge;
pub mod progress;
pub mod readable;
pub mod scheduled;
pub mod start;
