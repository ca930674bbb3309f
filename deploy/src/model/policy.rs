//! Roles and policy documents.

use super::Tags;

/// A policy document as it travels: JSON text, percent-encoded when IAM returns it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyDocument(pub String);

/// A role.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Role {
    /// Its ARN.
    pub arn: String,
    /// Who may assume it.
    pub trust: PolicyDocument,
    /// The boundary of what it may ever do, by the policy's ARN.
    pub boundary: Option<String>,
    /// Its tags.
    pub tags: Tags,
}

/// The names of a role's policies: all that it may do, and everything that would keep IAM from deleting it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RolePolicies {
    /// Its inline policies.
    pub inline: Vec<String>,
    /// The policies that are attached to it, by their ARNs.
    pub attached: Vec<String>,
}

impl RolePolicies {
    /// Those beside an inline policy, each with its kind.
    pub fn beside<'a>(&'a self, ours: &str) -> Vec<(&'static str, &'a str)> {
        let inline = self.inline.iter().filter(|name| *name != ours).map(|name| ("inline", name.as_str()));
        let name = |arn: &'a String| arn.rsplit('/').next().unwrap_or(arn);
        inline.chain(self.attached.iter().map(|arn| ("attached", name(arn)))).collect()
    }
}

/// A role that is to be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRole {
    /// Its name.
    pub name: String,
    /// Its path.
    pub path: String,
    /// Who may assume it.
    pub trust: PolicyDocument,
    /// The boundary of what it may ever do, by the policy's ARN.
    pub boundary: Option<String>,
    /// Its tags.
    pub tags: Tags,
}

impl NewRole {
    /// What is written on every role that is made.
    pub const DESCRIPTION: &str = "Lets EventBridge Scheduler start the job; kept by deploy";
}
