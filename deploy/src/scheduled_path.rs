//! The record that the way from Scheduler to a task works, kept in the Parameter Store beside the receipt.
//!
//! A run that a person starts directly has that person's rights; only a run that Scheduler starts shows that Scheduler may assume its
//! role, and that the role may start the task. The record is a document of its own, so that it outlives the receipts of later direct
//! runs: it counts until the role, the target or the Input moves, and it has no age, because nothing of that path wears out.
//!
//! The seal notices an edit by hand. It is no security boundary: whoever may write the parameter can compute it.
//!
//! Architecture invariant: no I/O, no clock; the moment of the proof is brought along.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::fingerprint::{Field, Fingerprint, PathFingerprint};
use crate::receipt::{Owner, rfc3339};
use crate::sealed;

/// The marker and version of a record.
const SCHEDULED_PATH_V1: &str = "scheduled-path/1";

/// The name of the parameter that holds the record.
pub fn parameter(app: &str, job: &str) -> String {
    format!("/{app}/{job}/scheduled-path")
}

/// How Scheduler came to start the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// By a one-off schedule, for `trigger-now --via-scheduler`.
    ViaScheduler,
    /// By the schedule itself.
    Scheduled,
}

impl How {
    /// In a few words, for a person.
    pub const fn words(self) -> &'static str {
        match self {
            How::ViaScheduler => "by trigger-now --via-scheduler",
            How::Scheduled => "by the schedule itself",
        }
    }
}

/// A run that Scheduler started and that ended well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduledPath {
    how: How,
    #[serde(with = "rfc3339")]
    at: Timestamp,
    by: String,
    task: String,
    fingerprint: PathFingerprint,
}

/// Why a parameter's value is no record of this job.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScheduledPathError {
    /// Not JSON, or not its fields.
    #[error("the record of the scheduled path cannot be read: {0}")]
    Shape(String),
    /// Written by another version.
    #[error("the record of the scheduled path is of version {0:?}; this program reads {SCHEDULED_PATH_V1:?}")]
    Version(String),
    /// Of another job, or of the same job elsewhere.
    #[error("the record of the scheduled path is of job {job} in {account}/{region}, not of this one")]
    OtherJob {
        /// That job.
        job: String,
        /// Its account.
        account: String,
        /// Its region.
        region: String,
    },
    /// The seal does not fit.
    #[error("the record of the scheduled path was edited by hand")]
    Edited,
}

/// The record as the parameter holds it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    geuneul: String,
    job: String,
    account: String,
    region: String,
    proven: ScheduledPath,
    seal: String,
}

impl Document {
    fn sealed(mut self) -> Document {
        self.seal = String::new();
        self.seal = sealed::seal(&self);
        self
    }
}

impl ScheduledPath {
    /// The record of a run that ended at a moment; `fingerprint` is of the world before it was started.
    pub fn new(how: How, task: &str, fingerprint: &Fingerprint, at: Timestamp, by: &str) -> ScheduledPath {
        // To the second: a record is for people.
        let at = Timestamp::from_second(at.as_second()).unwrap_or(at);
        ScheduledPath { how, at, by: by.to_owned(), task: task.to_owned(), fingerprint: fingerprint.of_path() }
    }

    /// How the run was started.
    pub fn how(&self) -> How {
        self.how
    }

    /// When the path was proven.
    pub fn at(&self) -> Timestamp {
        self.at
    }

    /// Who recorded it.
    pub fn by(&self) -> &str {
        &self.by
    }

    /// The ARN of the task.
    pub fn task(&self) -> &str {
        &self.task
    }

    /// Whether the path is the one that was proven; else what moved since.
    pub fn proven_for(&self, now: &Fingerprint) -> Result<(), Vec<Field>> {
        let moved = self.fingerprint.moved(now);
        if moved.is_empty() { Ok(()) } else { Err(moved) }
    }

    /// The text to keep.
    pub fn to_text(&self, owner: &Owner) -> String {
        let Owner { job, account, region } = owner.clone();
        let (geuneul, proven, seal) = (SCHEDULED_PATH_V1.to_owned(), self.clone(), String::new());
        sealed::to_keep(&Document { geuneul, job, account, region, proven, seal }.sealed())
    }

    /// Reads a record of this very job, and no other.
    pub fn read(text: &str, owner: &Owner) -> Result<ScheduledPath, ScheduledPathError> {
        let shape = |error: serde_json::Error| ScheduledPathError::Shape(sealed::why(text, &error));
        let geuneul = sealed::marker(text).map_err(shape)?;
        if geuneul != SCHEDULED_PATH_V1 {
            return Err(ScheduledPathError::Version(geuneul));
        }
        let document: Document = serde_json::from_str(text).map_err(shape)?;
        let seal = document.seal.clone();
        let document = document.sealed();
        if seal != document.seal {
            return Err(ScheduledPathError::Edited);
        }
        let Document { geuneul: _, job, account, region, proven, seal: _ } = document;
        if (&job, &account, &region) != (&owner.job, &owner.account, &owner.region) {
            return Err(ScheduledPathError::OtherJob { job, account, region });
        }
        Ok(proven)
    }
}

#[cfg(test)]
mod tests;
