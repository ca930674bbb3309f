//! Lines as the container printed them. A log driver cuts a long line into events of its buffer's size; the log has no other mark of it.
//!
//! Architecture invariant: pure.

use geuneul::RunReport;

use crate::model::log::LogLine;

/// The buffers of the drivers, in bytes: Fargate's, and Docker's on an instance.
const BUFFERS: [usize; 2] = [16 * 1024, 262_118];

/// What a cut through a letter leaves on both sides of it.
const LOST: char = '\u{fffd}';

/// Puts together what the driver took apart.
#[derive(Debug, Default)]
pub struct Joiner {
    begun: Option<LogLine>,
}

impl Joiner {
    /// The next event of the stream; the lines that it completes. A report is a line of its own, whatever stood before it.
    pub fn push(&mut self, event: LogLine) -> Vec<LogLine> {
        let goes_on = fills_a_buffer(&event.text);
        let (whole, line) = match self.begun.take() {
            Some(begun) if RunReport::from_line(&event.text).is_some() => (Some(begun), event),
            Some(begun) => (None, join(begun, &event.text)),
            None => (None, event),
        };
        let line = if goes_on { self.begun.replace(line) } else { Some(line) };
        whole.into_iter().chain(line).collect()
    }

    /// What was begun and never went on: a line that happens to fill the buffer.
    pub fn rest(&mut self) -> Option<LogLine> {
        self.begun.take()
    }
}

/// A cut letter became replacement characters, which are longer than what they stand for.
fn fills_a_buffer(text: &str) -> bool {
    let whole = text.trim_end_matches(LOST).len();
    let cut = whole < text.len();
    BUFFERS.iter().any(|&buffer| whole == buffer || (cut && whole < buffer && whole + 4 > buffer))
}

fn join(begun: LogLine, more: &str) -> LogLine {
    let LogLine { at_ms, mut text } = begun;
    if text.ends_with(LOST) && more.starts_with(LOST) {
        text.truncate(text.trim_end_matches(LOST).len());
        text.push(LOST);
        text.push_str(more.trim_start_matches(LOST));
    } else {
        text.push_str(more);
    }
    LogLine { at_ms, text }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(events: &[&str]) -> Vec<String> {
        let mut joiner = Joiner::default();
        let lines = events.iter().flat_map(|text| joiner.push(LogLine { at_ms: 1, text: (*text).to_owned() }));
        let mut lines: Vec<_> = lines.map(|line| line.text).collect();
        lines.extend(joiner.rest().map(|line| line.text));
        lines
    }

    #[test]
    fn what_the_driver_took_apart_is_one_line_again() {
        let full = "x".repeat(16 * 1024);
        assert_eq!(joined(&["a", "b"]), ["a", "b"]);
        assert_eq!(joined(&["a", &full, &full, "b", "c"]), ["a".to_owned(), format!("{full}{full}b"), "c".to_owned()]);
        assert_eq!(joined(&[&full]).concat(), full, "nothing is lost when nothing follows");
        assert_eq!(joined(&[&full[1..], "b"]), [full[1..].to_owned(), "b".to_owned()]);
        // A line that happens to fill the buffer swallows no report.
        let report = r#"{"geuneul":"run-report/1","report":1}"#;
        assert_eq!(joined(&[&full, report]), [full.clone(), report.to_owned()]);
    }

    #[test]
    fn a_letter_on_the_seam_is_one_lost_letter() {
        // 도 is three bytes; the buffer ends after two of them.
        let full = "x".repeat(16 * 1024 - 2);
        for left in ["\u{fffd}", "\u{fffd}\u{fffd}"] {
            let line = joined(&[&format!("{full}{left}"), "\u{fffd}서관"]);
            assert_eq!(line, [format!("{full}\u{fffd}서관")]);
        }
        assert_eq!(joined(&["short\u{fffd}", "b"]).len(), 2);
    }
}
