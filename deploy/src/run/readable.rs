//! A line of a container's log, for a person.
//!
//! Programs write JSON where no terminal is; here is a terminal again. What is no log record in JSON stays as it is.
//!
//! Architecture invariant: pure; the line is only shown, never interpreted: reports are found in the line as it came.

use serde_json::{Map, Value};

/// Members that are of use to machines only.
const LEFT_OUT: [&str; 6] = ["timestamp", "level", "message", "target", "span", "spans"];

/// `12:00:01 INFO crawled rows=3555 steady=true`, from a record of JSON; anything else without what a terminal would obey.
pub fn readable(line: &str) -> String {
    let line = line.trim_end();
    harmless(&record(line).unwrap_or_else(|| line.to_owned()))
}

/// A line without what a terminal would obey, or what would turn the line around.
pub fn harmless(line: &str) -> String {
    let obeyed = |c: char| c.is_control() && c != '\t';
    let turns = |c| matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    line.chars().map(|c| if obeyed(c) || turns(c) { '\u{fffd}' } else { c }).collect()
}

/// What somebody else wrote, as a part of one of our lines.
pub fn quoted(text: &str) -> String {
    harmless(&text.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn record(line: &str) -> Option<String> {
    let record: Map<String, Value> = serde_json::from_str(line).ok()?;
    let text = |member: &str| record.get(member).and_then(Value::as_str);
    let (level, message) = (text("level")?, text("message")?);
    // The time of day is enough beside a run that one is watching.
    let time = text("timestamp").and_then(|at| at.get(11..19)).unwrap_or_default();
    let fields =
        record.iter().filter(|(name, _)| !LEFT_OUT.contains(&name.as_str())).map(|(name, value)| match value {
            Value::String(text) if !text.contains(char::is_whitespace) => format!(" {name}={text}"),
            value => format!(" {name}={value}"),
        });
    Some(format!("{time} {level} {message}{}", fields.collect::<String>()).trim_start().to_owned())
}

#[cfg(test)]
mod tests {
    use super::{quoted, readable};

    #[test]
    fn a_record_is_shortened_and_other_lines_stay() {
        let record = r#"{"timestamp":"2026-11-29T17:18:09.533648Z","level":"INFO","message":"crawled","rows":1200,"server":"15.18 (Debian)","steady":true,"target":"ingest::snapshot","span":{"name":"run"}}"#;
        assert_eq!(readable(record), r#"17:18:09 INFO crawled rows=1200 server="15.18 (Debian)" steady=true"#);
        assert_eq!(readable(r#"{"level":"ERROR","message":"가나다"}"#), "ERROR 가나다");
        for same in ["plain text", r#"{"message":"no level"}"#, "[1]", "{\"level\":", ""] {
            assert_eq!(readable(same), same);
        }
        assert_eq!(readable("\u{1b}[31mred\u{7}\tx\r\n"), "\u{fffd}[31mred\u{fffd}\tx");
        assert_eq!(quoted("stop\u{1b}[2J\n now \u{202e}drah"), "stop\u{fffd}[2J now \u{fffd}drah");
    }
}
