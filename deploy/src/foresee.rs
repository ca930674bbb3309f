//! The world as it will be once a plan is carried out, as far as a proof depends on it.
//!
//! Architecture invariant: no I/O, no async, no clock, no SDK.

use serde_json::Value;

use crate::fingerprint::{Field, Fingerprint, NoFingerprint};
use crate::model::{Live, NewRole, Parameter, ParameterType, Role, RunTask, Seen, TaskDefinition, TaskDefinitionRef};
use crate::plan::{Pin, Plan, ScheduleStep, Step};
use crate::receipt::VerifiedRun;

/// What will differ from what a run proved.
pub fn will_move(run: &VerifiedRun, live: &Live, plan: &Plan) -> Result<Vec<Field>, NoFingerprint> {
    Fingerprint::of(&after(live, plan)).map(|then| run.fingerprint().moved(&then))
}

fn after(live: &Live, plan: &Plan) -> Live {
    let mut then = live.clone();
    for step in plan.steps() {
        carry_out(&mut then, step);
    }
    then
}

fn carry_out(live: &mut Live, step: &Step) {
    match step {
        Step::CreateParameter { name, key, tags, .. } => {
            let made = Parameter {
                name: name.clone(),
                kind: ParameterType::SecureString,
                key: key.clone(),
                version: 1,
                // Now, whenever that is: certainly not when a run was proven.
                written_ms: None,
                tags: Some(tags.clone()),
            };
            if let Some(absent) = live.parameters.iter_mut().find(|seen| matches!(seen, Seen::Absent)) {
                *absent = Seen::Present(made);
            }
        }
        Step::OverwriteParameter { name, .. } => {
            for seen in &mut live.parameters {
                match seen {
                    Seen::Present(found) if found.name == *name => found.version += 1,
                    Seen::Present(_) | Seen::Absent | Seen::Hidden { .. } => {}
                }
            }
        }
        // The execution role's policy is outside of the proof.
        Step::PutRolePolicy { policy, document, .. } if policy == crate::desired::SCHEDULER_POLICY_NAME => {
            live.scheduler_policy = Seen::Present(document.clone());
        }
        Step::Register { members, tags } => {
            let mut members = members.clone();
            // Nobody knows the number yet; what is certain is that no run has been of it.
            if let Some(reference) = unborn(live, &members) {
                members.insert("taskDefinitionArn".to_owned(), reference.arn().into());
            }
            live.task_definition = Seen::Present(TaskDefinition { members, tags: tags.clone() });
        }
        Step::CreateRole(NewRole { trust, boundary, tags, .. }) => {
            let (trust, boundary, tags) = (trust.clone(), boundary.clone(), tags.clone());
            live.scheduler_role = Seen::Present(Role { arn: String::new(), trust, boundary, tags });
        }
        Step::UpdateTrust { trust, .. } => {
            if let Seen::Present(role) = &mut live.scheduler_role {
                role.trust = trust.clone();
            }
        }
        Step::PutBoundary { boundary, .. } => {
            if let Seen::Present(role) = &mut live.scheduler_role {
                role.boundary = Some(boundary.clone());
            }
        }
        Step::CreateSchedule(step) | Step::UpdateSchedule(step) => schedule(live, step),
        Step::SwitchOff(off) => live.schedule = Seen::Present(off.clone()),
        Step::PutRolePolicy { .. }
        | Step::DeleteRolePolicy { .. }
        | Step::TagParameter { .. }
        | Step::TagRole { .. }
        | Step::CreateGroup { .. }
        | Step::TagGroup { .. } => {}
    }
}

fn schedule(live: &mut Live, step: &ScheduleStep) {
    let newest = live.task_definition.present().and_then(TaskDefinition::reference);
    let mut parts = step.run_task.clone();
    match (&step.pin, newest) {
        (Pin::Revision(reference), _) => parts.task_definition = reference.clone(),
        (Pin::New, Some(reference)) => parts.task_definition = reference,
        (Pin::New, None) => {}
    }
    let mut schedule = step.schedule.clone();
    if let (Ok(run_task), Some(target)) = (RunTask::new(parts), schedule.0.get_mut("Target")) {
        target["Input"] = run_task.scheduler_input().into();
    }
    if let (Seen::Present(role), Some(arn)) = (&mut live.scheduler_role, schedule.target_text("RoleArn"))
        && role.arn.is_empty()
    {
        arn.clone_into(&mut role.arn);
    }
    live.schedule = Seen::Present(schedule);
}

/// A revision of the family that will never be.
fn unborn(live: &Live, members: &serde_json::Map<String, Value>) -> Option<TaskDefinitionRef> {
    let identity = &live.identity;
    let family = members.get("family")?.as_str()?;
    let found = live.task_definition.present().and_then(TaskDefinition::reference);
    let stem = match &found {
        Some(reference) => reference.arn().rsplit_once(':')?.0.to_owned(),
        None => format!("arn:aws:ecs:{}:{}:task-definition/{family}", identity.region, identity.account),
    };
    format!("{stem}:{}", u32::MAX).parse().ok()
}
