//! `deploy apply`: makes it so, and never switches on.

use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use jiff::Timestamp;

use super::Context;
use super::look::Look;
use super::plan::WishArgs;
use crate::apply::{self, Failure, Patience};
use crate::cloud::{ErrorKind, Schedules};
use crate::desired::Desired;
use crate::exit::{Exit, Stop};
use crate::explain;
use crate::guard::Guard;
use crate::model::{Group, Live, tags};
use crate::one_off::Found;
use crate::plan::{Plan, Sign, Step, Wish};
use crate::run::scheduled;
use crate::saved::{Outdated, Saved};
use crate::secret::{SecretValue, Values};
use crate::{leak, one_off, render};

/// The flags of `deploy apply`.
#[derive(Debug, Args)]
pub struct ApplyArgs {
    /// What is asked for.
    #[command(flatten)]
    pub wish: WishArgs,
    /// A plan that `plan --out` saved; what was asked for then is asked for now
    #[arg(value_name = "FILE", conflicts_with_all = ["disabled", "adopt", "latest", "rotate"])]
    pub plan: Option<PathBuf>,
    /// Do not ask; needed where there is no terminal
    #[arg(long)]
    pub yes: bool,
}

/// Carries the verb out.
pub async fn run(context: &Context, args: ApplyArgs) -> anyhow::Result<Exit> {
    let saved = args.plan.as_deref().map(read_saved).transpose()?;
    let wish: Wish = match &saved {
        Some((saved, _)) => saved.wish.clone(),
        None => args.wish.into(),
    };
    let Look { desired, live, plan } = Look::at(context, &wish).await?;
    // Before anything is shown: what stands in the open must not stand on the screen as well.
    leak::refuse(&plan, &live, &super::plan::peek(&desired))?;
    if let Some((saved, file)) = &saved {
        saved.still(&plan, &live, &desired).map_err(|error| outdated(file, &error, context))?;
    }
    crate::out::data(format_args!("{}", render::plan(&plan, context.style)));
    for note in render::notes(&plan, &live, Timestamp::now()) {
        out!("note: {note}");
    }
    if !plan.refusals.is_empty() {
        for refusal in &plan.refusals {
            err!("refused: {}", refusal.what);
            err!("hint: {}", refusal.hint);
        }
        err!("nothing was changed");
        return Ok(Exit::Refused);
    }
    if plan.steps().next().is_none() {
        clear_one_off(context, &desired, &live, &wish).await;
        out!("nothing to do");
        say_next(context, &plan, &live, &wish);
        return Ok(Exit::Done);
    }
    confirm(context, args.yes)?;
    let values = read_values(&plan)?;
    leak::refuse(&plan, &live, &values)?;
    if !args.yes {
        look_again(context, &wish, &plan).await?;
    }
    clear_one_off(context, &desired, &live, &wish).await;
    let mut say = |line: &str| err!("{line}");
    let guard = Guard::of(&desired, &live, &plan);
    if let Err(failure) = apply::apply(&context.aws, guard, &plan, &values, Patience::IAM, &mut say).await {
        return Ok(report(&failure, &render::apply_command(&context.program, &wish)));
    }
    let (live, after) =
        apply::settle(&context.aws, &desired, &wish, Patience::READ_BACK).await.context("reading back")?;
    if !after.is_empty() {
        crate::out::data(format_args!("{}", render::plan(&after, context.style)));
        let what = "everything was written, and AWS does not show all of it: either its reads lag, or somebody else wrote meanwhile";
        return Err(Stop::failed(what, format!("look again with `{} plan`", context.program)).into());
    }
    // As the plan counts them: one thing may take several steps.
    let counted = [(plan.count(Sign::Create), "created"), (plan.count(Sign::Change), "changed")];
    let counted: Vec<_> = counted.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    out!("{}, and everything read back", counted.join(", "));
    if !say_next(context, &after, &live, &wish) {
        out!("next: {} status", context.program);
    }
    Ok(Exit::Done)
}

/// What an earlier `trigger-now --via-scheduler` left behind is no part of a plan: it is nobody's wish. In a group of ours it is ours.
/// One that is still to fire is on its way to start a task: that is not what whoever says `--disabled` means.
async fn clear_one_off(context: &Context, desired: &Desired, live: &Live, wish: &Wish) {
    let (job, aws) = (&desired.job.name, &context.aws);
    let ours = |group: &Group| tags::are_ours(&group.tags, job);
    let Some(group) = live.group.present().filter(|group| ours(group)) else { return };
    let name = one_off::name(job);
    let full_name = format!("{}/{name}", group.name);
    let found = match scheduled::clear(aws, &group.name, &name).await {
        Ok(found) => found,
        Err(error) => {
            err!("note: a one-off schedule that an earlier run may have left behind was not removed: {error}");
            return;
        }
    };
    if found == Some(Found::Awaited) && wish.disabled {
        match aws.delete_schedule(&group.name, &name).await {
            Err(error) if error.kind != ErrorKind::NotFound => {
                err!("note: the one-off schedule {full_name} starts a task within three minutes, and stays: {error}");
            }
            _ => err!(
                "deleted the one-off schedule {full_name}, which trigger-now --via-scheduler made and which was still to fire"
            ),
        }
    } else if found == Some(Found::Awaited) {
        err!(
            "note: the one-off schedule {full_name} starts a task within three minutes: {} disable deletes it",
            context.program
        );
    }
}

fn read_saved(file: &Path) -> anyhow::Result<(Saved, &Path)> {
    let text = std::fs::read_to_string(file).map_err(|error| {
        Stop::usage(format!("cannot read {}: {error}", file.display()), "plan --out FILE saves a plan")
    })?;
    let saved = Saved::read(&text)
        .map_err(|error| Stop::usage(format!("{}: {error}", file.display()), "save it again with plan --out FILE"))?;
    Ok((saved, file))
}

fn outdated(file: &Path, error: &Outdated, context: &Context) -> Stop {
    let hint = match error {
        Outdated::OtherPlace(_) => "say --job, --config and --profile as they were when it was saved".to_owned(),
        _ => format!("look again, and save that: {} plan --out {}", context.program, file.display()),
    };
    Stop::refused(format!("{}: {error}; nothing was changed", file.display()), hint)
}

fn say_next(context: &Context, plan: &Plan, live: &Live, wish: &Wish) -> bool {
    let next = render::next(plan, live, &context.job, wish, Timestamp::now(), &context.program);
    if let Some(next) = &next {
        out!("next: {next}");
    }
    next.is_some()
}

fn confirm(context: &Context, yes: bool) -> anyhow::Result<()> {
    if yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        let hint = format!("say --yes where there is no terminal; see `{} plan` first", context.program);
        return Err(Stop::refused("nobody is here to confirm this; nothing was changed", hint).into());
    }
    crate::out::progress(format_args!("\napply this? [y/N] "));
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    match answer.trim() {
        "y" | "yes" => Ok(()),
        _ => Err(Stop::refused("not confirmed; nothing was changed", "").into()),
    }
}

/// A person took their time: what they confirmed must still be what there is to do.
async fn look_again(context: &Context, wish: &Wish, confirmed: &Plan) -> anyhow::Result<()> {
    let now = Look::at(context, wish).await?.plan;
    if now == *confirmed {
        return Ok(());
    }
    crate::out::data(format_args!("\n{}", render::plan(&now, context.style)));
    let hint = format!("if this is what you want: {}", render::apply_command(&context.program, wish));
    Err(Stop::refused("the world changed while you decided, and so would the plan; nothing was changed", hint).into())
}

/// Reads every value before anything is written, so that a missing one changes nothing.
fn read_values(plan: &Plan) -> anyhow::Result<Values> {
    let mut values = Values::new();
    for step in plan.steps() {
        let (Step::CreateParameter { env, from, .. } | Step::OverwriteParameter { env, from, .. }) = step else {
            continue;
        };
        let (value, stripped) = SecretValue::read(from, env).map_err(|error| {
            let what = format!("the value of secret {env} cannot be used: {error}; nothing was changed");
            Stop::refused(what, format!("{from} must give its value"))
        })?;
        if stripped {
            err!("note: one line break at the end of {from} is no part of the secret and was left out");
        }
        values.insert(env.clone(), value);
    }
    Ok(values)
}

fn report(failure: &Failure, again: &str) -> Exit {
    let Failure { done, failed, rest, error } = failure;
    err!("error: {failed}: {error}");
    err!("hint: {}", explain::hint(error));
    err!("{} done, 1 failed, {} not attempted", done.len(), rest.len());
    for step in rest {
        err!("not attempted: {step}");
    }
    err!("hint: when the cause is gone, the same goes on from here: {again}");
    Exit::Failed
}
