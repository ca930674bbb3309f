//! Values without I/O.
pub mod run_task;
