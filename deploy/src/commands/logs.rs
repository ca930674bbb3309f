//! `deploy logs [TASK]`: the lines of the job's container, from the first to the last.

use std::time::Duration;

use clap::Args;

use super::Context;
use super::tasks_of_job::{OurTask, at_work, log_of, newest, reference, refuse_elsewhere, schedule, started_by};
use crate::desired::Desired;
use crate::exit::{Exit, Stop};
use crate::model::log::{LogPlace, LogStream, NoLog};
use crate::model::task::Task;
use crate::run::ending::Ending;
use crate::run::follow::{UNKNOWN_FOR, Watch, follow};
use crate::run::judge::Report;
use crate::run::progress::{Lines, Progress};
use crate::run::tail::Tail;

/// Among so many of the last runs, those of other jobs left out, one is looked for that says it is this job's.
const OF_OTHERS: usize = 10;

/// The flags of `deploy logs`.
#[derive(Debug, Args)]
pub struct LogsArgs {
    /// The task, by its id or ARN; else the job's newest
    #[arg(value_parser = reference)]
    task: Option<String>,
    /// Stay until the task has stopped
    #[arg(long)]
    follow: bool,
}

/// Carries the verb out.
pub async fn run(context: &Context, args: LogsArgs) -> anyhow::Result<Exit> {
    let desired = context.desired();
    refuse_elsewhere(context, &desired).await?;
    let (cluster, container) = (&desired.job.cluster, &desired.job.container);
    let task = match &args.task {
        Some(reference) => context.aws.task(cluster, reference).await?,
        None => newest(context, &desired).await?.map(|OurTask { task, starter }| {
            err!("task {} of {}, started {}", task.id(), task.family_and_revision(), started_by(starter));
            task
        }),
    };
    let stream = match (&task, &args.task) {
        (Some(task), _) => {
            Ok(log_of(context, &task.task_definition, container).await?.map(|log| log.of_task(task.id())))
        }
        // ECS forgets a task after an hour; the log does not.
        (None, Some(reference)) => {
            let id = reference.rsplit('/').next().unwrap_or(reference);
            let schedule = schedule(context, &desired).await?;
            let definition = at_work(context, &desired, schedule.as_ref()).await?;
            Ok(definition.log_place(container, &desired.region).map(|log| log.of_task(id)))
        }
        (None, None) => newest_stream(context, &desired).await,
    };
    let stream = stream?.map_err(|error| Stop::failed(error.to_string(), error.hint()))?;
    let print = async {
        match task.filter(|task| args.follow && !task.is_stopped()) {
            Some(task) => until_it_stops(context, task, stream, container).await,
            None => whole(context, stream, args.task.is_some()).await,
        }
    };
    // `deploy logs --follow | head` has seen enough when head has.
    tokio::select! {
        biased;
        printed = print => printed,
        () = crate::out::reader_left() => Ok(Exit::Done),
    }
}

/// The stream that was written to last. Nobody knows any more who started its task: a service of the same family writes there too,
/// and so may another job, unless a report says whose it is.
async fn newest_stream(context: &Context, desired: &Desired) -> anyhow::Result<Result<LogStream, NoLog>> {
    let (job, container) = (&desired.job.name, &desired.job.container);
    let schedule = schedule(context, desired).await?;
    let definition = at_work(context, desired, schedule.as_ref()).await?;
    let LogPlace { group, prefix: begins } = match definition.log_place(container, &desired.region) {
        Ok(place) => place,
        Err(error) => return Ok(Err(error)),
    };
    let reports = context.reports(&group, &begins);
    if reports.shared {
        let runs = reports.recent(OF_OTHERS).await?;
        let Some(run) = runs.iter().find(|run| run.is_of(job)) else {
            let what = format!(
                "ECS knows no task of {job} any more, and no newer stream of {begins}... says that it is {job}'s"
            );
            let hint =
                format!("other jobs of the same family write there too; name the task: {} history", context.program);
            return Err(Stop::failed(what, hint).into());
        };
        err!("note: ECS knows no task of this job any more; this is its newest run that reported, {}", run.task);
        return Ok(Ok(reports.stream(&run.task)));
    }
    let found = context.aws.newest_streams(&group).await?.into_iter().find(|stream| stream.name.starts_with(&begins));
    let Some(found) = found else {
        let hint = format!("run the job first: {} trigger-now", context.program);
        return Err(Stop::failed(format!("the log group {group} has no stream {begins}..."), hint).into());
    };
    err!("note: ECS knows no task of this job any more; this is the newest stream, {}", found.name);
    Ok(Ok(found))
}

async fn whole(context: &Context, stream: LogStream, named: bool) -> anyhow::Result<Exit> {
    let mut progress = Progress::begin(Lines::Data);
    let place = format!("{} in {}", stream.name, stream.group);
    let mut tail = Tail::of(&context.aws, Ok(stream));
    tail.drain(&mut progress, |_| Duration::ZERO).await;
    match tail.into_parts() {
        (Report::NotRead(why), _) => {
            let hint = match named {
                _ if why.contains("AccessDenied") => {
                    format!("allow logs:GetLogEvents to the caller: {} iam --for logs", context.program)
                }
                true => format!("is there such a task? the job's newest: {} logs", context.program),
                false => format!(
                    "is the log group there, and has the container printed anything yet? {} plan shows the group",
                    context.program
                ),
            };
            Err(Stop::failed(format!("the log stream {place} cannot be read: {why}"), hint).into())
        }
        _ => Ok(Exit::Done),
    }
}

async fn until_it_stops(context: &Context, task: Task, stream: LogStream, container: &str) -> anyhow::Result<Exit> {
    let cluster = task.cluster.clone();
    let watch = Watch {
        aws: &context.aws,
        cluster: &cluster,
        container,
        stream: Ok(stream),
        awaits_report: false,
        timeout: Duration::MAX,
        patience: UNKNOWN_FOR,
        lines: Lines::Data,
    };
    match follow(watch, task).await {
        Ok(watched) => match watched.report {
            Report::NotRead(why) => Err(Stop::failed(format!("the log cannot be read: {why}"), String::new()).into()),
            _ => Ok(Exit::Done),
        },
        // Whoever follows a log leaves when they have seen enough.
        Err(Ending::Detached { .. }) => Ok(Exit::Done),
        Err(ending) => Err(Stop::failed(ending.to_string(), ending.hint(&context.program)).into()),
    }
}
