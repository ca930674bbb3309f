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
    /// Its tags.
    pub tags: Tags,
}
