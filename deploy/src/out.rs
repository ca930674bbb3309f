//! What is said to a person or a script, on streams that may go away: `deploy plan | head -1` is no reason to panic, nor to
//! leave a step undone.
//!
//! Architecture invariant: nothing else in the crate writes to stdout or stderr.

use std::fmt::Arguments;
use std::io::Write as _;

/// Data, for stdout. A reader that went away misses it.
pub fn data(text: Arguments<'_>) {
    let _ = std::io::stdout().lock().write_fmt(text);
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
