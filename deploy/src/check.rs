//! What can be said to be wrong before anything is sent.
//!
//! Architecture invariant: no I/O, no async, no clock, no SDK.

use serde_json::{Map, Value};

use crate::desired::Desired;
use crate::exit::Stop;
use crate::model::{Identity, Live, Seen};
use crate::plan::Refusal;

/// The account and the region are those of the configuration; otherwise nothing else is to be believed, or changed.
pub fn same_place(desired: &Desired, identity: &Identity) -> Result<(), Stop> {
    let Identity { account, arn, region } = identity;
    if *account != desired.account {
        let what =
            format!("these credentials are of account {account} ({arn}), the configuration is for {}", desired.account);
        return Err(Stop::refused(what, "use the credentials of that account: --profile NAME, or AWS_PROFILE"));
    }
    if *region != desired.region {
        let what = format!("the region is {region}, the configuration is for {}", desired.region);
        return Err(Stop::refused(what, format!("set AWS_REGION={}, or leave it unset", desired.region)));
    }
    Ok(())
}

/// Looks at the task definition that would be used: what ECS would refuse, or would let fail only at night.
pub fn check(
    desired: &Desired,
    live: &Live,
    task_definition: &Map<String, Value>,
    refusals: &mut Vec<Refusal>,
    notes: &mut Vec<String>,
) {
    if task_definition.is_empty() {
        return;
    }
    let text = |member: &str| task_definition.get(member).and_then(Value::as_str).unwrap_or_default();
    let job = &desired.job;
    let containers = task_definition.get("containerDefinitions").and_then(Value::as_array);
    let names: Vec<_> =
        containers.into_iter().flatten().filter_map(|container| container.get("name")?.as_str()).collect();
    let container = containers.into_iter().flatten().find(|container| container["name"] == job.container.as_str());
    match container {
        None => {
            let what = format!("task definition {} has no container {:?}", job.family, job.container);
            refusals.push(Refusal::new(what, format!("set `container` to one of: {}", names.join(", "))));
        }
        Some(container) => {
            let variables = container.get("environment").and_then(Value::as_array);
            let variables = variables.into_iter().flatten().filter_map(|variable| variable.get("name")?.as_str());
            let taken = |name: &&str| desired.parameters.iter().any(|parameter| parameter.env == *name);
            for name in variables.filter(taken) {
                let what = format!("container {} already has a plain variable {name}", job.container);
                let hint = "remove the variable from the task definition: ECS refuses a secret of the same name, and its value is readable there";
                refusals.push(Refusal::new(what, hint));
            }
        }
    }
    if !desired.parameters.is_empty() && text("executionRoleArn").is_empty() {
        let what = format!("task definition {} has no execution role, and secrets need one", job.family);
        refusals.push(Refusal::new(what, "give it an executionRoleArn; ECS refuses secrets without it"));
    }
    if text("networkMode") != "awsvpc" {
        let what =
            format!("task definition {} has network mode {:?}, Fargate needs awsvpc", job.family, text("networkMode"));
        refusals.push(Refusal::new(what, "set networkMode to awsvpc in the task definition"));
    }
    if let Seen::Present(found) = &live.task_definition
        && found.text("status").is_some_and(|status| status != "ACTIVE")
    {
        notes.push(format!("the newest revision of {} is {}", job.family, found.text("status").unwrap_or_default()));
    }
}
