//! The tests of `deploy`, one binary.

mod apply;
mod disable;
mod enable;
mod inside;
mod normalise;
mod plan;
mod proxy;
mod purity;
mod scene;
mod story;
mod trigger_now;
