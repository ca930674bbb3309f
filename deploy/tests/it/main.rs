//! The tests of `deploy`, one binary.

mod enable;
mod scene;
mod story;
mod trigger_now;
