//! How a run can end without proving anything: a closed set, each with its words and its way out.

use std::time::Duration;

use geuneul::Outcome;

use crate::model::task::Failure;

/// Why a run is not proven. `Display` says what happened, [`Ending::hint`] what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Ending {
    /// RunTask answered 200, and nothing runs. To Scheduler this is a success: the run of that month would simply be missing.
    #[error("ECS accepted the request and started nothing: {}", failures(.0))]
    NotPlaced(Vec<Failure>),
    /// Scheduler was to start it, and no task came of it.
    #[error("Scheduler started no task: {seen}")]
    NothingStarted {
        /// What was seen of the one-off schedule.
        seen: String,
    },
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
    },
    /// Ctrl-C.
    #[error("we stopped watching; the task goes on")]
    Detached,
    /// AWS does not let us see what becomes of it.
    #[error("the task can no longer be watched, and goes on: {why}")]
    Unwatched {
        /// What AWS said.
        why: String,
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
    #[error("the task is not the one that the schedule asks for (exit code {exit_code}): {}", .differences.join("; "))]
    NotAsAsked {
        /// The exit code.
        exit_code: i32,
        /// What differs.
        differences: Vec<String>,
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
    #[error("container {container} ended with exit code {exit_code}{}", meaning(*.exit_code, .outcomes, .error))]
    Failed {
        /// The container.
        container: String,
        /// The exit code.
        exit_code: i32,
        /// What the code may mean, or what the report says.
        outcomes: Vec<Outcome>,
        /// What the report says went wrong.
        error: Option<String>,
    },
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
    #[error("the run ended with exit code 0 and reports {outcome}: {}{}", .outcome.meaning(), held_by(.holder))]
    Unsuccessful {
        /// What it says.
        outcome: Outcome,
        /// The run that holds the lock, when this one was skipped.
        holder: Option<String>,
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
    #[error(
        "the run ended with exit code 0, and its report is not of this run: it started at {started_at}, the task was made at {created_at}"
    )]
    OfAnotherRun {
        /// What the report says.
        started_at: String,
        /// What AWS says.
        created_at: String,
    },
}

impl Ending {
    /// What a receipt keeps of it: words that are still true when the task has gone on and stopped.
    pub fn lasting(&self) -> String {
        match self {
            Ending::TimedOut { status, waited } => {
                format!("its end was not waited for, it was {status} after {}", humantime(waited))
            }
            Ending::Detached => "its end was not watched".to_owned(),
            other => other.to_string(),
        }
    }

    /// Whether the task goes on without us.
    pub fn goes_on(&self) -> bool {
        matches!(self, Ending::TimedOut { .. } | Ending::Detached)
    }

    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            Ending::NotPlaced(failures) => {
                failures.first().map_or("try again", |failure| failure_hint(&failure.reason))
            }
            Ending::NothingStarted { .. } => {
                "repair what is wrong on the way; when nothing is, Scheduler was refused by what cannot be looked at (a service control \
                 policy, a permissions boundary), or ECS had no room"
            }
            Ending::Vanished => "try again; if it happens twice, look for RunTask in CloudTrail",
            Ending::TimedOut { .. } => "only a run that is waited for to its end counts; --timeout gives it longer",
            Ending::Detached => "only a run that is watched to its end counts",
            Ending::Unwatched { .. } => {
                "when the cause is gone and the task has stopped, trigger it again; looking needs ecs:DescribeTasks"
            }
            Ending::Interrupted => "trigger it again",
            Ending::NeverStarted { reason } => start_hint(reason),
            Ending::NoExitCode { .. } => {
                "compare the container's name in deploy.toml with the task definition's, and look at the task in the ECS console"
            }
            Ending::StoppedByPerson { .. } => "trigger it again when nobody needs it stopped",
            Ending::TakenAway { .. } => "trigger it again",
            Ending::NotAsAsked { .. } => {
                "look at the schedule's Input and at the task definition; `deploy plan` shows what deploy wants"
            }
            Ending::OutOfMemory { .. } => {
                "give the task definition more memory; a new revision needs `deploy apply --disabled` and a new run"
            }
            Ending::Failed { outcomes, .. } if outcomes.contains(&Outcome::Usage) => {
                "compare the command in deploy.toml with the --help of the image's version"
            }
            Ending::Failed { outcomes, .. } if outcomes.contains(&Outcome::Misconfigured) => {
                "look at the container's key, database settings and schema; its log says which"
            }
            Ending::Failed { outcomes, .. } if outcomes.contains(&Outcome::Withheld) => {
                "look at what would be deactivated before you confirm it; the changes are in the database already"
            }
            Ending::Failed { .. } => "read the container's log",
            Ending::LogNotRead { .. } => {
                "you need logs:GetLogEvents on the log group of the container; without a log, gate.proof = \"exit-code\" is what remains"
            }
            Ending::NoReport => {
                "is this the image of `ingest`? A job that prints no report needs gate.proof = \"exit-code\" in deploy.toml"
            }
            Ending::UnreadableReport { .. } => "use a `deploy` and an `ingest` of the same version",
            Ending::Unsuccessful { outcome: Outcome::Skipped, .. } => {
                "wait until the other run has ended, then trigger this one again"
            }
            Ending::Unsuccessful { .. } => {
                "the report and the exit code disagree: use a `deploy` and an `ingest` of the same version"
            }
            Ending::NoRows => "is DATA_GO_KR_BASE_URL the right one?",
            Ending::AllRejected { .. } => {
                "look into ingest_rejects for the reason: the data set's shape may have changed"
            }
            Ending::Incomplete => {
                "trigger it again when the portal is quiet; pages that shift during a crawl are the usual cause"
            }
            Ending::OfAnotherRun { .. } => {
                "does the container print a line that it was given, or is its clock wrong? Only the run's own report counts"
            }
        }
    }
}

/// What a person does about an outcome of the container.
pub fn next_step(outcome: Outcome) -> &'static str {
    let (container, exit_code) = (String::new(), i32::from(outcome.exit_code()));
    Ending::Failed { container, exit_code, outcomes: vec![outcome], error: None }.hint()
}

/// ECS's reasons are codes for an EC2 cluster and sentences for Fargate.
fn failure_hint(reason: &str) -> &'static str {
    match reason {
        reason if reason.contains("apacity") => "try again later; subnets in several availability zones make it rarer",
        reason if reason.starts_with("RESOURCE") => {
            "the cluster has no room for the task's CPU, memory or network interface"
        }
        "AGENT" => "an instance's ECS agent is disconnected",
        "MISSING" | "INACTIVE" => "something that the request names is gone; `deploy plan` shows what",
        _ => "look the reason up under \"API failures messages\" in the ECS guide",
    }
}

/// The three causes of "unable to pull secrets" look alike and need different people.
fn start_hint(reason: &str) -> &'static str {
    let has = |words: &str| reason.contains(words);
    if has("AccessDenied") || has("not authorized") {
        "the execution role may not read the secret; `deploy plan` compares its policy. A policy that is seconds old needs one more try"
    } else if has("nvalid ssm parameters") || has("ParameterNotFound") {
        "the parameter is not in this account and region; `deploy apply --disabled` writes it"
    } else if has("deadline exceeded") || has("imeout") {
        "the subnet has no way to SSM, ECR or the logs: a NAT, VPC endpoints, or assign_public_ip = true in a public subnet"
    } else if has("CannotPull") || has("pull image") || has("failed to resolve ref") {
        "the image cannot be pulled: does the tag exist, and may the execution role read the repository?"
    } else if has("log group does not exist") || has("log stream") {
        "create the log group that the task definition names; the execution role may not"
    } else if has("unable to assume the role") {
        "the role's trust policy must name ecs-tasks.amazonaws.com; a role that is seconds old needs one more try"
    } else {
        "look at the task in the ECS console: stopped tasks are kept for about an hour"
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
    let meanings: Vec<_> = outcomes.iter().map(|outcome| format!("{outcome}: {}", outcome.meaning())).collect();
    let said = error.as_ref().map(|message| format!("; it says: {message}")).unwrap_or_default();
    match exit_code {
        _ if !meanings.is_empty() => format!(" ({}){said}", meanings.join(", or ")),
        129..=159 => format!(" (killed by signal {})", exit_code - 128),
        _ => said,
    }
}

fn held_by(holder: &Option<String>) -> String {
    holder.as_ref().map(|run| format!(" (run {run})")).unwrap_or_default()
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
