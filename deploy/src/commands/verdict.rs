//! What `trigger-now` says in the end: for a person, or as one JSON document, `trigger-now/1`. Members may be added to it; what is
//! there keeps its name and meaning.

use std::cell::{Cell, RefCell};
use std::time::Duration;

use serde_json::{Value, json};

use super::Context;
use super::attempt::Newest;
use super::look::{Look, minute};
use crate::exit::{Exit, Stop};
use crate::explain;
use crate::model::State;
use crate::receipt::{Path, VerifiedRun};
use crate::run::ending::{Ending, humantime};
use crate::run::judge::Proven;

const FORMAT: &str = "trigger-now/1";

/// Where the end of a run is told: as text for a person, or as exactly one document for a program.
pub struct Verdict<'a> {
    context: &'a Context,
    /// How a person says it again.
    verb: &'static str,
    as_json: bool,
    task: RefCell<Option<String>>,
    told: Cell<bool>,
}

impl<'a> Verdict<'a> {
    /// Of a run that is begun by `verb`.
    pub fn new(context: &'a Context, verb: &'static str, as_json: bool) -> Verdict<'a> {
        Verdict { context, verb, as_json, task: RefCell::new(None), told: Cell::new(false) }
    }

    /// Its task is there.
    pub fn is_of(&self, task: &str) {
        self.task.replace(Some(task.to_owned()));
    }

    /// The end of a run that proves nothing, as an error with its way out.
    pub fn not_proven(&self, ending: &Ending, standing: Newest) -> Stop {
        let then = match (ending.goes_on(), standing) {
            (_, Newest::Overtaken) => {
                "another run was begun meanwhile, and what that one proves counts; to prove the job again"
            }
            (Some(_), Newest::This) => "only a run that is watched to its end counts; when the task has stopped",
            (None, Newest::This) => "no run counts until one is proven",
        };
        self.ended(ending, then)
    }

    /// The same of a run that was not begun: what counted before counts still.
    pub fn not_begun(&self, ending: &Ending) -> Stop {
        self.ended(ending, "nothing was started, and the receipt is as it was; then")
    }

    fn ended(&self, ending: &Ending, then: &str) -> Stop {
        let program = &self.context.program;
        let log = match (self.task.borrow().as_deref(), ending) {
            (Some(task), Ending::Failed { .. } | Ending::NoReport | Ending::UnreadableReport { .. }) => {
                format!("\nits log: {program} logs {}", task.rsplit('/').next().unwrap_or(task))
            }
            _ => String::new(),
        };
        let hint = format!("{}{log}\n{then}: {program} {}", ending.hint(program), self.verb);
        self.tell(json!({ "ending": ending.name(), "message": ending.to_string(), "hints": lines(&hint) }));
        Stop { exit: Exit::NotProven, what: format!("the run is not proven: {ending}"), hint }
    }

    /// A run that nobody waits for.
    pub fn left(&self) {
        self.tell(json!({ "message": "not waited for" }));
    }

    /// Tells of a proven run.
    pub async fn proven(&self, look: &Look, proven: &Proven, verified: &VerifiedRun) {
        if !self.as_json {
            return report(self.context, look, proven, verified).await;
        }
        let until = verified.at().checked_add(look.desired.job.gate.max_age).ok().map(|until| format!("{until:.0}"));
        let name = &look.desired.receipt_parameter;
        let receipt = json!({ "parameter": name, "counts_until": until, "path": verified.path() });
        let message = "the run is proven";
        self.tell(json!({ "proven": true, "message": message, "report": proven.report(), "receipt": receipt }));
    }

    /// A run that is proven, and whose receipt was not kept. The verdict is the news; that it will not count comes after it.
    pub fn not_kept(&self, proven: &Proven, error: anyhow::Error) -> anyhow::Error {
        let stop = error.downcast::<Stop>().unwrap_or_else(|error| {
            let (_, hint) = explain::way_out(&error);
            let again = format!("then prove the job again: {} {}", self.context.program, self.verb);
            Stop::failed(format!("{error:#}"), format!("{hint}\n{again}"))
        });
        let what = "its receipt is missing, and without one `enable` will refuse";
        if !self.as_json {
            out!("{}: the run is proven: {}", self.context.job.name, proven.task().arn);
        }
        let message = format!("the run is proven, and {what}: {stop}");
        let (hints, report) = (lines(&stop.hint), proven.report());
        self.tell(json!({ "proven": true, "message": message, "hints": hints, "report": report }));
        anyhow::Error::new(stop).context(what)
    }

    /// However the verb ended: what has not been told is told now.
    pub fn end(&self, ended: anyhow::Result<Exit>) -> anyhow::Result<Exit> {
        ended.inspect_err(|error| self.tell(of_error(error)))
    }

    fn tell(&self, members: Value) {
        if self.as_json && !self.told.replace(true) {
            print(Some(&self.context.job.name), self.task.borrow().as_deref(), members);
        }
    }
}

/// The document of a verb that did not even come to its job.
pub fn failed(error: &anyhow::Error) {
    print(None, None, of_error(error));
}

fn of_error(error: &anyhow::Error) -> Value {
    json!({ "message": format!("{error:#}"), "hints": lines(&explain::way_out(error).1) })
}

/// The same members whatever happened.
fn print(job: Option<&str>, task: Option<&str>, members: Value) {
    let mut document = json!({
        "deploy": FORMAT, "job": job, "task": task, "proven": false, "ending": null, "message": null, "hints": [],
        "report": null, "receipt": null,
    });
    for (name, value) in members.as_object().into_iter().flatten() {
        document[name] = value.clone();
    }
    out!("{document:#}");
}

fn lines(hint: &str) -> Vec<&str> {
    hint.lines().collect()
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
