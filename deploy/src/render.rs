//! Values as text for a person.
//!
//! Architecture invariant: no I/O, no async, no clock, no SDK; what is printed is returned as a string.

use std::fmt::Write as _;

use jiff::Timestamp;

use crate::config::Job;
use crate::fingerprint::Fingerprint;
use crate::model::{Live, Seen, State};
use crate::plan::{Cure, Item, Plan, Sign, Wish};
use crate::receipt::Receipt;
use crate::{fire_times, foresee, gate};

/// How to print.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// Whether to colour.
    pub color: bool,
}

impl Style {
    fn paint(self, code: &str, text: &str) -> String {
        if self.color { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// A whole plan: what changes first, then what does not, then the sum.
pub fn plan(plan: &Plan, style: Style) -> String {
    let mut out = format!("{} in {}\n\n", plan.job, plan.place);
    let mut items: Vec<&Item> = plan.items.iter().collect();
    items.sort_by_key(|item| item.sign);
    let width = items.iter().map(|item| item.name.len()).max().unwrap_or(0);
    for item in items {
        let (mark, code) = match item.sign {
            Sign::Create => ("+", "32"),
            Sign::Change => ("~", "33"),
            Sign::Blocked => ("!", "31"),
            Sign::Same => ("=", "2"),
            Sign::Unread => ("?", "35"),
        };
        let line = format!("  {mark} {:<16} {:<width$}  {}", item.thing.as_str(), item.name, item.why);
        let _ = writeln!(out, "{}", style.paint(code, line.trim_end()));
        let label_width = item.details.iter().map(|(label, _)| label.len()).max().unwrap_or(0);
        for (label, text) in &item.details {
            let _ = writeln!(out, "      {label:<label_width$}  {text}");
        }
    }
    let _ = writeln!(out, "\n{}", sum(plan));
    out
}

fn sum(plan: &Plan) -> String {
    let counted = [
        (Sign::Create, "to create"),
        (Sign::Change, "to change"),
        (Sign::Blocked, "blocked"),
        (Sign::Same, "as wanted"),
        (Sign::Unread, "not seen"),
    ];
    let parts = counted.iter().filter_map(|(sign, words)| match plan.count(*sign) {
        0 => None,
        n => Some(format!("{n} {words}")),
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// What a person should know besides, one line each. `now` tells which fire time will be missed.
pub fn notes(plan: &Plan, live: &Live, now: Timestamp) -> Vec<String> {
    let mut notes = plan.notes.clone();
    if let (true, Seen::Present(schedule)) = (plan.switches_off(), &live.schedule) {
        let zone = schedule.text("ScheduleExpressionTimezone").unwrap_or("UTC");
        let next = fire_times::next(schedule.text("ScheduleExpression").unwrap_or_default(), zone, now, 1);
        if let Some(moment) = next.ok().and_then(|moments| moments.into_iter().next()) {
            notes.push(format!("until it is enabled again it does not fire, next on {}", fire_times::show(&moment)));
        }
    }
    match &live.receipt {
        Seen::Hidden { why } => notes.push(format!("whether a run is proven could not be looked at: {why}")),
        Seen::Present(Err(error)) => notes.push(error.to_string()),
        Seen::Absent | Seen::Present(Ok(_)) => {}
    }
    if let Seen::Present(Ok(Receipt::Verified(run))) = &live.receipt
        && plan.steps().next().is_some()
        && let Ok(fields) = foresee::will_move(run, live, plan)
        && !fields.is_empty()
    {
        let day = run.at().strftime("%Y-%m-%d");
        notes.push(format!(
            "the verified run of {day} will not count after this: {} will have moved",
            gate::listed(&fields)
        ));
    }
    notes
}

/// The exact next command, when there is one.
pub fn next(plan: &Plan, live: &Live, job: &Job, wish: &Wish, now: Timestamp, program: &str) -> Option<String> {
    if !only_disabled_helps(plan) {
        return None;
    }
    if let Some(command) = settle(plan, wish, program) {
        return Some(command);
    }
    match plan.state {
        // `enable` would refuse whatever a run proves.
        _ if job.stopped => None,
        Some(State::Disabled) => Some(prove(live, job, now, program).unwrap_or_else(|| format!("{program} enable"))),
        // What is on stays on, whatever its proof; but the next `enable` will want one.
        Some(State::Enabled) => prove(live, job, now, program),
        None => None,
    }
}

/// The run that would open the gate, while it is closed by more than the age of its proof.
fn prove(live: &Live, job: &Job, now: Timestamp, program: &str) -> Option<String> {
    let is_on = live.schedule.present().is_some_and(|schedule| schedule.state() == State::Enabled);
    let closed = match Fingerprint::of(live) {
        Ok(then) => gate::open(&live.receipt, &live.scheduled_path, &then, &job.gate, now).err()?,
        Err(_) => Vec::new(),
    };
    if is_on && !closed.is_empty() && closed.iter().all(|one| matches!(one, gate::Closed::TooOld { .. })) {
        return None;
    }
    let via = if closed.iter().any(gate::Closed::wants_scheduler) { " --via-scheduler" } else { "" };
    Some(format!("{program} trigger-now{via}"))
}

/// The command that makes a plan so, unless more stands in the way: switched off, when what runs would be moved under a job that is
/// on, and when it is off.
pub fn settle(plan: &Plan, wish: &Wish, program: &str) -> Option<String> {
    if !only_disabled_helps(plan) {
        return None;
    }
    if plan.steps().next().is_none() && plan.refusals.is_empty() {
        return plan.makes_log_group();
    }
    let disabled = wish.disabled || !plan.refusals.is_empty() || plan.state == Some(State::Disabled);
    Some(apply_command(program, &Wish { disabled, ..wish.clone() }))
}

fn only_disabled_helps(plan: &Plan) -> bool {
    plan.refusals.iter().all(|refusal| refusal.cure == Some(Cure::Disabled))
}

/// Where to look, and the command that follows.
pub fn look_and_settle(plan: &Plan, program: &str) -> String {
    let settle = settle(plan, &Wish::default(), program).map(|command| format!(", {command}"));
    format!("{program} plan{}", settle.unwrap_or_default())
}

/// The command that applies this.
pub fn apply_command(program: &str, wish: &Wish) -> String {
    let Wish { disabled, adopt, latest, rotate } = wish;
    let flags = [(" --disabled", *disabled), (" --adopt", *adopt), (" --latest", *latest)];
    let said = flags.iter().filter(|(_, said)| *said).map(|(flag, _)| (*flag).to_owned());
    let rotated = rotate.iter().map(|name| format!(" --rotate {name}"));
    format!("{program} apply{}", said.chain(rotated).collect::<String>())
}
