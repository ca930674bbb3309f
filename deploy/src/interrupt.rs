//! Ctrl-C, a closed terminal (SIGHUP) or a supervisor's SIGTERM, while something is being changed or watched: never in the middle of a
//! write, and never without a word.
//!
//! Architecture invariant: the process has one listener, and what it has heard it never forgets: a signal that comes while a call of AWS
//! is under way, or between two waits, is acted upon at the next one.

use std::future::{pending, poll_fn};
use std::sync::OnceLock;
use std::task::Poll;
use std::time::Duration;

use tokio::runtime::Builder;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::time::timeout;

/// A terminal that closes, and `timeout`, send the same thing twice at once: what comes that soon is no second word.
const AT_ONCE: Duration = Duration::from_millis(300);
/// Who has not ended by then says why.
const UNHEARD: Duration = Duration::from_secs(1);

static HEARD: OnceLock<watch::Receiver<bool>> = OnceLock::new();

/// Whether the program is to end. Until the first [`Interrupt::listen`] a signal ends it as usual; from then on the first one is
/// heeded here, and the second one ends it at once.
pub struct Interrupt(watch::Receiver<bool>);

/// Somebody wants the program to end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupted;

impl Interrupt {
    /// Begins to listen; whoever does so later hears what was heard before.
    pub fn listen() -> Interrupt {
        Interrupt(HEARD.get_or_init(install).clone())
    }

    /// Whether a signal has come.
    pub fn came(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits, unless a signal comes or has come.
    pub async fn sleep(&mut self, pause: Duration) -> Result<(), Interrupted> {
        tokio::select! {
            biased;
            () = self.comes() => Err(Interrupted),
            () = tokio::time::sleep(pause) => Ok(()),
        }
    }

    /// Waits for a signal.
    pub async fn comes(&mut self) {
        if self.0.wait_for(|came| *came).await.is_err() {
            pending::<()>().await; // Nobody listens on this machine.
        }
    }
}

/// The signals have a thread to themselves: whatever the program waits for, the second one ends it.
fn install() -> watch::Receiver<bool> {
    let (heard, receiver) = watch::channel(false);
    let Ok(runtime) = Builder::new_current_thread().enable_all().build() else { return receiver };
    let hangup = Some(SignalKind::hangup()).filter(|_| !hangup_is_ignored());
    let kinds = [SignalKind::interrupt(), SignalKind::terminate()].into_iter().chain(hangup);
    let signals: Vec<_> = {
        let _inside = runtime.enter();
        kinds.filter_map(|kind| Some((kind.as_raw_value(), signal(kind).ok()?))).collect()
    };
    std::thread::spawn(move || runtime.block_on(heed(signals, heard)));
    receiver
}

async fn heed(mut signals: Vec<(i32, Signal)>, heard: watch::Sender<bool>) {
    next(&mut signals).await;
    heard.send_replace(true);
    tokio::time::sleep(AT_ONCE).await;
    while timeout(Duration::ZERO, next(&mut signals)).await.is_ok() {}
    let second = match timeout(UNHEARD, next(&mut signals)).await {
        Ok(second) => second,
        Err(_) => {
            err!("note: interrupted; what was begun is finished first, and a second signal ends it at once");
            next(&mut signals).await
        }
    };
    err!("error: interrupted twice: ended at once, and whether AWS did what it was asked for last is not known");
    err!("hint: see what is there: deploy status");
    // As a shell says it of a program that a signal ended.
    std::process::exit(128 + second);
}

/// Waits for a signal, and answers its number.
async fn next(signals: &mut [(i32, Signal)]) -> i32 {
    poll_fn(|task| {
        let mut ready =
            signals.iter_mut().filter_map(|(number, signal)| signal.poll_recv(task).is_ready().then_some(*number));
        ready.next().map_or(Poll::Pending, Poll::Ready)
    })
    .await
}

/// Whoever says `nohup` means to go on when the terminal is gone. Linux tells; where it is not told, a hangup ends the watching.
fn hangup_is_ignored() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap_or_default();
    u64::from_str_radix(mask.trim(), 16).is_ok_and(|mask| mask & 1 == 1)
}
