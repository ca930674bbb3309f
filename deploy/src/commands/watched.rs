//! A run that has a task: followed to its end, judged, and told. What every verb shares that starts a task or finds one.

use std::time::Duration;

use super::Context;
use super::look::{Look, minute};
use crate::config::Proof;
use crate::exit::{Exit, Stop};
use crate::model::State;
use crate::model::run_task::Run;
use crate::model::task::Task;
use crate::receipt::{Path, VerifiedRun};
use crate::run::ending::{Ending, humantime};
use crate::run::follow::{Watch, Watched, follow};
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
        stream: look.stream(&task),
        awaits_report: proof == Proof::RunReport,
        timeout,
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

/// The end of a run that proves nothing, as an error with its way out.
pub fn not_proven(context: &Context, ending: &Ending) -> Stop {
    let then = match ending.goes_on() {
        Some(_) => "when the task has stopped",
        None => "no run counts until one is proven",
    };
    let hint = format!("{}\n{then}: {} trigger-now", ending.hint(&context.program), context.program);
    Stop { exit: Exit::NotProven, what: format!("the run is not proven: {ending}"), hint }
}

/// Tells of a proven run.
pub async fn report(context: &Context, look: &Look, proven: &Proven, verified: &VerifiedRun) {
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
    match verified.path() {
        Path::Direct => {
            let unproven =
                "the scheduled path is unproven: this run had your rights, not those of the scheduler's role";
            if let Some(note) = look.scheduled_path_note(context, unproven).await {
                out!("note: {note}");
            }
        }
    }
    if look.live.schedule.present().is_some_and(|schedule| schedule.state() == State::Disabled) {
        out!("next: {} enable", context.program);
    }
}
