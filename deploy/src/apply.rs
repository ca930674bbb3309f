//! Carries a plan out: one arm a step, in the plan's order, stopping at the first failure.

use std::time::Duration;

use tokio::time::Instant;

use crate::cloud::{Answer, Cloud, CloudError};
use crate::desired::Desired;
use crate::explain;
use crate::model::run_task::Parts;
use crate::model::{Live, RunTask, Schedule, TaskDefinitionRef};
use crate::normalise::Normalisers;
use crate::observe::observe;
use crate::plan::{self, Pin, Plan, ScheduleStep, Step, Wish};
use crate::secret::{SecretValue, Values};

/// How long to wait for what AWS needs time for.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// In all.
    pub limit: Duration,
    /// Between the first two tries; each pause is twice as long as the one before, up to five seconds.
    pub pause: Duration,
}

const LONGEST_PAUSE: Duration = Duration::from_secs(5);

impl Patience {
    /// As long as Terraform waits for IAM.
    pub const IAM: Patience = Patience { limit: Duration::from_secs(120), pause: Duration::from_millis(500) };
    /// As long as a read may lag behind a write.
    pub const READ_BACK: Patience = Patience { limit: Duration::from_secs(30), pause: Duration::from_millis(500) };
}

/// A plan that was carried out in part.
#[derive(Debug)]
pub struct Failure {
    /// What was done, in order.
    pub done: Vec<String>,
    /// What failed.
    pub failed: String,
    /// What was not attempted.
    pub rest: Vec<String>,
    /// What AWS said.
    pub error: CloudError,
}

/// Carries every step out, and says each as it lands.
pub async fn apply(
    cloud: &impl Cloud,
    plan: &Plan,
    values: &Values,
    patience: Patience,
    say: &mut dyn FnMut(&str),
) -> Result<(), Failure> {
    let steps: Vec<&Step> = plan.steps().collect();
    let mut done = Vec::new();
    let mut registered = None;
    for (i, step) in steps.iter().enumerate() {
        match patiently(cloud, step, values, &mut registered, patience, say).await {
            Ok(outcome) => {
                say(&format!("done: {outcome}"));
                done.push(outcome);
            }
            Err(error) => {
                let rest = steps[i + 1..].iter().map(|step| step.to_string()).collect();
                return Err(Failure { done, failed: step.to_string(), rest, error });
            }
        }
    }
    Ok(())
}

/// Reads everything back: AWS shows what was written when the plan is empty. A while is given, because IAM's reads may lag.
pub async fn settle(
    cloud: &impl Cloud,
    desired: &Desired,
    wish: Wish,
    patience: Patience,
) -> anyhow::Result<(Live, Plan)> {
    let wish = Wish { disabled: wish.disabled, adopt: false, rotate: false };
    let (deadline, mut pause) = (Instant::now() + patience.limit, patience.pause);
    loop {
        let live = observe(cloud, desired).await?;
        let plan = plan::plan(desired, &live, wish, Normalisers::default());
        if plan.is_empty() || Instant::now() >= deadline {
            return Ok((live, plan));
        }
        tokio::time::sleep(pause).await;
        pause = LONGEST_PAUSE.min(pause * 2);
    }
}

/// One step, again and again while IAM may not have told everybody.
async fn patiently(
    cloud: &impl Cloud,
    step: &Step,
    values: &Values,
    registered: &mut Option<TaskDefinitionRef>,
    patience: Patience,
    say: &mut dyn FnMut(&str),
) -> Answer<String> {
    let (deadline, mut pause) = (Instant::now() + patience.limit, patience.pause);
    let mut waiting = false;
    loop {
        match carry_out(cloud, step, values, registered).await {
            Err(error) if explain::may_be_propagation(&error) && Instant::now() < deadline => {
                if !waiting {
                    say(&format!("waiting: IAM may need up to {} s to tell of the role", patience.limit.as_secs()));
                }
                waiting = true;
                tokio::time::sleep(pause).await;
                pause = LONGEST_PAUSE.min(pause * 2);
            }
            answer => return answer,
        }
    }
}

async fn carry_out(
    cloud: &impl Cloud,
    step: &Step,
    values: &Values,
    registered: &mut Option<TaskDefinitionRef>,
) -> Answer<String> {
    match step {
        Step::CreateParameter { name, env, tags, .. } => {
            let version = cloud.create_parameter(name, value(values, env)?, tags).await?;
            return Ok(format!("{step}, version {version}"));
        }
        Step::OverwriteParameter { name, env, .. } => {
            let version = cloud.overwrite_parameter(name, value(values, env)?).await?;
            return Ok(format!("{step}, version {version}"));
        }
        Step::TagParameter { name, tags } => cloud.tag_parameter(name, tags).await?,
        Step::PutRolePolicy { role, policy, document } => cloud.put_role_policy(role, policy, document).await?,
        Step::Register { members, tags } => {
            let revision = cloud.register(members, tags).await?;
            let reference = revision.reference();
            *registered = reference.clone();
            return Ok(format!("{step}, revision {}", reference.map_or(0, |reference| reference.revision())));
        }
        Step::CreateRole { name, trust, tags } => cloud.create_role(name, trust, tags).await?,
        Step::UpdateTrust { role, trust } => cloud.update_trust(role, trust).await?,
        Step::TagRole { role, tags } => cloud.tag_role(role, tags).await?,
        Step::CreateGroup { name, tags } => cloud.create_group(name, tags).await?,
        Step::TagGroup { arn, tags, .. } => cloud.tag_group(arn, tags).await?,
        Step::CreateSchedule(step) => cloud.create_schedule(&whole(step, registered.as_ref())?).await?,
        Step::UpdateSchedule(step) => cloud.update_schedule(&whole(step, registered.as_ref())?).await?,
    }
    Ok(step.to_string())
}

fn value<'v>(values: &'v Values, env: &str) -> Answer<&'v SecretValue> {
    values.get(env).ok_or_else(|| CloudError::local("ssm:PutParameter", env, "its value was not read"))
}

/// The schedule with its Input, pinned to the revision that was meant.
fn whole(step: &ScheduleStep, registered: Option<&TaskDefinitionRef>) -> Answer<Schedule> {
    let local = |what: String| CloudError::local("scheduler:UpdateSchedule", step.run_task.job.clone(), what);
    let task_definition = match (&step.pin, registered) {
        (Pin::Revision(reference), _) | (Pin::New, Some(reference)) => reference.clone(),
        (Pin::New, None) => return Err(local("the new revision has no number".to_owned())),
    };
    let run_task =
        RunTask::new(Parts { task_definition, ..step.run_task.clone() }).map_err(|e| local(e.to_string()))?;
    let mut schedule = step.schedule.clone();
    if let Some(target) = schedule.0.get_mut("Target") {
        target["Input"] = run_task.scheduler_input().into();
    }
    Ok(schedule)
}
