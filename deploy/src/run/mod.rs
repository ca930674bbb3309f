//! One run: start, follow, judge.

pub mod ending;
pub mod follow;
pub mod history;
pub mod judge;
pub mod lines;
pub mod progress;
pub mod readable;
pub mod scheduled;
pub mod start;
pub mod tail;
pub mod timeline;
pub mod unreported;
