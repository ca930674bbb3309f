//! What a person sees while they wait, on stderr: one line that is rewritten on a terminal, one line a change elsewhere. The
//! container's own lines pass above it.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use super::ending::humantime;
use super::readable::readable;

/// The progress of one wait.
#[derive(Debug)]
pub struct Progress {
    since: Instant,
    terminal: bool,
    state: String,
}

impl Progress {
    /// Starts the clock.
    pub fn begin() -> Progress {
        Progress { since: Instant::now(), terminal: std::io::stderr().is_terminal(), state: String::new() }
    }

    /// How long we have waited.
    pub fn elapsed(&self) -> Duration {
        self.since.elapsed()
    }

    /// Where the task is now.
    pub fn state(&mut self, state: &str) {
        let changed = self.state != state;
        state.clone_into(&mut self.state);
        if self.terminal {
            self.draw();
        } else if changed {
            err!("task {state}");
        }
    }

    /// A line of the container's log.
    pub fn log(&mut self, line: &str) {
        self.clear();
        err!("  | {}", readable(line));
        if self.terminal {
            self.draw();
        }
    }

    /// Ends the line.
    pub fn end(&mut self) {
        self.clear();
        self.terminal = false;
    }

    fn draw(&self) {
        self.clear();
        crate::out::progress(format_args!("task {}, {}", self.state, humantime(&self.elapsed())));
    }

    fn clear(&self) {
        if self.terminal {
            crate::out::progress(format_args!("\r\x1b[2K"));
        }
    }
}
