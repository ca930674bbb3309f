//! The record that the way from Scheduler to a task works, kept in the Parameter Store beside the receipt.
//!
//! A run that a person starts directly has that person's rights; only a run that Scheduler starts shows that Scheduler may assume its
//! role, and that the role may start the task. The record is a document of its own, so that it outlives the receipts of later direct
//! runs: it counts until the role, the target or the Input moves, and it has no age, because nothing of that path wears out.
//!
//! Architecture invariant: no I/O, no clock; the moment of the proof is brought along.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::fingerprint::{Field, Fingerprint, PathFingerprint};
use crate::receipt::rfc3339;
use crate::sealed::{self, Kept, Owner, Unreadable};

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

impl Kept for ScheduledPath {
    const MARKER: &'static str = "scheduled-path/1";
    const NOUN: &'static str = "the record of the scheduled path";
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
        sealed::to_text(self, owner)
    }

    /// Reads a record of this very job, and no other.
    pub fn read(text: &str, owner: &Owner) -> Result<ScheduledPath, Unreadable> {
        sealed::read(text, owner)
    }
}

#[cfg(test)]
mod tests;
