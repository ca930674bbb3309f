//! Everything that can end a run early: one kind a cause, each with its outcome, a stable code, and the way out.

use std::fmt;
use std::time::Duration;

use geuneul::Outcome;
use tokio_postgres::types::{WasNull, WrongType};

use crate::config::ConfigError;
use crate::migrate::SchemaError;
use crate::plan::KeyChurn;
use crate::session::SessionError;
use crate::upstream::{Flaw, UpstreamError};

/// Why a run ended early.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The environment is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// No session, or not the session that a run needs.
    #[error(transparent)]
    Session(#[from] SessionError),
    /// The schema is not ours, too new, or cannot be brought up to date.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// A statement failed.
    #[error("{doing}: {}", chain(.source))]
    Database {
        /// What the statement was for.
        doing: &'static str,
        /// What the server, or the connection, said.
        source: tokio_postgres::Error,
    },
    /// The upstream gave no snapshot.
    #[error(transparent)]
    Upstream(#[from] UpstreamError),
    /// The HTTP client cannot be built.
    #[error("the HTTP client cannot be built: {}", chain(.0))]
    Http(reqwest::Error),
    /// The snapshot has no rows.
    #[error("the snapshot has no rows (totalCount {announced}); refused, nothing was written")]
    EmptySnapshot {
        /// What the upstream says there should be.
        announced: u64,
    },
    /// Too many rows cannot be stored.
    #[error(
        "{rejected} of {fetched} rows cannot be stored, more than one in a hundred; refused, nothing was written. {first}"
    )]
    TooManyRejects {
        /// Rows set aside.
        rejected: usize,
        /// Rows in the snapshot.
        fetched: usize,
        /// The most frequent complaint.
        first: String,
    },
    /// The keys themselves have probably changed.
    #[error(
        "{} places would be new, {} gone and {} a part of another, of {} that are active: what libraries are recognised by has probably changed; refused, nothing was written",
        .0.born, .0.gone, .0.merged, .0.active
    )]
    KeyChurn(KeyChurn),
    /// What was written is not what was planned.
    #[error("{what}: planned {planned}, the database says {found}; rolled back")]
    Mismatch {
        /// What was counted.
        what: &'static str,
        /// By the plan.
        planned: u64,
        /// By the database.
        found: u64,
    },
    /// The table has lost the constraint that forbids it.
    #[error("two places have the key {0:?}: somebody changed the table by hand; nothing was written")]
    TwoOfAKey(String),
    /// Another run has taken over.
    #[error("the fence of this source has moved on: another run took over; rolled back")]
    Fenced,
    /// The reply to COMMIT was lost, and the ledger says that it did not happen.
    #[error("the connection broke during COMMIT, and the ledger shows that nothing was committed")]
    NotCommitted,
    /// The reply to COMMIT was lost, and nobody could be asked.
    #[error("the connection broke during COMMIT, and whether it happened could not be found out: {0}")]
    CommitUnknown(String),
    /// The budget is spent, and everything but the database has a shorter limit of its own.
    #[error("the run is not over after {} s: the database does not answer; given up", .0.as_secs())]
    Deadline(Duration),
    /// A large snapshot has no place.
    #[error("the rows cannot be kept in a temporary file: {0}")]
    Spool(std::io::Error),
    /// The process cannot even begin.
    #[error("the program cannot start: {0}")]
    Start(std::io::Error),
    /// A panic.
    #[error("a fault of this program: {0}")]
    Panic(String),
    /// SIGTERM or SIGINT.
    #[error("interrupted by a signal")]
    Interrupted,
    /// SIGTERM or SIGINT, and no reply to COMMIT.
    #[error("interrupted by a signal while COMMIT had no answer; the ledger will show whether it happened")]
    InterruptedCommit,
}

impl Error {
    /// How a run with this error ends.
    pub fn outcome(&self) -> Outcome {
        match self {
            Error::Config(_) | Error::Schema(SchemaError::Refused(_)) => Outcome::Misconfigured,
            Error::Session(error) => error.outcome(),
            Error::Database { source, .. } | Error::Schema(SchemaError::Database { source, .. }) => {
                Trouble::of(source).outcome()
            }
            Error::Upstream(UpstreamError::Key { .. }) | Error::TwoOfAKey(_) | Error::Spool(_) => {
                Outcome::Misconfigured
            }
            Error::Upstream(_) => Outcome::UpstreamFailed,
            Error::EmptySnapshot { .. } | Error::TooManyRejects { .. } | Error::KeyChurn(_) => Outcome::SnapshotRefused,
            Error::Http(_) | Error::Mismatch { .. } | Error::Start(_) | Error::Panic(_) => Outcome::Internal,
            Error::Fenced | Error::NotCommitted | Error::CommitUnknown(_) | Error::Deadline(_) => Outcome::DatabaseLost,
            Error::Interrupted | Error::InterruptedCommit => Outcome::Interrupted,
        }
    }

    /// A stable word for programs and for the ledger.
    pub fn code(&self) -> &'static str {
        match self {
            Error::Config(error) => error.code(),
            Error::Session(error) => error.code(),
            Error::Schema(SchemaError::Refused(_)) => "schema_refused",
            Error::Schema(SchemaError::Database { source, .. }) | Error::Database { source, .. } => {
                Trouble::of(source).code()
            }
            Error::Upstream(UpstreamError::Key { .. }) => "service_key_refused",
            Error::Upstream(UpstreamError::Quota { .. }) => "upstream_quota",
            Error::Upstream(UpstreamError::Fatal { .. }) => "upstream_refused",
            Error::Upstream(UpstreamError::Exhausted { .. }) => "upstream_unavailable",
            Error::Upstream(UpstreamError::Flawed { flaw: Flaw::Short { .. }, .. }) => "upstream_short",
            Error::Upstream(UpstreamError::Flawed { .. }) => "upstream_inconsistent",
            Error::Upstream(UpstreamError::Endless { .. }) => "upstream_endless",
            Error::Upstream(UpstreamError::TooLarge { .. }) => "upstream_too_large",
            Error::Http(_) => "http_client",
            Error::EmptySnapshot { .. } => "empty_snapshot",
            Error::TooManyRejects { .. } => "too_many_rejects",
            Error::KeyChurn(_) => "key_churn",
            Error::Mismatch { .. } => "plan_mismatch",
            Error::TwoOfAKey(_) => "schema_altered",
            Error::Fenced => "fenced",
            Error::NotCommitted => "not_committed",
            Error::CommitUnknown(_) => "commit_unknown",
            Error::Deadline(_) => "run_deadline",
            Error::Spool(_) => "no_temporary_file",
            Error::Start(_) => "cannot_start",
            Error::Panic(_) => "panic",
            Error::Interrupted => "interrupted",
            Error::InterruptedCommit => "interrupted_commit",
        }
    }

    /// The way out, when there is one to tell.
    pub fn hint(&self) -> Option<&str> {
        Some(match self {
            Error::Config(error) => error.hint(),
            Error::Session(error) => return error.hint(),
            Error::Schema(SchemaError::Refused(refusal)) => return Some(refusal.hint()),
            Error::Database { source, .. } | Error::Schema(SchemaError::Database { source, .. }) => {
                return Trouble::of(source).hint();
            }
            Error::Upstream(UpstreamError::Key { .. }) => {
                "check on data.go.kr that the key is in force and approved for data set 15013109 (a new key works after up to a day), then store it again in DATA_GO_KR_SERVICE_KEY"
            }
            Error::Upstream(UpstreamError::Quota { .. }) => {
                "run again after midnight in Korea, when the quota is renewed"
            }
            Error::Upstream(UpstreamError::Fatal { .. }) => {
                "look the code up in the portal's error table; code 10 is also what a key gets that was encoded in a wrong way, and a page of HTML is a firewall's, which blocks this address or this client"
            }
            Error::Upstream(_) => "run again later; nothing was written",
            Error::EmptySnapshot { .. } => "look at the data set on data.go.kr; if it is back, run again",
            Error::TooManyRejects { .. } => {
                "the upstream has probably changed a format; the rules are in source/library.rs"
            }
            Error::KeyChurn(_) => {
                "look with --ingest.dry-run=true; if it is right, run once with --ingest.confirm-deactivations=N, N being at least what goes and what is merged"
            }
            Error::TwoOfAKey(_) => {
                "give one of the two another key, and put the constraint places_source_key_key back (migrations/0003_identity.sql)"
            }
            Error::Fenced | Error::NotCommitted => "run again; nothing is half done",
            Error::CommitUnknown(_) | Error::InterruptedCommit => {
                "run again: a run finds out by itself what is already there"
            }
            Error::Deadline(_) => "look at the database (pg_stat_activity, pg_locks) and the way to it; then run again",
            Error::Spool(_) => {
                "a snapshot of more than 64 MiB is kept in a file: point TMPDIR to a folder that can be written and has some hundred MiB left"
            }
            Error::Start(_) => "look at the limits of the process (open files, threads, memory)",
            Error::Http(_) | Error::Mismatch { .. } | Error::Panic(_) | Error::Interrupted => return None,
        })
    }
}

/// Names what a statement was for.
pub trait Doing<T> {
    /// Wraps the driver's error.
    fn doing(self, what: &'static str) -> Result<T, Error>;
}

impl<T> Doing<T> for Result<T, tokio_postgres::Error> {
    fn doing(self, what: &'static str) -> Result<T, Error> {
        self.map_err(|source| Error::Database { doing: what, source })
    }
}

/// What a failed statement says about the database.
enum Trouble {
    /// The connection, a resource, an operator: nothing that this program did wrong.
    Lost,
    /// Somebody, or a timeout, cancelled the statement.
    Cancelled,
    /// Somebody else holds a lock on our tables.
    Locked,
    /// The role lacks a right.
    Denied,
    /// The session may only read.
    ReadOnly,
    /// The tables are not as we made them.
    Altered,
    /// A fault of this program.
    Fault,
}

impl Trouble {
    fn of(error: &tokio_postgres::Error) -> Trouble {
        let Some(state) = error.code() else {
            return match () {
                () if has_cause::<WasNull>(error) || has_cause::<WrongType>(error) => Trouble::Altered,
                () if error.is_closed() || has_cause::<std::io::Error>(error) => Trouble::Lost,
                () => Trouble::Fault,
            };
        };
        match state.code() {
            "42501" => Trouble::Denied,
            "25006" => Trouble::ReadOnly,
            "55P03" => Trouble::Locked,
            "57014" => Trouble::Cancelled,
            // An undefined table, column, function or schema; another type.
            "42P01" | "42703" | "42883" | "3F000" | "42804" => Trouble::Altered,
            code => match &code[..2] {
                "08" | "53" | "57" | "58" | "40" | "25" | "55" => Trouble::Lost,
                _ => Trouble::Fault,
            },
        }
    }

    fn outcome(&self) -> Outcome {
        match self {
            Trouble::Lost | Trouble::Cancelled | Trouble::Locked => Outcome::DatabaseLost,
            Trouble::Denied | Trouble::ReadOnly | Trouble::Altered => Outcome::Misconfigured,
            Trouble::Fault => Outcome::Internal,
        }
    }

    fn code(&self) -> &'static str {
        match self {
            Trouble::Lost => "database_lost",
            Trouble::Cancelled => "database_cancelled",
            Trouble::Locked => "database_locked",
            Trouble::Denied => "database_denied",
            Trouble::ReadOnly => "database_read_only",
            Trouble::Altered => "schema_altered",
            Trouble::Fault => "database_error",
        }
    }

    fn hint(&self) -> Option<&'static str> {
        Some(match self {
            Trouble::Lost => "run again: the lock and the transaction ended with the session, and nothing is half done",
            Trouble::Cancelled => "somebody, or a timeout, cancelled the statement; run again, nothing is half done",
            Trouble::Locked => {
                "another session locks our tables for longer than a run waits: find it in pg_locks and pg_stat_activity, then run again"
            }
            Trouble::Denied => {
                "grant the run's role what it lacks (USAGE on the schema; SELECT, INSERT, UPDATE on its tables; TEMPORARY on the database)"
            }
            Trouble::ReadOnly => {
                "default_transaction_read_only is on for this role, this database or the whole server: let the run's role write; or, after a failover, this is the old server: use the writer's endpoint"
            }
            Trouble::Altered => {
                "somebody changed the tables by hand: compare them with the files in migrations/ and restore them, or choose another schema with INGEST_DB_SCHEMA"
            }
            Trouble::Fault => return None,
        })
    }
}

fn has_cause<E: std::error::Error + 'static>(error: &(dyn std::error::Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error| error.source()).any(|error| error.is::<E>())
}

/// An error with all of its causes, on one line: the drivers' own texts say little more than "db error".
pub fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut line = String::new();
    for error in std::iter::successors(Some(error), |error| error.source()) {
        let text = error.to_string().split_whitespace().collect::<Vec<_>>().join(" ");
        // Some errors repeat their cause in their own text.
        if !line.contains(&text) {
            line.push_str(if line.is_empty() { "" } else { ": " });
            line.push_str(&text);
        }
    }
    line
}

/// The error as a person reads it on a terminal.
impl fmt::Display for Explained<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "error: {}", self.0)?;
        self.0.hint().map_or(Ok(()), |hint| write!(f, "\nhint: {hint}"))
    }
}

/// See its `Display`.
pub struct Explained<'a>(pub &'a Error);
