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

    /// A container by its name.
    pub fn container(&self, name: &str) -> Option<&Container> {
        self.containers.iter().find(|container| container.name == name)
    }
}
