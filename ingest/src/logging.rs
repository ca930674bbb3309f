//! Logs, on stderr: for a person on a terminal, as JSON lines everywhere else.

use std::io::IsTerminal;

use tracing::{Level, Metadata};
use tracing_subscriber::filter::{EnvFilter, filter_fn};
use tracing_subscriber::prelude::*;

/// Starts logging. `RUST_LOG` is respected for our own crates. What drivers and HTTP clients log below a warning is never shown,
/// whatever `RUST_LOG` says: it may carry a password, or a URL with the key.
pub fn start() {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let registry = tracing_subscriber::registry().with(filter).with(filter_fn(may_be_shown));
    let started = if std::io::stderr().is_terminal() {
        registry.with(lines.compact()).try_init()
    } else {
        registry.with(lines.json().flatten_event(true).with_span_list(false).with_ansi(false)).try_init()
    };
    // Only a second start in one process can fail; the first one goes on.
    drop(started);
}

fn may_be_shown(metadata: &Metadata<'_>) -> bool {
    let ours = ["ingest", "geuneul"]
        .iter()
        .any(|name| metadata.target().strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with("::")));
    ours || *metadata.level() <= Level::WARN
}
