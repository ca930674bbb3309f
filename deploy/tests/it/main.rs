//! The tests of `deploy`, one binary.

mod apply;
mod check;
mod config;
mod destroy;
mod disable;
mod drift;
mod enable;
mod faults;
mod help;
mod iam;
mod inside;
mod memory;
mod normalise;
mod plan;
mod properties;
mod proxy;
mod purity;
mod saved;
mod scene;
mod status;
mod story;
mod trigger_now;
mod truth;
mod unproven;
mod verify;
mod ways;
