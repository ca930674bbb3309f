//! What a person sees while they wait, on stderr: one line that is rewritten on a terminal, one line a change elsewhere. The
//! container's own lines pass above it, or are the data of the command.

use std::io::IsTerminal;
use std::time::{Duration, Instant};

use super::ending::humantime;
use super::readable::{harmless, readable};

/// Where the container's lines go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lines {
    /// Beside the progress, made readable: the command's data is its verdict.
    Beside,
    /// To stdout, as they were printed: they are the command's data.
    Data,
}

/// The progress of one wait.
#[derive(Debug)]
pub struct Progress {
    since: Instant,
    terminal: bool,
    state: String,
    lines: Lines,
    /// Whether stdout is a terminal, which would obey what a line says to it.
    obeys: bool,
}

impl Progress {
    /// Starts the clock.
    pub fn begin(lines: Lines) -> Progress {
        let (terminal, obeys) = (std::io::stderr().is_terminal(), std::io::stdout().is_terminal());
        Progress { since: Instant::now(), terminal, state: String::new(), lines, obeys }
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

    /// The clock goes on.
    pub fn tick(&self) {
        if self.terminal && !self.state.is_empty() {
            self.draw();
        }
    }

    /// A line of the container's log.
    pub fn log(&mut self, line: &str) {
        self.clear();
        match self.lines {
            Lines::Beside => err!("  | {}", readable(line)),
            Lines::Data if self.obeys => crate::out::data(format_args!("{}\n", harmless(line))),
            Lines::Data => crate::out::data(format_args!("{line}\n")),
        }
        self.tick();
    }

    /// What the run says about itself, where the line itself is not the data.
    pub fn report(&mut self, line: &str, summary: &str) {
        match self.lines {
            Lines::Beside => self.log(summary),
            Lines::Data => self.log(line),
        }
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

/// However the wait ends, nothing is left on the line.
impl Drop for Progress {
    fn drop(&mut self) {
        self.clear();
    }
}
