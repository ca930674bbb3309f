//! `deploy stop TASK`: ends one task of the job, and says what became of it.

use std::time::Duration;

use clap::Args;
use tokio::time::Instant;

use super::Context;
use super::tasks_of_job::{OurTask, ours, reference, refuse_elsewhere, started_by};
use crate::exit::{Exit, Stop};
use crate::interrupt::{Interrupt, Interrupted};
use crate::model::task::Task;
use crate::run::ending::humantime;

/// ECS waits two minutes at most between SIGTERM and SIGKILL, and takes a while itself.
const PATIENCE: Duration = Duration::from_secs(180);

/// The flags of `deploy stop`.
#[derive(Debug, Args)]
pub struct StopArgs {
    /// The task, by its id or ARN
    #[arg(value_parser = reference)]
    task: String,
    /// Why, for whoever looks at the task later
    #[arg(long, value_name = "TEXT", default_value = "stopped with `deploy stop`")]
    reason: String,
}

/// Carries the verb out.
pub async fn run(context: &Context, args: StopArgs) -> anyhow::Result<Exit> {
    let desired = context.desired();
    refuse_elsewhere(context, &desired).await?;
    let OurTask { mut task, starter } = ours(context, &desired, &args.task).await?;
    let (job, cluster, name) = (&desired.job.name, &desired.job.cluster, &desired.job.container);
    if task.is_stopped() {
        out!("{job}: task {} has stopped already; {}", task.id(), code_of(&task, name));
        return Ok(Exit::Done);
    }
    let mut interrupt = Interrupt::listen();
    context.aws.stop_task(cluster, &task.arn, &args.reason).await?;
    err!("task {}, started {}, was told to stop", task.id(), started_by(starter));
    let begun = Instant::now();
    while !task.is_stopped() {
        let waited = begun.elapsed();
        if waited >= PATIENCE || interrupt.sleep(Duration::from_millis(500)).await == Err(Interrupted) {
            let (id, waited) = (task.id(), humantime(&Duration::from_secs(waited.as_secs())));
            let what = format!("task {id} was told to stop, and is still {} after {waited}", task.status);
            return Err(Stop::failed(what, format!("see it end: {} attach {id}", context.program)).into());
        }
        // A look that fails is no reason to stop waiting: the task stops all the same.
        if let Ok(Some(seen)) = context.aws.task(cluster, &task.arn).await {
            task = seen;
        }
    }
    out!("{job}: task {} has stopped; {}", task.id(), code_of(&task, name));
    Ok(Exit::Done)
}

fn code_of(task: &Task, name: &str) -> String {
    match task.container(name).and_then(|container| container.exit_code) {
        Some(code) => format!("container {name} ended with exit code {code}"),
        None => format!("container {name} never ran"),
    }
}
