//! `deploy destroy`: deletes what is ours, in reverse order, and says what it leaves.

use std::io::{BufRead, IsTerminal};

use clap::Args;
use futures_util::future::try_join_all;

use super::Context;
use crate::cloud::{Answer, CloudError, Parameters, Roles, Schedules, seen};
use crate::desired::{Desired, role_name};
use crate::exit::{Exit, Stop};
use crate::explain;
use crate::model::{Live, Seen};
use crate::observe::{execution_role, observe};
use crate::one_off;
use crate::removal::{Beside, OtherPolicy, Removal, Removals, removals};

/// The flags of `deploy destroy`.
#[derive(Debug, Args)]
pub struct DestroyArgs {
    /// Do not ask for the job's name; needed where there is no terminal
    #[arg(long)]
    pub yes: bool,
}

/// Carries the verb out.
pub async fn run(context: &Context, args: DestroyArgs) -> anyhow::Result<Exit> {
    let desired = context.desired();
    let live = observe(&context.aws, &desired).await?;
    let beside = look_beside(context, &desired, &live).await?;
    let plan = removals(&desired, &live, &beside);
    show(&desired, &plan);
    if plan.steps.is_empty() {
        out!("nothing of ours is there");
        return Ok(end(&plan));
    }
    confirm(&desired.job.name, args.yes)?;
    for (i, step) in plan.steps.iter().enumerate() {
        if let Err(error) = delete(context, step).await {
            return Ok(report(context, &plan, i, &error));
        }
        err!("deleted: {step}");
    }
    out!("deleted {} things of job {}", plan.steps.len(), desired.job.name);
    Ok(end(&plan))
}

/// What a plan does not look at.
async fn look_beside(context: &Context, desired: &Desired, live: &Live) -> anyhow::Result<Beside> {
    let aws = &context.aws;
    let schedules = async {
        match live.group.present() {
            Some(group) => seen(aws.schedules_in(&group.name).await),
            None => Ok(Seen::Absent),
        }
    };
    let receipt = async { seen(aws.parameter(&desired.receipt_parameter).await) };
    let path = async { seen(aws.parameter(&desired.scheduled_path_parameter).await) };
    let policies = async {
        match execution_role(desired, &live.task_definition).filter(|_| !desired.parameters.is_empty()) {
            Some(role) => seen(other_policies(context, desired, role_name(&role)).await),
            None => Ok(Seen::Absent),
        }
    };
    let (schedules, receipt, path, policies) = tokio::join!(schedules, receipt, path, policies);
    let others = context.config.jobs.values().filter(|job| job.name != desired.job.name);
    let jobs = others.map(|job| Desired::new(&context.config, job)).collect();
    Ok(Beside { jobs, policies: policies?, schedules: schedules?, receipt: receipt?, scheduled_path: path? })
}

/// Every other inline policy of the execution role.
async fn other_policies(context: &Context, desired: &Desired, role: &str) -> Answer<Vec<OtherPolicy>> {
    let aws = &context.aws;
    let names = aws.role_policies(role).await?.inline;
    let others = names.into_iter().filter(|name| *name != desired.execution_policy_name());
    let calls = others.map(|name| async move {
        let document = aws.role_policy(role, &name).await?;
        Ok(OtherPolicy { name, document })
    });
    try_join_all(calls).await
}

fn show(desired: &Desired, plan: &Removals) {
    out!("{} in {}/{}\n", desired.job.name, desired.account, desired.region);
    for step in &plan.steps {
        out!("  - {step}");
    }
    for left in &plan.left {
        out!("  {} {}: {}", if left.unread { "?" } else { "=" }, left.thing, left.why);
    }
    let stays = plan.left.iter().filter(|left| !left.unread).count();
    out!("\n{} to delete, {stays} to leave, {} not seen", plan.steps.len(), plan.left.len() - stays);
    if plan.steps.iter().any(|step| matches!(step, Removal::Schedule { .. })) {
        out!("note: a task that is running goes on to its end");
    }
    if plan.steps.iter().any(|step| matches!(step, Removal::Parameter { holds, .. } if holds.contains("secret"))) {
        out!("note: a deleted parameter cannot be restored; keep the secret elsewhere if it is needed again");
    }
}

fn confirm(job: &str, yes: bool) -> anyhow::Result<()> {
    if yes {
        return Ok(());
    }
    if !std::io::stdin().is_terminal() {
        let what = "nobody is here to confirm this; nothing was deleted";
        return Err(Stop::refused(what, "say --yes where there is no terminal: deploy destroy --yes").into());
    }
    crate::out::progress(format_args!("\ntype the job's name to delete this: "));
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    match answer.trim() == job {
        true => Ok(()),
        false => Err(Stop::refused("that is not the job's name; nothing was deleted", "").into()),
    }
}

async fn delete(context: &Context, step: &Removal) -> Answer<()> {
    let aws = &context.aws;
    match step {
        Removal::Schedule { group, name, .. } | Removal::OneOff { group, name } => {
            match aws.delete_schedule(group, name).await {
                Err(error) if error.kind == crate::cloud::ErrorKind::NotFound => Ok(()),
                other => other,
            }
        }
        Removal::Group { name } => {
            // Whatever came into it since we looked would be deleted with it.
            let inside = aws.schedules_in(name).await?;
            // A deleted schedule may still be listed for a moment.
            let ours = [context.job.name.clone(), one_off::name(&context.job.name)];
            match inside.iter().find(|other| !ours.contains(other)) {
                Some(other) => {
                    let said = format!("schedule {other} came into it in the meantime, and would be deleted with it");
                    Err(CloudError::local("scheduler:DeleteScheduleGroup", name, said))
                }
                None => aws.delete_group(name).await,
            }
        }
        Removal::RolePolicy { role, policy } => aws.delete_role_policy(role, policy).await,
        Removal::Role { name } => aws.delete_role(name).await,
        Removal::Parameter { name, .. } => aws.delete_parameter(name).await,
    }
}

fn report(context: &Context, plan: &Removals, failed: usize, error: &CloudError) -> Exit {
    err!("error: deleting {}: {error}", plan.steps[failed]);
    err!("hint: {}", explain::hint(error));
    err!("{failed} deleted, 1 failed, {} not attempted", plan.steps.len() - failed - 1);
    for step in &plan.steps[failed + 1..] {
        err!("not attempted: {step}");
    }
    err!("hint: when the cause is gone, the same goes on from here: {} destroy", context.program);
    Exit::Failed
}

/// What could not be looked at may be ours, and is still there.
fn end(plan: &Removals) -> Exit {
    let unread: Vec<_> = plan.left.iter().filter(|left| left.unread).collect();
    for left in &unread {
        err!("error: {} may be ours and stays: {}", left.thing, left.why);
    }
    if unread.is_empty() { Exit::Done } else { Exit::Failed }
}
