//! `deploy` puts a container job on an EventBridge Scheduler schedule, switched off, proves one run, and only then lets it be
//! switched on.
//!
//! One grammar for every verb: *observe* (read AWS) -> *plan* (a pure function) -> *apply* (one arm a step) -> *report*.
//!
//! Architecture invariant: no state file. What is ours is told from tags, what is wanted from `deploy.toml`, and everything else
//! is read live every time.
//!
//! Architecture invariant: `aws_sdk_*` is imported only under [`cloud`]; `plan`, `desired`, `check`, `normalise` and `render` know
//! neither async nor a clock.

#[macro_use]
pub mod out;

pub mod again;
pub mod apply;
pub mod check;
pub mod cli;
pub mod cloud;
pub mod columns;
pub mod commands;
pub mod config;
pub mod desired;
pub mod document;
pub mod exit;
pub mod explain;
pub mod fingerprint;
pub mod fire_times;
pub mod foresee;
pub mod gate;
pub mod guard;
pub mod import;
pub mod interrupt;
pub mod leak;
pub mod model;
pub mod normalise;
pub mod observe;
pub mod one_off;
pub mod permissions;
pub mod plan;
pub mod receipt;
pub mod removal;
pub mod render;
pub mod requests;
pub mod run;
pub mod saved;
pub mod scheduled_path;
pub mod sealed;
pub mod secret;
pub mod standing;
pub mod switch;
pub mod templates;
pub mod terraform;
pub mod verify;

pub use cli::main;
