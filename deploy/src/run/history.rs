//! The runs that the log still remembers, by their reports.

use futures_util::future::join_all;
use geuneul::RunReport;
use jiff::Timestamp;

use crate::cloud::{Answer, Aws};
use crate::model::log::LogStream;
use crate::standing::runs::{PastRun, newest_first};

/// How many streams are looked into for each run that is asked for: a family's service writes to streams of the same prefix.
const STREAMS_A_RUN: usize = 4;
/// So many at once.
const AT_ONCE: usize = 8;
/// The report is the last line of a run; what another program prints after it is not much.
const LINES: i32 = 20;

/// The last runs, newest first. `prefix` is how the names of the container's streams begin.
pub async fn recent_runs(aws: &Aws, group: &str, prefix: &str, count: usize) -> Answer<Vec<PastRun>> {
    let streams = aws.newest_streams(group).await?;
    let streams: Vec<_> = streams.into_iter().filter(|stream| stream.name.starts_with(prefix)).collect();
    let mut runs = Vec::new();
    for some in streams[..streams.len().min(count * STREAMS_A_RUN)].chunks(AT_ONCE) {
        let calls = some.iter().map(|stream| async move {
            let lines = aws.last_log_lines(stream, LINES).await?;
            let report = RunReport::last_of(lines.iter().map(|line| line.text.as_str())).and_then(Result::ok);
            Answer::Ok(report.map(|report| PastRun { task: task_of(stream), report }))
        });
        for run in join_all(calls).await {
            runs.extend(run?);
        }
        if runs.len() >= count {
            break;
        }
    }
    let mut runs = newest_first(runs);
    runs.truncate(count);
    Ok(runs)
}

/// The runs that reported within some stretches of time, and nothing else of the log.
pub async fn runs_within(
    aws: &Aws,
    group: &str,
    prefix: &str,
    windows: &[(Timestamp, Timestamp)],
) -> Answer<Vec<PastRun>> {
    let calls = windows.iter().map(|(from, to)| aws.lines_with(group, prefix, geuneul::RUN_REPORT_V1, *from, *to));
    let mut runs = Vec::new();
    for lines in join_all(calls).await {
        runs.extend(lines?.iter().filter_map(|(stream, line)| {
            let report = RunReport::from_line(&line.text)?.ok()?;
            Some(PastRun { task: task_of(stream), report })
        }));
    }
    Ok(newest_first(runs))
}

fn task_of(stream: &LogStream) -> String {
    stream.name.rsplit('/').next().unwrap_or_default().to_owned()
}
