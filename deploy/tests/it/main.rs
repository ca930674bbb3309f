//! The tests of `deploy`, one binary.

mod apply;
mod config;
mod disable;
mod enable;
mod inside;
mod memory;
mod normalise;
mod plan;
mod properties;
mod proxy;
mod purity;
mod scene;
mod status;
mod story;
mod trigger_now;
mod truth;
