//! What is wanted and what is there, as plain values.
//!
//! Architecture invariant: no SDK types, no I/O. The two documents that must survive a round trip whole (a task definition, a
//! schedule) are kept as the JSON that AWS speaks, so that a field which this program has never heard of stays in it.

pub mod dead_letter;
pub mod log;
pub mod parameter;
pub mod policy;
pub mod run_task;
pub mod schedule;
pub mod tags;
pub mod task;
pub mod task_definition;

pub use dead_letter::DeadLetter;
pub use parameter::{Parameter, ParameterType};
pub use policy::{NewRole, PolicyDocument, Role, RolePolicies};
pub use run_task::{Launch, Network, RunTask};
pub use schedule::{Elsewhere, Group, Schedule, State};
pub use tags::Tags;
pub use task_definition::{TaskDefinition, TaskDefinitionRef};

use std::collections::BTreeMap;

use crate::receipt::Receipt;
use crate::scheduled_path::ScheduledPath;
use crate::sealed::Unreadable;

/// What a look at one thing found. "Absent" and "not allowed to look" are different answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Seen<T> {
    /// It is not there.
    Absent,
    /// It is there.
    Present(T),
    /// We were not allowed to look.
    Hidden {
        /// What AWS said, in a few words, such as `iam:GetRole denied`.
        why: String,
    },
}

impl<T> Seen<T> {
    /// The thing, when it is there.
    pub fn present(&self) -> Option<&T> {
        match self {
            Seen::Present(thing) => Some(thing),
            Seen::Absent | Seen::Hidden { .. } => None,
        }
    }

    /// Another view of the thing, keeping the other two answers.
    pub fn map<U>(self, f: impl FnOnce(T) -> U) -> Seen<U> {
        match self {
            Seen::Absent => Seen::Absent,
            Seen::Present(thing) => Seen::Present(f(thing)),
            Seen::Hidden { why } => Seen::Hidden { why },
        }
    }
}

/// Who is asking, as AWS sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The twelve digits.
    pub account: String,
    /// The caller's ARN.
    pub arn: String,
    /// The region that the clients speak to.
    pub region: String,
}

/// A schedule that pins another revision than the newest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Behind {
    /// What it pins.
    pub pinned: TaskDefinitionRef,
    /// Whether that one can run: it is there, and not INACTIVE.
    pub runs: bool,
    /// Newer revisions, oldest first; the last few when there are many.
    pub newer: Vec<TaskDefinition>,
}

/// Everything that one job's plan looks at, read in one go.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Live {
    /// Who asked.
    pub identity: Identity,
    /// The secrets' parameters, in the order of the configuration.
    pub parameters: Vec<Seen<Parameter>>,
    /// The other parameters that the containers read as secrets, by their names, and the version of each; none for one that is gone.
    pub other_secrets: Seen<BTreeMap<String, Option<String>>>,
    /// The newest active revision of the family.
    pub newest: Seen<TaskDefinition>,
    /// The revision to start from: the one that the schedule pins, or the newest.
    pub task_definition: Seen<TaskDefinition>,
    /// What the schedule pins, when that is not the newest revision.
    pub behind: Option<Behind>,
    /// Our inline policy on the execution role; `None` when there is no role.
    pub execution_policy: Option<Seen<PolicyDocument>>,
    /// The scheduler's role.
    pub scheduler_role: Seen<Role>,
    /// Our inline policy on the scheduler's role.
    pub scheduler_policy: Seen<PolicyDocument>,
    /// All of its policies; absent when the role is.
    pub scheduler_role_policies: Seen<RolePolicies>,
    /// What its inline policies say that are not ours, by their names.
    pub scheduler_role_others: Vec<(String, Seen<PolicyDocument>)>,
    /// The managed policies that are attached to it or bound it, by their ARNs, and which version of each counts.
    pub scheduler_role_managed: BTreeMap<String, Seen<String>>,
    /// The schedule group.
    pub group: Seen<Group>,
    /// The schedule.
    pub schedule: Seen<Schedule>,
    /// Where else the job has a schedule; looked for only when there is none where the configuration says.
    pub elsewhere: Seen<Vec<Elsewhere>>,
    /// The cluster's status, such as `ACTIVE`.
    pub cluster: Seen<String>,
    /// The log group that the container writes to, when it writes to one.
    pub log_group: Option<(String, Seen<()>)>,
    /// What the newest run by hand left, or why it cannot be read.
    pub receipt: Seen<Result<Receipt, Unreadable>>,
    /// The newest proof that Scheduler can start the job, or why it cannot be read.
    pub scheduled_path: Seen<Result<ScheduledPath, Unreadable>>,
}
