//! `deploy trigger-now`: run the job once with the schedule's own Input, and keep the receipt if it proves itself.

use std::time::Duration;

use clap::Args;

use super::Context;
use super::attempt::{Attempt, now};
use super::look::Look;
use super::watched;
use crate::exit::{Exit, Stop};
use crate::model::run_task::{Occurrence, Run, RunTask};
use crate::plan::Wish;
use crate::receipt::Path;
use crate::run::ending::Ending;
use crate::run::judge::Proven;
use crate::run::start::{ROLE_PROPAGATION, start};

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
    let attempt = Attempt::begin(context, &look).await?;
    match start_and_watch(context, &look, &run, args.timeout).await? {
        Ok(proven) => {
            let verified = attempt.proven(Path::Direct, &proven).await?;
            watched::report(context, &look, &proven, &verified).await;
            Ok(Exit::Done)
        }
        Err(ending) => {
            attempt.ended(&ending).await;
            Err(watched::not_proven(context, &ending).into())
        }
    }
}

async fn start_and_watch(
    context: &Context,
    look: &Look,
    run: &Run,
    timeout: Duration,
) -> anyhow::Result<Result<Proven, Ending>> {
    let task = match start(&context.aws, run, ROLE_PROPAGATION).await? {
        Ok(task) => task,
        Err(ending) => return Ok(Err(ending)),
    };
    err!("started {} of {}", task.arn, run.task().task_definition.family_and_revision());
    Ok(watched::to_its_end(context, look, run, task, timeout).await)
}

/// Two runs of one job at once prove nothing about either.
pub async fn refuse_while_one_runs(context: &Context, run: &Run) -> anyhow::Result<()> {
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

fn occurrence() -> Occurrence {
    Occurrence { id: uuid::Uuid::new_v4().simple().to_string(), time: format!("{:.0}", now()) }
}

/// The run for a shell; the JSON is one quoted word.
fn aws_command(run: &Run, region: &str) -> String {
    format!("aws ecs run-task --region {region} --cli-input-json '{}'", run.cli_json().replace('\'', r"'\''"))
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
