//! Values without I/O.
pub mod run_task;
pub mod task;
