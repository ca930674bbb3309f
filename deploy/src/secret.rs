//! A secret's value: where it comes from, and the one way that it goes.
//!
//! Architecture invariant: [`SecretValue`] implements neither Debug nor Display nor Serialize, and its text can be taken out only
//! inside [`crate::cloud`], which hands it to PutParameter.

use std::fmt;
use std::str::FromStr;

/// Where a secret's value comes from. Never the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// An environment variable of this process.
    Env(String),
    /// A file; `/dev/stdin` works.
    File(std::path::PathBuf),
    /// An open file descriptor.
    Fd(u32),
    /// A person at the terminal.
    Prompt,
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Env(name) => write!(f, "env:{name}"),
            Origin::File(path) => write!(f, "file:{}", path.display()),
            Origin::Fd(number) => write!(f, "fd:{number}"),
            Origin::Prompt => f.write_str("prompt"),
        }
    }
}

/// The text names no place. It is not repeated: it may be the secret itself, pasted into the wrong line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("`from` does not name a place to read the secret from")]
pub struct UnknownOrigin;

impl FromStr for Origin {
    type Err = UnknownOrigin;

    fn from_str(text: &str) -> Result<Origin, UnknownOrigin> {
        match text.split_once(':') {
            Some(("env", name)) if !name.is_empty() => Ok(Origin::Env(name.to_owned())),
            Some(("file", path)) if !path.is_empty() => Ok(Origin::File(path.into())),
            Some(("fd", number)) => number.parse().map(Origin::Fd).map_err(|_| UnknownOrigin),
            None if text == "prompt" => Ok(Origin::Prompt),
            _ => Err(UnknownOrigin),
        }
    }
}

/// A secret's value, on its way to the Parameter Store.
pub struct SecretValue(String);

impl SecretValue {
    /// The text, for the request that writes it and for nothing else.
    pub(crate) fn for_put_parameter(&self) -> &str {
        &self.0
    }
}
