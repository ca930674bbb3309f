//! What the parameters of a job hold has one form: JSON that begins with what it is, names its job, and ends with a seal.
//!
//! The seal notices an edit by hand. It is an interlock, not a security boundary: whoever may write the parameter can compute it.
//!
//! Architecture invariant: no I/O, no clock.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::error::Category;
use sha2::{Digest, Sha256};

use crate::config::{Config, Job};

/// What is kept in that form.
pub trait Kept: Serialize + DeserializeOwned {
    /// The marker and version that the document begins with.
    const MARKER: &'static str;
    /// What a person calls it.
    const NOUN: &'static str;
}

/// Which job a document is of, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// The job's name.
    pub job: String,
    /// Its account.
    pub account: String,
    /// Its region.
    pub region: String,
}

impl Owner {
    /// Whose documents a configuration's job has.
    pub fn of(config: &Config, job: &Job) -> Owner {
        Owner { job: job.name.clone(), account: config.account.clone(), region: config.region.clone() }
    }
}

/// A parameter's value is not what this job keeps there.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{noun} {flaw}")]
pub struct Unreadable {
    /// What a person calls it.
    pub noun: &'static str,
    /// Why it is not.
    pub flaw: Flaw,
}

/// Why a value is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// Not JSON, or not its fields.
    #[error("cannot be read: {0}")]
    Shape(String),
    /// The text ends too early: its length in bytes.
    #[error("is cut off after {0} bytes")]
    Truncated(usize),
    /// Written by another version.
    #[error("is of version {found:?}; this program reads {known:?}")]
    Version {
        /// The marker of the text.
        found: String,
        /// Ours.
        known: &'static str,
    },
    /// Of another job, or of the same job elsewhere.
    #[error("is of job {} in {}/{}, not of this one", .0.job, .0.account, .0.region)]
    OtherJob(Owner),
    /// The seal does not fit.
    #[error("was edited by hand")]
    Edited,
}

/// The document as the parameter holds it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document<T> {
    geuneul: String,
    job: String,
    account: String,
    region: String,
    says: T,
    seal: String,
}

impl<T: Serialize> Document<T> {
    /// The text with its seal, which is over the text without one.
    fn sealed(&mut self) -> String {
        self.seal = String::new();
        self.seal = hex::encode(Sha256::digest(self.text()));
        self.text()
    }

    fn text(&self) -> String {
        serde_json::to_string(self).expect("it has only strings and numbers")
    }
}

/// The text to keep, as the Parameter Store takes it: two braces are a reference there, and refused. Here they stand only inside
/// strings.
pub(crate) fn to_text<T: Kept>(says: &T, owner: &Owner) -> String {
    let Owner { job, account, region } = owner.clone();
    let mut document = Document { geuneul: T::MARKER.to_owned(), job, account, region, says, seal: String::new() };
    document.sealed().replace("{{", "{\\u007b")
}

/// Reads what is of this very job, and of no other.
pub(crate) fn read<T: Kept>(text: &str, owner: &Owner) -> Result<T, Unreadable> {
    let found = document(text).and_then(|mut document: Document<T>| {
        let seal = document.seal.clone();
        document.sealed();
        if seal != document.seal {
            return Err(Flaw::Edited);
        }
        let Document { geuneul: _, job, account, region, says, seal: _ } = document;
        let found = Owner { job, account, region };
        if found == *owner { Ok(says) } else { Err(Flaw::OtherJob(found)) }
    });
    found.map_err(|flaw| Unreadable { noun: T::NOUN, flaw })
}

/// The version comes first: a document of another version has other fields.
fn document<T: Kept>(text: &str) -> Result<Document<T>, Flaw> {
    #[derive(Deserialize)]
    struct Marker {
        geuneul: String,
    }
    let Marker { geuneul: found } = serde_json::from_str(text).map_err(|error| shape(text, &error))?;
    if found != T::MARKER {
        return Err(Flaw::Version { found, known: T::MARKER });
    }
    serde_json::from_str(text).map_err(|error| shape(text, &error))
}

/// Why a text is no such document, for a person.
fn shape(text: &str, error: &serde_json::Error) -> Flaw {
    let why = match error.classify() {
        _ if text.is_empty() => "it is empty",
        Category::Eof => return Flaw::Truncated(text.len()),
        Category::Syntax | Category::Io => "it is not JSON",
        Category::Data => "it is JSON, and not of the fields that `deploy` writes",
    };
    Flaw::Shape(why.to_owned())
}
