//! One write, with everything that is sent.

use serde_json::{Map, Value};

use crate::model::run_task::{Parts, RunTask, RunTaskError};
use crate::model::{NewRole, PolicyDocument, Schedule, Tags, TaskDefinitionRef};
use crate::secret::Origin;

/// One write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A new SecureString.
    CreateParameter {
        /// Its name.
        name: String,
        /// The secret whose value it takes.
        env: String,
        /// Where the value comes from.
        from: Origin,
        /// The key that encrypts it, when one was named.
        key: Option<String>,
        /// Its tags.
        tags: Tags,
    },
    /// A new version of a SecureString.
    OverwriteParameter {
        /// Its name.
        name: String,
        /// The secret whose value it takes.
        env: String,
        /// Where the value comes from.
        from: Origin,
        /// The key that encrypts it: the one that was named, else the one that is there. AWS may forget it unless it is sent.
        key: Option<String>,
    },
    /// Tags for a parameter that is adopted.
    TagParameter {
        /// Its name.
        name: String,
        /// The tags.
        tags: Tags,
    },
    /// An inline policy.
    PutRolePolicy {
        /// The role.
        role: String,
        /// The policy.
        policy: String,
        /// What it says.
        document: PolicyDocument,
    },
    /// Our inline policy on a role, which no secret needs any more.
    DeleteRolePolicy {
        /// The role.
        role: String,
        /// The policy.
        policy: String,
    },
    /// A new revision.
    Register {
        /// Every member.
        members: Map<String, Value>,
        /// Its tags.
        tags: Tags,
    },
    /// A new role.
    CreateRole(NewRole),
    /// The boundary of what a role may ever do.
    PutBoundary {
        /// The role.
        role: String,
        /// The policy's ARN.
        boundary: String,
    },
    /// Who may assume a role.
    UpdateTrust {
        /// The role.
        role: String,
        /// Who may assume it.
        trust: PolicyDocument,
        /// Scheduler may not assume it as it is.
        is_shut: bool,
    },
    /// Tags for a role that is adopted.
    TagRole {
        /// The role.
        role: String,
        /// The tags.
        tags: Tags,
    },
    /// A new schedule group.
    CreateGroup {
        /// Its name.
        name: String,
        /// Its tags.
        tags: Tags,
    },
    /// Tags for a group that is adopted.
    TagGroup {
        /// Its name.
        name: String,
        /// Its ARN.
        arn: String,
        /// The tags.
        tags: Tags,
    },
    /// A new schedule, switched off.
    CreateSchedule(ScheduleStep),
    /// A schedule, replaced whole.
    UpdateSchedule(ScheduleStep),
    /// A schedule that fires, switched off as it is: before anything else is changed, whatever becomes of the rest.
    SwitchOff(Schedule),
}

/// A schedule that is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScheduleStep {
    /// Everything but the target's Input.
    pub schedule: Schedule,
    /// The Input, pinned to `pin`; the reference inside is only a stand-in when that is new.
    pub run_task: Parts,
    /// The revision that the Input names.
    pub pin: Pin,
}

impl ScheduleStep {
    /// The whole schedule, its Input pinned to a revision.
    pub fn with_input(&self, task_definition: TaskDefinitionRef) -> Result<Schedule, RunTaskError> {
        let run_task = RunTask::new(Parts { task_definition, ..self.run_task.clone() })?;
        let mut schedule = self.schedule.clone();
        if let Some(target) = schedule.0.get_mut("Target") {
            target["Input"] = run_task.scheduler_input().into();
        }
        Ok(schedule)
    }
}

/// Which revision the schedule runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pin {
    /// This one.
    Revision(TaskDefinitionRef),
    /// The one that an earlier step registers.
    New,
}

impl std::fmt::Display for Step {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Step::CreateParameter { name, .. } => write!(f, "create parameter {name}"),
            Step::OverwriteParameter { name, .. } => write!(f, "write parameter {name} anew"),
            Step::TagParameter { name, .. } => write!(f, "tag parameter {name}"),
            Step::PutRolePolicy { role, policy, .. } => write!(f, "write policy {role}/{policy}"),
            Step::DeleteRolePolicy { role, policy } => write!(f, "delete policy {role}/{policy}"),
            Step::Register { members, .. } => {
                write!(f, "register task definition {}", members["family"].as_str().unwrap_or_default())
            }
            Step::CreateRole(NewRole { name, .. }) => write!(f, "create role {name}"),
            Step::PutBoundary { role, .. } => write!(f, "write the permissions boundary of role {role}"),
            Step::UpdateTrust { role, .. } => write!(f, "write who may assume role {role}"),
            Step::TagRole { role, .. } => write!(f, "tag role {role}"),
            Step::CreateGroup { name, .. } => write!(f, "create schedule group {name}"),
            Step::TagGroup { name, .. } => write!(f, "tag schedule group {name}"),
            Step::CreateSchedule(step) => write!(f, "create schedule {}, {}", step.run_task.job, step.schedule.state()),
            Step::SwitchOff(schedule) => write!(f, "switch off schedule {}", schedule.text("Name").unwrap_or_default()),
            Step::UpdateSchedule(step) => write!(f, "write schedule {}, {}", step.run_task.job, step.schedule.state()),
        }
    }
}
