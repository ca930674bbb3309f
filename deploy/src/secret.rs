//! A secret's value: where it comes from, and the one way that it goes.
//!
//! Architecture invariant: [`SecretValue`] implements neither Debug nor Display nor Serialize nor Clone, and its text can be taken out
//! only inside this crate, for PutParameter. No error here repeats anything that was read.

use std::collections::BTreeMap;
use std::fmt;
use std::io::{IsTerminal, Read};
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// What a parameter of the standard tier holds.
const MAX_BYTES: usize = 4096;

/// Where a secret's value comes from. Never the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Origin {
    /// An environment variable of this process.
    Env(String),
    /// A file; `/dev/stdin` works.
    File(PathBuf),
    /// An open file descriptor.
    Fd(u32),
    /// What this process is given to read.
    Stdin,
    /// A person at the terminal.
    Prompt,
}

impl Origin {
    /// Whether it can be looked at twice, and without anybody noticing.
    pub fn can_be_peeked(&self) -> bool {
        matches!(self, Origin::Env(_)) || matches!(self, Origin::File(path) if path.is_file())
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Origin::Env(name) => write!(f, "env:{name}"),
            Origin::File(path) => write!(f, "file:{}", path.display()),
            Origin::Fd(number) => write!(f, "fd:{number}"),
            Origin::Stdin => f.write_str("stdin"),
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
            None if text == "stdin" => Ok(Origin::Stdin),
            _ => Err(UnknownOrigin),
        }
    }
}

/// A secret's value, on its way to the Parameter Store.
pub struct SecretValue(String);

/// The values that a plan needs, by the secret's name.
pub type Values = BTreeMap<String, SecretValue>;

/// Why a value cannot be used.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// The environment does not have it.
    #[error("the environment variable {0} is not set")]
    NotSet(String),
    /// The file or descriptor cannot be read.
    #[error("{origin} cannot be read: {why}")]
    Unreadable {
        /// Where it was looked for.
        origin: String,
        /// What the system said.
        why: String,
    },
    /// A prompt without a person.
    #[error("nobody is at the terminal to type it")]
    NoTerminal,
    /// Not text.
    #[error("it is not UTF-8 text")]
    NotText,
    /// Nothing.
    #[error("it is empty")]
    Empty,
    /// The Parameter Store takes this for a reference.
    #[error("it contains {{{{, which the Parameter Store takes for a reference and refuses")]
    Braces,
    /// Too long.
    #[error("it is {0} bytes long; a standard parameter holds {MAX_BYTES}")]
    TooLong(usize),
}

impl SecretValue {
    /// Checks a value. One trailing line break, which files and `echo` add, is no part of it: the second answer says whether
    /// there was one.
    pub fn new(bytes: Vec<u8>) -> Result<(SecretValue, bool), SecretError> {
        let mut text = String::from_utf8(bytes).map_err(|_| SecretError::NotText)?;
        let whole = text.len();
        if text.ends_with('\n') {
            text.pop();
            if text.ends_with('\r') {
                text.pop();
            }
        }
        let stripped = text.len() != whole;
        match text.len() {
            0 => Err(SecretError::Empty),
            n if n > MAX_BYTES => Err(SecretError::TooLong(n)),
            _ if text.contains("{{") => Err(SecretError::Braces),
            _ => Ok((SecretValue(text), stripped)),
        }
    }

    /// Reads a value from its place. `name` is what a prompt calls it.
    pub fn read(origin: &Origin, name: &str) -> Result<(SecretValue, bool), SecretError> {
        match origin {
            Origin::Env(variable) => match std::env::var_os(variable) {
                Some(value) => SecretValue::new(value.into_encoded_bytes()),
                None => Err(SecretError::NotSet(variable.clone())),
            },
            Origin::File(path) => SecretValue::new(read(path, origin)?),
            Origin::Fd(number) => SecretValue::new(read(Path::new(&format!("/dev/fd/{number}")), origin)?),
            Origin::Stdin => SecretValue::new(read(Path::new("/dev/stdin"), origin)?),
            Origin::Prompt if !std::io::stdin().is_terminal() => Err(SecretError::NoTerminal),
            Origin::Prompt => {
                let typed = rpassword::prompt_password(format!("{name} (not shown): "));
                let typed = typed.map_err(|error| unreadable(origin, &error))?;
                SecretValue::new(typed.into_bytes())
            }
        }
    }

    /// Whether it stands in a text. A value of a few characters stands in many, and counts only alone.
    pub fn is_in(&self, text: &str) -> bool {
        if self.0.len() < 6 { text == self.0 } else { text.contains(&self.0) }
    }

    /// The text, for the request that writes it and for nothing else.
    pub(crate) fn for_put_parameter(&self) -> &str {
        &self.0
    }
}

fn read(path: &Path, origin: &Origin) -> Result<Vec<u8>, SecretError> {
    let mut bytes = Vec::new();
    let file = std::fs::File::open(path).map_err(|error| unreadable(origin, &error))?;
    // One more than is allowed, and a line break: an endless file must not fill the memory.
    let limit = MAX_BYTES as u64 + 3;
    file.take(limit).read_to_end(&mut bytes).map_err(|error| unreadable(origin, &error))?;
    Ok(bytes)
}

fn unreadable(origin: &Origin, error: &std::io::Error) -> SecretError {
    SecretError::Unreadable { origin: origin.to_string(), why: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(bytes: &[u8]) -> Result<(String, bool), SecretError> {
        SecretValue::new(bytes.to_vec()).map(|(value, stripped)| (value.0, stripped))
    }

    #[test]
    fn one_trailing_line_break_is_no_part_of_it() {
        assert_eq!(checked(b"a+b/c=="), Ok(("a+b/c==".to_owned(), false)));
        assert_eq!(checked(b"key\n"), Ok(("key".to_owned(), true)));
        assert_eq!(checked(b"key\r\n"), Ok(("key".to_owned(), true)));
        assert_eq!(checked(b"key\n\n"), Ok(("key\n".to_owned(), true)));
    }

    #[test]
    fn what_the_store_would_refuse_is_refused_here_and_not_repeated() {
        assert_eq!(checked(b""), Err(SecretError::Empty));
        assert_eq!(checked(b"\n"), Err(SecretError::Empty));
        assert_eq!(checked(b"a{{b}}"), Err(SecretError::Braces));
        assert_eq!(checked(b"\xff"), Err(SecretError::NotText));
        assert_eq!(checked(&[b'x'; MAX_BYTES]).map(|(text, _)| text.len()), Ok(MAX_BYTES));
        assert_eq!(checked(&[b'x'; MAX_BYTES + 1]), Err(SecretError::TooLong(MAX_BYTES + 1)));
        assert_eq!("s3cr3t+pasted/here==".parse::<Origin>().unwrap_err().to_string(), UnknownOrigin.to_string());
    }

    #[test]
    fn a_file_is_a_place() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "key\n").unwrap();
        let (value, stripped) = SecretValue::read(&Origin::File(file.path().to_owned()), "KEY").ok().unwrap();
        assert_eq!((value.0.as_str(), stripped), ("key", true));
        let missing = SecretValue::read(&Origin::File("/nowhere".into()), "KEY").err().unwrap();
        assert!(missing.to_string().starts_with("file:/nowhere cannot be read"));
    }
}
