//! Ctrl-C: the stage is struck before we go.

use std::io::{BufRead, IsTerminal};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use anyhow::{Result, ensure};
use tokio::signal::unix::{SignalKind, signal};

static INTERRUPTED: AtomicBool = AtomicBool::new(false);

/// From now on the first SIGINT or SIGTERM is remembered, and a second one ends the process; its servers end with it.
pub fn watch() {
    thread::spawn(|| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.expect("a runtime can be made").block_on(async {
            let mut interrupt = signal(SignalKind::interrupt()).expect("SIGINT can be watched");
            let mut terminate = signal(SignalKind::terminate()).expect("SIGTERM can be watched");
            loop {
                tokio::select! { _ = interrupt.recv() => {}, _ = terminate.recv() => {} }
                if INTERRUPTED.swap(true, Ordering::SeqCst) {
                    std::process::exit(130);
                }
                eprintln!("rehearsal: ending what was started (once more: at once)");
            }
        });
    });
}

/// Somebody has interrupted us.
pub fn happened() -> bool {
    INTERRUPTED.load(Ordering::SeqCst)
}

/// An error once somebody has interrupted us; asked between the steps of the story.
pub fn check() -> Result<()> {
    ensure!(!happened(), "interrupted");
    Ok(())
}

/// Waits for Enter on a terminal, or for an interruption.
pub fn wait_for_leave() {
    let (entered, enter) = mpsc::channel();
    let sender = entered.clone();
    if std::io::stdin().is_terminal() {
        thread::spawn(move || {
            let _ = std::io::stdin().lock().read_line(&mut String::new());
            let _ = sender.send(());
        });
    }
    while !happened() {
        match enter.recv_timeout(Duration::from_millis(200)) {
            Err(RecvTimeoutError::Timeout) => {}
            _ => return,
        }
    }
}
