//! A parameter of the Parameter Store, without its value.

use super::Tags;

/// What may be known of a parameter without the right to decrypt it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The name, with its leading slash.
    pub name: String,
    /// What kind of value it holds.
    pub kind: ParameterType,
    /// The KMS key that encrypts it, as AWS tells it: an ARN, an id or an alias.
    pub key: Option<String>,
    /// How often it was written.
    pub version: i64,
    /// When it was written last, in milliseconds since the epoch: one that was deleted and made again counts from 1 again.
    pub written_ms: Option<i64>,
    /// Its tags; `None` when we were not allowed to look.
    pub tags: Option<Tags>,
}

/// The key that encrypts a SecureString when nobody names one.
pub const AWS_OWN_KEY: &str = "alias/aws/ssm";

/// Whether two ways to name a key name the same: an ARN ends with the id, or with the alias, that stands for it.
pub fn is_same_key(a: &str, b: &str) -> bool {
    let short = |key: &str| -> String {
        let tail = key.rsplit(':').next().unwrap_or(key);
        tail.strip_prefix("key/").unwrap_or(tail).to_owned()
    };
    short(a) == short(b)
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
