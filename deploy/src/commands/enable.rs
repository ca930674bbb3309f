//! `deploy enable`: switch the schedule on, when a run is proven and nothing has moved since.

use clap::Args;
use jiff::Timestamp;

use super::look::{Look, minute};
use super::tasks_of_job::running;
use super::{Context, path_record, via_scheduler};
use crate::cloud::{ReceiptWriteError, Receipts, Schedules, seen};
use crate::exit::{Exit, Stop};
use crate::fingerprint::NoFingerprint;
use crate::fire_times::timetable::{AtOnce, Timetable};
use crate::gate::{self, Closed, Ground, Refused, Warrant};
use crate::model::{Schedule, Seen, State};
use crate::plan::Wish;
use crate::receipt::{Overridden, Receipt, VerifiedRun};
use crate::run::scheduled::OneOff;
use crate::sealed::Unreadable;
use crate::{fire_times, switch};

/// The flags of `deploy enable`.
#[derive(Debug, Args)]
pub struct EnableArgs {
    /// Switch on although no run is proven; recorded, and shown by `status` until a run is
    #[arg(long, requires = "reason")]
    without_receipt: bool,
    /// Why, in words, for whoever reads the record: up to 200 characters
    #[arg(long, value_name = "TEXT", requires = "without_receipt", value_parser = reason)]
    reason: Option<String>,
}

/// Carries the verb out.
pub async fn run(context: &Context, args: EnableArgs) -> anyhow::Result<Exit> {
    let look = Look::at(context, &Wish::default()).await?;
    let schedule = look.schedule(context)?;
    look.note_unseen_log_group();
    if let (State::Disabled, Ok(task)) = (schedule.state(), look.scheduled_run(context)) {
        // Whoever made it may have been killed before the receipt was void: what it starts may yet show that the job does not work.
        let one_off = OneOff::new(&context.aws, schedule, &task);
        via_scheduler::refuse_while_awaited(context, &one_off, "enable").await?;
    }
    let warrant = match gate::decide(&look.desired, &look.live, &look.plan, Timestamp::now()) {
        Ok(warrant) => warrant,
        // A word is for switching on: recorded now, it would take the place of what the schedule was switched on by.
        Err(Refused::Closed(closed)) if args.without_receipt && schedule.state() == State::Enabled => {
            out!("{} is ENABLED already: nothing was recorded", look.desired.job.name);
            out!("next: {}", way_to_open(&closed, &context.program));
            return Ok(Exit::Done);
        }
        Err(refused) => match overruled(context, &look, &args, &refused) {
            Some(warrant) => warrant,
            None => return Err(stop_or_wait(context, &look, &refused).await.into()),
        },
    };
    let expected = match warrant.ground() {
        Ground::Proven(_) => look.live.receipt.clone(),
        Ground::Overridden(overridden) => record(context, &look, overridden).await?,
    };
    let at_once = Timetable::of(schedule).at_once(Timestamp::now());
    if schedule.state() == State::Enabled {
        out!("{} is ENABLED already", look.desired.job.name);
    } else {
        refuse_if_overtaken(context, &look, &expected).await?;
        switch::on(&context.aws, schedule, &warrant, &context.program).await?;
        if let Err(error) = refuse_if_moved(context, &warrant, &expected).await {
            return Err(switched_back(context, schedule, error).await);
        }
        out!("{} is ENABLED; {}", look.desired.job.name, at_once_words(at_once));
    }
    report(context, &look, &warrant).await;
    Ok(Exit::Done)
}

/// A refusal of the gate, with the way out; while the run that decides is at work, that is to wait for it.
async fn stop_or_wait(context: &Context, look: &Look, refused: &Refused) -> Stop {
    let stop = stop(context, look, refused);
    let Refused::Closed(closed) = refused else { return stop };
    if !closed.iter().any(|closed| matches!(closed, Closed::Void(void) if void.ending.is_none())) {
        return stop;
    }
    // A courtesy: whoever may not look at tasks is told the rest.
    let job = &look.desired.job;
    let Ok(tasks) = running(context, &job.cluster, &job.name).await else { return stop };
    let Some((_, arn)) = tasks.first() else { return stop };
    let id = arn.rsplit('/').next().unwrap_or(arn);
    Stop { hint: format!("it is at work; see its end: {} attach {id}\n{}", context.program, stop.hint), ..stop }
}

/// A refusal of the gate, with the way out.
fn stop(context: &Context, look: &Look, refused: &Refused) -> Stop {
    let program = &context.program;
    let hint = match refused {
        Refused::Stopped => {
            let now = format!("to switch it off as it says: {program} apply");
            let later = format!("when it may run again, take that line out, then: {program} apply, {program} enable");
            if look.is_on() { format!("{now}\n{later}") } else { later }
        }
        Refused::Unsettled(_) => look.way_to_settle(program),
        Refused::NeverAgain(_) => format!("change `cron`, then: {program} apply, {program} enable"),
        Refused::NoFingerprint(NoFingerprint::Hidden { .. }) => {
            format!("allow that to the caller; all that it takes: {program} iam --for enable")
        }
        Refused::NoFingerprint(_) => format!("see more: {program} plan"),
        Refused::Closed(closed) if look.is_on() => {
            format!("it is ENABLED, and stays so\n{}", way_to_open(closed, program))
        }
        Refused::Closed(closed) => way_to_open(closed, program),
    };
    Stop::refused(refused.to_string(), hint)
}

/// What opens the gate.
pub(super) fn way_to_open(closed: &[Closed], program: &str) -> String {
    if closed.iter().any(|one| matches!(one, Closed::Hidden(_) | Closed::PathHidden(_))) {
        return format!("allow that to the caller; all that it takes: {program} iam --for enable");
    }
    match closed.iter().any(Closed::wants_scheduler) {
        true => format!("prove the job and the scheduled path: {program} trigger-now --via-scheduler"),
        false => format!("prove the job as it is now: {program} trigger-now"),
    }
}

/// A person's word in place of a proof, said loudly; only a closed gate can be overruled.
fn overruled(context: &Context, look: &Look, args: &EnableArgs, refused: &Refused) -> Option<Warrant> {
    let reason = args.reason.as_ref().filter(|_| args.without_receipt)?;
    let (by, now) = (&look.live.identity.arn, Timestamp::now());
    let warrant = gate::overrule(refused, reason, by, now)?;
    err!("WARNING: {} is switched on WITHOUT A PROOF: {refused}", look.desired.job.name);
    err!("WARNING: reason given by {by}: {reason}");
    err!("WARNING: `{} status` says so until a run has proven itself", context.program);
    Some(warrant)
}

/// Records that there was no proof, before anything is switched on: no schedule is on without a word about why.
async fn record(
    context: &Context,
    look: &Look,
    overridden: &Overridden,
) -> anyhow::Result<Seen<Result<Receipt, Unreadable>>> {
    let (name, job) = (&look.desired.receipt_parameter, &look.desired.job.name);
    let receipt = Receipt::Overridden(overridden.clone());
    let text = receipt.to_text(&look.desired.owner)?;
    match context.aws.write_receipt(name, &text, job).await {
        Ok(_) => Ok(Seen::Present(Ok(receipt))),
        Err(error @ ReceiptWriteError::Foreign(_)) => Err(path_record::refused(context, error)),
        Err(error @ ReceiptWriteError::Cloud(_)) => Err(path_record::refused(context, error)
            .context("that it goes without a proof could not be recorded; it stays as it is")),
    }
}

/// The receipt is still the one that we looked at, or wrote: a run that was begun since has voided it.
async fn refuse_if_overtaken(
    context: &Context,
    look: &Look,
    expected: &Seen<Result<Receipt, Unreadable>>,
) -> anyhow::Result<()> {
    let now = seen(context.aws.receipt(&look.desired.receipt_parameter).await)?;
    if now.map(|text| Receipt::read(&text, &look.desired.owner)) == *expected {
        return Ok(());
    }
    Err(overtaken(context).into())
}

fn overtaken(context: &Context) -> Stop {
    let what = "somebody began another run in the meantime, and only the newest run counts";
    let hint = format!("when it has ended: {0} status, then {0} enable", context.program);
    Stop::refused(what, hint)
}

/// What is on is what was proven: nothing has moved while it was switched on.
async fn refuse_if_moved(
    context: &Context,
    warrant: &Warrant,
    expected: &Seen<Result<Receipt, Unreadable>>,
) -> anyhow::Result<()> {
    let now = Look::at(context, &Wish::default()).await?;
    if now.live.receipt != *expected {
        return Err(overtaken(context).into());
    }
    match (gate::decide(&now.desired, &now.live, &now.plan, Timestamp::now()), warrant.ground()) {
        (Ok(_), _) | (Err(Refused::Closed(_)), Ground::Overridden(_)) => Ok(()),
        (Err(refused), _) => {
            let stop = stop(context, &now, &refused);
            let hint = match &refused {
                Refused::Closed(closed) => way_to_open(closed, &context.program),
                _ => stop.hint,
            };
            Err(Stop { hint, ..stop }.into())
        }
    }
}

async fn switched_back(context: &Context, schedule: &Schedule, error: anyhow::Error) -> anyhow::Error {
    match context.aws.update_schedule(&schedule.switched_off()).await {
        Ok(()) => error.context("it was switched on and is DISABLED again"),
        Err(cause) => anyhow::Error::new(cause).context(format!(
            "{error}; and it could not be switched off again, so that it is ENABLED: {} disable",
            context.program
        )),
    }
}

fn at_once_words(at_once: AtOnce) -> &'static str {
    match at_once {
        AtOnce::Nothing => "nothing runs now",
        AtOnce::Perhaps => "its last fire time was less than a minute ago and may still count; else nothing runs now",
        AtOnce::Runs => "it RUNS NOW: a rate() without a start fires at once",
    }
}

async fn report(context: &Context, look: &Look, warrant: &Warrant) {
    let timing = look.desired.timing();
    match warrant.ground() {
        Ground::Proven(proof) => out!("\n  proven    {}", proof_line(proof)),
        Ground::Overridden(overridden) => out!("\n  proven    NO: {}", overridden.reason),
    }
    match fire_times::next(&timing.expression, &timing.timezone, Timestamp::now(), 3) {
        Ok(moments) => {
            for (i, moment) in moments.iter().enumerate() {
                out!("  {}{}", if i == 0 { "fires     " } else { "then      " }, fire_times::show(moment));
            }
        }
        Err(error) => out!("  fires     {error}"),
    }
    out!();
    for note in notes(context, look, warrant).await {
        out!("note: {note}");
    }
    out!("next: {} status, after the first fire time; the stop control is {0} disable", context.program);
}

/// When a run was proven, by whom, and of what.
pub(super) fn proof_line(proof: &VerifiedRun) -> String {
    let revision = proof.task_definition().rsplit('/').next().unwrap_or_default();
    let rows = proof.counts().map(|counts| format!(", {} rows", counts.fetched)).unwrap_or_default();
    format!("{} by {}: {revision}{rows}", minute(proof.at()), proof.by())
}

async fn notes(context: &Context, look: &Look, warrant: &Warrant) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(minutes) = look.desired.timing().flexible_window {
        notes.push(format!("each of these may be up to {minutes} minutes later: flexible_window"));
    }
    if let (Some(tag), Ground::Proven(proof)) = (look.unpinned_image(), warrant.ground()) {
        let ran = proof.image_digest().unwrap_or("unknown");
        notes.push(format!("the image {tag} is a tag, which can be moved; the proven run had {ran}"));
    }
    let unproven = format!(
        "the scheduled path is unproven until the schedule has fired once, or: {} trigger-now --via-scheduler",
        context.program
    );
    notes.extend(look.scheduled_path_note(context, &unproven).await);
    notes
}

/// A reason is for people: a line of text.
fn reason(text: &str) -> Result<String, String> {
    let text = text.trim();
    match text.chars().count() {
        1..=200 if !text.chars().any(char::is_control) => Ok(text.to_owned()),
        _ => Err("say why in one line of 1 to 200 characters".to_owned()),
    }
}
