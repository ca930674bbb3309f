//! `deploy status`: is it on, when does it fire, does the gate stand open, what did the last runs say?

use std::time::Duration;

use clap::Args;
use geuneul::{Outcome, RunReport};
use jiff::Timestamp;

use super::Context;
use super::look::{Look, minute};
use crate::cloud::ErrorKind;
use crate::exit::Exit;
use crate::fingerprint::{Fingerprint, NoFingerprint};
use crate::fire_times;
use crate::gate::{self, Closed};
use crate::model::{Seen, State};
use crate::plan::Wish;
use crate::receipt::Receipt;
use crate::run::ending::{humantime, next_step};
use crate::run::history::{SHOWN, proof_of_the_scheduled_path, recent_runs};
use crate::run::readable::readable;

/// The flags of `deploy status`.
#[derive(Debug, Args)]
pub struct StatusArgs {}

/// One line of the screen, and what it means for the exit code.
struct Line {
    label: &'static str,
    text: String,
    /// What a person has to do, if anything.
    person: Option<String>,
    /// It could not be looked at, which is no good news.
    unseen: bool,
}

impl Line {
    fn well(label: &'static str, text: impl Into<String>) -> Line {
        Line { label, text: text.into(), person: None, unseen: false }
    }

    fn person(label: &'static str, text: impl Into<String>, person: impl Into<String>) -> Line {
        Line { person: Some(person.into()), ..Line::well(label, text) }
    }

    fn unseen(label: &'static str, why: &str) -> Line {
        Line { unseen: true, ..Line::well(label, format!("not seen: {why}")) }
    }
}

/// Carries the verb out.
pub async fn run(context: &Context, _args: StatusArgs) -> anyhow::Result<Exit> {
    let look = Look::at(context, &Wish::default()).await?;
    let mut lines = vec![schedule(context, &look), fires(&look)];
    lines.extend(settings(context, &look));
    lines.push(gate_line(context, &look));
    lines.extend(receipt(&look));
    lines.extend(runs(context, &look).await);

    out!("{} in {}\n", look.desired.job.name, look.plan.place);
    for Line { label, text, .. } in &lines {
        out!("  {label:<10}{text}");
    }
    let people: Vec<_> = lines.iter().filter_map(|line| line.person.as_ref()).collect();
    if !people.is_empty() {
        out!();
    }
    for person in &people {
        out!("needs a person: {person}");
    }
    if !people.is_empty() {
        return Ok(Exit::NeedsPerson);
    }
    // Silence about what nobody saw would read like good news.
    Ok(if lines.iter().any(|line| line.unseen) { Exit::Failed } else { Exit::Done })
}

fn schedule(context: &Context, look: &Look) -> Line {
    let timing = look.desired.timing();
    match &look.live.schedule {
        Seen::Absent if look.live.elsewhere.present().is_some_and(|elsewhere| !elsewhere.is_empty()) => {
            let elsewhere = look.live.elsewhere.present().into_iter().flatten();
            let places: Vec<_> = elsewhere.map(|one| format!("{}, in group {}", one.state, one.group)).collect();
            let person = format!("the configuration says group = {:?}: see {} plan", timing.group, context.program);
            Line::person("schedule", places.join("; "), person)
        }
        Seen::Absent => Line::person("schedule", "absent", format!("make it: {} apply --disabled", context.program)),
        Seen::Hidden { why } => Line::unseen("schedule", why),
        Seen::Present(schedule) => {
            let expression = schedule.text("ScheduleExpression").unwrap_or(&timing.expression);
            let zone = schedule.text("ScheduleExpressionTimezone").unwrap_or("UTC");
            Line::well("schedule", format!("{}, {expression} {zone}", schedule.state()))
        }
    }
}

/// Of the live schedule: a fire time that somebody else has set is the one that counts.
fn fires(look: &Look) -> Line {
    let Some(schedule) = look.live.schedule.present() else { return Line::well("fires", "never") };
    let expression = schedule.text("ScheduleExpression").unwrap_or_default();
    let zone = schedule.text("ScheduleExpressionTimezone").unwrap_or("UTC");
    let next = fire_times::next(expression, zone, Timestamp::now(), 1);
    match (schedule.state(), next) {
        (_, Err(error)) => Line::well("fires", error.to_string()),
        (State::Enabled, Ok(moments)) => match moments.first() {
            Some(moment) => Line::well("fires", fire_times::show(moment)),
            None => {
                let ever = fire_times::next(expression, zone, Timestamp::UNIX_EPOCH, 1);
                match ever.is_ok_and(|moments| moments.is_empty()) {
                    true => Line::person("fires", "never", "no year has such a day and time: change `cron`"),
                    false => Line::person("fires", "never again", "the expression's years are over: change `cron`"),
                }
            }
        },
        (State::Disabled, Ok(moments)) => {
            let would = moments.first().map(|moment| format!("; would be {}", fire_times::show(moment)));
            Line::well("fires", format!("not while it is DISABLED{}", would.unwrap_or_default()))
        }
    }
}

/// What is there against what is wanted. It matters to whoever sleeps only when the schedule is on.
fn settings(context: &Context, look: &Look) -> Vec<Line> {
    let unsettled = look.unsettled();
    if unsettled.is_empty() {
        return vec![Line::well("plan", "empty: everything is as deploy.toml says")];
    }
    let label = |i| if i == 0 { "plan" } else { "" };
    let mut lines: Vec<_> = unsettled.into_iter().enumerate().map(|(i, text)| Line::well(label(i), text)).collect();
    if is_on(look) {
        lines[0].person = Some(format!("what fires is not what deploy.toml says: {} plan", context.program));
    }
    lines
}

fn gate_line(context: &Context, look: &Look) -> Line {
    if look.desired.job.stopped && !is_on(look) {
        return Line::well("gate", "closed: the configuration says stopped = true");
    }
    let now = match Fingerprint::of(&look.live) {
        Ok(now) => now,
        Err(error @ NoFingerprint::Hidden { .. }) => return Line::unseen("gate", &error.to_string()),
        Err(error) if is_on(look) => {
            let person = format!("what fires is not proven: {} plan", context.program);
            return Line::person("gate", format!("closed: {error}"), person);
        }
        Err(error) => return Line::well("gate", format!("closed: {error}")),
    };
    let closed = match gate::open(&look.live.receipt, &now, &look.desired.job.gate, Timestamp::now()) {
        Ok(_) if is_on(look) => return Line::well("gate", "open"),
        Ok(_) => return Line::well("gate", format!("open: {} enable", context.program)),
        Err(closed) => closed,
    };
    let reasons: Vec<_> = closed.iter().map(ToString::to_string).collect();
    let text = format!("closed: {}", reasons.join("; "));
    match closed.as_slice() {
        [Closed::Hidden(why)] => Line::unseen("gate", why),
        _ if !is_on(look) => Line::well("gate", text),
        // Once the schedule is on, age is no fault: nobody proves a monthly job every week.
        [Closed::TooOld { .. }] => Line::well("gate", text),
        _ => Line::person("gate", text, format!("what fires is not proven: {} trigger-now", context.program)),
    }
}

fn receipt(look: &Look) -> Option<Line> {
    let Seen::Present(Ok(Receipt::Verified(run))) = &look.live.receipt else { return None };
    let revision = run.task_definition().rsplit('/').next().unwrap_or_default();
    let rows = run.counts().map(|counts| format!(", {} rows", counts.fetched)).unwrap_or_default();
    Some(Line::well("receipt", format!("{} by {}: {revision}{rows}", minute(run.at()), run.by())))
}

async fn runs(context: &Context, look: &Look) -> Vec<Line> {
    let Some((group, prefix)) = look.stream_prefix() else {
        return vec![Line::well("runs", "not known: the container's log driver is not awslogs")];
    };
    let reports = match recent_runs(&context.aws, &group, &prefix).await {
        Ok(reports) => reports,
        Err(error) if error.kind == ErrorKind::Denied => return vec![Line::unseen("runs", &error.why_hidden())],
        Err(error) => return vec![Line::unseen("runs", &error.to_string())],
    };
    let mut lines: Vec<_> =
        reports.iter().take(SHOWN).enumerate().map(|(i, report)| run_line(context, i, report)).collect();
    if lines.is_empty() {
        lines.push(Line::well("runs", format!("none in the log group {group}")));
    }
    lines.push(match proof_of_the_scheduled_path(&reports) {
        Some(report) => Line::well("path", format!("the schedule itself has run the job: {}", when(report))),
        None if reports.is_empty() => Line::well("path", "the scheduled path is unproven: no run was found"),
        None => {
            let among = format!("none of the {} runs that were looked at", reports.len());
            Line::well("path", format!("the scheduled path is unproven: {among} was a scheduled one that succeeded"))
        }
    });
    lines
}

/// The newest run decides whether somebody has to come; the older ones are history.
fn run_line(context: &Context, i: usize, report: &RunReport) -> Line {
    let RunReport { trigger, outcome, fetched, upserted, deactivated, duration_ms, .. } = report;
    let took = humantime(&Duration::from_millis(*duration_ms));
    let text = format!(
        "{}  {:<9}  {outcome}: {fetched} fetched, {upserted} upserted, {deactivated} deactivated, {took}",
        when(report),
        trigger.as_str(),
    );
    let label = if i == 0 { "runs" } else { "" };
    match outcome {
        Outcome::Succeeded | Outcome::Skipped | Outcome::DryRun => Line::well(label, text),
        bad if i == 0 => {
            let cause =
                report.error.as_ref().map_or_else(|| bad.meaning().to_owned(), |error| readable(&error.message));
            let next = format!("{}, then: {} trigger-now", next_step(*bad), context.program);
            Line::person(label, text, format!("the newest run ended {bad}: {cause}; {next}"))
        }
        _ => Line::well(label, text),
    }
}

fn when(report: &RunReport) -> String {
    report.started_at.parse().map_or_else(|_| report.started_at.clone(), minute)
}

fn is_on(look: &Look) -> bool {
    look.live.schedule.present().is_some_and(|schedule| schedule.state() == State::Enabled)
}
