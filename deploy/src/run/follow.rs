//! Follow a run.
