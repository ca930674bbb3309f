//! How things stand with a job: what `status` shows on one screen.
//!
//! [`judge`] makes a [`Standing`] of what was read; [`render`] shows it. What could not be looked at is told apart from what is well.
//!
//! Architecture invariant: pure; what was read and the time are brought along.

pub mod judge;
pub mod overdue;
pub mod path;
pub mod render;
pub mod runs;

use std::fmt;

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use crate::exit::Exit;
use crate::receipt::{Overridden, VerifiedRun};
use overdue::{Log, Overdue};
use runs::{PastRun, Unreported};

/// What `status` reads besides a plan's world.
#[derive(Debug, Clone)]
pub struct Facts {
    /// When it was read.
    pub clock: Timestamp,
    /// The runs that were found in the log, newest first.
    pub runs: Vec<PastRun>,
    /// Whether the log has older streams than were looked into.
    pub has_older: bool,
    /// The tasks that ended without a report, newest first.
    pub unreported: Vec<Unreported>,
    /// Of the runs, those that the screen is to show.
    pub shown: usize,
    /// Whether the log was read.
    pub log: Log,
    /// The tasks of the job that run, or why that was not seen.
    pub running: Result<Vec<RunningTask>, String>,
    /// The one-off schedule of a run by Scheduler, when one is still to fire, or why that was not seen.
    pub one_off: Result<Option<String>, String>,
    /// The dead-letter queue and how full it is, when there is one.
    pub queue: Option<(String, Result<u64, String>)>,
}

/// A task of the job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunningTask {
    /// Its ARN.
    pub task: String,
    /// Whether the schedule started it.
    pub scheduled: bool,
    /// By which of our ways it was started, for a person.
    pub started: &'static str,
}

/// How things stand.
#[derive(Debug, Clone, Serialize)]
pub struct Standing {
    /// The marker and version of this document.
    pub deploy: &'static str,
    /// The job.
    pub job: String,
    /// Its account.
    pub account: String,
    /// Its region.
    pub region: String,
    /// When this was read.
    pub at: Timestamp,
    /// The schedule.
    pub schedule: ScheduleNow,
    /// When it fires next, or would.
    pub fires: Fires,
    /// What differs from the configuration, was not seen, or stands in the way; empty is well.
    pub drift: Vec<String>,
    /// Whether `enable` would open.
    pub gate: Gate,
    /// Whether Scheduler can start the job as it is now.
    pub scheduled_path: PathNow,
    /// The proven run, when the newest one is proven.
    pub receipt: Option<VerifiedRun>,
    /// That it was switched on without a proof.
    pub overridden: Option<Overridden>,
    /// Newer revisions than the one that the schedule runs.
    pub newer_revisions: Vec<NewerRevision>,
    /// The tasks that run now; `null` when that was not seen.
    pub running: Option<Vec<RunningTask>>,
    /// The one-off schedule that is still to start a task, when there is one.
    pub one_off: Option<String>,
    /// The last runs, newest first.
    pub runs: Vec<PastRun>,
    /// The last tasks that ended without a report, newest first.
    pub unreported: Vec<Unreported>,
    /// Why they are not known, when they are not.
    pub runs_unknown: Option<String>,
    /// Whether a scheduled run is missing.
    pub overdue: Overdue,
    /// The dead-letter queue, when there is one.
    pub dead_letter_queue: Option<Queue>,
    /// What a person has to do.
    pub needs: Vec<Need>,
    /// What could not be looked at.
    pub unseen: Vec<String>,
}

/// Something that a person has to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Need {
    /// What is the matter, in words.
    pub what: String,
    /// What to do, mostly a command: nothing may break it over two lines.
    pub way: String,
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.what, self.way)
    }
}

impl Serialize for Need {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The schedule.
#[derive(Debug, Clone, Serialize)]
pub struct ScheduleNow {
    /// `ENABLED`, `DISABLED`, `absent` or `not seen`.
    pub state: String,
    /// Its group.
    pub group: String,
    /// AWS's expression.
    pub expression: String,
    /// The IANA name of its zone.
    pub timezone: String,
    /// When it was written last.
    pub since: Option<Timestamp>,
    /// While it is off: how it came to be, and what it has missed.
    pub off: Option<String>,
}

/// When it fires.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Fires {
    /// The next five moments, in the schedule's zone; those that a schedule would fire at, were it on.
    pub next: Vec<FireTime>,
    /// Why there are none, or what is to be known of them.
    pub note: Option<String>,
}

/// One moment, twice.
#[derive(Debug, Clone, Serialize)]
pub struct FireTime {
    /// In the schedule's zone, with its offset.
    pub local: String,
    /// The same in UTC.
    pub utc: Timestamp,
    /// For a person.
    #[serde(skip)]
    pub shown: String,
}

/// The gate.
#[derive(Debug, Clone, Serialize)]
pub struct Gate {
    /// Whether it is open; `null` when that could not be told.
    pub open: Option<bool>,
    /// Why it is not.
    pub why: Vec<String>,
}

/// The way from Scheduler to a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PathNow {
    /// Whether it is proven; `null` when that could not be told.
    pub proven: Option<bool>,
    /// By what, or why not.
    pub says: String,
}

/// A revision that the schedule does not run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NewerRevision {
    /// Its number.
    pub revision: u32,
    /// Who registered it.
    pub registered_by: Option<String>,
    /// The variables of the job's secrets that it does not have.
    pub lacks: Vec<String>,
}

/// The dead-letter queue.
#[derive(Debug, Clone, Serialize)]
pub struct Queue {
    /// Its ARN.
    pub arn: String,
    /// About how many messages are in it; `null` when that was not seen.
    pub depth: Option<u64>,
}

impl Standing {
    /// Healthy, could not look, or needs a person. Silence about what nobody saw would read like good news.
    pub fn exit(&self) -> Exit {
        match (self.needs.is_empty(), self.unseen.is_empty()) {
            (false, _) => Exit::NeedsPerson,
            (true, false) => Exit::Failed,
            (true, true) => Exit::Done,
        }
    }
}
