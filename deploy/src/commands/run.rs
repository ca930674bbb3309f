//! `deploy run -- ARGS`: the schedule's container, network and secrets with other arguments.
//!
//! The database is private, and so whatever is to be seen or done in it is done from inside: `status`, a dry run, a confirmed
//! deactivation, a backfill.
//!
//! Architecture invariant: no receipt is read or written here. What was run is not what the schedule runs.

use clap::Args;
use geuneul::{FLAG_PREFIX, Trigger};

use super::Context;
use super::tasks_of_job::{log_of, occurrence, refuse_elsewhere, scheduled_run};
use super::watched::{Waiting, aws_command, look_back, say_how_to_attach, say_started, unknown_start};
use crate::exit::{Exit, Stop};
use crate::model::run_task::Run;
use crate::run::ending::Ending;
use crate::run::follow::{UNKNOWN_FOR, Watch, Watched, follow};
use crate::run::judge::{Report, as_asked};
use crate::run::progress::Lines;
use crate::run::start::{ROLE_PROPAGATION, start};

/// The flags of `deploy run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    #[command(flatten)]
    waiting: Waiting,
    /// Print the run as an `aws` command, and start nothing
    #[arg(long)]
    print_aws_cli: bool,
    /// What the container is given in place of the schedule's command
    #[arg(last = true, required = true, value_name = "ARGS")]
    command: Vec<String>,
}

/// Carries the verb out.
pub async fn run(context: &Context, args: RunArgs) -> anyhow::Result<Exit> {
    refuse_the_schedules_name(&args.command)?;
    let desired = context.desired();
    let ((), run_task) = tokio::try_join!(refuse_elsewhere(context, &desired), scheduled_run(context, &desired))?;
    let run_task = run_task.with_command(args.command).map_err(|error| {
        Stop::usage(format!("ECS would not take these arguments: {error}"), "say fewer or other ones behind the --")
    })?;
    let run = run_task.by_operator(occurrence());
    if args.print_aws_cli {
        out!("{}", aws_command(&run, &desired.region));
        return Ok(Exit::Done);
    }
    let parts = run.task();
    // Before anything is started: the lines are what this is for.
    let log = log_of(context, parts.task_definition.arn(), &parts.container).await?;
    let log = log.map_err(|error| Stop::refused(format!("nothing of it could be shown: {error}"), error.hint()))?;
    let task = match start(&context.aws, &run, ROLE_PROPAGATION).await.map_err(|error| unknown_start(context, error))? {
        Ok(task) => task,
        Err(ending) => return Err(not_run(context, &ending).into()),
    };
    say_started(&task, &run);
    if args.waiting.no_wait {
        say_how_to_attach(context, &task);
        return Ok(Exit::Done);
    }
    let watch = Watch {
        aws: &context.aws,
        cluster: &parts.cluster,
        container: &parts.container,
        stream: Ok(log.of_task(task.id())),
        awaits_report: false,
        timeout: args.waiting.timeout,
        patience: UNKNOWN_FOR,
        lines: Lines::Data,
    };
    let watched = follow(watch, task).await.map_err(|ending| not_run(context, &ending))?;
    end(context, &run, &watched)
}

/// `status` and the gate believe of a run that calls itself scheduled that the schedule started it.
fn refuse_the_schedules_name(command: &[String]) -> Result<(), Stop> {
    let flag = format!("{FLAG_PREFIX}trigger=");
    let word = command.iter().find_map(|argument| argument.strip_prefix(&flag));
    match word.map(|word| word.trim().parse()) {
        Some(Ok(Trigger::Scheduled)) => Err(Stop::usage(
            format!(
                "{flag}{} is said by the schedule alone: a run that you start is not one of its runs",
                Trigger::Scheduled
            ),
            format!("leave it out, or say {flag}{} to catch up on a month that was missed", Trigger::Backfill),
        )),
        _ => Ok(()),
    }
}

/// The container's own code, when it ran what it was asked to.
fn end(context: &Context, run: &Run, watched: &Watched) -> anyhow::Result<Exit> {
    let code = watched.task.container(&run.task().container).and_then(|container| container.exit_code);
    if let (Report::NotRead(why), Some(code)) = (&watched.report, code) {
        let what = format!("it ended with exit code {code}, and its lines could not be read: {why}");
        return Err(Stop::failed(what, Ending::LogNotRead { why: why.clone() }.hint(&context.program)).into());
    }
    match (as_asked(run, &watched.task), code) {
        (Ok((_, 0)), _) => Ok(Exit::Done),
        (Ok((container, code)), _) => {
            let reason = container.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
            err!("container {} ended with exit code {code}{reason}", container.name);
            Ok(Exit::Container(code))
        }
        // It was ended, and has a code of that.
        (Err(ending @ (Ending::StoppedByPerson { .. } | Ending::TakenAway { .. })), Some(code)) => {
            err!("{ending} (exit code {code})");
            Ok(Exit::Container(code))
        }
        (Err(ending), _) => {
            look_back(watched);
            Err(not_run(context, &ending).into())
        }
    }
}

fn not_run(context: &Context, ending: &Ending) -> Stop {
    let what = match ending.goes_on() {
        Some(_) => format!("its end was not seen: {ending}"),
        None => ending.to_string(),
    };
    Stop::failed(what, ending.hint(&context.program))
}
