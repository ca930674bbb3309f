//! Carries a plan out: one arm a step, in the plan's order, stopping at the first failure.

use std::time::Duration;

use tokio::time::Instant;

use crate::cloud::{Answer, Cloud, CloudError};
use crate::desired::Desired;
use crate::explain;
use crate::guard::Guard;
use crate::interrupt::{Interrupt, Interrupted};
use crate::model::{Live, Schedule, TaskDefinitionRef};
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

/// The action of an error that is a person's Ctrl-C.
pub(crate) const INTERRUPTED: &str = "deploy:apply";

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
    guard: Guard<'_>,
    plan: &Plan,
    values: &Values,
    patience: Patience,
    say: &mut dyn FnMut(&str),
) -> Result<(), Failure> {
    let steps: Vec<&Step> = plan.steps().collect();
    let mut done = Vec::new();
    let mut registered = None;
    let mut interrupt = Interrupt::listen();
    for (i, step) in steps.iter().enumerate() {
        let landed = match guard.still(cloud, step).await {
            Ok(()) => patiently(cloud, step, values, &mut registered, patience, &mut interrupt, say).await,
            Err(error) => Err(error),
        };
        match landed {
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
    wish: &Wish,
    patience: Patience,
) -> anyhow::Result<(Live, Plan)> {
    let wish = &Wish { disabled: wish.disabled, ..Wish::default() };
    let (deadline, mut pause) = (Instant::now() + patience.limit, patience.pause);
    let mut interrupt = Interrupt::listen();
    loop {
        let live = observe(cloud, desired).await?;
        let plan = plan::plan(desired, &live, wish, Normalisers::default());
        if plan.is_empty() || Instant::now() >= deadline {
            return Ok((live, plan));
        }
        if interrupt.sleep(pause).await == Err(Interrupted) {
            anyhow::bail!("interrupted with Ctrl-C; everything was written, and AWS does not show all of it yet");
        }
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
    interrupt: &mut Interrupt,
    say: &mut dyn FnMut(&str),
) -> Answer<String> {
    let stopped = |Interrupted| CloudError::local(INTERRUPTED, step.to_string(), "interrupted with Ctrl-C");
    interrupt.sleep(Duration::ZERO).await.map_err(stopped)?;
    let (deadline, mut pause) = (Instant::now() + patience.limit, patience.pause);
    let mut waiting = false;
    loop {
        match carry_out(cloud, step, values, registered).await {
            Err(error) if explain::may_be_propagation(&error) && Instant::now() < deadline => {
                if !waiting {
                    say(&format!("waiting: IAM may need up to {} s to tell of the role", patience.limit.as_secs()));
                }
                waiting = true;
                interrupt.sleep(pause).await.map_err(stopped)?;
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
        Step::CreateParameter { name, env, key, tags, .. } => {
            let version = cloud.create_parameter(name, value(values, env)?, key.as_deref(), tags).await?;
            return Ok(format!("{step}, version {version}"));
        }
        Step::OverwriteParameter { name, env, key, .. } => {
            let version = cloud.overwrite_parameter(name, value(values, env)?, key.as_deref()).await?;
            return Ok(format!("{step}, version {version}"));
        }
        Step::TagParameter { name, tags } => cloud.tag_parameter(name, tags).await?,
        Step::PutRolePolicy { role, policy, document } => cloud.put_role_policy(role, policy, document).await?,
        Step::DeleteRolePolicy { role, policy } => cloud.delete_role_policy(role, policy).await?,
        Step::Register { members, tags } => {
            let revision = cloud.register(members, tags).await?;
            let reference = revision.reference();
            *registered = reference.clone();
            return Ok(format!("{step}, revision {}", reference.map_or(0, |reference| reference.revision())));
        }
        Step::CreateRole(role) => cloud.create_role(role).await?,
        Step::PutBoundary { role, boundary } => cloud.put_boundary(role, boundary).await?,
        Step::UpdateTrust { role, trust, is_shut: _ } => cloud.update_trust(role, trust).await?,
        Step::TagRole { role, tags } => cloud.tag_role(role, tags).await?,
        Step::CreateGroup { name, tags } => cloud.create_group(name, tags).await?,
        Step::TagGroup { arn, tags, .. } => cloud.tag_group(arn, tags).await?,
        Step::CreateSchedule(step) => cloud.create_schedule(&whole(step, registered.as_ref())?).await?,
        Step::SwitchOff(schedule) => cloud.update_schedule(schedule).await?,
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
    step.with_input(task_definition).map_err(|error| local(error.to_string()))
}
