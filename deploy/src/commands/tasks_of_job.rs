//! The job's tasks: what would start one, which are ours, where they write to. What the verbs share that work with tasks.

use futures_util::future::try_join_all;

use super::Context;
use crate::check;
use crate::cloud::{Answer, CloudError, ErrorKind, Schedules, TaskDefinitions, Whoami};
use crate::desired::Desired;
use crate::exit::Stop;
use crate::model::log::{LogPlace, NoLog};
use crate::model::run_task::{Occurrence, RunTask, Starter};
use crate::model::task::Task;
use crate::model::{Schedule, TaskDefinition};
use crate::plan::pinned_revision;

use super::attempt::now;

/// A task that was started for this job.
pub struct OurTask {
    /// The task.
    pub task: Task,
    /// By whom.
    pub starter: Starter,
}

impl OurTask {
    fn of(task: Task, desired: &Desired) -> Result<OurTask, Box<Task>> {
        let (job, family) = (&desired.job.name, &desired.job.family);
        let starter = task.started_by.as_deref().and_then(|text| Starter::of(text, job));
        let revision = task.family_and_revision().rsplit_once(':');
        match starter.filter(|_| revision.is_some_and(|(of, _)| of == family)) {
            Some(starter) => Ok(OurTask { task, starter }),
            None => Err(Box::new(task)),
        }
    }
}

/// A task as it is named on the command line. A variable that was never set comes as nothing, and must not be sent to AWS as a name.
pub fn reference(text: &str) -> Result<String, String> {
    match text.trim() {
        "" => Err("it is empty; is the variable set?".to_owned()),
        named => Ok(named.to_owned()),
    }
}

/// Who asks, and from where: the wrong account or region is refused.
pub async fn refuse_elsewhere(context: &Context, desired: &Desired) -> anyhow::Result<()> {
    Ok(check::same_place(desired, &context.aws.identity().await?)?)
}

/// What the schedule sends when it fires.
pub async fn scheduled_run(context: &Context, desired: &Desired) -> anyhow::Result<RunTask> {
    let (group, job) = (&desired.timing().group, &desired.job.name);
    let schedule = context.aws.schedule(group, job).await.map_err(|error| match error.kind {
        ErrorKind::NotFound => {
            let hint = format!("make it, switched off: {} apply --disabled", context.program);
            anyhow::Error::from(Stop::refused(format!("there is no schedule {group}/{job}"), hint))
        }
        _ => error.into(),
    })?;
    let run_task = RunTask::from_scheduler_input(schedule.input().unwrap_or_default());
    let run_task = run_task.map_err(|error| error.to_string()).and_then(|run_task| {
        let of = &run_task.parts().job;
        if of == job { Ok(run_task) } else { Err(format!("its Input is of job {of}")) }
    });
    Ok(run_task.map_err(|why| {
        let hint = format!("write it anew: {} apply --disabled", context.program);
        Stop::refused(format!("the schedule would not run this job: {why}"), hint)
    })?)
}

/// The task by its id or ARN; another job's, or a service's, is refused.
pub async fn ours(context: &Context, desired: &Desired, reference: &str) -> anyhow::Result<OurTask> {
    let Some(task) = context.aws.task(&desired.job.cluster, reference).await? else {
        let what = format!("ECS does not know a task {reference} in cluster {}", desired.job.cluster);
        let hint = format!(
            "a task that has stopped is known for about an hour; its log is kept longer: {} logs {reference}",
            context.program
        );
        return Err(Stop::failed(what, hint).into());
    };
    OurTask::of(task, desired).map_err(|task| {
        let starter = task.started_by.as_deref().unwrap_or("nobody");
        let what = format!(
            "task {} is not one of {}: it runs {} and was started by {starter}",
            task.id(),
            desired.job.name,
            task.family_and_revision()
        );
        Stop::refused(what, format!("the job's newest one: {} logs", context.program)).into()
    })
}

/// The job's tasks that run: by whom each was started, and its ARN.
pub async fn running(context: &Context, cluster: &str, job: &str) -> Answer<Vec<(Starter, String)>> {
    let calls = Starter::ALL.map(|starter| async move {
        let arns = context.aws.running_tasks(cluster, &starter.started_by(job)).await?;
        Ok::<Vec<_>, CloudError>(arns.into_iter().map(|arn| (starter, arn)).collect())
    });
    Ok(try_join_all(calls).await?.concat())
}

/// The job's newest task that ECS still knows: of those that run, else of those that have stopped.
pub async fn newest(context: &Context, desired: &Desired) -> anyhow::Result<Option<OurTask>> {
    let (cluster, aws) = (&desired.job.cluster, &context.aws);
    let mut found = Vec::new();
    for (_, arn) in running(context, cluster, &desired.job.name).await? {
        found.extend(aws.task(cluster, &arn).await?);
    }
    if found.is_empty() {
        found = aws.stopped_tasks(cluster, &desired.job.family).await?;
    }
    let ours = found.into_iter().filter_map(|task| OurTask::of(task, desired).ok());
    Ok(ours.max_by_key(|one| one.task.events.first().map(|created| created.at_ms)))
}

/// The schedule, if there is one.
pub async fn schedule(context: &Context, desired: &Desired) -> Result<Option<Schedule>, CloudError> {
    match context.aws.schedule(&desired.timing().group, &desired.job.name).await {
        Ok(schedule) => Ok(Some(schedule)),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The revision that the schedule runs: it says where the job writes to, whatever others register. Without one, the family's newest.
pub async fn at_work(
    context: &Context,
    desired: &Desired,
    schedule: Option<&Schedule>,
) -> Result<TaskDefinition, CloudError> {
    if let Some(pinned) = schedule.and_then(pinned_revision) {
        match context.aws.task_definition(pinned.arn()).await {
            Err(error) if error.kind == ErrorKind::NotFound => {}
            answer => return answer,
        }
    }
    context.aws.task_definition(&desired.job.family).await
}

/// Where the job's container writes to in tasks of this revision.
pub async fn log_of(context: &Context, revision: &str, container: &str) -> anyhow::Result<Result<LogPlace, NoLog>> {
    Ok(context.aws.task_definition(revision).await?.log_place(container, &context.config.region))
}

/// A run that a person starts now.
pub fn occurrence() -> Occurrence {
    Occurrence { id: uuid::Uuid::new_v4().simple().to_string(), time: format!("{:.0}", now()) }
}

/// Who started it, for a person.
pub fn started_by(starter: Starter) -> &'static str {
    match starter {
        Starter::Schedule => "by the schedule",
        Starter::Trigger => "by `deploy trigger-now`",
        Starter::OneOff => "by `deploy trigger-now --via-scheduler`",
        Starter::Run => "by `deploy run`",
    }
}
