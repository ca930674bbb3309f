//! A parameter of the Parameter Store, without its value.

use super::Tags;

/// What may be known of a parameter without the right to decrypt it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The name, with its leading slash.
    pub name: String,
    /// What kind of value it holds.
    pub kind: ParameterType,
    /// How often it was written.
    pub version: i64,
    /// When it was written last, in milliseconds since the epoch: one that was deleted and made again counts from 1 again.
    pub written_ms: Option<i64>,
    /// Its tags; `None` when we were not allowed to look.
    pub tags: Option<Tags>,
}

/// What kind of value a parameter holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParameterType {
    /// Encrypted; the only kind that a secret may have.
    SecureString,
    /// Anything else, by AWS's name.
    Other(String),
}

impl std::fmt::Display for ParameterType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ParameterType::SecureString => f.write_str("SecureString"),
            ParameterType::Other(name) => f.write_str(name),
        }
    }
}
