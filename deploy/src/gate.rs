//! May the schedule be switched on?
//!
//! Architecture invariant: pure. Whoever asks brings what was read, and the time.

use std::time::Duration;

use jiff::Timestamp;

use crate::config::{Gate, Proof};
use crate::fingerprint::{Field, Fingerprint};
use crate::model::Seen;
use crate::receipt::{Receipt, ReceiptError, VerifiedRun, Void};

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
    Unreadable(#[from] ReceiptError),
    /// The newest run did not prove itself.
    #[error("the run of {} by {} did not prove itself{}", .0.since, .0.by, ended(.0))]
    Void(Void),
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
}

/// Clocks may differ by this much.
const SKEW: Duration = Duration::from_secs(300);

/// The verified run that opens the gate, or every reason why none does.
pub fn open<'a>(
    receipt: &'a Seen<Result<Receipt, ReceiptError>>,
    now: &Fingerprint,
    gate: &Gate,
    clock: Timestamp,
) -> Result<&'a VerifiedRun, Vec<Closed>> {
    let run = match receipt {
        Seen::Absent => return Err(vec![Closed::NoReceipt]),
        Seen::Hidden { why } => return Err(vec![Closed::Hidden(why.clone())]),
        Seen::Present(Err(error)) => return Err(vec![Closed::Unreadable(error.clone())]),
        Seen::Present(Ok(Receipt::Void(void))) => return Err(vec![Closed::Void(void.clone())]),
        Seen::Present(Ok(Receipt::Verified(run))) => run,
    };
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
    if closed.is_empty() { Ok(run) } else { Err(closed) }
}

fn ended(void: &Void) -> String {
    void.ending.as_ref().map_or_else(|| ": its end was not seen".to_owned(), |ending| format!(": {ending}"))
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
