//! May the schedule be switched on?
//!
//! Only a [`Warrant`] switches it on, and a warrant is made here only: by a proof that holds for the world as it is, or by a person
//! who says in words why there is none.
//!
//! Architecture invariant: pure. Whoever asks brings what was read, and the time.

use std::time::Duration;

use jiff::Timestamp;

use crate::config::{Gate, Proof};
use crate::desired::Desired;
use crate::fingerprint::{Field, Fingerprint, NoFingerprint};
use crate::fire_times;
use crate::model::{Live, Seen};
use crate::plan::{Plan, Sign, Thing};
use crate::receipt::{Overridden, Path, Receipt, VerifiedRun, Void};
use crate::scheduled_path::ScheduledPath;
use crate::sealed::Unreadable;

/// What entitles a schedule to be switched on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Warrant(Ground);

/// What a warrant stands on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ground {
    /// A run that proved the job as it is now.
    Proven(Box<VerifiedRun>),
    /// A person's word.
    Overridden(Overridden),
}

impl Warrant {
    /// What it stands on.
    pub fn ground(&self) -> &Ground {
        &self.0
    }
}

/// Why the schedule may not be switched on.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The declarative stop.
    #[error("the configuration says stopped = true")]
    Stopped,
    /// Something is about to change: a proof would be of something else.
    #[error("enable needs an empty plan, and it is not: {}", .0.join("; "))]
    Unsettled(Vec<String>),
    /// It would be on and do nothing.
    #[error("it would never fire again: the years of {0} are over")]
    NeverAgain(String),
    /// What would run cannot be told.
    #[error(transparent)]
    NoFingerprint(#[from] NoFingerprint),
    /// There is no proof of it.
    #[error("the gate is closed: {}", reasons(.0))]
    Closed(Vec<Closed>),
}

/// Whether the schedule may be switched on, with everything that matters for that.
pub fn decide(desired: &Desired, live: &Live, plan: &Plan, clock: Timestamp) -> Result<Warrant, Refused> {
    if desired.job.stopped {
        return Err(Refused::Stopped);
    }
    let unsettled = unsettled(plan);
    if !unsettled.is_empty() {
        return Err(Refused::Unsettled(unsettled));
    }
    let timing = desired.timing();
    if fire_times::next(&timing.expression, &timing.timezone, clock, 1).is_ok_and(|moments| moments.is_empty()) {
        return Err(Refused::NeverAgain(timing.expression.clone()));
    }
    let now = Fingerprint::of(live)?;
    open(&live.receipt, &live.scheduled_path, &now, &desired.job.gate, clock).map_err(Refused::Closed)
}

/// A warrant without a proof. Only a closed gate can be overruled: what is not settled, or stopped, stays off.
pub fn overrule(refused: &Refused, reason: &str, by: &str, at: Timestamp) -> Option<Warrant> {
    let Refused::Closed(closed) = refused else { return None };
    let at = Timestamp::from_second(at.as_second()).unwrap_or(at); // As it is written.
    let closed = reasons(closed).chars().take(300).collect();
    Some(Warrant(Ground::Overridden(Overridden { at, by: by.to_owned(), reason: reason.to_owned(), closed })))
}

/// What differs, was not seen, or stands in the way; in a few words each.
pub fn unsettled(plan: &Plan) -> Vec<String> {
    let moving = plan.items.iter().filter(|item| item.sign != Sign::Same && item.thing.is_changed_by_us());
    let mut words: Vec<_> =
        moving.map(|item| format!("{} {} ({})", item.thing.as_str(), item.name, item.why)).collect();
    if words.is_empty() {
        words.extend(plan.refusals.iter().map(|refusal| refusal.what.clone()));
    }
    if words.is_empty() {
        let missing = plan.items.iter().filter(|item| item.thing == Thing::LogGroup && item.sign == Sign::Blocked);
        words.extend(missing.map(|item| format!("log group {}: {}", item.name, item.why)));
    }
    words
}

/// Why the gate is closed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Closed {
    /// No run was ever proven.
    #[error("there is no verified run")]
    NoReceipt,
    /// We were not allowed to look.
    #[error("the receipt could not be read: {0}")]
    Hidden(String),
    /// The parameter holds something else.
    #[error("{0}")]
    Unreadable(Unreadable),
    /// The newest run did not prove itself.
    #[error("the run of {} by {} did not prove itself{}", .0.since, .0.by, ended(.0))]
    Void(Box<Void>),
    /// Somebody's word is no proof, and counts once.
    #[error("there is no verified run: {} gave a word in place of one on {}, and a word counts once", .0.by, .0.at)]
    Overridden(Overridden),
    /// The proof is of something else.
    #[error("{} moved since the verified run of {at}", listed(.fields))]
    Moved {
        /// What moved.
        fields: Vec<Field>,
        /// When the run was proven.
        at: Timestamp,
    },
    /// The proof is too old.
    #[error("the verified run of {at} is {} old, more than gate.max_age = {}", long(.age), long(.max_age))]
    TooOld {
        /// When the run was proven.
        at: Timestamp,
        /// How long ago that is.
        age: Duration,
        /// What the configuration allows.
        max_age: Duration,
    },
    /// A clock is wrong.
    #[error("the verified run is dated {at}, which is still to come")]
    InTheFuture {
        /// When the run was proven, as the receipt has it.
        at: Timestamp,
    },
    /// The proof is weaker than the gate asks.
    #[error("the verified run of {at} showed only its exit code; gate.proof is \"run-report\"")]
    OnlyExitCode {
        /// When the run was proven.
        at: Timestamp,
    },
    /// Scheduler has started nothing yet.
    #[error("the scheduled path is unproven; gate.path is \"scheduler\"")]
    PathUnproven,
    /// We were not allowed to look at that record.
    #[error("the record of the scheduled path could not be read: {0}")]
    PathHidden(String),
    /// Its parameter holds something else.
    #[error("{0}")]
    PathUnreadable(Unreadable),
    /// Scheduler has started something else.
    #[error("{} moved since Scheduler started the job on {at}; gate.path is \"scheduler\"", listed(.fields))]
    PathMoved {
        /// What moved.
        fields: Vec<Field>,
        /// When the path was proven.
        at: Timestamp,
    },
}

impl Closed {
    /// Whether a run is to be started by Scheduler to open this: nothing else would, or that is how the last one was tried.
    pub fn wants_scheduler(&self) -> bool {
        self.is_about_the_path()
            || matches!(self, Closed::Void(void) if void.via_scheduler)
            || matches!(self, Closed::Moved { fields, .. } if fields.contains(&Field::Role))
    }

    /// Whether only a run that Scheduler starts opens this.
    pub fn is_about_the_path(&self) -> bool {
        matches!(
            self,
            Closed::PathUnproven | Closed::PathHidden(_) | Closed::PathUnreadable(_) | Closed::PathMoved { .. }
        )
    }
}

/// Clocks may differ by this much.
const SKEW: Duration = Duration::from_secs(300);

/// The warrant of a verified run that proves this very world, or every reason why there is none.
pub fn open(
    receipt: &Seen<Result<Receipt, Unreadable>>,
    path: &Seen<Result<ScheduledPath, Unreadable>>,
    now: &Fingerprint,
    gate: &Gate,
    clock: Timestamp,
) -> Result<Warrant, Vec<Closed>> {
    let mut closed = Vec::new();
    let verified = verified(receipt);
    match &verified {
        Ok(run) => closed.extend(flaws(run, now, gate, clock)),
        Err(no_proof) => closed.push(no_proof.clone()),
    }
    if gate.path == Path::Scheduler {
        closed.extend(path_flaw(path, now));
    }
    match verified {
        Ok(run) if closed.is_empty() => Ok(Warrant(Ground::Proven(Box::new(run.clone())))),
        _ => Err(closed),
    }
}

fn verified(receipt: &Seen<Result<Receipt, Unreadable>>) -> Result<&VerifiedRun, Closed> {
    match receipt {
        Seen::Absent => Err(Closed::NoReceipt),
        Seen::Hidden { why } => Err(Closed::Hidden(why.clone())),
        Seen::Present(Err(error)) => Err(Closed::Unreadable(error.clone())),
        Seen::Present(Ok(Receipt::Void(void))) => Err(Closed::Void(Box::new(void.clone()))),
        Seen::Present(Ok(Receipt::Overridden(overridden))) => Err(Closed::Overridden(overridden.clone())),
        Seen::Present(Ok(Receipt::Verified(run))) => Ok(run),
    }
}

/// What is wrong with a proof.
fn flaws(run: &VerifiedRun, now: &Fingerprint, gate: &Gate, clock: Timestamp) -> Vec<Closed> {
    let at = run.at();
    let mut closed = Vec::new();
    let fields = run.fingerprint().moved(now);
    if !fields.is_empty() {
        closed.push(Closed::Moved { fields, at });
    }
    match Duration::try_from(clock.duration_since(at)) {
        Ok(age) if age > gate.max_age => closed.push(Closed::TooOld { at, age, max_age: gate.max_age }),
        Ok(_) => {}
        Err(_) if at.duration_since(clock).unsigned_abs() <= SKEW => {}
        Err(_) => closed.push(Closed::InTheFuture { at }),
    }
    if (run.proof(), gate.proof) == (Proof::ExitCode, Proof::RunReport) {
        closed.push(Closed::OnlyExitCode { at });
    }
    closed
}

/// What is wrong with the record of the scheduled path. It has no age: nothing of that path wears out.
fn path_flaw(path: &Seen<Result<ScheduledPath, Unreadable>>, now: &Fingerprint) -> Option<Closed> {
    match path {
        Seen::Absent => Some(Closed::PathUnproven),
        Seen::Hidden { why } => Some(Closed::PathHidden(why.clone())),
        Seen::Present(Err(error)) => Some(Closed::PathUnreadable(error.clone())),
        Seen::Present(Ok(path)) => path.proven_for(now).err().map(|fields| Closed::PathMoved { fields, at: path.at() }),
    }
}

fn reasons(closed: &[Closed]) -> String {
    closed.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

fn ended(void: &Void) -> String {
    void.ending
        .as_ref()
        .map_or_else(|| ": its end was not seen, or could not be kept".to_owned(), |ending| format!(": {ending}"))
}

/// Fields for a person.
pub(crate) fn listed(fields: &[Field]) -> String {
    fields.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// The two largest units: `7d 1h`.
fn long(duration: &Duration) -> String {
    let minutes = duration.as_secs() / 60;
    let parts = [(minutes / 1440, "d"), (minutes / 60 % 24, "h"), (minutes % 60, "m")];
    let shown: Vec<_> = parts.iter().filter(|(n, _)| *n > 0).take(2).map(|(n, unit)| format!("{n}{unit}")).collect();
    if shown.is_empty() { format!("{}s", duration.as_secs()) } else { shown.join(" ") }
}

#[cfg(test)]
mod tests;
