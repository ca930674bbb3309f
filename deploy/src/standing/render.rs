//! One screen: a line a question, then the last runs, then what a person has to do.

use super::overdue::Overdue;
use super::{Fires, Gate, Need, Queue, Standing, runs};
use crate::columns::{self, SCREEN};
use crate::commands::look::minute;
use crate::receipt::{Path, VerifiedRun};

/// The lines for a person.
pub fn lines(standing: &Standing, program: &str) -> Vec<String> {
    let Standing { job, account, region, schedule, fires, drift, gate, scheduled_path, receipt, .. } = standing;
    let mut screen = Screen(vec![format!("{job} in {account}/{region}"), String::new()]);
    let when = if schedule.expression.is_empty() {
        String::new()
    } else {
        format!(", {} {}", schedule.expression, schedule.timezone)
    };
    screen.line("schedule", format!("{}{when}", schedule.state));
    screen.lines("off", schedule.off.as_deref().unwrap_or_default().lines());
    screen.fires(fires, &schedule.state);
    match drift.is_empty() {
        true => screen.line("plan", "empty: everything is as deploy.toml says"),
        false => screen.lines("plan", drift),
    }
    screen.gate(gate, schedule.state == "ENABLED", program);
    if let Some(receipt) = receipt {
        screen.line("receipt", receipt_line(receipt));
    }
    if let Some(overridden) = &standing.overridden {
        let (at, by) = (minute(overridden.at), who(&overridden.by));
        screen.line("override", format!("switched on WITHOUT A PROOF {at} by {by}: {}", overridden.reason));
    }
    screen.line("path", format!("the scheduled path is {}", scheduled_path.says));
    for newer in &standing.newer_revisions {
        let by = newer.registered_by.as_deref().map_or("somebody", who);
        let lacks =
            if newer.lacks.is_empty() { String::new() } else { format!(", without {}", newer.lacks.join(", ")) };
        screen.line("newer", format!("revision {} by {by}{lacks}; the schedule does not run it", newer.revision));
    }
    for task in standing.running.iter().flatten() {
        let id = task.task.rsplit('/').next().unwrap_or_default();
        screen.line("running", format!("{id}, started {}", task.started));
    }
    if let Some(one_off) = &standing.one_off {
        screen.line("one-off", format!("{one_off} starts a task within three minutes; disable deletes it"));
    }
    screen.overdue(&standing.overdue);
    if let Some(Queue { arn, depth: Some(depth) }) = &standing.dead_letter_queue {
        screen.line("dlq", format!("{depth} in {}", arn.rsplit(':').next().unwrap_or_default()));
    }
    if let Some(why) = &standing.runs_unknown {
        screen.line("runs", why);
    } else if standing.runs.is_empty() && standing.unreported.is_empty() {
        screen.line("runs", "none in the streams that were written to last");
    }
    let Screen(mut lines) = screen;
    if !(standing.runs.is_empty() && standing.unreported.is_empty()) {
        lines.push(String::new());
        lines.extend(runs::table(&standing.runs, &standing.unreported));
    }
    if !standing.unseen.is_empty() {
        lines.push(String::new());
        lines.extend(standing.unseen.iter().flat_map(|why| hanging(&format!("not seen: {why}"))));
    }
    if !standing.needs.is_empty() {
        lines.push(String::new());
    }
    for Need { what, way } in &standing.needs {
        lines.extend(hanging(&format!("needs a person: {what}")));
        lines.push(format!("  {way}"));
    }
    lines
}

/// A sentence; its further lines stand under the first.
fn hanging(text: &str) -> Vec<String> {
    let mut lines = columns::wrap(text, SCREEN - 2);
    lines.iter_mut().skip(1).for_each(|line| line.insert_str(0, "  "));
    lines
}

struct Screen(Vec<String>);

impl Screen {
    fn line(&mut self, label: &str, text: impl AsRef<str>) {
        const INDENT: usize = 12;
        for (i, part) in columns::wrap(text.as_ref(), SCREEN - INDENT).iter().enumerate() {
            self.0.push(format!("  {:<10}{part}", if i == 0 { label } else { "" }));
        }
    }

    /// Under one label.
    fn lines(&mut self, label: &str, texts: impl IntoIterator<Item = impl AsRef<str>>) {
        for (i, text) in texts.into_iter().enumerate() {
            self.line(if i == 0 { label } else { "" }, text);
        }
    }

    fn fires(&mut self, fires: &Fires, state: &str) {
        let Fires { next, note } = fires;
        if state == "DISABLED" && !next.is_empty() {
            self.line("fires", "not while it is DISABLED; would be");
        }
        let label = if state == "DISABLED" { "" } else { "fires" };
        self.lines(label, next.iter().map(|moment| moment.shown.as_str()));
        if let Some(note) = note {
            self.line(if next.is_empty() { "fires" } else { "" }, note);
        }
    }

    fn gate(&mut self, gate: &Gate, is_on: bool, program: &str) {
        match gate.open {
            Some(true) if is_on => self.line("gate", "open"),
            Some(true) => self.line("gate", format!("open: {program} enable")),
            Some(false) => self.lines(
                "gate",
                gate.why.iter().enumerate().map(|(i, why)| if i == 0 { format!("closed: {why}") } else { why.clone() }),
            ),
            None => self.line("gate", format!("not seen: {}", gate.why.join("; "))),
        }
    }

    fn overdue(&mut self, overdue: &Overdue) {
        match overdue {
            // Nothing is expected: the schedule's line says so.
            Overdue::Off | Overdue::NotYet => {}
            Overdue::Ran { due, .. } => self.line("overdue", format!("no: what was due {} has run", minute(*due))),
            Overdue::Unreported { due, .. } => {
                self.line("overdue", format!("no: what was due {} came, and left no report", minute(*due)));
            }
            Overdue::Running { due } => self.line("overdue", format!("no: what was due {} is running", minute(*due))),
            Overdue::Waiting { due, until } => {
                self.line("overdue", format!("not yet: due {}, may come until {}", minute(*due), minute(*until)));
            }
            Overdue::MadeUp { due, began } => self.line(
                "overdue",
                format!(
                    "no: nothing came of what was due {}, and a run by hand {} made up for it",
                    minute(*due),
                    minute(*began)
                ),
            ),
            Overdue::Overdue { due } => {
                self.line("overdue", format!("YES: nothing has come of what was due {}", minute(*due)));
            }
            Overdue::Unknown { due: Some(due), why } => {
                self.line("overdue", format!("unknown: due {}; {why}", minute(*due)));
            }
            Overdue::Unknown { due: None, why } => self.line("overdue", format!("unknown: {why}")),
        }
    }
}

/// When a run was proven, by whom, how, and of what.
fn receipt_line(run: &VerifiedRun) -> String {
    let revision = run.task_definition().rsplit('/').next().unwrap_or_default();
    let rows = run.counts().map(|counts| format!(", {} rows", counts.fetched)).unwrap_or_default();
    let path = match run.path() {
        Path::Direct => "direct",
        Path::Scheduler => "via Scheduler",
    };
    let secrets: Vec<_> = run.parameters().iter().map(|(env, version)| format!(", {env} v{version}")).collect();
    format!("{} by {}, {path}: {revision}{rows}{}", minute(run.at()), who(run.by()), secrets.concat())
}

/// The part of a caller's ARN that tells one from another.
fn who(arn: &str) -> &str {
    arn.splitn(6, ':').nth(5).unwrap_or(arn)
}
