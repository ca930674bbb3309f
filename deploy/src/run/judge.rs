//! Judge a run.
