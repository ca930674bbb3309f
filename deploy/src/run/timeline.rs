//! What happened, by time: the moments of a task and the last lines of its container in one list.
//!
//! Architecture invariant: pure.

use jiff::Timestamp;

use super::readable::readable;
use crate::model::log::LogLine;
use crate::model::task::{Moment, Task, TaskEvent};

/// The list, oldest first. Of one and the same millisecond, a line is older than an end and younger than a start.
pub fn timeline<'a>(task: &Task, lines: impl IntoIterator<Item = &'a LogLine>) -> Vec<String> {
    let moments = task.events.iter().map(|TaskEvent { at_ms, what }| {
        let rank = if *what < Moment::Stopping { 0 } else { 2 };
        (*at_ms, rank, format!("task  {}{}", what.as_str(), more(task, *what)))
    });
    let lines = lines.into_iter().map(|line| (line.at_ms, 1, format!("log   | {}", readable(&line.text))));
    let mut all: Vec<_> = moments.chain(lines).collect();
    all.sort_by_key(|(at_ms, rank, _)| (*at_ms, *rank));
    all.into_iter().map(|(at_ms, _, what)| format!("{}  {what}", clock(at_ms))).collect()
}

fn more(task: &Task, what: Moment) -> String {
    let said = match what {
        Moment::Stopping => task.stopped_reason.clone(),
        Moment::Stopped => {
            let one = |container: &crate::model::task::Container| {
                let code = container.exit_code.map_or_else(|| "no exit code".to_owned(), |code| code.to_string());
                format!("{} {code}", container.name)
            };
            Some(task.containers.iter().map(one).collect::<Vec<_>>().join(", "))
        }
        _ => None,
    };
    said.filter(|said| !said.is_empty()).map(|said| format!(": {said}")).unwrap_or_default()
}

/// `03:00:01.123`, in UTC.
fn clock(at_ms: i64) -> String {
    Timestamp::from_millisecond(at_ms).map_or_else(|_| "?".to_owned(), |at| at.strftime("%H:%M:%S%.3f").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::task::Container;

    #[test]
    fn events_and_lines_are_merged_by_time() {
        let event = |at_ms, what| TaskEvent { at_ms, what };
        let container =
            |name: &str, exit_code| Container { name: name.to_owned(), exit_code, reason: None, image_digest: None };
        let task = Task {
            arn: String::new(),
            cluster: String::new(),
            task_definition: String::new(),
            started_by: None,
            launch_type: None,
            capacity_provider: None,
            platform_version: None,
            status: "STOPPED".to_owned(),
            stop_code: None,
            stopped_reason: Some("Essential container in task exited".to_owned()),
            containers: vec![container("ingest", Some(69)), container("proxy", None)],
            overrides: Vec::new(),
            subnet: None,
            created_at: None,
            stopped_at: None,
            events: vec![
                event(1_000, Moment::Created),
                event(2_000, Moment::Started),
                event(4_000, Moment::Stopping),
                event(4_500, Moment::Stopped),
            ],
        };
        let line = |at_ms, text: &str| LogLine { at_ms, text: text.to_owned() };
        let lines = [line(2_000, "page 1"), line(4_000, "page 2: 504"), line(4_200, "bye")];
        assert_eq!(
            timeline(&task, &lines),
            [
                "00:00:01.000  task  asked for",
                "00:00:02.000  task  running",
                "00:00:02.000  log   | page 1",
                "00:00:04.000  log   | page 2: 504",
                "00:00:04.000  task  stopping: Essential container in task exited",
                "00:00:04.200  log   | bye",
                "00:00:04.500  task  stopped: ingest 69, proxy no exit code",
            ]
        );
    }
}
