//! Is a secret's value where everybody can read it? A command and a variable are shown by DescribeTasks, GetSchedule and
//! DescribeTaskDefinition to whoever may look.
//!
//! Architecture invariant: the value is asked whether it is in a text; it is never taken out.

use serde_json::Value;

use crate::exit::Stop;
use crate::model::Live;
use crate::plan::{Plan, Step};
use crate::secret::Values;

/// Refuses when a value stands in what would be sent, or in what is there and would go on being used.
pub fn refuse(plan: &Plan, live: &Live, values: &Values) -> Result<(), Stop> {
    for (env, value) in values {
        let mut places = Vec::new();
        for step in plan.steps() {
            match step {
                Step::Register { members, .. } => places.extend(found("task definition", members.values(), value)),
                Step::CreateSchedule(step) | Step::UpdateSchedule(step) => {
                    let task = &step.run_task;
                    if task.command.iter().any(|argument| value.is_in(argument)) {
                        places.push("the job's command".to_owned());
                    }
                    let variables = task.environment.iter().filter(|(_, text)| value.is_in(text));
                    places.extend(variables.map(|(name, _)| format!("the job's variable {name}")));
                }
                _ => {}
            }
        }
        if let Some(definition) = live.task_definition.present() {
            places.extend(found("task definition", definition.members.values(), value));
        }
        if let Some(place) = places.first() {
            let what =
                format!("the value of secret {env} stands in {place}, where many can read it; nothing was changed");
            return Err(Stop::refused(what, format!("take it out there, and rotate it: {env} is no secret any more")));
        }
    }
    Ok(())
}

fn found<'a>(
    thing: &str,
    values: impl Iterator<Item = &'a Value>,
    secret: &crate::secret::SecretValue,
) -> Option<String> {
    fn holds(value: &Value, secret: &crate::secret::SecretValue) -> bool {
        match value {
            Value::String(text) => secret.is_in(text),
            Value::Array(items) => items.iter().any(|item| holds(item, secret)),
            Value::Object(members) => members.values().any(|member| holds(member, secret)),
            Value::Null | Value::Bool(_) | Value::Number(_) => false,
        }
    }
    values.into_iter().any(|value| holds(value, secret)).then(|| format!("the {thing}"))
}
