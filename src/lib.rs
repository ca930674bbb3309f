//! The vocabulary that `ingest` and `deploy` share.
//!
//! Four ideas, one file each: which data set ([`SourceName`]), which command line ([`JobCommand`]), what a run says about
//! itself ([`RunReport`]) and what its exit code may mean ([`Outcome`]). Both programs parse and print these through this crate,
//! so that the string which `deploy` schedules is by construction the string which `ingest` accepts.
//!
//! Architecture invariant: no I/O, no async, no clock; the only dependencies are serde, serde_json and thiserror.

mod command;
mod interval;
mod outcome;
mod report;
mod source;

pub use command::{FLAG_PREFIX, JobCommand, Trigger, UnknownTrigger};
pub use interval::{Interval, NoInterval};
pub use outcome::{NEEDS_A_PERSON, Outcome, outcomes_of};
pub use report::{
    MAX_LINE_BYTES, RUN_REPORT_V1, ReportError, RunError, RunId, RunReport, Skip, SkipReason, UnreadableReport,
    Withheld, WithheldReason,
};
pub use source::{SourceName, UnknownSource};
