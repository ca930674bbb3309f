//! The receipt of a proven run, kept in the Parameter Store beside the job.
//!
//! It says which run proved what: a hash for each field that the next scheduled run depends on. A [`VerifiedRun`] can be made
//! only from a [`Proven`] run or by reading one back, strictly. Before a new run starts, the receipt is voided, so that only the
//! newest run counts.
//!
//! Architecture invariant: no I/O, no clock; the moment of the proof is brought along.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::config::Proof;
use crate::fingerprint::Fingerprint;
use crate::run::judge::Proven;
use crate::sealed::{self, Kept, Owner, Unreadable};

/// What a standard parameter holds.
const MAX_BYTES: usize = 4096;

/// The name of the parameter that holds the receipt.
pub fn parameter(app: &str, job: &str) -> String {
    format!("/{app}/{job}/verified-run")
}

/// What the parameter holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Receipt {
    /// The newest run proved itself.
    Verified(Box<VerifiedRun>),
    /// A run was started after the last proof, and did not prove itself (yet).
    Void(Void),
    /// Somebody switched the schedule on without a proof.
    Overridden(Overridden),
}

/// A run that proved itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerifiedRun {
    path: Path,
    proof: Proof,
    #[serde(with = "rfc3339")]
    at: Timestamp,
    by: String,
    task: String,
    task_definition: String,
    image_digest: Option<String>,
    /// By the variable that holds the secret.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    parameters: BTreeMap<String, i64>,
    report: Option<Counts>,
    fingerprint: Fingerprint,
}

/// By which way the run was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Path {
    /// RunTask with the operator's rights: the scheduler's role has not been tried.
    Direct,
    /// By Scheduler, under its role, through a one-off schedule.
    Scheduler,
}

/// What the run reported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// The run, as its ledger names it.
    pub run_id: String,
    /// Rows of the snapshot.
    pub fetched: u64,
    /// Inserted, updated and reactivated places.
    pub upserted: u64,
    /// Places that vanished.
    pub deactivated: u64,
}

/// A run that has not proved itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Void {
    /// When it was started.
    #[serde(with = "rfc3339")]
    pub since: Timestamp,
    /// Who started it.
    pub by: String,
    /// How it ended, as far as is known.
    pub ending: Option<String>,
    /// It was Scheduler that was asked to start it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub via_scheduler: bool,
    /// The schedule was switched on without a proof before, and no run has proven itself since.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overridden: Option<Overridden>,
}

/// The schedule was switched on although the gate was closed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Overridden {
    /// When.
    #[serde(with = "rfc3339")]
    pub at: Timestamp,
    /// By whom.
    pub by: String,
    /// Why, in that person's words.
    pub reason: String,
    /// What the gate said.
    pub closed: String,
}

/// The receipt is longer than a standard parameter holds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the receipt is {0} bytes long; a standard parameter holds {MAX_BYTES}")]
pub struct TooLong(pub usize);

impl VerifiedRun {
    /// The receipt of a run that was started by this way.
    pub fn new(
        path: Path,
        proven: &Proven,
        proof: Proof,
        fingerprint: Fingerprint,
        parameters: BTreeMap<String, i64>,
        at: Timestamp,
        by: &str,
    ) -> VerifiedRun {
        VerifiedRun {
            path,
            proof,
            // To the second, as it is written.
            at: Timestamp::from_second(at.as_second()).unwrap_or(at),
            by: by.to_owned(),
            task: proven.task().arn.clone(),
            task_definition: proven.task().task_definition.clone(),
            image_digest: proven.image_digest().map(str::to_owned),
            parameters,
            report: proven.report().map(|report| Counts {
                run_id: report.run_id.to_string(),
                fetched: report.fetched,
                upserted: report.upserted,
                deactivated: report.deactivated,
            }),
            fingerprint,
        }
    }

    /// What the run depended on.
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    /// When it was proven.
    pub fn at(&self) -> Timestamp {
        self.at
    }

    /// Who proved it.
    pub fn by(&self) -> &str {
        &self.by
    }

    /// What was asked of it.
    pub fn proof(&self) -> Proof {
        self.proof
    }

    /// How it was started.
    pub fn path(&self) -> Path {
        self.path
    }

    /// The ARN of its task.
    pub fn task(&self) -> &str {
        &self.task
    }

    /// The ARN of the revision that it ran.
    pub fn task_definition(&self) -> &str {
        &self.task_definition
    }

    /// The digest of the image that it ran.
    pub fn image_digest(&self) -> Option<&str> {
        self.image_digest.as_deref()
    }

    /// The versions of the secrets that it ran with, by variable; empty when they would not have fitted.
    pub fn parameters(&self) -> &BTreeMap<String, i64> {
        &self.parameters
    }

    /// What it reported.
    pub fn counts(&self) -> Option<&Counts> {
        self.report.as_ref()
    }
}

impl Kept for Receipt {
    const MARKER: &'static str = "verified-run/1";
    const NOUN: &'static str = "the receipt";
}

impl Receipt {
    /// The text to keep. The versions of many secrets may not fit; their hash is in the fingerprint all the same.
    pub fn to_text(&self, owner: &Owner) -> Result<String, TooLong> {
        let fitting = |receipt: &Receipt| {
            let text = sealed::to_text(receipt, owner);
            if text.len() > MAX_BYTES { Err(TooLong(text.len())) } else { Ok(text) }
        };
        match (fitting(self), self) {
            (Err(_), Receipt::Verified(run)) if !run.parameters.is_empty() => {
                let shorter = VerifiedRun { parameters: BTreeMap::new(), ..VerifiedRun::clone(run) };
                fitting(&Receipt::Verified(Box::new(shorter)))
            }
            (text, _) => text,
        }
    }

    /// That somebody switched the schedule on without a proof, as long as no run has proven itself since.
    pub fn overridden(&self) -> Option<&Overridden> {
        match self {
            Receipt::Verified(_) => None,
            Receipt::Void(void) => void.overridden.as_ref(),
            Receipt::Overridden(overridden) => Some(overridden),
        }
    }

    /// Reads a receipt of this very job, and no other.
    pub fn read(text: &str, owner: &Owner) -> Result<Receipt, Unreadable> {
        sealed::read(text, owner)
    }
}

/// Moments as RFC 3339, to the second, in UTC.
pub(crate) mod rfc3339 {
    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(crate) fn serialize<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{at:.0}"))
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

#[cfg(test)]
mod tests;
