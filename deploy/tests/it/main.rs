//! The tests of `deploy`, one binary.

mod enable;
mod story;
mod trigger_now;
