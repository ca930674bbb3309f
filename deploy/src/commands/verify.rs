//! `deploy verify`: looks at everything that a run needs, at once, and changes nothing.

use std::collections::BTreeSet;
use std::time::Duration;

use clap::Args;
use futures_util::future::join_all;
use jiff::Timestamp;
use serde_json::{Value, json};

use super::Context;
use super::look::Look;
use crate::cloud::{Answer, Roles, TaskDefinitions, seen};
use crate::desired::role_name;
use crate::exit::Exit;
use crate::fire_times;
use crate::model::parameter::{AWS_OWN_KEY, is_same_key};
use crate::model::{RunTask, TaskDefinition};
use crate::plan::Wish;
use crate::verify::{Check, Facts, How, NamedRole, Verdict, checks, dead_letter_queue};

/// The flags of `deploy verify`.
#[derive(Debug, Args)]
pub struct VerifyArgs {
    /// Print JSON, one object
    #[arg(long)]
    json: bool,
}

/// Carries the verb out.
pub async fn run(context: &Context, args: VerifyArgs) -> anyhow::Result<Exit> {
    let look = Look::at(context, &Wish::default()).await?;
    let facts = gather(context, &look).await?;
    let checks = checks(&look.desired, &look.live, &look.plan, &facts);
    match args.json {
        true => out!("{}", as_json(&look, &checks)),
        false => show(&look, &checks),
    }
    let any = |verdict| checks.iter().any(|check| check.verdict == verdict);
    // What was hidden may be wrong: silence would read like good news.
    Ok(match (any(Verdict::Ng), any(Verdict::Hidden)) {
        (true, _) => Exit::NeedsPerson,
        (false, true) => Exit::Failed,
        (false, false) => Exit::Done,
    })
}

/// What a plan does not look at, in two rounds of concurrent calls.
pub(super) async fn gather(context: &Context, look: &Look) -> anyhow::Result<Facts> {
    let (aws, desired, live) = (&context.aws, &look.desired, &look.live);
    let schedule = live.schedule.present();
    let input = schedule.and_then(|schedule| RunTask::from_scheduler_input(schedule.input().unwrap_or_default()).ok());
    let reference = input.map(|run| run.parts().task_definition.arn().to_owned());
    let log_group = live.log_group.as_ref().map(|(name, _)| name.clone());
    let (cluster, pinned, retention) = tokio::join!(
        async { seen(aws.cluster_status(&desired.job.cluster).await) },
        async {
            match reference {
                Some(arn) => seen(aws.task_definition(&arn).await).map(|found| Some((arn, found))),
                None => Ok(None),
            }
        },
        async {
            match log_group {
                Some(name) => seen(aws.log_retention(&name).await).map(Some),
                None => Ok(None),
            }
        },
    );
    let pinned = pinned?;
    let used = pinned.as_ref().map_or(&live.task_definition, |(_, found)| found).present();
    let (execution, task) = (role_of(look, used, "executionRoleArn"), role_of(look, used, "taskRoleArn"));
    let scheduler = live.scheduler_role.present().map(|role| role.arn.clone());

    let may_read = desired.parameters.iter().filter_map(|p| Some((p.name.clone(), execution.clone()?, p.arn.clone())));
    let may_read = may_read.map(|(name, role, arn)| async move {
        seen(aws.simulate(&role, "ssm:GetParameters", &arn, None).await).map(|may| (name, may))
    });
    let keys: BTreeSet<_> = live.parameters.iter().filter_map(|seen| seen.present()?.key.clone()).collect();
    let keys = keys.into_iter().filter(|key| !is_same_key(key, AWS_OWN_KEY));
    let may_decrypt = keys.filter_map(|key| Some((execution.clone()?, key))).map(|(role, key)| async move {
        // An alias stands for a key that is not looked up: it is asked about as our own policy says it.
        let (on, alias) = match key.find("alias/") {
            Some(at) => (desired.every_key_arn(), Some(("kms:ResourceAliases", &key[at..]))),
            None => (desired.key_arn(&key), None),
        };
        seen(aws.simulate(&role, "kms:Decrypt", &on, alias).await).map(|may| (key, may))
    });
    let other = desired.parameter_arn("/geuneul-deploy/none-of-this-job");
    let others = async {
        match execution.as_ref().filter(|_| !desired.parameters.is_empty()) {
            Some(role) => seen(aws.simulate(role, "ssm:GetParameters", &other, None).await).map(Some),
            None => Ok(None),
        }
    };
    let questions = scheduler.map(|role| questions(look, used, &role)).unwrap_or_default();
    let may_run = questions.iter().map(|Question { role, what, action, on, when }| async move {
        let when = when.as_ref().map(|(key, value)| (*key, value.as_str()));
        seen(aws.simulate(role, action, on, when).await).map(|may| (what.clone(), may))
    });
    let (execution_role, task_role, may_read, may_decrypt, may_read_others, may_run) = tokio::join!(
        named(context, &execution),
        named(context, &task),
        join_all(may_read),
        join_all(may_decrypt),
        others,
        join_all(may_run)
    );
    Ok(Facts {
        cluster: cluster?,
        pinned,
        execution_role: execution_role?,
        task_role: task_role?,
        retention: retention?,
        may_read: may_read.into_iter().collect::<Answer<_>>()?,
        may_decrypt: may_decrypt.into_iter().collect::<Answer<_>>()?,
        may_read_others: may_read_others?,
        may_run: may_run.into_iter().collect::<Answer<_>>()?,
        interval: longest_interval(look),
    })
}

fn role_of(look: &Look, used: Option<&TaskDefinition>, member: &str) -> Option<String> {
    let role = used?.text(member).filter(|role| !role.is_empty())?;
    Some(look.desired.role_arn(role))
}

async fn named(context: &Context, role: &Option<String>) -> Answer<NamedRole> {
    match role {
        Some(arn) => seen(context.aws.role(role_name(arn)).await).map(|found| Some((arn.clone(), found))),
        None => Ok(None),
    }
}

/// A question for IAM's simulator.
struct Question {
    role: String,
    what: String,
    action: &'static str,
    on: String,
    when: Option<(&'static str, String)>,
}

/// What the scheduler's role must be allowed: start this revision here, and hand over its roles.
fn questions(look: &Look, used: Option<&TaskDefinition>, role: &str) -> Vec<Question> {
    let desired = &look.desired;
    let mut questions = Vec::new();
    let mut ask = |what: String, action, on: String, when| {
        questions.push(Question { role: role.to_owned(), what, action, on, when });
    };
    if let Some(reference) = used.and_then(TaskDefinition::reference) {
        let when = Some(("ecs:cluster", desired.cluster_arn()));
        ask(
            format!("may run {} there", reference.family_and_revision()),
            "ecs:RunTask",
            reference.arn().to_owned(),
            when,
        );
    }
    for member in ["executionRoleArn", "taskRoleArn"] {
        if let Some(passed) = role_of(look, used, member) {
            let when = Some(("iam:PassedToService", "ecs-tasks.amazonaws.com".to_owned()));
            ask(format!("may pass {} to ECS", role_name(&passed)), "iam:PassRole", passed, when);
        }
    }
    if let Some(queue) = look.live.schedule.present().and_then(dead_letter_queue) {
        ask(format!("may send to the dead-letter queue {queue}"), "sqs:SendMessage", queue.to_owned(), None);
    }
    questions
}

fn longest_interval(look: &Look) -> Option<Duration> {
    let timing = look.desired.timing();
    let moments = fire_times::next(&timing.expression, &timing.timezone, Timestamp::now(), 24).ok()?;
    let gaps = moments.windows(2).map(|pair| pair[0].timestamp().duration_until(pair[1].timestamp()));
    gaps.filter_map(|gap| Duration::try_from(gap).ok()).max()
}

fn show(look: &Look, checks: &[Check]) {
    out!("{} in {}", look.desired.job.name, look.plan.place);
    let mut branch = "";
    for check in checks {
        if check.branch != branch {
            branch = check.branch;
            out!("  {branch}");
        }
        let mark = match check.verdict {
            Verdict::Ok => "[ok]",
            Verdict::Ng => "[ng]",
            Verdict::Skip => "[skip]",
            Verdict::Hidden => "[hidden]",
        };
        let how = match check.how {
            How::Proven => "",
            How::Simulated => " (simulated)",
            How::NotChecked => " (not checked)",
        };
        out!("    {mark:<8} {}: {}{how}", check.name, check.found);
    }
    let count = |verdict| checks.iter().filter(|check| check.verdict == verdict).count();
    let (ok, ng, skip) = (count(Verdict::Ok), count(Verdict::Ng), count(Verdict::Skip));
    out!("\n{ok} ok, {ng} ng, {skip} skipped, {} hidden", count(Verdict::Hidden));
}

fn as_json(look: &Look, checks: &[Check]) -> Value {
    let place = (&look.desired.account, &look.desired.region);
    json!({ "deploy": "verify/1", "job": look.desired.job.name, "account": place.0, "region": place.1, "checks": checks })
}
