//! The receipt of a proven run, kept in the Parameter Store beside the job.
//!
//! It says which run proved what: a hash for each field that the next scheduled run depends on. A [`VerifiedRun`] can be made
//! only from a [`Proven`] run or by reading one back, strictly. Before a new run starts, the receipt is voided, so that only the
//! newest run counts.
//!
//! The seal notices an edit by hand. It is an interlock, not a security boundary: whoever may write the parameter can compute it.
//!
//! Architecture invariant: no I/O, no clock; the moment of the proof is brought along.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::config::{Config, Job, Proof};
use crate::fingerprint::Fingerprint;
use crate::run::judge::Proven;
use crate::sealed;

/// The marker and version of a receipt.
const RECEIPT_V1: &str = "verified-run/1";

/// What a standard parameter holds.
const MAX_BYTES: usize = 4096;

/// Which job a receipt is of, and where.
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
    /// Whose receipts a configuration's job has.
    pub fn of(config: &Config, job: &Job) -> Owner {
        Owner { job: job.name.clone(), account: config.account.clone(), region: config.region.clone() }
    }

    /// The name of the parameter that holds the receipt.
    pub fn parameter(&self, app: &str) -> String {
        format!("/{app}/{}/verified-run", self.job)
    }
}

/// What the parameter holds.
#[derive(Debug, Clone, PartialEq, Eq)]
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

/// Why a parameter's value is no receipt of this job.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReceiptError {
    /// Not JSON, or not its fields.
    #[error("the receipt cannot be read: {0}")]
    Shape(String),
    /// The text ends too early.
    #[error("the receipt is cut off after {0} bytes")]
    Truncated(usize),
    /// Written by another version.
    #[error("the receipt is of version {0:?}; this program reads {RECEIPT_V1:?}")]
    Version(String),
    /// Of another job, or of the same job elsewhere.
    #[error("the receipt is of job {job} in {account}/{region}, not of this one")]
    OtherJob {
        /// That job.
        job: String,
        /// Its account.
        account: String,
        /// Its region.
        region: String,
    },
    /// The seal does not fit.
    #[error("the receipt was edited by hand")]
    Edited,
    /// More than a standard parameter holds.
    #[error("the receipt is {0} bytes long; a standard parameter holds {MAX_BYTES}")]
    TooLong(usize),
}

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

/// The receipt as the parameter holds it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    geuneul: String,
    job: String,
    account: String,
    region: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    verified: Option<VerifiedRun>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    void: Option<Void>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    overridden: Option<Overridden>,
    seal: String,
}

impl Document {
    fn sealed(mut self) -> Document {
        self.seal = String::new();
        self.seal = sealed::seal(&self);
        self
    }
}

impl Receipt {
    /// The text to keep. The versions of many secrets may not fit; their hash is in the fingerprint all the same.
    pub fn to_text(&self, owner: &Owner) -> Result<String, ReceiptError> {
        match (self.to_text_as_it_is(owner), self) {
            (Err(ReceiptError::TooLong(_)), Receipt::Verified(run)) if !run.parameters.is_empty() => {
                let shorter = VerifiedRun { parameters: BTreeMap::new(), ..VerifiedRun::clone(run) };
                Receipt::Verified(Box::new(shorter)).to_text_as_it_is(owner)
            }
            (text, _) => text,
        }
    }

    fn to_text_as_it_is(&self, owner: &Owner) -> Result<String, ReceiptError> {
        let Owner { job, account, region } = owner.clone();
        let (geuneul, seal) = (RECEIPT_V1.to_owned(), String::new());
        let mut document =
            Document { geuneul, job, account, region, verified: None, void: None, overridden: None, seal };
        match self {
            Receipt::Verified(run) => document.verified = Some(VerifiedRun::clone(run)),
            Receipt::Void(void) => document.void = Some(void.clone()),
            Receipt::Overridden(overridden) => document.overridden = Some(overridden.clone()),
        }
        let text = sealed::to_keep(&document.sealed());
        if text.len() > MAX_BYTES { Err(ReceiptError::TooLong(text.len())) } else { Ok(text) }
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
    pub fn read(text: &str, owner: &Owner) -> Result<Receipt, ReceiptError> {
        let shape = |error: serde_json::Error| match error.is_eof() && !text.is_empty() {
            true => ReceiptError::Truncated(text.len()),
            false => ReceiptError::Shape(sealed::why(text, &error)),
        };
        let geuneul = sealed::marker(text).map_err(shape)?;
        if geuneul != RECEIPT_V1 {
            return Err(ReceiptError::Version(geuneul));
        }
        let document: Document = serde_json::from_str(text).map_err(shape)?;
        let seal = document.seal.clone();
        let document = document.sealed();
        if seal != document.seal {
            return Err(ReceiptError::Edited);
        }
        let Document { geuneul: _, job, account, region, verified, void, overridden, seal: _ } = document;
        if (&job, &account, &region) != (&owner.job, &owner.account, &owner.region) {
            return Err(ReceiptError::OtherJob { job, account, region });
        }
        match (verified, void, overridden) {
            (Some(run), None, None) => Ok(Receipt::Verified(Box::new(run))),
            (None, Some(void), None) => Ok(Receipt::Void(void)),
            (None, None, Some(overridden)) => Ok(Receipt::Overridden(overridden)),
            _ => Err(ReceiptError::Shape("exactly one of verified, void and overridden is expected".to_owned())),
        }
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
