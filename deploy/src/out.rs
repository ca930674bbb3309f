//! What is said to a person or a script, on streams that may go away: `deploy plan | head -1` is no reason to panic, nor to
//! leave a step undone.
//!
//! Architecture invariant: nothing else in the crate writes to stdout or stderr.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

static READER_LEFT: AtomicBool = AtomicBool::new(false);

/// Data, for stdout. A reader that went away misses it.
pub fn data(text: Arguments<'_>) {
    if std::io::stdout().lock().write_fmt(text).is_err_and(|error| error.kind() == ErrorKind::BrokenPipe) {
        READER_LEFT.store(true, Ordering::Relaxed);
    }
}

/// Waits until a write has shown that whoever reads stdout has gone.
pub async fn reader_left() {
    while !READER_LEFT.load(Ordering::Relaxed) {
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Progress, refusals and errors, for stderr.
pub fn progress(text: Arguments<'_>) {
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_fmt(text).and_then(|()| stderr.flush());
}

/// One line of data.
macro_rules! out {
    () => { $crate::out::data(format_args!("\n")) };
    ($($text:tt)+) => { $crate::out::data(format_args!("{}\n", format_args!($($text)+))) };
}

/// One line of progress, a refusal or an error.
macro_rules! err {
    () => { $crate::out::progress(format_args!("\n")) };
    ($($text:tt)+) => { $crate::out::progress(format_args!("{}\n", format_args!($($text)+))) };
}
