//! `deploy enable`: switch the schedule on, when a run is proven and nothing has moved since.

use anyhow::Context as _;
use clap::Args;
use jiff::Timestamp;

use super::Context;
use super::look::{Look, minute};
use crate::cloud::{Receipts, Schedules, seen};
use crate::exit::{Exit, Stop};
use crate::fingerprint::Fingerprint;
use crate::model::{Schedule, State};
use crate::plan::Wish;
use crate::receipt::{Receipt, VerifiedRun};
use crate::{fire_times, gate};

/// The flags of `deploy enable`.
#[derive(Debug, Args)]
pub struct EnableArgs {}

/// Carries the verb out.
pub async fn run(context: &Context, _args: EnableArgs) -> anyhow::Result<Exit> {
    let look = Look::at(context, &Wish::default()).await?;
    let schedule = look.schedule(context)?;
    let proof = guard(context, &look)?;
    if schedule.state() == State::Enabled {
        out!("{} is ENABLED already", look.desired.job.name);
    } else {
        refuse_if_overtaken(context, &look).await?;
        switch_on(context, schedule).await?;
        if let Err(error) = refuse_if_overtaken(context, &look).await {
            let off = schedule.switched_off();
            context.aws.update_schedule(&off).await.with_context(|| {
                format!(
                    "{error}; and it could not be switched off again, so that it is ENABLED: {} disable",
                    context.program
                )
            })?;
            return Err(error.context("it was switched on and is DISABLED again"));
        }
        out!("{} is ENABLED; nothing runs now", look.desired.job.name);
    }
    report(context, &look, proof).await;
    Ok(Exit::Done)
}

/// Every reason not to, before anything is changed.
fn guard<'a>(context: &Context, look: &'a Look) -> Result<&'a VerifiedRun, Stop> {
    if look.desired.job.stopped {
        let now = format!("to switch it off as it says: {} apply", context.program);
        let later = format!("when it may run again, take that line out, then: {0} apply, {0} enable", context.program);
        let on = look.live.schedule.present().is_some_and(|schedule| schedule.state() == State::Enabled);
        let hint = if on { format!("{now}\n{later}") } else { later };
        return Err(Stop::refused("the configuration says stopped = true", hint));
    }
    look.refuse_unless_settled(context, "enable")?;
    let timing = look.desired.timing();
    let next = fire_times::next(&timing.expression, &timing.timezone, Timestamp::now(), 1);
    if next.is_ok_and(|moments| moments.is_empty()) {
        let what = format!("it would never fire again: the years of {} are over", timing.expression);
        let hint = format!("change `cron`, then: {0} apply, {0} enable", context.program);
        return Err(Stop::refused(what, hint));
    }
    let now = Fingerprint::of(&look.live)
        .map_err(|error| Stop::refused(error.to_string(), format!("see more: {} plan", context.program)))?;
    gate::open(&look.live.receipt, &now, &look.desired.job.gate, Timestamp::now()).map_err(|closed| {
        let reasons: Vec<_> = closed.iter().map(ToString::to_string).collect();
        let hint = format!("prove the job as it is now: {} trigger-now", context.program);
        Stop::refused(format!("the gate is closed: {}", reasons.join("; ")), hint)
    })
}

/// The proof is still the one that we looked at: a run that was begun since has voided it.
async fn refuse_if_overtaken(context: &Context, look: &Look) -> anyhow::Result<()> {
    let now = seen(context.aws.receipt(&look.desired.receipt_parameter).await)?;
    if now.map(|text| Receipt::read(&text, &look.desired.owner)) == look.live.receipt {
        return Ok(());
    }
    let what = "somebody began another run in the meantime, and only the newest run counts";
    let hint = format!("when it has ended: {0} status, then {0} enable", context.program);
    Err(Stop::refused(what, hint).into())
}

/// Changes the state and nothing else: UpdateSchedule replaces the whole schedule, so that the whole schedule is sent, as it is at
/// this moment. AWS has no conditional write; the second read narrows the gap, and the third one says what became of it.
async fn switch_on(context: &Context, looked_at: &Schedule) -> anyhow::Result<()> {
    let (group, name) = (looked_at.text("GroupName").unwrap_or("default"), looked_at.text("Name").unwrap_or_default());
    let fresh = context.aws.schedule(group, name).await?;
    if fresh != *looked_at {
        let what = format!("somebody changed schedule {group}/{name} while we looked at it");
        return Err(Stop::refused(what, format!("look again: {} plan", context.program)).into());
    }
    let wanted = fresh.with_state(State::Enabled);
    let sent = context.aws.update_schedule(&wanted).await;
    let found = context.aws.schedule(group, name).await;
    if let Err(error) = sent {
        // The answer may have been lost on the way, and the write not.
        return match found {
            Ok(found) if found.writable() == wanted.writable() => Ok(()),
            Ok(_) => Err(error.into()),
            Err(_) => {
                Err(anyhow::Error::new(error).context("whether the schedule is ENABLED now could not be read back"))
            }
        };
    }
    let found = found.context("the schedule was switched on, and cannot be read back")?;
    if found.writable() != wanted.writable() {
        let what = format!("schedule {group}/{name} is not what was sent: somebody else changed it");
        return Err(Stop::failed(what, format!("look at it: {} plan", context.program)).into());
    }
    Ok(())
}

async fn report(context: &Context, look: &Look, proof: &VerifiedRun) {
    let timing = look.desired.timing();
    let revision = proof.task_definition().rsplit('/').next().unwrap_or_default();
    let rows = proof.counts().map(|counts| format!(", {} rows", counts.fetched)).unwrap_or_default();
    out!("\n  proven    {} by {}: {revision}{rows}", minute(proof.at()), proof.by());
    match fire_times::next(&timing.expression, &timing.timezone, Timestamp::now(), 3) {
        Ok(moments) => {
            for (i, moment) in moments.iter().enumerate() {
                out!("  {}{}", if i == 0 { "fires     " } else { "then      " }, fire_times::show(moment));
            }
        }
        Err(error) => out!("  fires     {error}"),
    }
    out!();
    for note in notes(context, look, proof).await {
        out!("note: {note}");
    }
    out!("next: {} status, after the first fire time; the stop control is {0} disable", context.program);
}

async fn notes(context: &Context, look: &Look, proof: &VerifiedRun) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some(tag) = look.unpinned_image() {
        let ran = proof.image_digest().unwrap_or("unknown");
        notes.push(format!("the image {tag} is a tag, which can be moved; the proven run had {ran}"));
    }
    let unproven = "the scheduled path is unproven until the schedule has fired once: look then";
    notes.extend(look.scheduled_path_note(context, unproven).await);
    notes
}
