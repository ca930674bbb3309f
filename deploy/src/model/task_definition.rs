//! A task definition, whole, and the reference that pins one revision.

use std::fmt;
use std::str::FromStr;

use serde_json::{Map, Value};

use super::Tags;
use super::log::{LogPlace, NoLog};

/// One revision: the JSON object of DescribeTaskDefinition, which is RegisterTaskDefinition's plus [`TaskDefinition::READ_ONLY`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskDefinition {
    /// Every member, known to this program or not.
    pub members: Map<String, Value>,
    /// The tags, which DescribeTaskDefinition returns beside it.
    pub tags: Tags,
}

impl TaskDefinition {
    /// What AWS adds to a revision and refuses to be told: a deny-list, because an allow-list loses what it does not know.
    pub const READ_ONLY: [&str; 9] = [
        "compatibilities",
        "deleteRequestedAt",
        "deregisteredAt",
        "registeredAt",
        "registeredBy",
        "requiresAttributes",
        "revision",
        "status",
        "taskDefinitionArn",
    ];

    /// What RegisterTaskDefinition takes: everything but the read-only members.
    pub fn writable(&self) -> Map<String, Value> {
        let mut members = self.members.clone();
        members.retain(|name, _| !Self::READ_ONLY.contains(&name.as_str()));
        members
    }

    /// A member that is a string.
    pub fn text(&self, member: &str) -> Option<&str> {
        self.members.get(member)?.as_str()
    }

    /// The reference that pins this revision.
    pub fn reference(&self) -> Option<TaskDefinitionRef> {
        self.text("taskDefinitionArn")?.parse().ok()
    }

    /// A container by its name.
    pub fn container(&self, name: &str) -> Option<&Map<String, Value>> {
        let containers = self.members.get("containerDefinitions")?.as_array()?;
        containers.iter().filter_map(Value::as_object).find(|c| c.get("name").and_then(Value::as_str) == Some(name))
    }

    /// Where its containers read their secrets from, as the document writes it.
    pub fn secrets(&self) -> impl Iterator<Item = &str> {
        let containers = self.members.get("containerDefinitions").and_then(Value::as_array).into_iter().flatten();
        let secrets = containers.filter_map(|container| container.get("secrets")?.as_array()).flatten();
        secrets.filter_map(|secret| secret.get("valueFrom")?.as_str())
    }

    /// Where a container's awslogs driver writes to: (group, stream prefix).
    pub fn awslogs(&self, container: &str) -> Option<(&str, Option<&str>)> {
        let configuration = self.container(container)?.get("logConfiguration")?;
        if configuration.get("logDriver")?.as_str()? != "awslogs" {
            return None;
        }
        let options = configuration.get("options")?;
        Some((options.get("awslogs-group")?.as_str()?, options.get("awslogs-stream-prefix").and_then(Value::as_str)))
    }

    /// Where a container's lines are found by whoever looks in one region.
    pub fn log_place(&self, container: &str, region: &str) -> Result<LogPlace, NoLog> {
        let name = || container.to_owned();
        let (group, prefix) = self.awslogs(container).ok_or_else(|| NoLog::Elsewhere(name()))?;
        let configured = self.container(container).and_then(|found| found.get("logConfiguration"));
        match configured.and_then(|log| log["options"]["awslogs-region"].as_str()) {
            Some(other) if other != region => {
                return Err(NoLog::AnotherRegion { container: name(), region: other.to_owned() });
            }
            _ => {}
        }
        let prefix = prefix.ok_or_else(|| NoLog::NoPrefix(name()))?;
        Ok(LogPlace { group: group.to_owned(), prefix: format!("{prefix}/{container}/") })
    }
}

/// The ARN of one revision of a family: `arn:aws:ecs:REGION:ACCOUNT:task-definition/FAMILY:REVISION`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskDefinitionRef {
    arn: String,
    family: usize,
    revision: u32,
}

impl TaskDefinitionRef {
    /// The whole ARN.
    pub fn arn(&self) -> &str {
        &self.arn
    }

    /// The family.
    pub fn family(&self) -> &str {
        let tail = &self.arn[self.family..];
        tail.split_once(':').map_or(tail, |(family, _)| family)
    }

    /// The revision.
    pub fn revision(&self) -> u32 {
        self.revision
    }

    /// `FAMILY:REVISION`, as people say it.
    pub fn family_and_revision(&self) -> &str {
        &self.arn[self.family..]
    }
}

impl fmt::Display for TaskDefinitionRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.arn)
    }
}

/// The text is not the ARN of one revision.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not the ARN of a task definition with its revision")]
pub struct NotARevision(pub String);

impl FromStr for TaskDefinitionRef {
    type Err = NotARevision;

    fn from_str(arn: &str) -> Result<Self, Self::Err> {
        const MARK: &str = ":task-definition/";
        let parsed = || {
            let family = arn.find(MARK)? + MARK.len();
            let (name, revision) = arn[family..].split_once(':')?;
            let legal = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
            let whole = arn.starts_with("arn:") && !name.is_empty() && name.chars().all(legal);
            whole.then_some(())?;
            let revision = revision.parse().ok().filter(|&r| r > 0)?;
            Some(TaskDefinitionRef { arn: arn.to_owned(), family, revision })
        };
        parsed().ok_or_else(|| NotARevision(arn.to_owned()))
    }
}
