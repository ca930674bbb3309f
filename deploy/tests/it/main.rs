//! The tests of `deploy`, one binary.

mod enable;
mod proxy;
mod scene;
mod story;
mod trigger_now;
