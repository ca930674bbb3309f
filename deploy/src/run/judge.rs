//! Did the run prove that the schedule works?
//!
//! Exit code 0 alone proves little: a run that was skipped ends with it, so does one whose command was dropped on the way, and so
//! may a side container. Proven is a run whose named container exited 0, whose task was the one that the Input asks for, and
//! which reported rows. Everything else is one of the [`Ending`]s.
//!
//! Architecture invariant: pure; no SDK, no clock. A [`Proven`] is made nowhere else.

use geuneul::{FLAG_PREFIX, Outcome, RunReport, Trigger, outcomes_of};
use jiff::Timestamp;

use super::ending::Ending;
use super::readable::quoted;
use crate::config::Proof;
use crate::model::run_task::{Launch, OCCURRENCE_VARIABLE, Run};
use crate::model::task::{Container, Task};

/// What the log stream of the task's container held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Report {
    /// Its last report.
    Found(Box<RunReport>),
    /// A line that claims to be one and cannot be read.
    Unreadable(String),
    /// No such line.
    Missing,
    /// The stream could not be read.
    NotRead(String),
}

/// A run that proved itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Proven {
    task: Task,
    image_digest: Option<String>,
    report: Option<Box<RunReport>>,
}

impl Proven {
    /// The task.
    pub fn task(&self) -> &Task {
        &self.task
    }

    /// The digest of the image that ran, when AWS tells it.
    pub fn image_digest(&self) -> Option<&str> {
        self.image_digest.as_deref()
    }

    /// What the run said about itself, when that was asked for.
    pub fn report(&self) -> Option<&RunReport> {
        self.report.as_deref()
    }
}

/// Judges a task that has stopped.
pub fn judge(asked: &Run, task: &Task, report: &Report, proof: Proof) -> Result<Proven, Ending> {
    let (container, code) = as_asked(asked, task)?;
    if code != 0 {
        return Err(failed(task, container, code, report, proof));
    }
    let report = match proof {
        Proof::ExitCode => None,
        Proof::RunReport => Some(succeeded_with_rows(asked, task, report)?),
    };
    Ok(Proven { task: task.clone(), image_digest: container.image_digest.clone(), report })
}

/// The job's container and its exit code, when the task was the one that was asked for and ended by itself.
pub fn as_asked<'a>(asked: &Run, task: &'a Task) -> Result<(&'a Container, i32), Ending> {
    let (container, code) = by_itself(task, &asked.task().container)?;
    // Before the exit code: a job whose command was dropped fails too, and the dropped command is what to repair.
    filled_in(task, code)?;
    let differences = differences(asked, task);
    if !differences.is_empty() {
        return Err(Ending::NotAsAsked { exit_code: code, differences });
    }
    Ok((container, code))
}

/// Whether a task whose request is not known ended by itself and with 0.
pub fn ended_with_0(task: &Task, name: &str) -> Result<(), Ending> {
    match by_itself(task, name)? {
        (_, 0) => Ok(()),
        // What a code means is known of the schedule's command only.
        (container, code) => Err(failed(task, container, code, &Report::Missing, Proof::ExitCode)),
    }
}

fn by_itself<'a>(task: &'a Task, name: &str) -> Result<(&'a Container, i32), Ending> {
    let container = task.container(name).ok_or_else(|| no_exit_code(task, name, None))?;
    let code = container.exit_code.ok_or_else(|| no_exit_code(task, name, Some(container)))?;
    match task.stop_code.as_deref() {
        Some("UserInitiated") => return Err(Ending::StoppedByPerson { reason: reason(task, None) }),
        Some(stop @ ("SpotInterruption" | "TerminationNotice")) => {
            return Err(Ending::TakenAway { stop_code: stop.to_owned(), reason: reason(task, None) });
        }
        _ => {}
    }
    Ok((container, code))
}

fn no_exit_code(task: &Task, name: &str, container: Option<&Container>) -> Ending {
    let reason = reason(task, container);
    match task.stop_code.as_deref() {
        Some("UserInitiated") => Ending::StoppedByPerson { reason },
        Some(stop @ ("SpotInterruption" | "TerminationNotice")) => {
            Ending::TakenAway { stop_code: stop.to_owned(), reason }
        }
        Some("TaskFailedToStart") => Ending::NeverStarted { reason },
        stop => Ending::NoExitCode { container: name.to_owned(), stop_code: stop.map(str::to_owned), reason },
    }
}

fn failed(task: &Task, container: &Container, code: i32, report: &Report, proof: Proof) -> Ending {
    if let Some(reason) = container.reason.as_ref().filter(|reason| reason.starts_with("OutOfMemory")) {
        return Ending::OutOfMemory { exit_code: code, reason: reason.clone() };
    }
    let said = match report {
        // Another outcome's code: the report is not of this end (the process was killed after it had printed).
        Report::Found(report) if i32::from(report.outcome.exit_code()) == code => Some(report),
        _ => None,
    };
    if let Some(withheld) = said.and_then(|report| report.withheld.as_ref()) {
        return Ending::Withheld { deactivations: withheld.deactivations, reason: withheld.reason };
    }
    // A container that was killed may have been so because another one, which is essential, ended by itself.
    let others = task.containers.iter().filter(|other| code > 128 && other.name != container.name);
    let ended = |code: &i32| (1..=128).contains(code);
    let others = others.filter_map(|other| Some((&other.name, other.exit_code.filter(ended)?)));
    Ending::Failed {
        container: container.name.clone(),
        exit_code: code,
        // What a code means is known of `ingest` only, and a job that is to report is one.
        outcomes: match (said, proof) {
            (Some(report), _) => vec![report.outcome],
            (None, Proof::RunReport) => outcomes_of(code),
            (None, Proof::ExitCode) => Vec::new(),
        },
        error: said.and_then(|report| report.error.as_ref()).map(|error| quoted(&error.message)),
        others: others.map(|(name, code)| format!("{name} {code}")).collect(),
    }
}

/// How far outside the life of its task a report may claim to have begun: the clocks of ECS and of the container may differ.
const SKEW_S: i64 = 60;

/// Why a report is no news of this run, whatever it says: a line that was printed last month, or that is printed every time.
fn of_another_run(asked: &Run, task: &Task, report: &RunReport) -> Option<String> {
    let sent = asked.environment().remove(OCCURRENCE_VARIABLE).unwrap_or_default();
    if let Some(said) = report.occurrence.as_ref().filter(|said| **said != sent) {
        return Some(format!("it is of occurrence {said}, and this one is {sent}"));
    }
    let (said, shown) =
        (&report.started_at, |at: i64| Timestamp::from_second(at).map_or_else(|_| at.to_string(), |at| at.to_string()));
    let Some(started) = said.parse::<Timestamp>().map(Timestamp::as_second).ok() else {
        return Some(format!("it started at {said}, which is no time"));
    };
    match (task.created_at, task.stopped_at) {
        (None, _) => Some(format!("it started at {said}, and when the task was made is not known")),
        (Some(made), _) if started < made - SKEW_S => {
            Some(format!("it started at {said}, the task was made at {}", shown(made)))
        }
        (_, Some(stopped)) if started > stopped + SKEW_S => {
            Some(format!("it started at {said}, the task stopped at {}", shown(stopped)))
        }
        _ => None,
    }
}

fn succeeded_with_rows(asked: &Run, task: &Task, report: &Report) -> Result<Box<RunReport>, Ending> {
    let report = match report {
        Report::Found(report) => report,
        Report::Unreadable(why) => return Err(Ending::UnreadableReport { why: why.clone() }),
        Report::Missing => return Err(Ending::NoReport),
        Report::NotRead(why) => return Err(Ending::LogNotRead { why: why.clone() }),
    };
    match report.outcome {
        Outcome::Succeeded => {}
        Outcome::Skipped => {
            let holder = report.skip.as_ref().and_then(|skip| skip.holder_run_id.as_ref());
            return Err(Ending::Skipped { holder: holder.map(ToString::to_string) });
        }
        outcome => return Err(Ending::Unsuccessful { outcome }),
    }
    if report.trigger != asked.trigger() {
        let starter = if asked.trigger() == Trigger::Manual { "a person" } else { "the schedule" };
        let why = format!("it says trigger={}, and this run was started by {starter}", report.trigger);
        return Err(Ending::UnreadableReport { why });
    }
    if let Some(why) = of_another_run(asked, task, report) {
        return Err(Ending::OfAnotherRun { why });
    }
    if !report.adds_up() {
        return Err(Ending::UnreadableReport { why: "its counts do not add up".to_owned() });
    }
    if report.fetched == 0 {
        return Err(Ending::NoRows);
    }
    if report.upserted == 0 && report.unchanged == 0 {
        return Err(Ending::AllRejected { rejected: report.rejected });
    }
    let deactivates = |argument: &String| *argument == format!("{FLAG_PREFIX}deactivate-stale=true");
    if !report.complete && asked.task().command.iter().any(deactivates) {
        return Err(Ending::Incomplete);
    }
    Ok(report.clone())
}

fn reason(task: &Task, container: Option<&Container>) -> String {
    let mut words: Vec<&str> = Vec::new();
    let container = container.and_then(|container| container.reason.as_deref());
    for text in [task.stopped_reason.as_deref(), container].into_iter().flatten() {
        if !text.is_empty() && !words.contains(&text) {
            words.push(text);
        }
    }
    if words.is_empty() { "AWS gives no reason".to_owned() } else { words.join("; ") }
}

/// Whether Scheduler replaced every placeholder. This needs no request to compare with.
pub fn filled_in(task: &Task, exit_code: i32) -> Result<(), Ending> {
    match not_replaced(task) {
        places if places.is_empty() => Ok(()),
        places => Err(Ending::NotReplaced { exit_code, places }),
    }
}

/// Where the task holds a placeholder of Scheduler's as it is. No request of ours asks for one.
fn not_replaced(task: &Task) -> Vec<String> {
    let literal = |text: &str| text.contains("<aws.scheduler.");
    let mut places = Vec::new();
    places.extend(task.started_by.as_deref().filter(|text| literal(text)).map(|_| "startedBy".to_owned()));
    for container in &task.overrides {
        places.extend(container.command.iter().find(|text| literal(text)).map(|_| "the command".to_owned()));
        let variables = container.environment.iter().filter(|(_, value)| literal(value));
        places.extend(variables.map(|(name, _)| format!("variable {name}")));
    }
    places
}

/// Where the task is not the one that was asked for. AWS does not show security groups and public addresses of a task.
fn differences(asked: &Run, task: &Task) -> Vec<String> {
    let wanted = asked.task();
    let mut found = Vec::new();
    let mut compare = |what: &str, is: Option<&str>, wanted: &str| {
        if is != Some(wanted) {
            found.push(format!("{what} is {}, asked for {wanted}", is.unwrap_or("not set")));
        }
    };
    compare("task definition", Some(&task.task_definition), wanted.task_definition.arn());
    compare("startedBy", task.started_by.as_deref(), asked.started_by());
    match &wanted.launch {
        Launch::Fargate => compare("launch type", task.launch_type.as_deref(), "FARGATE"),
        Launch::CapacityProviders(strategy) => {
            let is = task.capacity_provider.as_deref();
            let names = strategy.iter().map(|provider| provider.name.as_str());
            let one = names.clone().find(|name| is == Some(*name));
            compare("capacity provider", is, one.unwrap_or(&names.collect::<Vec<_>>().join(" or ")));
        }
    }
    if let Some(version) = wanted.platform_version.as_deref().filter(|version| *version != "LATEST") {
        compare("platform version", task.platform_version.as_deref(), version);
    }
    let short = |cluster: &str| cluster.rsplit('/').next().unwrap_or(cluster).to_owned();
    compare("cluster", Some(&short(&task.cluster)), &short(&wanted.cluster));

    let overridden = task.overrides.iter().find(|overridden| overridden.name == wanted.container);
    let nothing = Default::default();
    let overridden = overridden.unwrap_or(&nothing);
    if overridden.command != wanted.command {
        found.push(format!("command is {:?}, asked for {:?}", overridden.command, wanted.command));
    }
    // Values stay unsaid: a variable may hold something that nobody wants in a log.
    let environment = asked.environment();
    for (name, value) in &environment {
        match overridden.environment.get(name) {
            Some(is) if is == value => {}
            Some(_) => found.push(format!("variable {name} has another value")),
            None => found.push(format!("variable {name} is missing")),
        }
    }
    found.extend(
        overridden
            .environment
            .keys()
            .filter(|name| !environment.contains_key(*name))
            .map(|name| format!("variable {name} was not asked for")),
    );
    for other in task.overrides.iter().filter(|other| other.name != wanted.container) {
        if !other.command.is_empty() || !other.environment.is_empty() {
            found.push(format!("container {} is overridden, which was not asked for", other.name));
        }
    }
    match &task.subnet {
        Some(subnet) if wanted.network.subnets.contains(subnet) => {}
        Some(subnet) => found.push(format!("subnet is {subnet}, which was not asked for")),
        None => found.push("no subnet is shown".to_owned()),
    }
    found
}

#[cfg(test)]
mod tests;
