//! `deploy trigger-now --via-scheduler`: the same run, started by Scheduler under its role, so that the whole way is proven.

use std::time::Duration;

use jiff::Timestamp;

use super::Context;
use super::attempt::Attempt;
use super::look::Look;
use super::{path_record, verdict, verify, watched};
use crate::cloud::{Answer, CloudError};
use crate::exit::{Exit, Stop};
use crate::model::run_task::RunTask;
use crate::one_off::Found;
use crate::plan::Wish;
use crate::receipt::Path;
use crate::run::ending::{Ending, Way};
use crate::run::judge::Proven;
use crate::run::readable::readable;
use crate::run::scheduled::{NotStarted, OneOff};
use crate::verify::{Check, Verdict, checks, dead_letter_queue};

/// How a person says it again.
const VERB: &str = "trigger-now --via-scheduler";

/// From the one-off schedule to the receipt.
pub async fn run(
    context: &Context,
    look: &Look,
    task: &RunTask,
    timeout: Duration,
    json: bool,
) -> anyhow::Result<Exit> {
    let one_off = OneOff::new(&context.aws, look.schedule(context)?, task);
    if one_off.clear().await? == Some(Found::Awaited) {
        let what = format!("the one-off schedule {} is still to fire: somebody waits for it", one_off.full_name());
        let hint =
            format!("when that run has ended; if it was killed, in three minutes at most: {} {VERB}", context.program);
        return Err(Stop::refused(what, hint).into());
    }
    let attempt = Attempt::begin(context, look, Path::Scheduler).await?;
    match start_and_watch(context, look, &one_off, timeout).await? {
        Ok(proven) => {
            let recorded = path_record::keep_proven(context, look, attempt.fingerprint(), &proven).await;
            let verified = attempt.proven(Path::Scheduler, &proven).await?;
            verdict::proven(context, look, &proven, &verified, json).await;
            let what = "the run is proven, and that the scheduled path is could not be recorded";
            recorded.map_err(|error| error.context(what)).map(|()| Exit::Done)
        }
        Err(Unproven::Ended { task, ending }) => {
            attempt.ended(&ending).await;
            Err(verdict::not_proven(context, VERB, task.as_deref(), &ending, json).into())
        }
        Err(Unproven::Refused(error)) => {
            attempt.ended(&Ending::NothingStarted { seen: error.to_string(), way: Way::NotGone }).await;
            Err(error.into())
        }
    }
}

/// Why there is no proof.
enum Unproven {
    /// The run ended otherwise, or there was none.
    Ended { task: Option<String>, ending: Ending },
    /// AWS did not take the one-off schedule.
    Refused(CloudError),
}

async fn start_and_watch(
    context: &Context,
    look: &Look,
    one_off: &OneOff<'_>,
    timeout: Duration,
) -> anyhow::Result<Result<Proven, Unproven>> {
    let ending = match one_off.start().await? {
        Ok((run, task)) => {
            err!("Scheduler started {} of {}", task.arn, run.task().task_definition.family_and_revision());
            let arn = task.arn.clone();
            let ended = watched::to_its_end(context, look, &run, task, timeout).await;
            return Ok(ended.map_err(|ending| Unproven::Ended { task: Some(arn), ending }));
        }
        Err(NotStarted::Interrupted) => Ending::Interrupted,
        Err(NotStarted::Detached(task)) => {
            err!("Scheduler started {} all the same", task.arn);
            let ending = Ending::Detached { task: task.id().to_owned() };
            return Ok(Err(Unproven::Ended { task: Some(task.arn), ending }));
        }
        Err(NotStarted::Refused(error)) => return Ok(Err(Unproven::Refused(error))),
        Err(NotStarted::Nothing { seen, fired: None }) => Ending::NothingStarted { seen, way: Way::NotGone },
        Err(NotStarted::Nothing { seen, fired: Some(due) }) => {
            Ending::NothingStarted { seen, way: explain(context, look, one_off, due).await }
        }
    };
    Ok(Err(Unproven::Ended { task: None, ending }))
}

/// What stands between Scheduler and a task, as far as it can be read: in the world as it is now, not as it was before the run.
async fn explain(context: &Context, look: &Look, one_off: &OneOff<'_>, due: Timestamp) -> Way {
    err!("what stands between Scheduler and the task:");
    let (checks, told) = tokio::join!(causes(context), told(context, look, one_off, due));
    let mut way = Way::InOrder;
    if let Ok(Some(told)) = &told {
        way = Way::Wrong;
        err!("  told      Scheduler, by AWS: {told}");
    }
    match checks {
        Ok(checks) => {
            let any = |verdict| checks.iter().any(|check: &Check| check.verdict == verdict);
            for Check { branch, name, verdict, found, .. } in &checks {
                match verdict {
                    Verdict::Ng => err!("  wrong     {branch}: {name}: {found}"),
                    Verdict::Hidden => err!("  not seen  {branch}: {name}: {found}"),
                    Verdict::Ok | Verdict::Skip => {}
                }
            }
            if any(Verdict::Ng) {
                way = Way::Wrong;
            } else {
                let seen = if any(Verdict::Hidden) { ", as far as they were seen" } else { "" };
                err!("  in order  cluster, revision, roles, trust and policies are as they should be{seen}");
            }
        }
        Err(error) => err!("  not seen  {error:#}"),
    }
    if way == Way::InOrder {
        err!(
            "  likely    RunTask answered 200 with `failures` and no task, such as a lack of capacity: a success to Scheduler"
        );
    }
    match told {
        Ok(Some(_)) => {}
        Ok(None) if look.live.schedule.present().and_then(dead_letter_queue).is_some() => {
            err!("  queue     nothing of this run is in the schedule's dead-letter queue");
        }
        Ok(None) => err!("  queue     none: with `dead_letter_queue` in deploy.toml, what Scheduler is told is kept"),
        Err(error) => err!("  not seen  dead-letter queue: {error}"),
    }
    err!("  trail     each RunTask and its answer, some minutes later:");
    err!(
        "            aws cloudtrail lookup-events --region {} --start-time {due:.0} \
         --lookup-attributes AttributeKey=EventName,AttributeValue=RunTask",
        look.desired.region
    );
    way
}

/// What Scheduler kept of it, when the schedule has a queue for that.
async fn told(context: &Context, look: &Look, one_off: &OneOff<'_>, due: Timestamp) -> Answer<Option<String>> {
    let Some(queue) = look.live.schedule.present().and_then(dead_letter_queue) else { return Ok(None) };
    let letters = context.aws.dead_letters(queue).await?;
    // Scheduler may write the minute in place of the second.
    let from = due.checked_sub(Duration::from_secs(60)).unwrap_or(due);
    let ours = letters.into_iter().find(|letter| letter.is_of(&one_off.full_name(), from));
    Ok(ours.map(|letter| readable(&letter.error)))
}

/// What `verify` says of everything that it takes until a task is started.
async fn causes(context: &Context) -> anyhow::Result<Vec<Check>> {
    let look = Look::at(context, &Wish::default()).await?;
    let facts = verify::gather(context, &look).await?;
    let mut checks = checks(&look.desired, &look.live, &look.plan, &facts);
    let on_the_way = ["cluster", "task definition", "roles of the task", "scheduler's role", "schedule"];
    checks.retain(|check| on_the_way.contains(&check.branch));
    Ok(checks)
}
