//! A run that has a task: followed to its end and judged. What every verb shares that starts a task.

use std::time::Duration;

use clap::Args;

use super::Context;
use super::look::Look;
use crate::cloud::CloudError;
use crate::config::Proof;
use crate::exit::Stop;
use crate::explain;
use crate::model::run_task::Run;
use crate::model::task::Task;
use crate::run::ending::Ending;
use crate::run::follow::{UNKNOWN_FOR, Watch, Watched, follow};
use crate::run::judge::{Proven, judge};
use crate::run::progress::Lines;
use crate::run::timeline::timeline;

/// Follows a task of `run` until it has stopped, and judges it. Ctrl-C and `timeout` end the watching, never the task.
pub async fn to_its_end(
    context: &Context,
    look: &Look,
    run: &Run,
    task: Task,
    timeout: Duration,
) -> Result<Proven, Ending> {
    let proof = look.desired.job.gate.proof;
    let watch = Watch {
        aws: &context.aws,
        cluster: &run.task().cluster,
        container: &run.task().container,
        stream: look.log_place().map(|log| log.of_task(task.id())),
        awaits_report: proof == Proof::RunReport,
        timeout,
        patience: UNKNOWN_FOR,
        lines: Lines::Beside,
    };
    let watched = follow(watch, task).await?;
    judge(run, &watched.task, &watched.report, proof).inspect_err(|_| look_back(&watched))
}

/// What happened to a task that did not end well, by time.
pub fn look_back(watched: &Watched) {
    err!("what happened, by time (UTC):");
    for line in timeline(&watched.task, &watched.last_lines) {
        err!("  {line}");
    }
}

/// How long a run is waited for.
#[derive(Debug, Args)]
pub struct Waiting {
    /// How long to wait for the task to stop: 90s, 30m, 2h
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = duration)]
    pub timeout: Duration,
    /// Start it, say how to follow it, and leave
    #[arg(long, conflicts_with_all = ["timeout", "print_aws_cli"])]
    pub no_wait: bool,
}

/// `90s`, `30m`, `2h`.
pub fn duration(text: &str) -> Result<Duration, String> {
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

/// The run for a shell; the JSON is one quoted word.
pub fn aws_command(run: &Run, region: &str) -> String {
    format!("aws ecs run-task --region {region} --cli-input-json '{}'", run.cli_json().replace('\'', r"'\''"))
}

/// A task is there.
pub fn say_started(task: &Task, run: &Run) {
    err!("started {} of {}", task.arn, run.task().task_definition.family_and_revision());
}

/// The task goes on without us.
pub fn say_how_to_attach(context: &Context, task: &Task) {
    err!("follow it: {} attach {}", context.program, task.id());
}

/// No answer came to RunTask.
pub fn unknown_start(context: &Context, error: CloudError) -> anyhow::Error {
    let what = format!("whether a task was started is not known: {error}");
    let hint = format!("{}\nthen see whether one runs: {} logs", explain::hint(&error), context.program);
    Stop::failed(what, hint).into()
}
