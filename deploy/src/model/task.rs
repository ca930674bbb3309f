//! A task, as AWS describes it.

use std::collections::BTreeMap;

/// One task of ECS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Task {
    /// Its ARN.
    pub arn: String,
    /// The ARN of its cluster.
    pub cluster: String,
    /// The ARN of the revision that it runs.
    pub task_definition: String,
    /// What the request said of who starts it.
    pub started_by: Option<String>,
    /// Where it was placed: `FARGATE`.
    pub launch_type: Option<String>,
    /// The capacity provider that it was placed by, when a strategy was asked for.
    pub capacity_provider: Option<String>,
    /// Fargate's platform version.
    pub platform_version: Option<String>,
    /// `PROVISIONING`, `PENDING`, `RUNNING`, ... `STOPPED`.
    pub status: String,
    /// Why it stopped, as AWS classifies it: `EssentialContainerExited`, `TaskFailedToStart`, ...
    pub stop_code: Option<String>,
    /// Why it stopped, in words.
    pub stopped_reason: Option<String>,
    /// Its containers.
    pub containers: Vec<Container>,
    /// What the request replaced, by container. A container without overrides may be listed too.
    pub overrides: Vec<ContainerOverride>,
    /// The subnet that its network interface is in.
    pub subnet: Option<String>,
    /// When it was asked for, in seconds since the epoch.
    pub created_at: Option<i64>,
    /// When it stopped, in seconds since 1970.
    pub stopped_at: Option<i64>,
    /// What AWS did with it, in the order of a task's life.
    pub events: Vec<TaskEvent>,
}

/// A moment in the life of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskEvent {
    /// When, in milliseconds since the epoch.
    pub at_ms: i64,
    /// What.
    pub what: Moment,
}

/// The moments that AWS notes, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Moment {
    /// RunTask.
    Created,
    /// Its network interface is there.
    Connected,
    /// The images are fetched.
    PullStarted,
    /// The images are there.
    PullStopped,
    /// Its containers run.
    Started,
    /// Something ends it.
    Stopping,
    /// Its containers have ended.
    ExecutionStopped,
    /// It has ended.
    Stopped,
}

impl Moment {
    /// In the words of a person who looks back.
    pub const fn as_str(self) -> &'static str {
        match self {
            Moment::Created => "asked for",
            Moment::Connected => "connected to its network",
            Moment::PullStarted => "fetching the image",
            Moment::PullStopped => "the image is there",
            Moment::Started => "running",
            Moment::Stopping => "stopping",
            Moment::ExecutionStopped => "its containers have ended",
            Moment::Stopped => "stopped",
        }
    }
}

/// A container of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Container {
    /// Its name in the task definition.
    pub name: String,
    /// Its exit code; absent when it never started.
    pub exit_code: Option<i32>,
    /// What went wrong with it, in words.
    pub reason: Option<String>,
    /// The digest of the image that it ran.
    pub image_digest: Option<String>,
}

/// What a request replaces in one container.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ContainerOverride {
    /// The container.
    pub name: String,
    /// The command, when it is replaced.
    pub command: Vec<String>,
    /// The variables that are added or replaced.
    pub environment: BTreeMap<String, String>,
}

/// Why ECS started nothing although it answered 200.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// `RESOURCE:MEMORY`, `AGENT`, `MISSING`, or a sentence such as "Capacity is unavailable at this time."
    pub reason: String,
    /// More words.
    pub detail: Option<String>,
}

impl Task {
    /// The last part of the ARN, which is also the last part of the name of its log streams.
    pub fn id(&self) -> &str {
        self.arn.rsplit('/').next().unwrap_or(&self.arn)
    }

    /// It has ended, and nothing about it will change.
    pub fn is_stopped(&self) -> bool {
        self.status == "STOPPED"
    }

    /// Whether the containers of both were at work at one time.
    pub fn ran_beside(&self, other: &Task) -> bool {
        let (Some((began, ended)), Some((other_began, other_ended))) = (self.at_work(), other.at_work()) else {
            return false;
        };
        began < other_ended && other_began < ended
    }

    /// From when until when its containers ran, in milliseconds since the epoch; those that never did were not at work.
    fn at_work(&self) -> Option<(i64, i64)> {
        let at = |what: Moment| self.events.iter().find(|event| event.what == what).map(|event| event.at_ms);
        let ended = at(Moment::ExecutionStopped).or_else(|| at(Moment::Stopped)).unwrap_or(i64::MAX);
        Some((at(Moment::Started)?, ended))
    }

    /// The family and number of its revision.
    pub fn family_and_revision(&self) -> &str {
        self.task_definition.rsplit('/').next().unwrap_or(&self.task_definition)
    }

    /// A container by its name.
    pub fn container(&self, name: &str) -> Option<&Container> {
        self.containers.iter().find(|container| container.name == name)
    }
}
