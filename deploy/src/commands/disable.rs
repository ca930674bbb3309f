//! `deploy disable`: switches the schedule off, also when little else works.

use anyhow::Context as _;
use clap::Args;

use super::Context;
use crate::check;
use crate::cloud::{CloudError, ErrorKind, Schedules, Whoami, seen};
use crate::desired::Desired;
use crate::exit::{Exit, Stop};
use crate::explain;
use crate::model::{Elsewhere, Group, Schedule, Seen, State, tags};
use crate::observe::elsewhere;

/// The flags of `deploy disable`.
#[derive(Debug, Args)]
pub struct DisableArgs {
    /// Delete the schedule in place of switching it off, after saving it to a file; needs no iam:PassRole
    #[arg(long)]
    pub delete: bool,
}

/// Carries the verb out.
pub async fn run(context: &Context, args: DisableArgs) -> anyhow::Result<Exit> {
    switch(context, &args, context.desired()).await
}

async fn switch(context: &Context, args: &DisableArgs, desired: Desired) -> anyhow::Result<Exit> {
    let (group, name) = (&desired.timing().group, &desired.job.name);
    let arn = desired.group_arn();
    let (identity, found_group, schedule) =
        tokio::join!(context.aws.identity(), context.aws.group(group, &arn), context.aws.schedule(group, name));
    check::same_place(&desired, &identity?)?;
    // This is the emergency switch: whatever keeps the tags from being seen does not keep it from being turned.
    let found_group = seen(found_group).unwrap_or_else(|error| Seen::Hidden { why: error.to_string() });
    guard_ownership(&found_group, &desired)?;
    let schedule = match schedule {
        Err(error) if error.kind == ErrorKind::NotFound => {
            let all = elsewhere(&context.aws, &desired).await.context("whether it has a schedule in another group")?;
            let firing = all.iter().find(|one| one.state == State::Enabled || args.delete);
            let Some(Elsewhere { group: other, .. }) = firing else {
                out!("{name}: there is no schedule, and nothing that fires");
                return Ok(Exit::Done);
            };
            err!("note: its schedule is in group {other}, and the configuration says {group}");
            return Box::pin(switch(context, args, desired.in_group(other))).await;
        }
        other => other?,
    };
    if args.delete {
        return delete(context, &desired, &schedule).await;
    }
    if schedule.state() == State::Disabled {
        out!("{name}: DISABLED already");
        return Ok(Exit::Done);
    }
    if let Err(error) = switch_off(&context.aws, &schedule).await {
        // The answer may have been lost on the way, and the write not.
        let is_off = context.aws.schedule(group, name).await.is_ok_and(|after| after.state() == State::Disabled);
        if !is_off {
            return give_up(context, &schedule, &error);
        }
    }
    let after = context.aws.schedule(group, name).await.context("reading the schedule back")?;
    if after.state() != State::Disabled {
        let hint = format!("look again with `{} plan`", context.program);
        return Err(Stop::failed("AWS took the change and does not show it", hint).into());
    }
    out!("{name}: ENABLED -> DISABLED");
    out!("note: {GOES_ON}");
    Ok(Exit::Done)
}

const GOES_ON: &str = "a task that is running goes on, and so do retries of an occurrence that is already due";

/// Sends the whole schedule back, switched off. AWS may refuse a start date of long ago, which by now means nothing.
async fn switch_off(cloud: &impl Schedules, schedule: &Schedule) -> Result<(), CloudError> {
    let off = schedule.with_state(State::Disabled);
    match cloud.update_schedule(&off).await {
        Err(error) if error.said.contains("StartDate") && off.0.contains_key("StartDate") => {
            let mut without = off;
            without.0.remove("StartDate");
            cloud.update_schedule(&without).await
        }
        other => other,
    }
}

/// Another's schedule is not ours to switch. When the tags cannot be seen, the name must do: this is the emergency switch.
fn guard_ownership(group: &Seen<Group>, desired: &Desired) -> Result<(), Stop> {
    let Group { name, tags: found } = match group {
        Seen::Present(group) => group,
        Seen::Absent => return Ok(()),
        Seen::Hidden { why } => {
            err!("note: whose it is was not seen, {why}; its name must do");
            return Ok(());
        }
    };
    if tags::are_ours(found, &desired.job.name) {
        return Ok(());
    }
    let what = format!("schedule group {name} is not ours: its tags are not those of job {}", desired.job.name);
    Err(Stop::refused(what, "check `group` in the configuration, or switch the schedule off where it is kept"))
}

async fn delete(context: &Context, desired: &Desired, schedule: &Schedule) -> anyhow::Result<Exit> {
    let (group, name) = (&desired.timing().group, &desired.job.name);
    let file = save(schedule, name)?;
    out!("{name}: saved to {file}");
    context.aws.delete_schedule(group, name).await?;
    out!("{name}: deleted");
    out!("note: {GOES_ON}");
    out!("next: {} apply --disabled", context.program);
    Ok(Exit::Done)
}

fn give_up(context: &Context, schedule: &Schedule, error: &CloudError) -> anyhow::Result<Exit> {
    let name = &context.job.name;
    err!("error: {name} could not be switched off, it is still ENABLED: {error}");
    err!("hint: {}", explain::hint(error));
    match save(schedule, name) {
        Ok(file) => err!("note: the schedule was saved to {file}"),
        Err(error) => err!("note: the schedule was not saved: {error:#}"),
    }
    err!("hint: deleting it needs neither the role nor iam:PassRole: {} disable --delete", context.program);
    Ok(Exit::Failed)
}

/// Writes the schedule beside the person, under a name that is not taken.
fn save(schedule: &Schedule, name: &str) -> anyhow::Result<String> {
    let text = serde_json::to_string_pretty(&schedule.0)?;
    for i in 1.. {
        let path = if i == 1 { format!("{name}.schedule.json") } else { format!("{name}.schedule-{i}.json") };
        match std::fs::File::create_new(&path) {
            Ok(mut file) => {
                use std::io::Write;
                file.write_all(text.as_bytes()).with_context(|| format!("writing {path}"))?;
                return Ok(path);
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error).with_context(|| format!("cannot save the schedule to {path}")),
        }
    }
    unreachable!("some name is free")
}
