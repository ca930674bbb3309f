//! What `trigger-now` says in the end: for a person, or as one JSON document, `trigger-now/1`. Members may be added to it; what is
//! there keeps its name and meaning.

use std::time::Duration;

use serde_json::{Value, json};

use super::Context;
use super::attempt::Newest;
use super::look::{Look, minute};
use crate::exit::{Exit, Stop};
use crate::model::State;
use crate::receipt::{Path, VerifiedRun};
use crate::run::ending::{Ending, humantime};
use crate::run::judge::Proven;

const FORMAT: &str = "trigger-now/1";

/// The end of a run that proves nothing, as an error with its way out; the run was started by `verb`.
pub fn not_proven(
    context: &Context,
    verb: &str,
    task: Option<&str>,
    ending: &Ending,
    standing: Newest,
    as_json: bool,
) -> Stop {
    let then = match (ending.goes_on(), standing) {
        (_, Newest::Overtaken) => {
            "another run was begun meanwhile, and what that one proves counts; to prove the job again"
        }
        (Some(_), Newest::This) => "only a run that is watched to its end counts; when the task has stopped",
        (None, Newest::This) => "no run counts until one is proven",
    };
    said(context, verb, task, ending, then, as_json)
}

/// The same of a run that was not begun: what counted before counts still.
pub fn not_begun(context: &Context, verb: &str, ending: &Ending, as_json: bool) -> Stop {
    said(context, verb, None, ending, "nothing was started, and the receipt is as it was; then", as_json)
}

fn said(context: &Context, verb: &str, task: Option<&str>, ending: &Ending, then: &str, as_json: bool) -> Stop {
    let log = match (task, ending) {
        (Some(task), Ending::Failed { .. } | Ending::NoReport | Ending::UnreadableReport { .. }) => {
            format!("\nits log: {} logs {}", context.program, task.rsplit('/').next().unwrap_or(task))
        }
        _ => String::new(),
    };
    let hint = format!("{}{log}\n{then}: {} {verb}", ending.hint(&context.program), context.program);
    if as_json {
        let document = json!({
            "deploy": FORMAT, "job": context.job.name, "task": task, "proven": false, "ending": ending.name(),
            "message": ending.to_string(), "hints": hint.lines().collect::<Vec<_>>(), "report": null, "receipt": null,
        });
        out!("{document:#}");
    }
    Stop { exit: Exit::NotProven, what: format!("the run is not proven: {ending}"), hint }
}

/// A run that nobody waits for, as a document.
pub fn left(job: &str, task: &str) {
    let document = json!({
        "deploy": FORMAT, "job": job, "task": task, "proven": false, "ending": null, "message": "not waited for",
        "hints": [], "report": null, "receipt": null,
    });
    out!("{document:#}");
}

/// Tells of a proven run.
pub async fn proven(context: &Context, look: &Look, proven: &Proven, verified: &VerifiedRun, as_json: bool) {
    if as_json {
        out!("{:#}", document(look, proven, verified));
    } else {
        report(context, look, proven, verified).await;
    }
}

fn document(look: &Look, proven: &Proven, verified: &VerifiedRun) -> Value {
    let job = &look.desired.job;
    let until = verified.at().checked_add(job.gate.max_age).ok().map(|until| format!("{until:.0}"));
    json!({
        "deploy": FORMAT, "job": job.name, "task": proven.task().arn, "proven": true, "ending": null,
        "message": "the run is proven", "hints": [], "report": proven.report(),
        "receipt": { "parameter": look.desired.receipt_parameter, "counts_until": until, "path": verified.path() },
    })
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
    if verified.path() == Path::Scheduler {
        out!("  path      by Scheduler as {}: proven until role, target or Input move", look.desired.role.name);
    }
    out!();
    let unproven = match verified.path() {
        Path::Direct => {
            let says = "the scheduled path is unproven: this run had your rights, not those of the scheduler's role";
            look.scheduled_path_note(context, says).await
        }
        Path::Scheduler => None,
    };
    if let Some(note) = &unproven {
        out!("note: {note}");
    }
    let is_off = look.live.schedule.present().is_some_and(|schedule| schedule.state() == State::Disabled);
    if unproven.is_some() && job.gate.path == Path::Scheduler {
        out!("next: {} trigger-now --via-scheduler: gate.path = \"scheduler\" asks for it", context.program);
    } else if is_off {
        out!("next: {} enable", context.program);
    }
}
