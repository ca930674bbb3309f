//! The one RunTask request.

use std::collections::BTreeMap;

use super::TaskDefinitionRef;

/// The one RunTask request of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunTask {
    /// The cluster's name or ARN.
    pub cluster: String,
    /// The pinned revision.
    pub task_definition: TaskDefinitionRef,
    /// Where it runs.
    pub launch: Launch,
    /// The network.
    pub network: Network,
    /// The container whose command is replaced.
    pub container: String,
    /// The command.
    pub command: Vec<String>,
    /// More environment for the container.
    pub environment: BTreeMap<String, String>,
    /// The job's name.
    pub job: String,
}

/// Where a task runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Launch {
    /// On Fargate.
    Fargate,
}

/// The awsvpc configuration.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// The subnets.
    pub subnets: Vec<String>,
    /// The security groups.
    pub security_groups: Vec<String>,
    /// Whether the task gets a public address.
    pub assign_public_ip: bool,
}

impl RunTask {
    /// The schedule's Input.
    pub fn scheduler_input(&self) -> String {
        String::new()
    }
}
