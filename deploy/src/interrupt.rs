//! Ctrl-C, while something is being changed: never in the middle of a write, and never without a word.

use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens from the moment it is made. Until then, Ctrl-C ends the program as usual.
pub struct Interrupt(Option<Signal>);

/// A person pressed Ctrl-C.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupted;

impl Interrupt {
    /// Begins to listen.
    pub fn listen() -> Interrupt {
        Interrupt(signal(SignalKind::interrupt()).ok())
    }

    /// Waits, unless Ctrl-C comes, or came since the last look.
    pub async fn sleep(&mut self, pause: Duration) -> Result<(), Interrupted> {
        let Some(signal) = &mut self.0 else {
            tokio::time::sleep(pause).await;
            return Ok(());
        };
        tokio::select! {
            biased;
            _ = signal.recv() => Err(Interrupted),
            () = tokio::time::sleep(pause) => Ok(()),
        }
    }
}
