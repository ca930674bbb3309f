//! `deploy trigger-now --via-scheduler`: the same run, started by Scheduler under its role, so that the whole way is proven.

use std::time::Duration;

use jiff::Timestamp;

use super::Context;
use super::attempt::{self, Attempt};
use super::look::Look;
use super::trigger_now::alone;
use super::verdict::Verdict;
use super::{path_record, verify, watched};
use crate::cloud::{Answer, ErrorKind};
use crate::desired::SCHEDULER_POLICY_NAME;
use crate::exit::{Exit, Stop};
use crate::explain;
use crate::model::run_task::RunTask;
use crate::one_off::{self, Found};
use crate::plan::Wish;
use crate::receipt::Path;
use crate::run::ending::{Ending, Way};
use crate::run::judge::Proven;
use crate::run::readable::readable;
use crate::run::scheduled::{Made, NotStarted, OneOff};
use crate::verify::{self as checked, Check, checks, dead_letter_queue};

/// How a person says it again.
pub(super) const VERB: &str = "trigger-now --via-scheduler";

/// From the one-off schedule to the receipt.
pub async fn run(
    context: &Context,
    look: &Look,
    task: &RunTask,
    timeout: Duration,
    verdict: &Verdict<'_>,
) -> anyhow::Result<Exit> {
    attempt::fingerprint(context, look, VERB)?;
    path_record::refuse_foreign(context, look).await?;
    let one_off = OneOff::new(&context.aws, look.schedule(context)?, task);
    if one_off.clear().await? == Some(Found::Awaited) {
        return Err(awaited(context, &one_off, VERB).into());
    }
    // What Scheduler does not take costs nothing that is there: the receipt is voided once it is taken, long before it fires.
    let made = match one_off.make().await? {
        Ok(made) => made,
        Err(NotStarted::Refused(error)) if error.kind == ErrorKind::Conflict => {
            return Err(awaited(context, &one_off, VERB).into());
        }
        Err(not_started) => {
            let ending = not_taken(context, look, not_started);
            return Err(verdict.not_begun(&ending).into());
        }
    };
    // Voided too late, the receipt would stand beside a task that is at work already.
    let begun = tokio::time::timeout(one_off::VOID_WITHIN, Attempt::begin(context, look, VERB, Path::Scheduler)).await;
    let attempt = match begun.unwrap_or_else(|_| Err(too_slow(context).into())) {
        Ok(attempt) => attempt,
        Err(error) => {
            one_off.delete().await;
            return Err(error);
        }
    };
    match start_and_watch(context, look, &one_off, made, timeout, verdict).await {
        Ok(proven) => {
            let recorded = path_record::keep_proven(context, look, attempt.fingerprint(), &proven).await;
            let kept = attempt.proven(Path::Scheduler, &proven).await;
            let verified = kept.map_err(|error| verdict.not_kept(&proven, error))?;
            verdict.proven(look, &proven, &verified).await;
            let what = "the run is proven, and that the scheduled path is could not be recorded";
            recorded.map_err(|error| error.context(what)).map(|()| Exit::Done)
        }
        Err(ending) => {
            let newest = attempt.ended(&ending).await;
            Err(verdict.not_proven(&ending, newest).into())
        }
    }
}

/// The one-off schedule would fire first.
fn too_slow(context: &Context) -> Stop {
    let what = format!("the receipt was not voided within {} s: nothing was started", one_off::VOID_WITHIN.as_secs());
    Stop::failed(what, format!("see whether ssm:PutParameter answers, then: {} {VERB}", context.program))
}

/// What is about to start a task decides first.
pub async fn refuse_while_awaited(context: &Context, one_off: &OneOff<'_>, verb: &str) -> anyhow::Result<()> {
    match one_off.found().await? {
        Some(Found::Awaited) => Err(awaited(context, one_off, verb).into()),
        Some(Found::LeftOver) | None => Ok(()),
    }
}

/// Somebody else's run by Scheduler comes first.
fn awaited(context: &Context, one_off: &OneOff<'_>, verb: &str) -> Stop {
    let what = format!(
        "a run by Scheduler is under way: the one-off schedule {} is still to fire, and two runs at once prove nothing",
        one_off.full_name()
    );
    let hint = format!(
        "when it has ended, or in three minutes if whoever began it was killed: {0} {verb}\n\
         to keep it from starting: {0} disable (which switches the job off, too)",
        context.program
    );
    Stop::refused(what, hint)
}

/// Why there is no one-off schedule.
fn not_taken(context: &Context, look: &Look, not_started: NotStarted) -> Ending {
    let error = match not_started {
        NotStarted::Refused(error) => error,
        NotStarted::Interrupted | NotStarted::Detached(_) | NotStarted::Unseen { .. } | NotStarted::Nothing { .. } => {
            return Ending::Interrupted;
        }
    };
    let mut hint = explain::hint(&error);
    if error.kind == ErrorKind::Denied {
        hint = format!(
            "allow it to the caller: {} iam --for trigger-via-scheduler prints what it takes, iam:PassRole on {} \
             among it",
            context.program, look.desired.role.arn
        );
    }
    Ending::NothingStarted {
        seen: format!("it did not take the one-off schedule: {error}"),
        way: Way::NotTaken { hint },
    }
}

async fn start_and_watch(
    context: &Context,
    look: &Look,
    one_off: &OneOff<'_>,
    made: Made,
    timeout: Duration,
    verdict: &Verdict<'_>,
) -> Result<Proven, Ending> {
    let not_started = match one_off.wait_for_task(made).await {
        Ok((run, task)) => {
            err!("Scheduler started {} of {}", task.arn, run.task().task_definition.family_and_revision());
            verdict.is_of(&task.arn);
            let ended = watched::to_its_end(context, look, &run, task, timeout).await;
            return alone(context, &run, ended).await;
        }
        Err(not_started) => not_started,
    };
    Err(match not_started {
        NotStarted::Interrupted => Ending::Interrupted,
        NotStarted::Detached(task) => {
            err!("Scheduler started {} all the same", task.arn);
            verdict.is_of(&task.arn);
            Ending::Detached { task: task.id().to_owned() }
        }
        NotStarted::Unseen { why, task: Some(task) } => {
            verdict.is_of(&task);
            Ending::Unwatched { why: why.to_string(), task: task.rsplit('/').next().unwrap_or(&task).to_owned() }
        }
        NotStarted::Unseen { why, task: None } => Ending::StartNotSeen(why),
        NotStarted::Refused(error) => Ending::NothingStarted { seen: error.to_string(), way: Way::NotGone },
        NotStarted::Nothing { seen, fired: None } => Ending::NothingStarted { seen, way: Way::NotGone },
        NotStarted::Nothing { seen, fired: Some(due) } => {
            Ending::NothingStarted { seen, way: explain(context, look, one_off, due).await }
        }
    })
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
        Ok((now, checks)) => {
            let any = |verdict| checks.iter().any(|check: &Check| check.verdict == verdict);
            for Check { branch, name, verdict, found, .. } in &checks {
                match verdict {
                    checked::Verdict::Ng => err!("  wrong     {branch}: {name}: {found}"),
                    checked::Verdict::Hidden => err!("  not seen  {branch}: {name}: {found}"),
                    checked::Verdict::Ok | checked::Verdict::Skip => {}
                }
            }
            if any(checked::Verdict::Ng) {
                way = wrong(&now);
            } else {
                let seen = if any(checked::Verdict::Hidden) { ", as far as they were seen" } else { "" };
                err!("  in order  cluster, revision, roles, trust and policies are as they should be{seen}");
            }
        }
        Err(error) => err!("  not seen  {error:#}"),
    }
    if way == Way::InOrder {
        err!("  not asked subnets, security groups, and whether there was capacity for the task");
        err!(
            "  likely    one of these: ECS refuses it, or answers 200 with `failures` and no task; either is lost here"
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
async fn causes(context: &Context) -> anyhow::Result<(Look, Vec<Check>)> {
    let look = Look::at(context, &Wish::default()).await?;
    let facts = verify::gather(context, &look).await?;
    let mut checks = checks(&look.desired, &look.live, &look.plan, &facts);
    let on_the_way = ["cluster", "task definition", "roles of the task", "scheduler's role", "schedule"];
    checks.retain(|check| on_the_way.contains(&check.branch));
    Ok((look, checks))
}

/// Who can put right what is wrong.
fn wrong(now: &Look) -> Way {
    let role = &now.desired.role;
    if !role.ours {
        return Way::WrongAndGiven;
    }
    if !now.plan.is_empty() {
        return Way::Wrong;
    }
    let policies = now.live.scheduler_role_policies.present();
    let beside = policies.map(|all| all.beside(SCHEDULER_POLICY_NAME)).unwrap_or_default();
    let mut by: Vec<_> = beside.iter().map(|(kind, name)| format!("{kind} {name}")).collect();
    let boundary = now.live.scheduler_role.present().and_then(|role| role.boundary.as_ref());
    by.extend(boundary.map(|arn| format!("boundary {arn}")));
    Way::Denied { by, role: role.name.clone() }
}
