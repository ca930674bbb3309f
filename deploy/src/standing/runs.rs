//! The runs that the log remembers, as a table.
//!
//! Architecture invariant: pure.

use std::time::Duration;

use geuneul::{Outcome, RunReport, Trigger};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use crate::columns::{self, SCREEN};
use crate::run::ending::humantime;
use crate::run::readable::readable;

/// A run that reported.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PastRun {
    /// The id of its task.
    pub task: String,
    /// What it said.
    pub report: RunReport,
}

impl PastRun {
    /// When it began, by its own clock.
    pub fn began(&self) -> Option<Timestamp> {
        self.report.started_at.parse().ok()
    }

    /// Whether the schedule started it.
    pub fn is_scheduled(&self) -> bool {
        self.report.trigger == Trigger::Scheduled
    }

    /// Whether it ended as it should, or had nothing to do.
    pub fn is_well(&self) -> bool {
        matches!(self.report.outcome, Outcome::Succeeded | Outcome::Skipped | Outcome::DryRun)
    }

    /// What went wrong, in its own words or in those of its outcome.
    pub fn cause(&self) -> String {
        let said = self.report.error.as_ref().map(|error| readable(&error.message));
        said.unwrap_or_else(|| self.report.outcome.meaning().to_owned())
    }
}

/// Each run once, newest first.
pub fn newest_first(mut runs: Vec<PastRun>) -> Vec<PastRun> {
    runs.sort_by(|a, b| (b.began(), &b.report.run_id).cmp(&(a.began(), &a.report.run_id)));
    runs.dedup_by(|a, b| a.report.run_id == b.report.run_id && a.task == b.task);
    runs
}

/// The runs as lines of a table; under one that did not end well, its task and why.
pub fn table(runs: &[PastRun]) -> Vec<String> {
    let head = ["started (UTC)", "by", "outcome", "fetched", "upserted", "gone", "took"];
    let mut rows = vec![head.map(str::to_owned).to_vec()];
    rows.extend(runs.iter().map(|run| {
        let RunReport { trigger, outcome, fetched, upserted, deactivated, duration_ms, started_at, .. } = &run.report;
        let began = run.began().map_or_else(|| readable(started_at), |at| at.strftime("%Y-%m-%d %H:%M").to_string());
        vec![
            began,
            trigger.to_string(),
            outcome.to_string(),
            fetched.to_string(),
            upserted.to_string(),
            deactivated.to_string(),
            humantime(&Duration::from_millis(*duration_ms)),
        ]
    }));
    let mut lines = Vec::new();
    for (i, line) in columns::table(&rows, &[3, 4, 5, 6]).into_iter().enumerate() {
        lines.push(columns::fit(&format!("  {line}"), SCREEN));
        if let Some(run) = i.checked_sub(1).and_then(|i| runs.get(i)).filter(|run| !run.is_well()) {
            lines.push(columns::fit(&format!("    {}", run.cause()), SCREEN));
            lines.push(columns::fit(&format!("    task {}", run.task), SCREEN));
        }
    }
    lines
}
