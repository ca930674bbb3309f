//! Ctrl-C, a closed terminal (SIGHUP) or a supervisor's SIGTERM, while something is being changed or watched: never in the middle of a
//! write, and never without a word.

use std::future::poll_fn;
use std::task::Poll;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};

/// Listens from the moment it is made. Until then, a signal ends the program as usual.
pub struct Interrupt(Vec<Signal>);

/// Somebody wants the program to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupted;

impl Interrupt {
    /// Begins to listen.
    pub fn listen() -> Interrupt {
        let hangup = Some(SignalKind::hangup()).filter(|_| !hangup_is_ignored());
        let kinds = [SignalKind::interrupt(), SignalKind::terminate()].into_iter().chain(hangup);
        Interrupt(kinds.filter_map(|kind| signal(kind).ok()).collect())
    }

    /// Waits, unless a signal comes, or came since the last look.
    pub async fn sleep(&mut self, pause: Duration) -> Result<(), Interrupted> {
        tokio::select! {
            biased;
            () = self.comes() => Err(Interrupted),
            () = tokio::time::sleep(pause) => Ok(()),
        }
    }

    /// Waits for a signal.
    pub async fn comes(&mut self) {
        poll_fn(|task| match self.0.iter_mut().any(|signal| signal.poll_recv(task).is_ready()) {
            true => Poll::Ready(()),
            false => Poll::Pending,
        })
        .await;
    }
}

/// Whoever says `nohup` means to go on when the terminal is gone. Linux tells; where it is not told, a hangup ends the watching.
fn hangup_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or_default();
    u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask & 1 == 1)
}
