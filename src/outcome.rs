//! What a run of `ingest` can end in, and the exit code of each end.

use serde::{Deserialize, Serialize};

/// The closed set of ends of a run.
///
/// The codes follow `sysexits.h`; 143 is what a shell calls death by SIGTERM. They are part of the interface: an alarm, a
/// schedule or `deploy` reads them, so a code never changes its meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The snapshot is mirrored: every change that it calls for is committed.
    Succeeded,
    /// Another live run of ours holds the lock, or the last success is too recent; this run did nothing.
    Skipped,
    /// The command line is wrong; nothing was tried.
    Usage,
    /// Inserts and updates are committed, but the deactivations were withheld: doubtful snapshot, or more than the cap.
    Withheld,
    /// The upstream answered with an error to the end, or not in time; no place was written.
    UpstreamFailed,
    /// The upstream answered, but what it sent is refused as a snapshot (empty, too many bad rows); no place was written.
    SnapshotRefused,
    /// A fault of this program, a panic included; the transaction was rolled back.
    Internal,
    /// The database cannot be reached, or the session that held the lock is gone; the transaction was rolled back.
    DatabaseLost,
    /// The lock is held, and not by a live run of ours, or still by the run that was in the way before: somebody should look.
    Busy,
    /// Something about the environment has to be changed by a person: the key, the database's settings, the schema.
    Misconfigured,
    /// SIGTERM or SIGINT: cancelled, rolled back, unlocked.
    Interrupted,
}

/// The exit code of `ingest status` when something needs a person. No run ends with it.
pub const NEEDS_A_PERSON: u8 = 5;

impl Outcome {
    /// Every outcome.
    pub const ALL: &'static [Outcome] = &[
        Outcome::Succeeded,
        Outcome::Skipped,
        Outcome::Usage,
        Outcome::Withheld,
        Outcome::UpstreamFailed,
        Outcome::SnapshotRefused,
        Outcome::Internal,
        Outcome::DatabaseLost,
        Outcome::Busy,
        Outcome::Misconfigured,
        Outcome::Interrupted,
    ];

    /// The process exit code of this outcome.
    pub const fn exit_code(self) -> u8 {
        match self {
            Outcome::Succeeded | Outcome::Skipped => 0,
            Outcome::Usage => 64,
            Outcome::Withheld => 65,
            Outcome::UpstreamFailed | Outcome::SnapshotRefused => 69,
            Outcome::Internal => 70,
            Outcome::DatabaseLost => 74,
            Outcome::Busy => 75,
            Outcome::Misconfigured => 78,
            Outcome::Interrupted => 143,
        }
    }

    /// The name as reports and the ledger write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Outcome::Succeeded => "succeeded",
            Outcome::Skipped => "skipped",
            Outcome::Usage => "usage",
            Outcome::Withheld => "withheld",
            Outcome::UpstreamFailed => "upstream_failed",
            Outcome::SnapshotRefused => "snapshot_refused",
            Outcome::Internal => "internal",
            Outcome::DatabaseLost => "database_lost",
            Outcome::Busy => "busy",
            Outcome::Misconfigured => "misconfigured",
            Outcome::Interrupted => "interrupted",
        }
    }

    /// One sentence for a person who sees only this outcome.
    pub const fn meaning(self) -> &'static str {
        match self {
            Outcome::Succeeded => "the snapshot is mirrored",
            Outcome::Skipped => "another live run is at work, or the last success is recent",
            Outcome::Usage => "the command line is wrong",
            Outcome::Withheld => "changes are committed, deactivations were withheld",
            Outcome::UpstreamFailed => "the upstream failed; no place was written",
            Outcome::SnapshotRefused => "the snapshot is refused; no place was written",
            Outcome::Internal => "a fault of the program; rolled back",
            Outcome::DatabaseLost => "the database or the session is gone; rolled back",
            Outcome::Busy => "the lock is held by no live run of ours, or by the same run as before",
            Outcome::Misconfigured => "the environment needs a person",
            Outcome::Interrupted => "interrupted; rolled back and unlocked",
        }
    }
}

impl std::fmt::Display for Outcome {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The outcomes that an exit code of `ingest` may mean; empty for a code that `ingest` never uses (137: killed, out of memory).
///
/// Exit code 0 alone is no success: a skipped run ends with it too. Only the report tells them apart.
pub fn outcomes_of(exit_code: i32) -> Vec<Outcome> {
    Outcome::ALL.iter().copied().filter(|outcome| i32::from(outcome.exit_code()) == exit_code).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_outcome_is_among_the_meanings_of_its_code() {
        for &outcome in Outcome::ALL {
            assert!(outcomes_of(outcome.exit_code().into()).contains(&outcome));
            assert_eq!(serde_json::to_value(outcome).unwrap(), outcome.as_str());
        }
        assert_eq!(outcomes_of(0), [Outcome::Succeeded, Outcome::Skipped]);
        assert_eq!(outcomes_of(69), [Outcome::UpstreamFailed, Outcome::SnapshotRefused]);
        assert_eq!(outcomes_of(137), []);
        assert_eq!(outcomes_of(NEEDS_A_PERSON.into()), []);
    }
}
