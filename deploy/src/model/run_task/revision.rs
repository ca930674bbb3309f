//! Which revision of which family a run is of.

use std::fmt;
use std::str::FromStr;

use super::RunTaskError;

/// The ARN of one revision of a task definition: `arn:aws:ecs:REGION:ACCOUNT:task-definition/FAMILY:REVISION`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TaskDefinitionRef {
    arn: String,
    family_starts: usize,
    revision: u32,
}

impl TaskDefinitionRef {
    /// The whole ARN.
    pub fn arn(&self) -> &str {
        &self.arn
    }

    /// The family.
    pub fn family(&self) -> &str {
        self.family_and_revision().rsplit_once(':').expect("checked when it was parsed").0
    }

    /// The revision.
    pub fn revision(&self) -> u32 {
        self.revision
    }

    /// `FAMILY:REVISION`, as people say it.
    pub fn family_and_revision(&self) -> &str {
        &self.arn[self.family_starts..]
    }
}

impl FromStr for TaskDefinitionRef {
    type Err = RunTaskError;

    fn from_str(arn: &str) -> Result<Self, Self::Err> {
        let parsed = || {
            let mut fields = arn.splitn(6, ':');
            let head: Vec<_> = fields.by_ref().take(5).collect();
            let rest = fields.next()?.strip_prefix("task-definition/")?;
            let (family, revision) = rest.split_once(':')?;
            let legal = head[0] == "arn"
                && head[1].starts_with("aws")
                && head[2] == "ecs"
                && !family.is_empty()
                && family.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
            let revision: u32 = revision.parse().ok().filter(|&number| number > 0)?;
            legal.then(|| TaskDefinitionRef { arn: arn.to_owned(), family_starts: arn.len() - rest.len(), revision })
        };
        parsed().ok_or_else(|| RunTaskError::TaskDefinition(arn.to_owned()))
    }
}

impl fmt::Display for TaskDefinitionRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.arn)
    }
}
