//! `ingest status`: how things stand, and whether a person is needed. Looks, and changes nothing.
//!
//! What it says is what the ledger and the lock show at this moment; whether that needs a person is decided by a pure function. Absence
//! counts: a source that never succeeded needs a person as much as one whose last success is too old.

mod look;

use std::fmt::Write as _;

use geuneul::{Interval, RunId, SourceName};
use serde::Serialize;

pub use look::look;

/// What is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Question {
    /// JSON instead of text.
    pub json: bool,
    /// One source, or all.
    pub source: Option<SourceName>,
    /// How old the last success may be.
    pub max_age: Interval,
}

/// The answer.
#[derive(Debug, Serialize)]
pub struct Status {
    geuneul: &'static str,
    needs_person: bool,
    sources: Vec<SourceStatus>,
}

/// One source.
#[derive(Debug, Serialize)]
struct SourceStatus {
    source: SourceName,
    needs: Vec<Need>,
    #[serde(flatten)]
    seen: Seen,
}

/// Why a person is needed.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Need {
    code: &'static str,
    message: String,
}

/// What the ledger and the lock show of one source.
#[derive(Debug, Default, Serialize)]
struct Seen {
    last_success_age_s: Option<u64>,
    consecutive_skips: u64,
    /// Those of them that ended as busy.
    #[serde(skip)]
    busy: u64,
    /// Places that a mirrored snapshot lacked and that no run has deactivated since.
    withheld: u64,
    /// The run that withheld them.
    #[serde(skip)]
    unsettled: Option<Run>,
    holder: Option<LockHolder>,
    /// Newest first.
    runs: Vec<Run>,
    /// The newest run that was not skipped.
    #[serde(skip)]
    worked: Option<Run>,
}

/// Who holds the lock of a source.
#[derive(Debug, Default, Serialize)]
struct LockHolder {
    pid: Option<i32>,
    application: Option<String>,
    run_id: Option<RunId>,
    age_s: Option<u64>,
    heartbeat_age_s: Option<u64>,
    /// It is a run of ours that makes progress.
    live: bool,
}

/// One run, as the ledger has it.
#[derive(Debug, Clone, Serialize)]
struct Run {
    run_id: RunId,
    trigger: String,
    occurrence: Option<String>,
    status: String,
    started_at: String,
    duration_ms: Option<i64>,
    fetched: Option<i64>,
    upserted: Option<i64>,
    deactivated: Option<i64>,
    withheld: Option<i64>,
    withheld_reason: Option<String>,
    skip_reason: Option<String>,
    error_code: Option<String>,
}

impl Status {
    fn of(seen: Vec<(SourceName, Seen)>, max_age: Interval) -> Status {
        let judge = |(source, seen)| SourceStatus { source, needs: needs(&seen, max_age), seen };
        let sources: Vec<_> = seen.into_iter().map(judge).collect();
        let needs_person = sources.iter().any(|source| !source.needs.is_empty());
        Status { geuneul: "ingest-status/1", needs_person, sources }
    }

    /// Exit code 5.
    pub fn needs_a_person(&self) -> bool {
        self.needs_person
    }

    /// One JSON object.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a status has only strings, numbers and booleans")
    }

    /// For a person, without the last newline.
    pub fn to_text(&self) -> String {
        let mut text = String::new();
        for source in &self.sources {
            source.write(&mut text).expect("a String can be written to");
        }
        text.truncate(text.trim_end().len());
        text
    }
}

/// The whole policy.
fn needs(seen: &Seen, max_age: Interval) -> Vec<Need> {
    let mut needs = Vec::new();
    let mut need = |code, message| needs.push(Need { code, message });
    let at_work = seen.holder.as_ref().is_some_and(|holder| holder.live);
    match seen.last_success_age_s {
        None if !at_work => need("never_succeeded", "no run has ever succeeded".to_owned()),
        Some(age) if age > max_age.seconds() => {
            need("stale", format!("the last success is {} old, more than {max_age}", length(age)));
        }
        _ => {}
    }
    if let Some(run) = &seen.worked {
        match run.status.as_str() {
            "succeeded" | "withheld" => {}
            "running" if seen.is_held_by(run) => {}
            "running" => need("died", format!("run {} died without a word: it holds no lock", run.run_id)),
            status => {
                let code = run.error_code.as_ref().map(|code| format!(", {code}")).unwrap_or_default();
                need("last_run_failed", format!("run {} ended as {status}{code}", run.run_id));
            }
        }
    }
    if let Some(run) = &seen.unsettled {
        need("withheld", unsettled(run, seen.withheld));
    }
    if let Some(holder) = seen.holder.as_ref().filter(|holder| !holder.live) {
        need("lock_held", format!("the lock is held by no live run of ours: {holder}"));
    }
    match seen.consecutive_skips {
        1 if seen.busy > 0 => need("starving", "the lock kept the last run from working".to_owned()),
        skips @ 2.. => need("starving", format!("the lock kept {skips} runs in a row from working")),
        _ => {}
    }
    needs
}

/// What is left undone, and what to do about it.
fn unsettled(run: &Run, withheld: u64) -> String {
    let (id, number) = (&run.run_id, format!("{withheld} deactivations were withheld"));
    match run.withheld_reason.as_deref() {
        Some("unproven_snapshot") => format!("run {id} could not prove its snapshot complete, and {number}: run again"),
        Some("unnamed_row") => format!("{number} by run {id}: a row has no name that can be read, see ingest_rejects"),
        _ => format!("{number} by run {id}, more than the cap: look with --ingest.dry-run=true, then confirm"),
    }
}

impl Seen {
    fn is_held_by(&self, run: &Run) -> bool {
        self.holder.as_ref().is_some_and(|holder| holder.run_id.as_ref() == Some(&run.run_id))
    }
}

/// In the largest unit of which there are two.
fn length(seconds: u64) -> String {
    let units = [("days", 86_400), ("hours", 3_600), ("minutes", 60)];
    let (unit, size) = units.into_iter().find(|(_, size)| seconds >= 2 * size).unwrap_or(("seconds", 1));
    format!("{} {unit}", seconds / size)
}

impl std::fmt::Display for LockHolder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{}",
            self.application.as_deref().filter(|name| !name.is_empty()).unwrap_or("a session without a name")
        )?;
        let pid = self.pid.map(|pid| format!("pid {pid}"));
        let age = self.age_s.map(|age| format!("connected {} ago", length(age)));
        let heartbeat = self.heartbeat_age_s.map(|age| format!("progress {} ago", length(age)));
        let known: Vec<_> = [pid, age, heartbeat].into_iter().flatten().collect();
        if known.is_empty() { Ok(()) } else { write!(f, " ({})", known.join(", ")) }
    }
}

impl SourceStatus {
    fn write(&self, text: &mut String) -> std::fmt::Result {
        let Seen { last_success_age_s, consecutive_skips, withheld, holder, runs, busy: _, unsettled: _, worked: _ } =
            &self.seen;
        writeln!(text, "{}: {}", self.source, if self.needs.is_empty() { "in order" } else { "needs a person" })?;
        for Need { code, message } in &self.needs {
            writeln!(text, "  ! {code}: {message}")?;
        }
        let success = last_success_age_s.map_or("never".to_owned(), |age| format!("{} ago", length(age)));
        writeln!(text, "  last success     {success}")?;
        writeln!(text, "  lock             {}", holder.as_ref().map_or("free".to_owned(), LockHolder::to_string))?;
        writeln!(text, "  skips in a row   {consecutive_skips}")?;
        writeln!(text, "  withheld         {withheld}")?;
        for run in runs {
            let Run {
                run_id,
                trigger,
                status,
                started_at,
                fetched,
                upserted,
                deactivated,
                error_code,
                skip_reason,
                ..
            } = run;
            write!(text, "  {started_at}  {run_id}  {trigger:<9}  {status}")?;
            if let (Some(fetched), Some(upserted), Some(deactivated)) = (fetched, upserted, deactivated) {
                write!(text, ": fetched {fetched}, upserted {upserted}, deactivated {deactivated}")?;
            }
            match error_code.as_ref().or(skip_reason.as_ref()) {
                Some(why) => writeln!(text, ": {why}")?,
                None => writeln!(text)?,
            }
        }
        writeln!(text)
    }
}

#[cfg(test)]
mod tests;
