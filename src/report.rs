//! What a run says about itself: the last line on its stdout, one JSON object.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Outcome, SourceName, Trigger};

/// The marker that makes a log line a run report, and its version.
pub const RUN_REPORT_V1: &str = "run-report/1";

/// A report line is never longer than this, so that no log driver splits it (awslogs splits at 16 KiB).
pub const MAX_LINE_BYTES: usize = 8 * 1024;

/// The name of a run that people see: a UUID in its canonical lower-case form.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(String);

impl RunId {
    /// The canonical text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for RunId {
    type Err = ReportError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let canonical = text.len() == 36
            && text.bytes().enumerate().all(|(i, byte)| match i {
                8 | 13 | 18 | 23 => byte == b'-',
                _ => matches!(byte, b'0'..=b'9' | b'a'..=b'f'),
            });
        canonical.then(|| RunId(text.to_owned())).ok_or_else(|| ReportError::RunId(text.to_owned()))
    }
}

impl TryFrom<String> for RunId {
    type Error = ReportError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<RunId> for String {
    fn from(id: RunId) -> Self {
        id.0
    }
}

/// A value that no report may carry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ReportError {
    /// Not a UUID in canonical form.
    #[error("{0:?} is not a run id (a lower-case UUID such as 7b0b1f3e-1111-4222-8333-944445555666)")]
    RunId(String),
}

/// The report of one run, version 1. Counts are rows of the snapshot unless they say otherwise.
///
/// `fetched = rejected + inserted + updated + unchanged + reactivated`. A reader ignores fields that it does not know: version 1
/// may grow, but a field never changes its meaning.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunReport {
    /// The run, as the ledger and `--ingest.retry-of` name it.
    pub run_id: RunId,
    /// The data set.
    pub source: SourceName,
    /// Who started it.
    pub trigger: Trigger,
    /// How it ended.
    pub outcome: Outcome,
    /// Rows in the snapshot. Identical rows of one that is not proven complete count once: they may be one row that was read twice.
    pub fetched: u64,
    /// Places that were not there before.
    pub inserted: u64,
    /// Places whose published values changed.
    pub updated: u64,
    /// Places that are as they were.
    pub unchanged: u64,
    /// Places that had been deactivated and are published again.
    pub reactivated: u64,
    /// Rows set aside because a value cannot be stored; they count as present.
    pub rejected: u64,
    /// Active places that the snapshot lacks and that this run soft-deleted.
    pub deactivated: u64,
    /// inserted + updated + reactivated.
    pub upserted: u64,
    /// Active places after the run: neither deleted nor a duplicate of another.
    pub active: u64,
    /// Places after the run that are stored as a duplicate of another.
    pub duplicates: u64,
    /// Places whose row vanished and whose id moved to another row of the same library.
    #[serde(default)]
    pub carried_over: u64,
    /// Places that turned out to be the same library as another, and are now a part of it.
    #[serde(default)]
    pub merged: u64,
    /// Values that were stored in another form than they were published in, or that are odd and were stored all the same; and rows of the
    /// table that had been changed by hand and were put right.
    #[serde(default)]
    pub noted: u64,
    /// The snapshot was proven complete.
    pub complete: bool,
    /// SHA-256 of the snapshot's rows, in hex; absent when no snapshot was obtained.
    pub snapshot_sha256: Option<String>,
    /// What the run was told of its occurrence (`INGEST_OCCURRENCE`), as it was told: `JOB@TIME` from `deploy`. Absent when it was told
    /// nothing.
    #[serde(default)]
    pub occurrence: Option<String>,
    /// RFC 3339, UTC.
    pub started_at: String,
    /// Wall time of the run in milliseconds.
    pub duration_ms: u64,
    /// Why the run was skipped, when it was.
    pub skip: Option<Skip>,
    /// What was withheld, when something was.
    pub withheld: Option<Withheld>,
    /// What went wrong, when something did. Beside a success: what was odd once it was committed (`lock_lost`).
    pub error: Option<RunError>,
}

/// Why a run did nothing.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Skip {
    /// The kind of skip.
    pub reason: SkipReason,
    /// The backend that holds the lock.
    pub holder_pid: Option<i32>,
    /// That session's `application_name`: it carries the source and the run id of a run of ours.
    pub holder_application: Option<String>,
    /// The run that holds the lock, when it is one of ours.
    pub holder_run_id: Option<RunId>,
    /// Seconds since that session began.
    pub holder_age_s: Option<u64>,
    /// Seconds since that run last made progress.
    pub holder_heartbeat_age_s: Option<u64>,
    /// How many runs in a row, this one included, the lock has kept from working.
    #[serde(default)]
    pub consecutive_skips: u64,
    /// Seconds since a run of this source succeeded; absent when none ever did.
    #[serde(default)]
    pub last_success_age_s: Option<u64>,
}

/// The kinds of skip.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SkipReason {
    /// The advisory lock of the source is held.
    Locked,
    /// A scheduled run, and the last success is younger than `--ingest.min-interval`.
    RecentSuccess,
}

impl SkipReason {
    /// The name as reports and the ledger write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            SkipReason::Locked => "locked",
            SkipReason::RecentSuccess => "recent_success",
        }
    }
}

/// What a run held back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Withheld {
    /// Active places that the snapshot lacks and that stay active.
    pub deactivations: u64,
    /// Why they stay.
    pub reason: WithheldReason,
}

/// Why deactivations are held back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WithheldReason {
    /// The snapshot could not be proven complete.
    UnprovenSnapshot,
    /// A row has no name or no institution code that can be read: nobody knows which place it is, and so which ones are gone.
    UnnamedRow,
    /// More places would vanish than the cap allows.
    OverCap,
}

/// What went wrong, in words that carry no secret.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunError {
    /// A stable word for programs.
    pub code: String,
    /// One line for people; shortened when it is long.
    pub message: String,
}

/// The longest error text that a report carries, in bytes.
const MAX_MESSAGE_BYTES: usize = 2 * 1024;

#[derive(Serialize, Deserialize)]
struct Marked<T> {
    geuneul: String,
    #[serde(flatten)]
    report: T,
}

/// A line that carries the marker, yet is no report that this version can read.
#[derive(Debug, thiserror::Error)]
pub enum UnreadableReport {
    /// A report of a version that this program does not know.
    #[error("the report is of version {0:?}; this program reads {RUN_REPORT_V1:?}")]
    Version(String),
    /// The marker is there, the rest is not as version 1 has it (a line cut in half, a field missing).
    #[error("the report cannot be read: {0}")]
    Shape(#[from] serde_json::Error),
}

impl RunReport {
    /// The line to print, without the newline: marker first, at most [`MAX_LINE_BYTES`] long.
    pub fn to_line(&self) -> String {
        let mut report = self.clone();
        if let Some(error) = &mut report.error {
            shorten(&mut error.message, MAX_MESSAGE_BYTES);
            shorten(&mut error.code, 64);
        }
        if let Some(occurrence) = &mut report.occurrence {
            shorten(occurrence, 256);
        }
        if let Some(application) = report.skip.as_mut().and_then(|skip| skip.holder_application.as_mut()) {
            shorten(application, 256);
        }
        let marked = Marked { geuneul: RUN_REPORT_V1.to_owned(), report };
        serde_json::to_string(&marked).expect("a report has only strings, numbers and booleans")
    }

    /// Reads a log line. `None` when it is no report at all; an error when it claims to be one and cannot be read.
    pub fn from_line(line: &str) -> Option<Result<RunReport, UnreadableReport>> {
        let line = line.trim();
        if !line.starts_with("{\"geuneul\":\"") {
            return None;
        }
        let marked: Marked<serde_json::Value> = match serde_json::from_str(line) {
            Ok(marked) => marked,
            Err(error) => return Some(Err(error.into())),
        };
        if marked.geuneul != RUN_REPORT_V1 {
            return Some(Err(UnreadableReport::Version(marked.geuneul)));
        }
        Some(serde_json::from_value(marked.report).map_err(UnreadableReport::from))
    }

    /// The last report among log lines, newest last.
    pub fn last_of<'a>(lines: impl DoubleEndedIterator<Item = &'a str>) -> Option<Result<RunReport, UnreadableReport>> {
        lines.rev().find_map(RunReport::from_line)
    }

    /// Every fetched row is accounted for exactly once.
    pub fn adds_up(&self) -> bool {
        // Wider than a count: a report is a stranger's line, and no sum of its numbers may overflow.
        let sum = |counts: &[u64]| counts.iter().copied().map(u128::from).sum::<u128>();
        u128::from(self.fetched) == sum(&[self.rejected, self.inserted, self.updated, self.unchanged, self.reactivated])
            && u128::from(self.upserted) == sum(&[self.inserted, self.updated, self.reactivated])
    }
}

/// Cuts at a character boundary and says that it did. JSON may need six bytes for one byte of text, so the limits above keep a
/// whole line under [`MAX_LINE_BYTES`] only with this bound on what escaping adds; see the test.
fn shorten(text: &mut String, limit: usize) {
    let escaped = |s: &str| serde_json::to_string(s).map_or(usize::MAX, |json| json.len() - 2);
    if escaped(text) <= limit {
        return;
    }
    let mut size = 0;
    let mut end = 0;
    for (at, c) in text.char_indices() {
        size += escaped(c.encode_utf8(&mut [0; 4]));
        if size > limit - '…'.len_utf8() {
            break;
        }
        end = at + c.len_utf8();
    }
    text.truncate(end);
    text.push('…');
}

#[cfg(test)]
mod tests;
