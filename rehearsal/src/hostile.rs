//! `cargo rehearse hostile`: what the tests cannot have on every machine, because it needs root or packages. A real PgBouncer in every
//! mode, and a connection that disappears without a word in a network of its own.

use std::process::Command;

use anyhow::{Context, Result};
use rehearsal::{binaries, namespace, pgbouncer};

/// Says what is missing; when nothing is, runs the tests that need it. True when they all pass.
pub fn rehearse() -> Result<bool> {
    let missing = missing();
    if !missing.is_empty() {
        for (what, hint) in &missing {
            eprintln!("missing: {what}\nhint: {hint}");
        }
        return Ok(false);
    }
    // The tests themselves, so that there is one copy of them; `it` is the test binary of each crate.
    let mut cargo = binaries::cargo();
    cargo.args(["test", "--workspace", "--locked", "--test", "it", "--", "--ignored", "--nocapture", "hostile::"]);
    Ok(cargo.status().context("run cargo test")?.success())
}

fn missing() -> Vec<(&'static str, &'static str)> {
    let works = |program: &str, args: &[&str]| {
        Command::new(program).args(args).output().is_ok_and(|output| output.status.success())
    };
    let mut missing = Vec::new();
    if pgbouncer::program().is_none() {
        missing.push(("pgbouncer", "apt-get update && apt-get install -y pgbouncer"));
    }
    if !works("ip", &["-Version"]) {
        missing.push(("ip", "apt-get update && apt-get install -y iproute2"));
    } else if namespace::Namespace::new().is_err() {
        missing.push(("the right to make a network namespace", "run as root, outside of a container that forbids it"));
    }
    missing
}
