//! Is it still as the plan saw it? Asked right before each write, because AWS has no conditional write for most of what is
//! written: between this look and the write a moment remains in which another operator can slip in, and no longer.
//!
//! What AWS itself refuses to make twice (a parameter, a role, a group, a schedule) needs no look.

use crate::cloud::{Answer, Cloud, CloudError, ErrorKind, seen};
use crate::desired::{Desired, SCHEDULER_POLICY_NAME};
use crate::model::{Live, PolicyDocument, Role, Seen, State};
use crate::normalise::{Normalisers, differences};
use crate::plan::{Plan, Step};
use serde_json::Value;

/// What the plan was made of.
#[derive(Debug, Clone, Copy)]
pub struct Guard<'a> {
    /// What was wanted.
    desired: &'a Desired,
    /// What was there.
    live: &'a Live,
    /// The plan begins by switching the schedule off: that much of it has moved by our own hand.
    switches_off: bool,
}

impl<'a> Guard<'a> {
    /// Of one plan, and of what it was made of.
    pub fn of(desired: &'a Desired, live: &'a Live, plan: &Plan) -> Self {
        Guard { desired, live, switches_off: plan.steps().any(|step| matches!(step, Step::SwitchOff(_))) }
    }
}

impl Guard<'_> {
    /// Refuses a step when what it writes over has moved since the plan.
    pub async fn still(&self, cloud: &impl Cloud, step: &Step) -> Answer<()> {
        let Guard { desired, live, switches_off } = self;
        match step {
            Step::CreateParameter { .. } | Step::CreateRole(_) | Step::CreateGroup { .. } | Step::CreateSchedule(_) => {
                Ok(())
            }
            // Tags are added: whatever else is there stays.
            Step::TagParameter { .. } | Step::TagRole { .. } | Step::TagGroup { .. } => Ok(()),
            Step::OverwriteParameter { name, .. } => {
                let planned = desired.parameters.iter().zip(&live.parameters).find(|(wanted, _)| wanted.name == *name);
                let version = |seen: &Seen<crate::model::Parameter>| seen.present().map(|found| found.version);
                let now = seen(cloud.parameter(name).await)?;
                let then = planned.and_then(|(_, seen)| version(seen));
                unmoved(step, version(&now) == then, || format!("it is at v{}", version(&now).unwrap_or_default()))
            }
            Step::PutRolePolicy { role, policy, .. } | Step::DeleteRolePolicy { role, policy } => {
                let then = match policy.as_str() {
                    SCHEDULER_POLICY_NAME if *role == desired.role.name => Some(&live.scheduler_policy),
                    _ => live.execution_policy.as_ref(),
                };
                let now = seen(cloud.role_policy(role, policy).await)?;
                unmoved(step, same_policy(then, &now), || "its document is another".to_owned())
            }
            // Each looks at what it writes over: the other one may have moved by our own hand.
            Step::UpdateTrust { role, .. } => {
                let now = seen(cloud.role(role).await)?;
                let trust = |seen: &Seen<Role>| seen.present().map(|role| role.trust.clone());
                unmoved(step, trust(&now) == trust(&live.scheduler_role), || "its trust is another".to_owned())
            }
            Step::PutBoundary { role, .. } => {
                let now = seen(cloud.role(role).await)?;
                let boundary = |seen: &Seen<Role>| seen.present().map(|role| role.boundary.clone());
                let same = boundary(&now) == boundary(&live.scheduler_role);
                unmoved(step, same, || "its permissions boundary is another".to_owned())
            }
            Step::Register { .. } => {
                let now = seen(cloud.task_definition(&desired.job.family).await)?;
                let revision =
                    |seen: &Seen<crate::model::TaskDefinition>| seen.present().and_then(|found| found.reference());
                let newest = revision(&now);
                unmoved(step, newest == revision(&live.newest), || {
                    format!("its newest revision is {}", newest.map_or(0, |newest| newest.revision()))
                })
            }
            Step::UpdateSchedule(_) | Step::SwitchOff(_) => {
                let now = seen(cloud.schedule(&desired.timing().group, &desired.job.name).await)?;
                let (Some(then), Some(now)) = (live.schedule.present(), now.present()) else {
                    return unmoved(step, false, || "it is gone".to_owned());
                };
                let rules = Normalisers::default();
                let mut found = differences(&rules.schedule(&then.0), &rules.schedule(&now.0));
                if *switches_off && matches!(step, Step::UpdateSchedule(_)) {
                    if now.state() == State::Enabled {
                        return unmoved(step, false, || "it was switched on again".to_owned());
                    }
                    found.retain(|d| !["State", "StartDate", "LastModificationDate"].contains(&d.path.as_str()));
                }
                unmoved(step, found.is_empty(), || {
                    let short = |value: &Option<Value>| match value {
                        Some(Value::String(text)) if text.len() < 40 => text.clone(),
                        Some(Value::Number(number)) => number.to_string(),
                        _ => "...".to_owned(),
                    };
                    let told = found.iter().filter(|d| d.path != "LastModificationDate");
                    let words: Vec<_> =
                        told.map(|d| format!("{} is {}, was {}", d.path, short(&d.new), short(&d.old))).collect();
                    if words.is_empty() { "it was written again".to_owned() } else { words.join("; ") }
                })
            }
        }
    }
}

fn same_policy(then: Option<&Seen<PolicyDocument>>, now: &Seen<PolicyDocument>) -> bool {
    match (then.and_then(Seen::present), now.present()) {
        (Some(then), Some(now)) => Normalisers::default().policy(then) == Normalisers::default().policy(now),
        (then, now) => then.is_none() == now.is_none(),
    }
}

fn unmoved(step: &Step, same: bool, what: impl FnOnce() -> String) -> Answer<()> {
    if same {
        return Ok(());
    }
    let said = format!("somebody else changed this since the plan was made: {}", what());
    Err(CloudError { action: "re-read before", thing: step.to_string(), kind: ErrorKind::Moved, said })
}
