//! `deploy apply`: makes it so, and never switches on.

use std::io::{BufRead, IsTerminal};

use anyhow::Context as _;
use clap::Args;
use jiff::Timestamp;

use super::Context;
use super::look::Look;
use super::plan::WishArgs;
use crate::apply::{self, Failure, Patience};
use crate::exit::{Exit, Stop};
use crate::explain;
use crate::plan::{Plan, Sign, Step, Wish};
use crate::render;
use crate::secret::{SecretValue, Values};

/// The flags of `deploy apply`.
#[derive(Debug, Args)]
pub struct ApplyArgs {
    /// What is asked for.
    #[command(flatten)]
    pub wish: WishArgs,
    /// Do not ask; needed where there is no terminal
    #[arg(long)]
    pub yes: bool,
}

/// Carries the verb out.
pub async fn run(context: &Context, args: ApplyArgs) -> anyhow::Result<Exit> {
    let wish: Wish = args.wish.into();
    let Look { desired, live, plan } = Look::at(context, wish).await?;
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
        out!("nothing to do");
        say_next(context, &plan, &live, wish);
        return Ok(Exit::Done);
    }
    confirm(context, args.yes)?;
    let values = read_values(&plan)?;
    let mut say = |line: &str| err!("{line}");
    if let Err(failure) = apply::apply(&context.aws, &plan, &values, Patience::IAM, &mut say).await {
        return Ok(report(&failure, &render::apply_command(&context.program, wish)));
    }
    let (live, after) =
        apply::settle(&context.aws, &desired, wish, Patience::READ_BACK).await.context("reading back")?;
    if !after.is_empty() {
        crate::out::data(format_args!("{}", render::plan(&after, context.style)));
        let what = "everything was written, and AWS does not show all of it";
        return Err(Stop::failed(what, format!("look again with `{} plan`", context.program)).into());
    }
    // As the plan counts them: one thing may take several steps.
    let counted = [(plan.count(Sign::Create), "created"), (plan.count(Sign::Change), "changed")];
    let counted: Vec<_> = counted.iter().filter(|(n, _)| *n > 0).map(|(n, what)| format!("{n} {what}")).collect();
    out!("{}, and everything read back", counted.join(", "));
    say_next(context, &after, &live, wish);
    Ok(Exit::Done)
}

fn say_next(context: &Context, plan: &Plan, live: &crate::model::Live, wish: Wish) {
    if let Some(next) = render::next(plan, live, &context.job, wish, Timestamp::now(), &context.program) {
        out!("next: {next}");
    }
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
