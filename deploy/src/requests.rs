//! The documents that each step sends, for a reviewer: `plan --requests`. A test compares them with what AWS is really sent.
//!
//! Architecture invariant: no I/O, no async, no clock, no SDK. In the place of a secret's value stands where it will come from.

use serde_json::{Map, Value, json};

use crate::desired::Desired;
use crate::model::{NewRole, PolicyDocument, Tags};
use crate::plan::{Pin, ScheduleStep, Step};

/// The call that a step makes, as IAM writes it, and its request. What the SDK adds by itself (a token against repetition) is left out.
pub fn of(step: &Step, desired: &Desired) -> (&'static str, Value) {
    match step {
        Step::CreateParameter { name, from, key, tags, .. } => {
            let mut request = parameter(name, from, key.as_deref());
            request["Tier"] = json!("Standard");
            request["Tags"] = capital(tags);
            ("ssm:PutParameter", request)
        }
        Step::OverwriteParameter { name, from, key, .. } => {
            let mut request = parameter(name, from, key.as_deref());
            request["Overwrite"] = json!(true);
            ("ssm:PutParameter", request)
        }
        Step::TagParameter { name, tags } => {
            let request = json!({ "ResourceType": "Parameter", "ResourceId": name, "Tags": capital(tags) });
            ("ssm:AddTagsToResource", request)
        }
        Step::PutRolePolicy { role, policy, document } => {
            let request = json!({ "RoleName": role, "PolicyName": policy, "PolicyDocument": policy_of(document) });
            ("iam:PutRolePolicy", request)
        }
        Step::DeleteRolePolicy { role, policy } => {
            ("iam:DeleteRolePolicy", json!({ "RoleName": role, "PolicyName": policy }))
        }
        Step::Register { members, tags } => {
            let mut request = members.clone();
            let list = tags.iter().map(|(key, value)| json!({ "key": key, "value": value }));
            if !tags.is_empty() {
                request.insert("tags".to_owned(), list.collect());
            }
            ("ecs:RegisterTaskDefinition", Value::Object(request))
        }
        Step::CreateRole(NewRole { name, path, trust, boundary, tags }) => {
            let mut request = json!({
                "RoleName": name, "Path": path, "Description": NewRole::DESCRIPTION,
                "AssumeRolePolicyDocument": policy_of(trust), "Tags": capital(tags),
            });
            if let Some(boundary) = boundary {
                request["PermissionsBoundary"] = json!(boundary);
            }
            ("iam:CreateRole", request)
        }
        Step::UpdateTrust { role, trust, is_shut: _ } => {
            ("iam:UpdateAssumeRolePolicy", json!({ "RoleName": role, "PolicyDocument": policy_of(trust) }))
        }
        Step::PutBoundary { role, boundary } => {
            ("iam:PutRolePermissionsBoundary", json!({ "RoleName": role, "PermissionsBoundary": boundary }))
        }
        Step::TagRole { role, tags } => ("iam:TagRole", json!({ "RoleName": role, "Tags": capital(tags) })),
        Step::CreateGroup { name, tags } => {
            ("scheduler:CreateScheduleGroup", json!({ "Name": name, "Tags": capital(tags) }))
        }
        Step::TagGroup { arn, tags, .. } => {
            ("scheduler:TagResource", json!({ "ResourceArn": arn, "Tags": capital(tags) }))
        }
        Step::CreateSchedule(step) => ("scheduler:CreateSchedule", schedule(step, desired)),
        Step::SwitchOff(schedule) => ("scheduler:UpdateSchedule", Value::Object(schedule.writable())),
        Step::UpdateSchedule(step) => ("scheduler:UpdateSchedule", schedule(step, desired)),
    }
}

fn parameter(name: &str, from: &crate::secret::Origin, key: Option<&str>) -> Value {
    let mut request = json!({ "Name": name, "Type": "SecureString", "Value": format!("(the value of {from})") });
    if let Some(key) = key {
        request["KeyId"] = json!(key);
    }
    request
}

/// The number of a revision that is not registered yet is known to nobody: its place says so.
fn schedule(step: &ScheduleStep, desired: &Desired) -> Value {
    let reference = match &step.pin {
        Pin::Revision(reference) => reference.clone(),
        Pin::New => step.run_task.task_definition.clone(),
    };
    let mut members: Map<String, Value> = match step.with_input(reference.clone()) {
        Ok(schedule) => schedule.writable(),
        Err(error) => return json!({ "error": error.to_string() }),
    };
    if let (Pin::New, Some(target)) = (&step.pin, members.get_mut("Target")) {
        let family = format!("{}:(the new revision)", desired.job.family);
        let input = target["Input"].as_str().unwrap_or_default().replace(reference.family_and_revision(), &family);
        target["Input"] = json!(input);
    }
    Value::Object(members)
}

fn policy_of(document: &PolicyDocument) -> Value {
    serde_json::from_str(&document.0).unwrap_or_else(|_| json!(document.0))
}

fn capital(tags: &Tags) -> Value {
    tags.iter().map(|(key, value)| json!({ "Key": key, "Value": value })).collect()
}
