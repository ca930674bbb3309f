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
