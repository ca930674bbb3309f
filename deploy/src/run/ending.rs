//! How a run can end without proving anything: a closed set, each with its words and its way out.
//!
//! Architecture invariant: pure.

use std::time::Duration;

use geuneul::{Outcome, WithheldReason};

use crate::cloud::CloudError;
use crate::model::task::Failure;

mod hint;

pub use hint::next_step;

/// Why a run is not proven. `Display` says what happened, [`Ending::hint`] what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Ending {
    /// RunTask answered 200, and nothing runs. To Scheduler this is a success: the run of that month would simply be missing.
    #[error("ECS accepted the request and started nothing: {}", failures(.0))]
    NotPlaced(Vec<Failure>),
    /// RunTask was refused.
    #[error("ECS refused to start the task: {}", .0.said)]
    Refused(CloudError),
    /// Scheduler was to start it, and no task came of it.
    #[error("Scheduler started no task: {seen}")]
    NothingStarted {
        /// What was seen of the one-off schedule.
        seen: String,
        /// What was found on the way from it to the task.
        way: Way,
    },
    /// Scheduler was to start it, and AWS did not let us see whether it did.
    #[error("whether Scheduler started a task was not seen: {0}")]
    StartNotSeen(CloudError),
    /// ECS forgot the task, or never knew it.
    #[error("ECS does not know the task that it started")]
    Vanished,
    /// We stopped waiting; the task did not stop.
    #[error("the task is still {status} after {}; it goes on", humantime(.waited))]
    TimedOut {
        /// Where it is.
        status: String,
        /// How long we waited.
        waited: Duration,
        /// The task.
        task: String,
    },
    /// Ctrl-C.
    #[error("we stopped watching; the task goes on")]
    Detached {
        /// The task.
        task: String,
    },
    /// AWS does not let us see what becomes of it.
    #[error("the task can no longer be watched, and goes on: {why}")]
    Unwatched {
        /// What AWS said.
        why: String,
        /// The task.
        task: String,
    },
    /// Ctrl-C, before anything was started.
    #[error("interrupted before anything was started")]
    Interrupted,
    /// No container ran.
    #[error("the task never started: {reason}")]
    NeverStarted {
        /// What AWS says.
        reason: String,
    },
    /// The container has no exit code, for a reason that AWS does not classify as a failed start.
    #[error("container {container} has no exit code ({}): {reason}", .stop_code.as_deref().unwrap_or("no stop code"))]
    NoExitCode {
        /// The container.
        container: String,
        /// AWS's class of the stop.
        stop_code: Option<String>,
        /// What AWS says.
        reason: String,
    },
    /// StopTask.
    #[error("somebody stopped the task: {reason}")]
    StoppedByPerson {
        /// What AWS says.
        reason: String,
    },
    /// AWS took the capacity back.
    #[error("AWS took the task away ({stop_code}): {reason}")]
    TakenAway {
        /// AWS's class of the stop.
        stop_code: String,
        /// What AWS says.
        reason: String,
    },
    /// Another task than the schedule's Input asks for.
    #[error("the task is not the one that was asked for (exit code {exit_code}): {}", .differences.join("; "))]
    NotAsAsked {
        /// The exit code.
        exit_code: i32,
        /// What differs.
        differences: Vec<String>,
    },
    /// Scheduler left one of its placeholders as it was.
    #[error("the task was given \"<aws.scheduler.\" literally (exit code {exit_code}): {}", .places.join(", "))]
    NotReplaced {
        /// The exit code.
        exit_code: i32,
        /// Where.
        places: Vec<String>,
    },
    /// Killed for its memory.
    #[error("the container ran out of memory (exit code {exit_code}): {reason}")]
    OutOfMemory {
        /// The exit code.
        exit_code: i32,
        /// What AWS says.
        reason: String,
    },
    /// Any other exit code.
    #[error("container {container} ended with exit code {exit_code}{}{}", meaning(*.exit_code, .outcomes, .error), beside(.others))]
    Failed {
        /// The container.
        container: String,
        /// The exit code.
        exit_code: i32,
        /// What the code may mean, or what the report says.
        outcomes: Vec<Outcome>,
        /// What the report says went wrong.
        error: Option<String>,
        /// What the other containers ended with, when this one may have been killed for their sake.
        others: Vec<String>,
    },
    /// Upserted, but what vanished stays.
    #[error("the run upserted, and withheld the deactivation of {deactivations} places (exit code 65): {}", withheld(*.reason))]
    Withheld {
        /// How many.
        deactivations: u64,
        /// Why.
        reason: WithheldReason,
    },
    /// Another run was at work, or had been.
    #[error("the run did nothing: {}", skipped(.holder))]
    Skipped {
        /// The run that holds the lock; none when the last success was too recent.
        holder: Option<String>,
    },
    /// A proof is of the job at rest.
    #[error("the run ended well, and another task of the job was at work beside it: {task}, started {started}")]
    Beside {
        /// That task.
        task: String,
        /// By whom it was started.
        started: &'static str,
    },
    /// The same, and nobody knows.
    #[error("the run ended well, and whether another task of the job ran beside it was not seen: {0}")]
    BesideNotSeen(CloudError),
    /// Exit code 0, and no way to see what was done.
    #[error("the run ended with exit code 0, but its log cannot be read: {why}")]
    LogNotRead {
        /// Why not.
        why: String,
    },
    /// Exit code 0 without a report.
    #[error("the run ended with exit code 0, but printed no run report")]
    NoReport,
    /// A report that does not count.
    #[error("the run ended with exit code 0, but its report does not count: {why}")]
    UnreadableReport {
        /// Why not.
        why: String,
    },
    /// Exit code 0, and the report says something else than success.
    #[error("the run ended with exit code 0 and reports {outcome}: {}", .outcome.meaning())]
    Unsuccessful {
        /// What it says.
        outcome: Outcome,
    },
    /// A success of nothing.
    #[error("the run reports succeeded, but fetched no rows")]
    NoRows,
    /// A success that stored nothing.
    #[error("the run reports succeeded, but set every row aside: {rejected} of {rejected} rejected")]
    AllRejected {
        /// How many.
        rejected: u64,
    },
    /// A success whose snapshot is not proven, of a job that deactivates what a snapshot lacks.
    #[error(
        "the run reports succeeded, but its snapshot was not complete, and the schedule's command deactivates what a snapshot lacks"
    )]
    Incomplete,
    /// A report of some other run.
    #[error("the run ended with exit code 0, and its report is not of this run: {why}")]
    OfAnotherRun {
        /// What shows it.
        why: String,
    },
}

/// The way from a one-off schedule to its task, where no task came of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Way {
    /// There was no one-off schedule: Scheduler did not take it.
    NotTaken {
        /// What to do about it.
        hint: String,
    },
    /// It did not even fire.
    NotGone,
    /// Something on it is wrong.
    Wrong,
    /// Something on it is wrong, and the scheduler's role, which is given, is only theirs to change.
    WrongAndGiven,
    /// All that we write is in order, and yet something on it is denied.
    Denied {
        /// What else decides about the scheduler's role: its other policies, its boundary.
        by: Vec<String>,
        /// The name of that role.
        role: String,
    },
    /// Whatever can be looked at is in order.
    InOrder,
}

impl Ending {
    /// The name of each, as documents for programs have it.
    pub const NAMES: [&str; 29] = [
        "not-placed",
        "refused",
        "nothing-started",
        "start-not-seen",
        "vanished",
        "timed-out",
        "detached",
        "unwatched",
        "interrupted",
        "never-started",
        "no-exit-code",
        "stopped-by-person",
        "taken-away",
        "not-as-asked",
        "not-replaced",
        "out-of-memory",
        "failed",
        "withheld",
        "skipped",
        "beside",
        "beside-not-seen",
        "log-not-read",
        "no-report",
        "unreadable-report",
        "unsuccessful",
        "no-rows",
        "all-rejected",
        "incomplete",
        "of-another-run",
    ];

    /// Which one it is: one of [`Ending::NAMES`].
    pub fn name(&self) -> &'static str {
        match self {
            Ending::NotPlaced(_) => "not-placed",
            Ending::Refused(_) => "refused",
            Ending::NothingStarted { .. } => "nothing-started",
            Ending::StartNotSeen(_) => "start-not-seen",
            Ending::Vanished => "vanished",
            Ending::TimedOut { .. } => "timed-out",
            Ending::Detached { .. } => "detached",
            Ending::Unwatched { .. } => "unwatched",
            Ending::Interrupted => "interrupted",
            Ending::NeverStarted { .. } => "never-started",
            Ending::NoExitCode { .. } => "no-exit-code",
            Ending::StoppedByPerson { .. } => "stopped-by-person",
            Ending::TakenAway { .. } => "taken-away",
            Ending::NotAsAsked { .. } => "not-as-asked",
            Ending::NotReplaced { .. } => "not-replaced",
            Ending::OutOfMemory { .. } => "out-of-memory",
            Ending::Failed { .. } => "failed",
            Ending::Withheld { .. } => "withheld",
            Ending::Skipped { .. } => "skipped",
            Ending::Beside { .. } => "beside",
            Ending::BesideNotSeen(_) => "beside-not-seen",
            Ending::LogNotRead { .. } => "log-not-read",
            Ending::NoReport => "no-report",
            Ending::UnreadableReport { .. } => "unreadable-report",
            Ending::Unsuccessful { .. } => "unsuccessful",
            Ending::NoRows => "no-rows",
            Ending::AllRejected { .. } => "all-rejected",
            Ending::Incomplete => "incomplete",
            Ending::OfAnotherRun { .. } => "of-another-run",
        }
    }

    /// What a receipt keeps of it: words that are still true when the task has gone on and stopped.
    pub fn lasting(&self) -> String {
        match self {
            Ending::TimedOut { status, waited, .. } => {
                format!("its end was not waited for, it was {status} after {}", humantime(waited))
            }
            Ending::Detached { .. } => "its end was not watched".to_owned(),
            other => other.to_string(),
        }
    }

    /// The task, when it goes on without us.
    pub fn goes_on(&self) -> Option<&str> {
        match self {
            Ending::TimedOut { task, .. } | Ending::Detached { task } | Ending::Unwatched { task, .. } => Some(task),
            _ => None,
        }
    }
}

fn failures(failures: &[Failure]) -> String {
    let one = |failure: &Failure| match &failure.detail {
        Some(detail) => format!("{} ({detail})", failure.reason),
        None => failure.reason.clone(),
    };
    if failures.is_empty() {
        return "it gives no reason".to_owned();
    }
    failures.iter().map(one).collect::<Vec<_>>().join("; ")
}

fn meaning(exit_code: i32, outcomes: &[Outcome], error: &Option<String>) -> String {
    let named = |outcome: &Outcome| match outcome.meaning() {
        meaning if meaning.starts_with(&outcome.to_string()) => meaning.to_owned(),
        meaning => format!("{outcome}: {meaning}"),
    };
    let meanings: Vec<_> = outcomes.iter().map(named).collect();
    let said = error.as_ref().map(|message| format!("; it says: {message}")).unwrap_or_default();
    match exit_code {
        _ if !meanings.is_empty() => format!(" ({}){said}", meanings.join(", or ")),
        129..=159 => format!(" (killed by signal {})", exit_code - 128),
        _ => said,
    }
}

fn beside(others: &[String]) -> String {
    if others.is_empty() { String::new() } else { format!("; beside it: {}", others.join(", ")) }
}

fn withheld(reason: WithheldReason) -> &'static str {
    match reason {
        WithheldReason::UnprovenSnapshot => "the snapshot is not proven complete",
        WithheldReason::UnnamedRow => "a row has no name or institution code that can be read",
        WithheldReason::OverCap => "that is more than a run may believe by itself",
    }
}

fn skipped(holder: &Option<String>) -> String {
    match holder {
        Some(run) => format!("run {run} is at work"),
        None => Outcome::Skipped.meaning().to_owned(),
    }
}

/// `95 s` as `1m 35s`.
pub fn humantime(duration: &Duration) -> String {
    let seconds = duration.as_secs();
    if seconds < 10 && duration.subsec_millis() > 0 {
        return format!("{:.1}s", duration.as_secs_f64());
    }
    match (seconds / 60, seconds % 60) {
        (0, seconds) => format!("{seconds}s"),
        (minutes, 0) => format!("{minutes}m"),
        (minutes, seconds) => format!("{minutes}m {seconds}s"),
    }
}
