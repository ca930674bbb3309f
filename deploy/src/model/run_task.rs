//! The one RunTask request of a job.
//!
//! A single value renders the schedule's Input ([`RunTask::scheduler_input`]), the run that a person starts
//! ([`RunTask::manual`], sent through the SDK) and the line for the `aws` command ([`Run::cli_json`]). What is proven by
//! hand is therefore what the schedule does; only what names the occurrence differs: `ClientToken`, `StartedBy` and the
//! environment variables `INGEST_TRIGGER` and `INGEST_OCCURRENCE`.
//!
//! EventBridge Scheduler wants every key of a universal target's Input in PascalCase, whatever the service's own API writes, and
//! may drop a nested key that it does not know. So the keys are field names of the types in `wire`, and a value that was
//! read back is refused unless every one of its keys is among them.
//!
//! Architecture invariant: no SDK type, no I/O, no clock. Whoever starts a run brings its [`Occurrence`].

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::task_definition::{NotARevision, TaskDefinitionRef};
use marks::{Marks, STARTED_BY_SCHEDULE};
use wire::{camel_case, canonical, first_difference};

mod marks;
mod placement;
mod wire;

pub use marks::{Occurrence, Run, Starter, of_occurrence};
pub use placement::{CapacityProvider, Launch, Network};

/// What Scheduler replaces with the time of the occurrence. Unlike the execution id, it is the same for every retry.
pub const SCHEDULED_TIME: &str = "<aws.scheduler.scheduled-time>";

/// The variable that tells the job who started it.
pub const TRIGGER_VARIABLE: &str = "INGEST_TRIGGER";

/// The variable that tells the job which occurrence it is.
pub const OCCURRENCE_VARIABLE: &str = "INGEST_OCCURRENCE";

/// ECS: "A total of 8192 characters are allowed for overrides", braces included.
const MAX_OVERRIDES: usize = 8192;

/// The request: what every run of the job has in common. Its parts have been checked; see [`RunTask::new`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunTask(Parts);

/// The parts of a [`RunTask`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parts {
    /// The job's name, which is also the name of its schedule.
    pub job: String,
    /// The cluster, by ARN or name.
    pub cluster: String,
    /// The revision to run. Never a bare family: that would be whatever somebody registered last.
    pub task_definition: TaskDefinitionRef,
    /// Where the task is placed.
    pub launch: Launch,
    /// Fargate's platform version; none means the newest.
    pub platform_version: Option<String>,
    /// The task's network.
    pub network: Network,
    /// The container whose command is overridden and whose exit code counts.
    pub container: String,
    /// The command, one argument an element. Empty: what the image does by itself.
    pub command: Vec<String>,
    /// Further variables of that container.
    pub environment: BTreeMap<String, String>,
}

/// A value that ECS or Scheduler would refuse, or that would make the scheduled run another than the proven one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunTaskError {
    /// Not the ARN of a revision.
    #[error(transparent)]
    TaskDefinition(#[from] NotARevision),
    /// ECS accepts only some characters in `startedBy`, which carries the job's name.
    #[error("the job's name {0:?} cannot be told to ECS: 1 to 64 letters, digits, hyphens or underscores")]
    Job(String),
    /// A part is empty that ECS requires.
    #[error("the {0} is empty")]
    Empty(&'static str),
    /// More entries than ECS takes.
    #[error("{count} {what}; ECS takes at most {limit}")]
    TooMany {
        /// Which list.
        what: &'static str,
        /// Its length.
        count: usize,
        /// What ECS takes.
        limit: usize,
    },
    /// The variable names the occurrence.
    #[error("the variable {0} is set by deploy itself")]
    Reserved(String),
    /// Scheduler would replace it; in the run that a person starts it would stay as it is.
    #[error(
        "{0:?} contains \"<aws.scheduler.\", which Scheduler replaces: the scheduled run would differ from the proven one"
    )]
    ContextAttribute(String),
    /// More than ECS accepts, which would show only when the schedule fires.
    #[error(
        "command and environment are {0} characters as JSON; ECS accepts {MAX_OVERRIDES} for the overrides of a task"
    )]
    OverridesTooLong(usize),
}

impl RunTaskError {
    /// The way out, in the configuration.
    pub fn hint(&self) -> &'static str {
        match self {
            RunTaskError::TaskDefinition(_) => "set `family` to the name of a family",
            RunTaskError::Job(_) => "give the job another name",
            RunTaskError::Empty(_) => "say it in the configuration",
            RunTaskError::TooMany { .. } => "leave some out",
            RunTaskError::Reserved(_) => "take it out of `environment`",
            RunTaskError::ContextAttribute(_) => {
                "take it out; the job finds the time of its occurrence in INGEST_OCCURRENCE"
            }
            RunTaskError::OverridesTooLong(_) => {
                "shorten `command` or `environment`: long text belongs into the image or a file"
            }
        }
    }
}

impl RunTask {
    /// Checks the parts.
    pub fn new(parts: Parts) -> Result<Self, RunTaskError> {
        let Parts { job, cluster, launch, network, container, command, environment, .. } = &parts;
        if !(1..=64).contains(&job.len()) || !job.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'))
        {
            return Err(RunTaskError::Job(job.clone()));
        }
        for (what, empty) in [
            ("cluster", cluster.is_empty()),
            ("container", container.is_empty()),
            ("list of subnets", network.subnets.is_empty()),
            ("capacity-provider strategy", *launch == Launch::CapacityProviders(Vec::new())),
        ] {
            if empty {
                return Err(RunTaskError::Empty(what));
            }
        }
        for (what, count, limit) in
            [("subnets", network.subnets.len(), 16), ("security groups", network.security_groups.len(), 5)]
        {
            if count > limit {
                return Err(RunTaskError::TooMany { what, count, limit });
            }
        }
        if let Some(name) =
            [TRIGGER_VARIABLE, OCCURRENCE_VARIABLE].into_iter().find(|name| environment.contains_key(*name))
        {
            return Err(RunTaskError::Reserved(name.to_owned()));
        }
        let texts = command.iter().chain(environment.keys()).chain(environment.values());
        if let Some(text) = texts.into_iter().find(|text| text.contains("<aws.scheduler.")) {
            return Err(RunTaskError::ContextAttribute(text.clone()));
        }
        let task = RunTask(parts);
        let longest = camel_case(&task.wire(&task.scheduled()).overrides).to_string().chars().count();
        if longest > MAX_OVERRIDES {
            return Err(RunTaskError::OverridesTooLong(longest));
        }
        Ok(task)
    }

    /// The checked parts.
    pub fn parts(&self) -> &Parts {
        &self.0
    }

    /// The same request with another command.
    pub fn with_command(&self, command: Vec<String>) -> Result<RunTask, RunTaskError> {
        RunTask::new(Parts { command, ..self.0.clone() })
    }

    /// The JSON that Scheduler is given: PascalCase keys, in a fixed order, with its own placeholder for the time of the
    /// occurrence (serde_json leaves `<` and `>` as they are; an escaped placeholder would never be replaced).
    pub fn scheduler_input(&self) -> String {
        let wire = self.wire(&self.scheduled());
        serde_json::to_string(&wire).expect("a request has only strings, numbers and lists")
    }

    /// Reads a schedule's Input back, strictly: an unknown, misspelt or camelCase key is an error, and so is a value that
    /// [`RunTask::scheduler_input`] does not write.
    pub fn from_scheduler_input(input: &str) -> Result<RunTask, InputError> {
        let wire: wire::RunTask = serde_json::from_str(input)?;
        let job = wire.started_by.strip_prefix(STARTED_BY_SCHEDULE).unwrap_or_default().to_owned();
        let [container] = <[wire::ContainerOverride; 1]>::try_from(wire.overrides.container_overrides)
            .map_err(|overrides| InputError::Containers(overrides.len()))?;
        let vpc = wire.network_configuration.awsvpc_configuration;
        let mut environment: BTreeMap<_, _> = container.environment.into_iter().map(|v| (v.name, v.value)).collect();
        environment.remove(TRIGGER_VARIABLE);
        environment.remove(OCCURRENCE_VARIABLE);
        let task = RunTask::new(Parts {
            job,
            cluster: wire.cluster,
            task_definition: wire.task_definition.parse().map_err(RunTaskError::from)?,
            launch: match wire.launch_type {
                Some(wire::LaunchType::Fargate) => Launch::Fargate,
                None => {
                    Launch::CapacityProviders(wire.capacity_provider_strategy.into_iter().map(Into::into).collect())
                }
            },
            platform_version: wire.platform_version,
            network: Network {
                subnets: vpc.subnets.into_iter().collect(),
                security_groups: vpc.security_groups.into_iter().collect(),
                assign_public_ip: vpc.assign_public_ip == wire::Switch::Enabled,
            },
            container: container.name,
            command: container.command,
            environment,
        })?;
        // What names the occurrence is not among the parts, so it is compared as it would be written.
        let (theirs, ours) = (canonical(input)?, canonical(&task.scheduler_input())?);
        if theirs != ours {
            return Err(InputError::NotAsWritten(first_difference("", &theirs, &ours)));
        }
        // JSON reads an escaped < as <, but Scheduler looks for the letter itself.
        let placeholders = |text: &str| text.matches(SCHEDULED_TIME).count();
        if placeholders(input) != placeholders(&task.scheduler_input()) {
            return Err(InputError::Escaped);
        }
        Ok(task)
    }

    /// What every run has in common, as text to hash: the request without what names its occurrence.
    pub fn fingerprint_text(&self) -> String {
        let mut wire = self.wire(&self.scheduled().nameless());
        for container in &mut wire.overrides.container_overrides {
            container.environment.retain(|v| v.name != TRIGGER_VARIABLE && v.name != OCCURRENCE_VARIABLE);
        }
        serde_json::to_string(&wire).expect("a request has only strings, numbers and lists")
    }

    /// ECS remembers a token for the whole cluster: two schedules that fire in one minute must not share theirs, and a name
    /// alone may be as long as a whole token.
    fn token_prefix(&self) -> String {
        let Parts { job, task_definition, .. } = &self.0;
        let digest = Sha256::digest(format!("{job}\0{}", task_definition.family()));
        hex::encode(&digest[..6])
    }

    fn wire(&self, marks: &Marks) -> wire::RunTask {
        let Parts {
            job: _,
            cluster,
            task_definition,
            launch,
            platform_version,
            network,
            container,
            command,
            environment,
        } = &self.0;
        let Network { subnets, security_groups, assign_public_ip } = network;
        wire::RunTask {
            cluster: cluster.clone(),
            task_definition: task_definition.arn().to_owned(),
            launch_type: match launch {
                Launch::Fargate => Some(wire::LaunchType::Fargate),
                Launch::CapacityProviders(_) => None,
            },
            capacity_provider_strategy: match launch {
                Launch::Fargate => Vec::new(),
                Launch::CapacityProviders(strategy) => strategy.iter().map(Into::into).collect(),
            },
            count: 1,
            platform_version: platform_version.clone(),
            client_token: marks.client_token.clone(),
            started_by: marks.started_by.clone(),
            network_configuration: wire::NetworkConfiguration {
                awsvpc_configuration: wire::AwsvpcConfiguration {
                    subnets: subnets.iter().cloned().collect(),
                    security_groups: security_groups.iter().cloned().collect(),
                    assign_public_ip: if *assign_public_ip { wire::Switch::Enabled } else { wire::Switch::Disabled },
                },
            },
            overrides: wire::Overrides {
                container_overrides: vec![wire::ContainerOverride {
                    name: container.clone(),
                    command: command.clone(),
                    environment: marks
                        .environment(environment)
                        .into_iter()
                        .map(|(name, value)| wire::Variable { name, value })
                        .collect(),
                }],
            },
        }
    }
}

/// Why a schedule's Input is not a request of ours.
#[derive(Debug, thiserror::Error)]
pub enum InputError {
    /// Not JSON, or a key that is unknown, missing, or written in another case.
    #[error("the Input cannot be read: {0}")]
    Shape(#[from] serde_json::Error),
    /// Not exactly one container is overridden.
    #[error("the Input overrides {0} containers; exactly one is expected")]
    Containers(usize),
    /// A value that ECS or Scheduler would refuse.
    #[error("the Input cannot be run: {0}")]
    Value(#[from] RunTaskError),
    /// A value that deploy would have written otherwise.
    #[error("the Input is not as deploy writes it: {0}")]
    NotAsWritten(String),
    /// The same JSON, and yet another Input: Scheduler replaces text.
    #[error(
        "the Input holds its < as \\u003c, as Terraform's jsonencode writes it, and Scheduler replaces only the letter itself"
    )]
    Escaped,
}

#[cfg(test)]
mod tests;
