//! The runs that the log still remembers, by their reports.

use geuneul::{Outcome, RunReport, Trigger};

use crate::cloud::{Answer, Aws};

/// How many runs are shown; so many streams are always looked into.
pub const SHOWN: usize = 5;
/// How many streams are looked into for a scheduled run that succeeded: years of a monthly job, and each costs a call.
const STREAMS: usize = 50;
/// The report is the last line of a run; what another program prints after it is not much.
const LINES: i32 = 20;

/// The reports of the last runs, newest first: of [`SHOWN`] streams, and of older ones until a scheduled run that succeeded is
/// among them. `prefix` is how the names of the container's streams begin.
pub async fn recent_runs(aws: &Aws, group: &str, prefix: &str) -> Answer<Vec<RunReport>> {
    let streams = aws.newest_streams(group).await?;
    let mut reports = Vec::new();
    for (i, stream) in streams.iter().filter(|stream| stream.name.starts_with(prefix)).take(STREAMS).enumerate() {
        if i >= SHOWN && proof_of_the_scheduled_path(&reports).is_some() {
            break;
        }
        let lines = aws.last_log_lines(stream, LINES).await?;
        reports.extend(RunReport::last_of(lines.iter().map(|line| line.text.as_str())).and_then(Result::ok));
    }
    reports.sort_by(|a, b| b.started_at.cmp(&a.started_at));
    Ok(reports)
}

/// The newest run that the schedule itself started and that succeeded: the scheduler's role, the target and the Input work.
pub fn proof_of_the_scheduled_path(reports: &[RunReport]) -> Option<&RunReport> {
    reports.iter().find(|report| report.trigger == Trigger::Scheduled && report.outcome == Outcome::Succeeded)
}
