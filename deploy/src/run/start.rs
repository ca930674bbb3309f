//! Start a run.
