//! What can be said to be wrong before anything is sent.
//!
//! Architecture invariant: no I/O, no async, no clock, no SDK.

use serde_json::{Map, Value};

use crate::desired::Desired;
use crate::exit::Stop;
use crate::fire_times;
use crate::model::{Identity, Launch, Live, Seen};
use crate::normalise;
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
    timing(desired, notes);
    size(desired, text("cpu"), text("memory"), task_definition, refusals);
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
            let secrets = container.get("secrets").and_then(Value::as_array);
            let secrets = secrets.into_iter().flatten().filter_map(|secret| secret.get("name")?.as_str());
            for name in secrets.filter(|name| job.environment.contains_key(*name)) {
                let what = format!("variable {name} of job {} is a secret in the task definition", job.name);
                let hint = format!("take {name} out of `environment`: ECS refuses a variable with a secret's name");
                refusals.push(Refusal::new(what, hint));
            }
            let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
            if !image.contains("@sha256:") {
                notes.push(format!(
                    "image {image} is a tag, which can move: a scheduled run may be of another image than the proven one; name it by its digest"
                ));
            }
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
    let compatible = task_definition.get("requiresCompatibilities").and_then(Value::as_array);
    if compatible.is_some_and(|list| !list.is_empty() && !names_fargate(list)) && job.launch == Launch::Fargate {
        let what = format!("task definition {} is not for FARGATE by its requiresCompatibilities", job.family);
        let hint = "add FARGATE to them, or name `capacity_providers` of the cluster";
        refusals.push(Refusal::new(what, hint));
    }
    if let Seen::Present(found) = &live.task_definition
        && found.text("status").is_some_and(|status| status != "ACTIVE")
    {
        notes.push(format!("the newest revision of {} is {}", job.family, found.text("status").unwrap_or_default()));
    }
}

/// What a time says that its writer may not have meant.
fn timing(desired: &Desired, notes: &mut Vec<String>) {
    let timing = desired.timing();
    let fields = timing.expression.trim_start_matches("cron(").trim_end_matches(')');
    let fields: Vec<_> = fields.split_whitespace().collect();
    let [_, _, day, _, weekday, _] = fields.as_slice() else { return };
    let late = |item: &str| {
        let first = item.split(['-', '/', 'W']).next().unwrap_or_default();
        first.parse::<u8>().is_ok_and(|first| first >= 29)
    };
    if day.split(',').any(late) {
        notes.push(format!("day {day}: a month without that day is left out; L is the last day of every month"));
    }
    if weekday.chars().any(|c| c.is_ascii_digit()) && !weekday.contains('#') {
        notes.push(format!(
            "weekday {weekday}: AWS counts 1 as Sunday and 7 as Saturday; names (MON-FRI) cannot be misread"
        ));
    }
    // From a fixed day on: a plan knows no clock, and the rules of a zone rarely change.
    let from = jiff::Timestamp::from_second(1_767_225_600).unwrap_or(jiff::Timestamp::UNIX_EPOCH);
    if let Some(at) = fire_times::skipped(&timing.expression, &timing.timezone, from) {
        notes.push(format!(
            "in {} the clocks skip {}: the schedule does not fire then; choose an hour after 03:00, or UTC",
            timing.timezone,
            at.strftime("%Y-%m-%d %H:%M")
        ));
    }
}

/// The pairs of CPU and memory that Fargate has, in CPU units and MiB: first, last, step. The smallest one doubles in place of a step.
const FARGATE: [(u32, u32, u32, u32); 7] = [
    (256, 512, 2048, 0),
    (512, 1024, 4096, 1024),
    (1024, 2048, 8192, 1024),
    (2048, 4096, 16_384, 1024),
    (4096, 8192, 30_720, 1024),
    (8192, 16_384, 61_440, 4096),
    (16_384, 32_768, 122_880, 8192),
];

/// Whether Fargate has this size, as a task definition writes it; else which it has.
pub fn fargate_has(cpu: &str, memory: &str) -> Result<(), String> {
    let units = |text: &str, unit: &str| normalise::units(text, unit).and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
    let (cpu, memory) = (units(cpu, "vcpu"), units(memory, "gb"));
    let Some((_, first, last, step)) = FARGATE.iter().find(|(units, ..)| *units == cpu) else {
        return Err("cpu is 256, 512, 1024, 2048, 4096, 8192 or 16384".to_owned());
    };
    match step {
        0 if [512, 1024, 2048].contains(&memory) => Ok(()),
        0 => Err(format!("with cpu {cpu}, memory is 512, 1024 or 2048 MiB")),
        step if (*first..=*last).contains(&memory) && memory % step == 0 => Ok(()),
        step => Err(format!("with cpu {cpu}, memory is {first} to {last} MiB in steps of {step}")),
    }
}

fn names_fargate(compatible: &[Value]) -> bool {
    compatible.iter().any(|one| one == "FARGATE")
}

fn size(desired: &Desired, cpu: &str, memory: &str, members: &Map<String, Value>, refusals: &mut Vec<Refusal>) {
    let compatible = members.get("requiresCompatibilities").and_then(Value::as_array);
    if !compatible.is_none_or(|list| names_fargate(list))
        || (cpu.is_empty() && memory.is_empty() && compatible.is_none())
    {
        return;
    }
    if let Err(hint) = fargate_has(cpu, memory) {
        let family = &desired.job.family;
        let what = format!(
            "task definition {family} asks for cpu {cpu:?} with memory {memory:?}, which Fargate does not have"
        );
        refusals.push(Refusal::new(what, hint));
    }
}
