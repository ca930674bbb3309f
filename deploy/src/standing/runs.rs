//! The runs that the log remembers, and those that left no report, as a table.
//!
//! Architecture invariant: pure.

use std::time::Duration;

use geuneul::{Outcome, RunReport, Trigger};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::columns::{self, SCREEN};
use crate::config::Proof;
use crate::fire_times::timetable::Timetable;
use crate::model::Schedule;
use crate::model::run_task::of_occurrence;
use crate::run::ending::humantime;
use crate::run::readable::readable;

/// How late a run may begin: a flexible window and the age of an occurrence are a day each at most.
const LATEST: SignedDuration = SignedDuration::from_hours(50);

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

    /// When it was due or asked for, as it was told by whoever started it; else when it began: by this it is told whether a run has come.
    pub fn at(&self) -> Option<Timestamp> {
        self.occurrence().map(|(_, at)| at).or_else(|| self.began())
    }

    /// By which moment runs are ordered: when it began, as far as its clock can be believed. A run comes late (a window, a retry), and
    /// never before it is due.
    pub fn order(&self) -> Option<Timestamp> {
        let (at, began) = (self.at()?, self.began());
        let latest = at.checked_add(LATEST).unwrap_or(Timestamp::MAX);
        Some(began.filter(|began| (at..=latest).contains(began)).unwrap_or(at))
    }

    /// The earlier of both: whatever was so after it, the run shows nothing of.
    pub fn earliest(&self) -> Option<Timestamp> {
        self.at().into_iter().chain(self.began()).min()
    }

    /// The job and the time of its occurrence, as it was told them.
    fn occurrence(&self) -> Option<(&str, Timestamp)> {
        let (job, time) = of_occurrence(self.report.occurrence.as_deref()?)?;
        Some((job, time.parse().ok()?))
    }

    /// Whether it says that it is another job's: several may share a family and a container, and then a log as well.
    pub fn is_of_another(&self, job: &str) -> bool {
        self.occurrence().is_some_and(|(of, _)| of != job)
    }

    /// Whether it says that it is this job's.
    pub fn is_of(&self, job: &str) -> bool {
        self.occurrence().is_some_and(|(of, _)| of == job)
    }

    /// Whether the schedule itself started it: it says so, for this job, and for a moment at which the schedule fires. A line of a
    /// log is no more than that, and one that says less shows nothing of the schedule.
    pub fn is_by(&self, schedule: &Schedule) -> bool {
        self.report.trigger == Trigger::Scheduled
            && self
                .occurrence()
                .is_some_and(|(job, at)| schedule.text("Name") == Some(job) && Timetable::of(schedule).fires_at(at))
    }

    /// Whether it calls itself scheduled and does not say by which job: an image that is older than this, or anybody's.
    pub fn is_nobodys(&self) -> bool {
        self.report.trigger == Trigger::Scheduled && self.occurrence().is_none()
    }

    /// Whether it ended as it should, or had nothing to do.
    pub fn is_well(&self) -> bool {
        matches!(self.report.outcome, Outcome::Succeeded | Outcome::Skipped | Outcome::DryRun)
    }

    /// Whether it says how the data stand: not one that only looked, or that found nothing to do.
    pub fn did_its_work(&self) -> bool {
        !matches!(self.report.outcome, Outcome::Skipped | Outcome::DryRun)
    }

    /// What went wrong, in its own words or in those of its outcome.
    pub fn cause(&self) -> String {
        let said = self.report.error.as_ref().map(|error| readable(&error.message));
        said.unwrap_or_else(|| self.report.outcome.meaning().to_owned())
    }
}

/// Each run once, newest first.
pub fn newest_first(mut runs: Vec<PastRun>) -> Vec<PastRun> {
    runs.sort_by(|a, b| (b.order(), &b.report.run_id).cmp(&(a.order(), &a.report.run_id)));
    runs.dedup_by(|a, b| a.report.run_id == b.report.run_id && a.task == b.task);
    runs
}

/// A task of the job that ended and left no report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Unreported {
    /// The id of its task.
    pub task: String,
    /// When it began.
    pub began: Timestamp,
    /// Who started it.
    pub trigger: Trigger,
    /// How it ended, as far as is known.
    pub ended: Ended,
    /// What a run of this job has to show.
    #[serde(skip)]
    pub proof: Proof,
}

/// How a task without a report ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ended {
    /// With an exit code.
    With(i32),
    /// Without one; ECS says why.
    Because(String),
    /// ECS has forgotten it: only its log stream is left.
    Forgotten,
    /// With a report that this version cannot read.
    Unreadable,
}

impl Unreported {
    /// Whether that is all that is asked of it.
    pub fn is_well(&self) -> bool {
        (self.proof, &self.ended) == (Proof::ExitCode, &Ended::With(0))
    }

    /// Whether nobody can tell any more: who started it, and how it ended, only ECS knew.
    pub fn is_unknown(&self) -> bool {
        (self.proof, &self.ended) == (Proof::ExitCode, &Ended::Forgotten)
    }

    /// How it ended, for a person.
    pub fn says(&self) -> String {
        match (&self.ended, self.proof) {
            (Ended::With(0), Proof::ExitCode) => "ran (it prints no report)".to_owned(),
            (Ended::Forgotten, Proof::ExitCode) => "ran; ECS has forgotten who started it and how it ended".to_owned(),
            (Ended::With(code), Proof::ExitCode) => format!("ended with exit code {code}"),
            (Ended::With(code), Proof::RunReport) => format!("ended with exit code {code} and without a report"),
            (Ended::Because(reason), _) if !reason.is_empty() => {
                format!("ended without an exit code: {}", readable(reason))
            }
            (Ended::Because(_), _) => "ended without an exit code".to_owned(),
            (Ended::Forgotten, Proof::RunReport) => "ended without a report".to_owned(),
            (Ended::Unreadable, _) => {
                "left a report that this version cannot read: use a `deploy` of the container's version".to_owned()
            }
        }
    }
}

/// The newest of both together, so many in all; each is given newest first.
pub fn newest(runs: &mut Vec<PastRun>, unreported: &mut Vec<Unreported>, count: usize) {
    let runs_began = runs.iter().map(|run| (run.at(), true));
    let mut both: Vec<_> = runs_began.chain(unreported.iter().map(|one| (Some(one.began), false))).collect();
    both.sort_by_key(|(began, _)| std::cmp::Reverse(*began));
    both.truncate(count);
    let reported = both.iter().filter(|(_, reported)| *reported).count();
    runs.truncate(reported);
    unreported.truncate(both.len() - reported);
}

/// The runs as lines of a table, newest first; under one that did not end well, its task and why.
pub fn table(runs: &[PastRun], unreported: &[Unreported]) -> Vec<String> {
    let mut rows: Vec<Row> = runs.iter().map(Row::of_run).chain(unreported.iter().map(Row::of_unreported)).collect();
    rows.sort_by_key(|row| std::cmp::Reverse(row.at));
    let head = ["started (UTC)", "by", "outcome", "fetched", "upserted", "gone", "took"];
    let mut cells = vec![head.map(str::to_owned).to_vec()];
    cells.extend(rows.iter().map(|row| row.cells.clone()));
    let mut lines = Vec::new();
    for (i, line) in columns::table(&cells, &[3, 4, 5, 6]).into_iter().enumerate() {
        lines.push(columns::fit(&format!("  {line}"), SCREEN));
        let under = i.checked_sub(1).and_then(|i| rows.get(i)).into_iter().flat_map(|row| &row.under);
        lines.extend(under.map(|line| columns::fit(&format!("    {line}"), SCREEN)));
    }
    lines
}

struct Row {
    at: Option<Timestamp>,
    cells: Vec<String>,
    under: Vec<String>,
}

impl Row {
    fn of_run(run: &PastRun) -> Row {
        let RunReport { trigger, outcome, fetched, upserted, deactivated, duration_ms, started_at, .. } = &run.report;
        let cells = vec![
            run.began().map_or_else(|| readable(started_at), to_the_minute),
            if run.is_nobodys() { format!("{trigger}?") } else { trigger.to_string() },
            outcome.to_string(),
            fetched.to_string(),
            upserted.to_string(),
            deactivated.to_string(),
            humantime(&Duration::from_millis(*duration_ms)),
        ];
        let mut under = Vec::new();
        if run.is_nobodys() {
            under.push("it does not say of which job: it counts for no schedule".to_owned());
        }
        if !run.is_well() {
            under.extend([run.cause(), format!("task {}", run.task)]);
        }
        Row { at: run.at(), cells, under }
    }

    fn of_unreported(one: &Unreported) -> Row {
        let outcome = match one.is_well() {
            true => "ran",
            false if one.is_unknown() => "not known",
            false if one.ended == Ended::Unreadable => "unreadable",
            false => "no report",
        };
        // A stream names nobody.
        let doubt = if one.ended == Ended::Forgotten { "?" } else { "" };
        let mut cells = vec![to_the_minute(one.began), format!("{}{doubt}", one.trigger), outcome.to_owned()];
        cells.extend(["-"; 4].map(str::to_owned));
        Row { at: Some(one.began), cells, under: vec![one.says(), format!("task {}", one.task)] }
    }
}

fn to_the_minute(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M").to_string()
}
