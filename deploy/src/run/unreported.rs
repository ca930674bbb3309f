//! The job's tasks that ended and left no report: an image that exits at once, one that was killed, one that never started.
//!
//! For about an hour ECS knows who started a task and how it ended. Afterwards only its log stream is left, and a stream names
//! nobody: one that began in the time of a fire time, with no report in it, is taken for the run that was due then.

use std::collections::BTreeSet;

use futures_util::future::join_all;
use geuneul::{RunReport, Trigger};
use jiff::Timestamp;

use super::history::{Reports, task_of};
use crate::cloud::{Answer, ErrorKind};
use crate::config::Proof;
use crate::fire_times::timetable::Timetable;
use crate::model::log::LogStream;
use crate::model::run_task::Starter;
use crate::model::task::Task;
use crate::model::{Schedule, State};
use crate::standing::overdue::patience;
use crate::standing::runs::{Ended, PastRun, Unreported};

/// So many of the tasks that ECS still knows, or of the streams of one window, are looked into.
const LOOKED_INTO: usize = 8;

/// So many pages of a stream are read, from its end, of a megabyte each.
const PAGES: usize = 8;

/// After how many of the last fire times a run is looked for.
pub const OCCURRENCES: usize = 3;

/// What was found besides the reports that are known already.
#[derive(Debug, Default)]
pub struct Found {
    /// Reports in streams that were not among the newest.
    pub runs: Vec<PastRun>,
    /// Tasks without one, newest first.
    pub unreported: Vec<Unreported>,
}

/// The times in which the runs of the last fire times were due: those since the schedule was written last, before which it may have
/// been off.
pub fn due_windows(schedule: &Schedule, clock: Timestamp) -> Vec<(Timestamp, Timestamp)> {
    let table = Timetable::of(schedule);
    if schedule.state() == State::Disabled {
        return Vec::new();
    }
    let since = table.written.unwrap_or(Timestamp::MIN);
    let last = table.last(clock, OCCURRENCES).unwrap_or_default().into_iter().filter(|due| *due > since);
    last.map(|due| (due, due.checked_add(patience(&table)).unwrap_or(Timestamp::MAX))).collect()
}

/// Looks for them: among what ECS knows, then within `windows`, the times in which a run was due.
pub async fn unreported(
    reports: &Reports<'_>,
    known: &[PastRun],
    running: &[String],
    windows: &[(Timestamp, Timestamp)],
) -> Answer<Found> {
    let mut found = Found::default();
    let stopped = reports.aws.stopped_tasks(reports.cluster, reports.family).await?;
    let mut seen: BTreeSet<&str> = stopped.iter().map(Task::id).collect();
    seen.extend(known.iter().map(|run| run.task.as_str()));
    seen.extend(running.iter().map(|arn| arn.rsplit('/').next().unwrap_or(arn)));
    of_ecs(reports, known, &stopped, &mut found).await?;
    if !reports.shared {
        of_windows(reports, known, &seen, windows, &mut found).await?;
    }
    found.unreported.sort_by_key(|one| std::cmp::Reverse(one.began));
    Ok(found)
}

async fn of_ecs(reports: &Reports<'_>, known: &[PastRun], stopped: &[Task], found: &mut Found) -> Answer<()> {
    let mut ours: Vec<_> = stopped
        .iter()
        .filter(|task| !known.iter().any(|run| run.task == task.id()))
        .filter_map(|task| {
            let starter = Starter::of(task.started_by.as_deref()?, reports.job)?;
            // What an operator runs with other arguments need not report.
            let began = Timestamp::from_second(task.created_at?).ok()?;
            (starter != Starter::Run).then_some((began, starter.trigger(), task))
        })
        .collect();
    ours.sort_by_key(|(began, ..)| std::cmp::Reverse(*began));
    ours.truncate(LOOKED_INTO);
    let calls = ours.iter().map(|(_, _, task)| report_in(reports, reports.stream(task.id())));
    for ((began, trigger, task), report) in ours.iter().zip(join_all(calls).await) {
        let id = task.id().to_owned();
        let code = task.container(reports.container).and_then(|container| container.exit_code);
        let said = report?;
        match said {
            Said::Report(report) => found.runs.push(PastRun { task: id, report: *report }),
            // It wrote to a log that somebody has deleted since: what it said, nobody knows.
            Said::Gone if code == Some(0) => {}
            Said::Unreadable | Said::Nothing | Said::Gone => {
                let ended = match code {
                    _ if matches!(said, Said::Unreadable) => Ended::Unreadable,
                    Some(code) => Ended::With(code),
                    None => Ended::Because(task.stopped_reason.clone().unwrap_or_default()),
                };
                let trigger = *trigger;
                found.unreported.push(Unreported { task: id, began: *began, trigger, ended, proof: reports.proof });
            }
        }
    }
    Ok(())
}

async fn of_windows(
    reports: &Reports<'_>,
    known: &[PastRun],
    seen: &BTreeSet<&str>,
    windows: &[(Timestamp, Timestamp)],
    found: &mut Found,
) -> Answer<()> {
    let is_in = |at: Timestamp, (from, to): &(Timestamp, Timestamp)| (*from..=*to).contains(&at);
    let open: Vec<_> = windows
        .iter()
        .filter(|window| {
            let scheduled = known.iter().chain(&found.runs).filter(|run| run.report.trigger == Trigger::Scheduled);
            let reported = scheduled.filter_map(PastRun::at).any(|at| is_in(at, window));
            let ended = found.unreported.iter().filter(|one| one.trigger == Trigger::Scheduled);
            !reported && !ended.map(|one| one.began).any(|at| is_in(at, window))
        })
        .collect();
    if open.is_empty() {
        return Ok(());
    }
    let streams = reports.aws.newest_streams_made(reports.group).await?;
    for window in open {
        let mut some: Vec<_> = streams
            .iter()
            .filter(|(stream, _)| stream.name.starts_with(reports.prefix) && !seen.contains(task_of(stream).as_str()))
            .filter_map(|(stream, made)| Some((Timestamp::from_millisecond((*made)?).ok()?, stream)))
            .filter(|(made, _)| is_in(*made, window))
            .collect();
        // Scheduler is the first to act in that time.
        some.sort_by_key(|(made, _)| *made);
        some.truncate(LOOKED_INTO);
        let calls = some.iter().map(|(_, stream)| report_in(reports, (*stream).clone()));
        for ((made, stream), report) in some.iter().zip(join_all(calls).await) {
            let ended = match report? {
                Said::Nothing => Some(Ended::Forgotten),
                Said::Unreadable => Some(Ended::Unreadable),
                Said::Report(_) | Said::Gone => None,
            };
            if let Some(ended) = ended {
                let (task, trigger) = (task_of(stream), Trigger::Scheduled);
                let proof = reports.proof;
                found.unreported.push(Unreported { task, began: *made, trigger, ended, proof });
                break;
            }
        }
    }
    Ok(())
}

/// What a stream holds.
enum Said {
    Report(Box<RunReport>),
    /// A report of another version than this one.
    Unreadable,
    Nothing,
    /// The stream is not there: the container has never run, or its log was deleted.
    Gone,
}

/// The report of one stream, wherever in it: what comes after it may be long.
async fn report_in(reports: &Reports<'_>, stream: LogStream) -> Answer<Said> {
    let mut token = None;
    for _ in 0..PAGES {
        let (lines, before) = match reports.aws.log_lines_before(&stream, token, None).await {
            Err(error) if error.kind == ErrorKind::NotFound => return Ok(Said::Gone),
            answer => answer?,
        };
        match RunReport::last_of(lines.iter().map(|line| line.text.as_str())) {
            Some(Ok(report)) => return Ok(Said::Report(Box::new(report))),
            Some(Err(_)) if reports.proof == Proof::RunReport => return Ok(Said::Unreadable),
            Some(Err(_)) => return Ok(Said::Nothing),
            None if before.is_none() => return Ok(Said::Nothing),
            None => token = before,
        }
    }
    Ok(Said::Nothing)
}
