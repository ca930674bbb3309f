//! `deploy attach TASK`: follows a task again that somebody else watches, or nobody, and says how it ended.
//!
//! Architecture invariant: no receipt is written here (ADR 0018). A receipt says that the world before the run is the world now,
//! and whoever attaches has not seen the world before.

use std::time::Duration;

use clap::Args;

use super::Context;
use super::tasks_of_job::{OurTask, log_of, ours, reference, refuse_elsewhere, scheduled_run, started_by};
use super::watched::{duration, look_back};
use crate::config::Proof;
use crate::exit::{Exit, Stop};
use crate::model::run_task::{OCCURRENCE_VARIABLE, Occurrence, Run, RunTask, Starter, of_occurrence};
use crate::model::task::Task;
use crate::run::ending::Ending;
use crate::run::follow::{UNKNOWN_FOR, Watch, follow};
use crate::run::judge::{ended_with_0, filled_in, judge};
use crate::run::progress::Lines;

/// The flags of `deploy attach`.
#[derive(Debug, Args)]
pub struct AttachArgs {
    /// The task, by its id or ARN
    #[arg(value_parser = reference)]
    task: String,
    /// How long to wait for the task to stop: 90s, 30m, 2h
    #[arg(long, value_name = "TIME", default_value = "30m", value_parser = duration)]
    timeout: Duration,
}

/// Carries the verb out.
pub async fn run(context: &Context, args: AttachArgs) -> anyhow::Result<Exit> {
    let desired = context.desired();
    refuse_elsewhere(context, &desired).await?;
    let OurTask { task, starter } = ours(context, &desired, &args.task).await?;
    err!("task {} of {}, started {}", task.id(), task.family_and_revision(), started_by(starter));
    let (name, cluster) = (&desired.job.container, &desired.job.cluster);
    let proof = desired.job.gate.proof;
    let watch = Watch {
        aws: &context.aws,
        cluster,
        container: name,
        stream: log_of(context, &task.task_definition, name).await?.map(|log| log.of_task(task.id())),
        awaits_report: proof == Proof::RunReport && starter != Starter::Run,
        timeout: args.timeout,
        patience: UNKNOWN_FOR,
        lines: Lines::Beside,
    };
    let watched = follow(watch, task).await.map_err(|ending| not_well(context, &ending, None))?;
    let judged = match starter {
        Starter::Run => ended_with_0(&watched.task, name),
        Starter::Schedule | Starter::Trigger | Starter::OneOff => {
            // Such a schedule is none of ours to compare with, and the task itself says what is wrong.
            if let Some(code) = watched.task.container(name).and_then(|container| container.exit_code)
                && let Err(ending) = filled_in(&watched.task, code)
            {
                look_back(&watched);
                return Err(not_well(context, &ending, Some(&watched.task)).into());
            }
            match scheduled_run(context, &desired).await {
                Ok(asked) => {
                    judge(&as_started(&asked, starter, &watched.task, name), &watched.task, &watched.report, proof)
                        .map(drop)
                }
                // How it ended is known all the same.
                Err(error) => match ended_with_0(&watched.task, name) {
                    Ok(()) => {
                        out!(
                            "{}: container {name} ended with exit code 0; whether it did what the schedule asks for is not known",
                            desired.job.name
                        );
                        return Err(error);
                    }
                    ended => ended,
                },
            }
        }
    };
    if let Err(ending) = judged {
        look_back(&watched);
        return Err(not_well(context, &ending, Some(&watched.task)).into());
    }
    out!("{}: task {} ended well, container {name} with exit code 0", desired.job.name, watched.task.id());
    if matches!(starter, Starter::Trigger | Starter::OneOff) {
        out!("note: a run that was only joined earns no receipt; only one that is watched from before its start does");
        out!("next: {} trigger-now", context.program);
    }
    Ok(Exit::Done)
}

/// The run as the schedule asks for it today, at the moment that this task names.
fn as_started(run_task: &RunTask, starter: Starter, task: &Task, container: &str) -> Run {
    let overridden = task.overrides.iter().find(|overridden| overridden.name == container);
    let time = overridden.and_then(|overridden| overridden.environment.get(OCCURRENCE_VARIABLE));
    let time = time.and_then(|text| of_occurrence(text)).map_or("", |(_, time)| time);
    match starter {
        Starter::Schedule => run_task.scheduled_at(time),
        Starter::OneOff => run_task.via_scheduler(time),
        Starter::Trigger | Starter::Run => run_task.manual(Occurrence { id: String::new(), time: time.to_owned() }),
    }
}

fn not_well(context: &Context, ending: &Ending, task: Option<&Task>) -> Stop {
    let what = match ending.goes_on() {
        Some(_) => format!("its end was not seen: {ending}"),
        None => format!("it did not end well: {ending}"),
    };
    let log = match (ending, task) {
        (Ending::Failed { .. }, Some(task)) => format!("\nits log: {} logs {}", context.program, task.id()),
        _ => String::new(),
    };
    Stop { exit: Exit::NotProven, what, hint: ending.hint(&context.program) + &log }
}
