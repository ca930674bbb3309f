//! What is said to a person or a script, on streams that may go away: `deploy plan | head -1` is no reason to panic, nor to
//! leave a step undone.
//!
//! Architecture invariant: nothing else in the crate writes to stdout or stderr.

use std::fmt::Arguments;
use std::io::{ErrorKind, Write as _};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::again::in_full;

static READER_LEFT: AtomicBool = AtomicBool::new(false);
/// The first write to stdout that failed and that nobody is to blame for who reads it.
static LOST: OnceLock<ErrorKind> = OnceLock::new();

/// Data, for stdout, as they are: documents, and what others wrote. A reader that went away misses them.
pub fn data(text: Arguments<'_>) {
    note(std::io::stdout().lock().write_all(text.to_string().as_bytes()));
}

/// Our own words, for stdout.
pub fn say(text: Arguments<'_>) {
    data(format_args!("{}", in_full(&text.to_string())));
}

/// Whether all data have been written.
pub fn finish() -> Result<(), ErrorKind> {
    note(std::io::stdout().lock().flush());
    LOST.get().map_or(Ok(()), |error| Err(*error))
}

fn note(written: std::io::Result<()>) {
    match written.map_err(|error| error.kind()) {
        Ok(()) => {}
        Err(ErrorKind::BrokenPipe) => READER_LEFT.store(true, Ordering::Relaxed),
        Err(error) => _ = LOST.set(error),
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
    let text = text.to_string();
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(in_full(&text).as_bytes()).and_then(|()| stderr.flush());
}

/// One line of data.
macro_rules! out {
    () => { $crate::out::say(format_args!("\n")) };
    ($($text:tt)+) => { $crate::out::say(format_args!("{}\n", format_args!($($text)+))) };
}

/// One line of progress, a refusal or an error.
macro_rules! err {
    () => { $crate::out::progress(format_args!("\n")) };
    ($($text:tt)+) => { $crate::out::progress(format_args!("{}\n", format_args!($($text)+))) };
}
