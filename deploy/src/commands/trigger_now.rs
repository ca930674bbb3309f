//! `deploy trigger-now`: run the job once with the schedule's own Input, and keep the receipt if it proves itself.

use clap::Args;

use super::Context;
use super::attempt::Attempt;
use super::look::Look;
use super::tasks_of_job::{occurrence, running, started_by};
use super::verdict::Verdict;
use super::watched::{self, Waiting, aws_command, say_how_to_attach, say_started, unknown_start};
use super::{path_record, verdict, via_scheduler};
use crate::cloud::Answer;
use crate::exit::{Exit, Stop};
use crate::interrupt::Interrupt;
use crate::model::run_task::{Run, Starter};
use crate::model::task::Task;
use crate::plan::Wish;
use crate::receipt::Path;
use crate::run::ending::Ending;
use crate::run::judge::Proven;
use crate::run::scheduled::OneOff;
use crate::run::start::{ROLE_PROPAGATION, start};

/// How a person says it again.
const VERB: &str = "trigger-now";

/// The flags of `deploy trigger-now`.
#[derive(Debug, Args)]
pub struct TriggerNowArgs {
    #[command(flatten)]
    waiting: Waiting,
    /// Print one JSON document on stdout in place of the text
    #[arg(long, conflicts_with = "print_aws_cli")]
    json: bool,
    /// Let Scheduler start it, under its own role, by a schedule that fires once: this proves the whole way
    #[arg(long, conflicts_with_all = ["print_aws_cli", "no_wait"])]
    via_scheduler: bool,
    /// Print the run as an `aws` command, and start nothing
    #[arg(long)]
    print_aws_cli: bool,
}

impl TriggerNowArgs {
    /// A program waits for its document whatever happens.
    pub fn tell(&self, error: &anyhow::Error) {
        if self.json {
            verdict::failed(error);
        }
    }
}

/// Carries the verb out.
pub async fn run(context: &Context, args: TriggerNowArgs) -> anyhow::Result<Exit> {
    let verdict = Verdict::new(context, if args.via_scheduler { via_scheduler::VERB } else { VERB }, args.json);
    verdict.end(carry_out(context, &args, &verdict).await)
}

async fn carry_out(context: &Context, args: &TriggerNowArgs, verdict: &Verdict<'_>) -> anyhow::Result<Exit> {
    let look = Look::at(context, &Wish::default()).await?;
    let scheduled = look.scheduled_run(context)?;
    let run = scheduled.manual(occurrence());
    if args.print_aws_cli {
        out!("{}", aws_command(&run, &look.desired.region));
        return Ok(Exit::Done);
    }
    look.refuse_unless_settled(context, "trigger-now")?;
    refuse_while_one_runs(context, &run).await?;
    // From here on something may be begun, and a signal is answered with what became of it.
    let interrupt = Interrupt::listen();
    if args.via_scheduler {
        path_record::keep_scheduled(context, &look).await;
        return via_scheduler::run(context, &look, &scheduled, args.waiting.timeout, verdict).await;
    }
    let one_off = OneOff::new(&context.aws, look.schedule(context)?, &scheduled);
    via_scheduler::refuse_while_awaited(context, &one_off, VERB).await?;
    path_record::keep_scheduled(context, &look).await;
    if interrupt.came() {
        return Err(verdict.not_begun(&Ending::Interrupted).into());
    }
    let attempt = Attempt::begin(context, &look, VERB, Path::Direct).await?;
    let started = start(&context.aws, &run, ROLE_PROPAGATION).await.map_err(|error| unknown_start(context, error))?;
    let judged = match started {
        Ok(task) => {
            say_started(&task, &run);
            verdict.is_of(&task.arn);
            if args.waiting.no_wait {
                attempt.unwatched().await?;
                verdict.left();
                say_how_to_attach(context, &task);
                err!("note: a run that is not watched proves nothing, and no earlier one counts any more");
                return Ok(Exit::Done);
            }
            let judged = watched::to_its_end(context, &look, &run, task, args.waiting.timeout).await;
            alone(context, &run, judged).await
        }
        Err(ending) => Err(ending),
    };
    match judged {
        Ok(proven) => {
            let kept = attempt.proven(Path::Direct, &proven).await;
            let verified = kept.map_err(|error| verdict.not_kept(&proven, error))?;
            verdict.proven(&look, &proven, &verified).await;
            Ok(Exit::Done)
        }
        Err(ending) => {
            let newest = attempt.ended(&ending).await;
            Err(verdict.not_proven(&ending, newest).into())
        }
    }
}

/// What was started while this run was under way, by the schedule, by another operator or by what a killed `trigger-now` left behind,
/// was refused by nobody. What an operator runs with other arguments is none of it: it may be a look at the ledger.
pub async fn alone(context: &Context, run: &Run, judged: Result<Proven, Ending>) -> Result<Proven, Ending> {
    let proven = judged?;
    match beside(context, run, proven.task()).await {
        Ok(None) => Ok(proven),
        Ok(Some((starter, task))) => Err(Ending::Beside { task, started: started_by(starter) }),
        Err(error) => Err(Ending::BesideNotSeen(error)),
    }
}

/// A task of the job that runs, or ran for a part of the time of this one.
async fn beside(context: &Context, run: &Run, own: &Task) -> Answer<Option<(Starter, String)>> {
    let task = run.task();
    let running = running(context, &task.cluster, &task.job).await?;
    let is_other = |starter: Starter, arn: &str| starter != Starter::Run && arn != own.arn;
    if let Some(found) = running.into_iter().find(|(starter, arn)| is_other(*starter, arn)) {
        return Ok(Some(found));
    }
    let stopped = context.aws.stopped_tasks(&task.cluster, task.task_definition.family()).await?;
    Ok(stopped.into_iter().filter(|other| other.ran_beside(own)).find_map(|other| {
        let starter = Starter::of(other.started_by.as_deref()?, &task.job)?;
        is_other(starter, &other.arn).then_some((starter, other.arn))
    }))
}

/// Two runs of one job at once prove nothing about either.
pub async fn refuse_while_one_runs(context: &Context, run: &Run) -> anyhow::Result<()> {
    let task = run.task();
    let running = running(context, &task.cluster, &task.job).await?;
    let Some((starter, arn)) = running.first() else { return Ok(()) };
    let id = arn.rsplit('/').next().unwrap_or(arn);
    let what = format!("a task of {} is running already: {arn}, started {}", task.job, started_by(*starter));
    let hint = format!(
        "wait until it has stopped: {0} attach {id}\nor end it: {0} stop {id}\nthen: {0} trigger-now",
        context.program
    );
    Err(Stop::refused(what, hint).into())
}
