//! `deploy trigger-now`: run the job once with the schedule's own Input, and keep the receipt if it proves itself.

use std::time::Duration;

use clap::Args;
use jiff::Timestamp;

use super::Context;
use super::look::{Look, minute};
use crate::cloud::ReceiptWriteError;
use crate::exit::{Exit, Stop};
use crate::fingerprint::Fingerprint;
use crate::model::State;
use crate::model::run_task::{ManualRun, Occurrence, RunTask};
use crate::plan::Wish;
use crate::receipt::{Receipt, VerifiedRun, Void};
use crate::run::ending::{Ending, humantime};
use crate::run::follow::follow;
use crate::run::judge::{Proven, judge};
use crate::run::start::start;

/// The flags of `deploy trigger-now`.
#[derive(Debug, Args)]
pub struct TriggerNowArgs {
    /// How long to wait for the task to stop: 90s, 30m, 2h
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = duration)]
    timeout: Duration,
    /// Print the run as an `aws` command, and start nothing
    #[arg(long)]
    print_aws_cli: bool,
}

/// Carries the verb out.
pub async fn run(context: &Context, args: TriggerNowArgs) -> anyhow::Result<Exit> {
    let look = Look::at(context, &Wish::default()).await?;
    let run = look.scheduled_run(context)?.manual(occurrence());
    if args.print_aws_cli {
        out!("{}", aws_command(&run, &look.desired.region));
        return Ok(Exit::Done);
    }
    look.refuse_unless_settled(context, "trigger-now")?;
    refuse_while_one_runs(context, &run).await?;
    // Of the world before the run: what moves while it runs will not match afterwards.
    let fingerprint = Fingerprint::of(&look.live)
        .map_err(|error| Stop::refused(error.to_string(), format!("see more: {} plan", context.program)))?;

    let mut void = Void { since: now(), by: look.live.identity.arn.clone(), ending: None };
    let begun = keep(context, &look, &Receipt::Void(void.clone())).await?;
    match to_its_end(context, &look, &run, args.timeout).await? {
        Ok(proven) => {
            let proof = look.desired.job.gate.proof;
            let verified = VerifiedRun::direct(&proven, proof, fingerprint, now(), &look.live.identity.arn);
            let kept = keep_after(context, &look, &begun, &Receipt::Verified(Box::new(verified.clone()))).await;
            if let Err(error) = kept {
                // The verdict is the news; that it will not count comes after it.
                out!("{}: the run is proven: {}", look.desired.job.name, proven.task().arn);
                return Err(error.context("its receipt is missing, and without one `enable` will refuse"));
            }
            report(context, &look, &proven, &verified).await;
            Ok(Exit::Done)
        }
        Err(ending) => {
            void.ending = Some(shortened(&ending.lasting()));
            if let Err(error) = keep_after(context, &look, &begun, &Receipt::Void(void)).await {
                err!("note: how it ended could not be kept, and no earlier proof counts either: {error:#}");
            }
            let then = if ending.goes_on() { "when the task has stopped" } else { "no run counts until one is proven" };
            let hint = format!("{}\n{then}: {} trigger-now", ending.hint(), context.program);
            Err(Stop { exit: Exit::NotProven, what: format!("the run is not proven: {ending}"), hint }.into())
        }
    }
}

/// Starts the task, follows it, judges it.
async fn to_its_end(
    context: &Context,
    look: &Look,
    run: &ManualRun,
    timeout: Duration,
) -> anyhow::Result<Result<Proven, Ending>> {
    let task = match start(&context.aws, run).await? {
        Ok(task) => task,
        Err(ending) => return Ok(Err(ending)),
    };
    err!("started {} of {}", task.arn, run.task().task_definition.family_and_revision());
    let (stream, proof) = (look.stream(&task), look.desired.job.gate.proof);
    // Ctrl-C is listened to before anything is printed.
    let ended = tokio::select! {
        biased;
        _ = tokio::signal::ctrl_c() => Err(Ending::Detached),
        ended = follow(&context.aws, run, task, stream, proof, timeout) => {
            ended.unwrap_or_else(|error| Err(Ending::Unwatched { why: error.to_string() }))
        }
    };
    Ok(ended.and_then(|(task, report)| judge(run, &task, &report, proof)))
}

/// Two runs of one job at once prove nothing about either.
async fn refuse_while_one_runs(context: &Context, run: &ManualRun) -> anyhow::Result<()> {
    let task = run.task();
    for starter in RunTask::started_by(&task.job) {
        let running = context.aws.running_tasks(&task.cluster, &starter).await?;
        if let Some(arn) = running.first() {
            let what = format!("a task of {} is running already: {arn}", task.job);
            let hint = format!(
                "wait until it has stopped: aws ecs wait tasks-stopped --region {} --cluster {} --tasks {arn}\nthen: {} trigger-now",
                context.config.region, task.cluster, context.program
            );
            return Err(Stop::refused(what, hint).into());
        }
    }
    Ok(())
}

/// A receipt that was kept: its text, and the version of the parameter.
struct Kept {
    text: String,
    version: i64,
}

/// Keeps what became of a run, when it is still the newest: two may have begun at once, and then neither says anything of the
/// job at rest. AWS has no conditional write here; the version that the write answers shows what came between.
async fn keep_after(context: &Context, look: &Look, begun: &Kept, receipt: &Receipt) -> anyhow::Result<()> {
    let name = &look.desired.receipt_parameter;
    let overtaken = || {
        let hint = format!("when that run has ended, prove the job again: {} trigger-now", context.program);
        let what = format!(
            "another run was begun while this one ran ({name} is not as this one left it), and only the newest counts"
        );
        Stop { exit: Exit::NotProven, what, hint }
    };
    let (text, version) = context.aws.receipt_version(name).await?;
    if (&text, version) != (&begun.text, begun.version) {
        return Err(overtaken().into());
    }
    let kept = keep(context, look, receipt).await?;
    if kept.version != begun.version + 1 {
        let ending = Some("another run was begun while it ran".to_owned());
        let void = Void { since: now(), by: look.live.identity.arn.clone(), ending };
        keep(context, look, &Receipt::Void(void)).await?;
        return Err(overtaken().into());
    }
    Ok(())
}

/// Keeps a receipt, or the lack of one.
async fn keep(context: &Context, look: &Look, receipt: &Receipt) -> anyhow::Result<Kept> {
    let (name, job) = (&look.desired.receipt_parameter, &look.desired.job.name);
    let text = receipt.to_text(&look.desired.owner)?;
    match context.aws.write_receipt(name, &text, job).await {
        Err(error @ ReceiptWriteError::Foreign(_)) => {
            let hint = "choose another `app` in deploy.toml, or delete that parameter if nobody needs it";
            Err(Stop::refused(error.to_string(), hint).into())
        }
        // So that what AWS said gets its hint.
        Err(ReceiptWriteError::Cloud(error)) => Err(error.into()),
        Ok(version) => Ok(Kept { text, version }),
    }
}

async fn report(context: &Context, look: &Look, proven: &Proven, verified: &VerifiedRun) {
    let (task, job) = (proven.task(), &look.desired.job);
    let revision = task.task_definition.rsplit('/').next().unwrap_or_default();
    out!("{}: the run is proven\n", job.name);
    out!("  task      {} of {revision}, container {} ended with exit code 0", task.id(), job.container);
    out!("  as asked  revision, command, environment, network and starter are the schedule's");
    match proven.report() {
        Some(report) => out!(
            "  report    {}, {} fetched, {} upserted, {} deactivated in {}",
            report.outcome,
            report.fetched,
            report.upserted,
            report.deactivated,
            humantime(&Duration::from_millis(report.duration_ms))
        ),
        None => out!("  report    none asked for: gate.proof is \"exit-code\""),
    }
    let until = verified.at().checked_add(job.gate.max_age).map_or_else(|_| "further notice".to_owned(), minute);
    out!("  receipt   {}, counts until {until} if nothing moves", look.desired.receipt_parameter);
    out!();
    let unproven = "the scheduled path is unproven: this run had your rights, not those of the scheduler's role";
    if let Some(note) = look.scheduled_path_note(context, unproven).await {
        out!("note: {note}");
    }
    if look.live.schedule.present().is_some_and(|schedule| schedule.state() == State::Disabled) {
        out!("next: {} enable", context.program);
    }
}

fn occurrence() -> Occurrence {
    Occurrence { id: uuid::Uuid::new_v4().simple().to_string(), time: format!("{:.0}", now()) }
}

/// Now, to the second: nothing here is measured finer, and texts stay short.
fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

/// The run for a shell; the JSON is one quoted word.
fn aws_command(run: &ManualRun, region: &str) -> String {
    format!("aws ecs run-task --region {region} --cli-input-json '{}'", run.cli_json().replace('\'', r"'\''"))
}

/// A receipt has 4 KB; what ECS says of an end may be long.
fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(400).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}

fn duration(text: &str) -> Result<Duration, String> {
    let parsed = || {
        let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
        let seconds = match unit {
            "s" => 1,
            "m" => 60,
            "h" => 3600,
            _ => return None,
        };
        number.parse::<u32>().ok().map(|number| Duration::from_secs(u64::from(number) * seconds))
    };
    parsed().ok_or_else(|| "a number and s, m or h are expected, such as 30m".to_owned())
}
