//! From how a run went to the one line that says so.

use std::time::{Instant, SystemTime};

use geuneul::{JobCommand, Outcome, RunError, RunId, RunReport, Skip, SourceName, Trigger, Withheld};
use uuid::Uuid;

use crate::error::Error;
use crate::plan::{Plan, What};
use crate::snapshot::Snapshot;

/// What was done, in numbers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Rows in the snapshot.
    pub fetched: u64,
    /// Places that are new.
    pub inserted: u64,
    /// Places that changed.
    pub updated: u64,
    /// Places that are as they were.
    pub unchanged: u64,
    /// Places that returned.
    pub reactivated: u64,
    /// Rows set aside.
    pub rejected: u64,
    /// Places soft-deleted.
    pub deactivated: u64,
    /// Active places afterwards.
    pub active: u64,
    /// Places afterwards that stand behind another.
    pub duplicates: u64,
    /// Places whose id moved to another row.
    pub carried_over: u64,
    /// Places that are now part of another.
    pub merged: u64,
    /// Values with a note.
    pub noted: u64,
    /// The snapshot was proven complete.
    pub complete: bool,
    /// The snapshot's fingerprint, in hex.
    pub snapshot_sha256: Option<String>,
}

impl Counts {
    /// What a plan will have done.
    pub fn of(plan: &Plan, snapshot: &Snapshot, noted: usize) -> Self {
        Counts {
            fetched: snapshot.len() as u64,
            inserted: plan.inserts() as u64,
            updated: plan.updates() as u64,
            unchanged: plan.unchanged as u64,
            reactivated: plan.reactivations() as u64,
            rejected: plan.rejects.len() as u64,
            deactivated: plan.deactivate.len() as u64,
            active: plan.active_after as u64,
            duplicates: plan.duplicates_after as u64,
            carried_over: plan.changed(What::CarriedOver) as u64,
            merged: plan.changed(What::Merged) as u64,
            noted: (noted + plan.repairs()) as u64,
            complete: snapshot.complete().is_some(),
            snapshot_sha256: Some(hex::encode(snapshot.sha256())),
        }
    }

    /// Every number with its name, in the order of the report.
    pub fn numbers(&self) -> [(&'static str, u64); 12] {
        let Counts {
            fetched,
            inserted,
            updated,
            unchanged,
            reactivated,
            rejected,
            deactivated,
            active,
            duplicates,
            carried_over,
            merged,
            noted,
            complete: _,
            snapshot_sha256: _,
        } = *self;
        [
            ("fetched", fetched),
            ("inserted", inserted),
            ("updated", updated),
            ("unchanged", unchanged),
            ("reactivated", reactivated),
            ("rejected", rejected),
            ("deactivated", deactivated),
            ("active", active),
            ("duplicates", duplicates),
            ("carried_over", carried_over),
            ("merged", merged),
            ("noted", noted),
        ]
    }
}

/// How a run ended.
#[derive(Debug)]
pub enum Ending {
    /// Committed; perhaps with something withheld.
    Mirrored {
        /// The numbers.
        counts: Counts,
        /// What was held back.
        withheld: Option<Withheld>,
        /// What was odd once it was committed; it undoes nothing.
        flaw: Option<Error>,
    },
    /// Planned, shown, and not carried out.
    Shown {
        /// The numbers that it would have.
        counts: Counts,
        /// What would be held back.
        withheld: Option<Withheld>,
        /// What to print.
        preview: String,
    },
    /// Somebody else holds the lock.
    Skipped(Outcome, Skip),
    /// It did not get there. No place was written.
    Failed(Error),
}

impl Ending {
    /// The outcome that a mirrored snapshot has.
    pub fn outcome_of(withheld: Option<&Withheld>) -> Outcome {
        if withheld.is_some() { Outcome::Withheld } else { Outcome::Succeeded }
    }
}

fn said(error: &Error) -> RunError {
    RunError { code: error.code().to_owned(), message: error.to_string() }
}

/// What a report knows of a run from its start.
pub struct Facts {
    /// What people see.
    pub run_id: RunId,
    /// The data set.
    pub source: SourceName,
    /// Who started it.
    pub trigger: Trigger,
    /// Which fire time of which job it is for, as the environment says.
    pub occurrence: Option<String>,
    started_at: SystemTime,
    clock: Instant,
}

impl Facts {
    /// A run that starts now. The flag decides who started it, then the environment; a person, when both are silent.
    pub fn start(command: &JobCommand, environment: Option<Trigger>, occurrence: Option<String>) -> Self {
        let run_id = Uuid::new_v4().to_string().parse().expect("a UUID in canonical form");
        let trigger = command.trigger.or(environment).unwrap_or(Trigger::Manual);
        let (started_at, clock) = (SystemTime::now(), Instant::now());
        Facts { run_id, source: command.source, trigger, occurrence, started_at, clock }
    }

    /// The report of a run that ends now.
    pub fn report(&self, ending: &Ending) -> RunReport {
        let mut counts = Counts::default();
        let (mut withheld, mut skip, mut error) = (None, None, None);
        let outcome = match ending {
            Ending::Mirrored { counts: done, withheld: held, flaw } => {
                counts = done.clone();
                withheld = held.clone();
                error = flaw.as_ref().map(said);
                Ending::outcome_of(held.as_ref())
            }
            Ending::Shown { counts: planned, withheld: held, preview: _ } => {
                counts = planned.clone();
                withheld = held.clone();
                Outcome::DryRun
            }
            Ending::Skipped(outcome, why) => {
                skip = Some(why.clone());
                *outcome
            }
            Ending::Failed(why) => {
                error = Some(said(why));
                why.outcome()
            }
        };
        RunReport {
            run_id: self.run_id.clone(),
            source: self.source,
            trigger: self.trigger,
            outcome,
            fetched: counts.fetched,
            inserted: counts.inserted,
            updated: counts.updated,
            unchanged: counts.unchanged,
            reactivated: counts.reactivated,
            rejected: counts.rejected,
            deactivated: counts.deactivated,
            upserted: counts.inserted + counts.updated + counts.reactivated,
            active: counts.active,
            duplicates: counts.duplicates,
            carried_over: counts.carried_over,
            merged: counts.merged,
            noted: counts.noted,
            complete: counts.complete,
            snapshot_sha256: counts.snapshot_sha256,
            occurrence: self.occurrence.clone(),
            started_at: humantime::format_rfc3339_seconds(self.started_at).to_string(),
            duration_ms: self.clock.elapsed().as_millis() as u64,
            skip,
            withheld,
            error,
        }
    }
}
