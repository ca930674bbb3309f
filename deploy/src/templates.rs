//! The documents of `templates/`, as a reviewer reads them, filled and sent.
//!
//! A placeholder is a whole JSON string, `"${NAME}"`, and becomes a string or a list.

use serde_json::Value;

use crate::model::PolicyDocument;

/// A whole `deploy.toml` with every key.
pub const CONFIGURATION: &str = include_str!("../../templates/deploy.toml");
/// Who may assume the scheduler's role. `aws:SourceArn` must be the group: with a schedule's ARN, CreateSchedule refuses the role.
pub const SCHEDULER_TRUST: &str = include_str!("../../templates/scheduler-trust.json");
/// What the scheduler's role may do.
pub const SCHEDULER_POLICY: &str = include_str!("../../templates/scheduler-policy.json");
/// What the execution role may do in addition.
pub const EXECUTION_POLICY: &str = include_str!("../../templates/execution-policy.json");
/// The request that the schedule sends; what is really sent comes from the typed value, and a test compares the two.
pub const RUN_TASK_INPUT: &str = include_str!("../../templates/run-task-input.json");
/// The mark by which our inline policy is known: an inline policy cannot be tagged.
pub const EXECUTION_POLICY_SID: &str = "GeuneulDeployReadsSecrets";

/// Fills a document. Panics when template and values do not fit, which a test of every template rules out.
pub fn fill(template: &str, values: &[(&str, Value)]) -> Value {
    let mut document: Value = serde_json::from_str(template).expect("a template is JSON");
    fill_value(&mut document, values);
    // A statement about no resource, or under a condition that nothing meets, is malformed: it is left out.
    if let Some(statements) = document.get_mut("Statement").and_then(Value::as_array_mut) {
        let none = |value: Option<&Value>| value.and_then(Value::as_array).is_some_and(Vec::is_empty);
        let unmet = "/Condition/ForAnyValue:StringEquals/kms:ResourceAliases";
        statements.retain(|statement| !none(statement.get("Resource")) && !none(statement.pointer(unmet)));
    }
    document
}

/// Fills a policy.
pub fn policy(template: &str, values: &[(&str, Value)]) -> PolicyDocument {
    PolicyDocument(fill(template, values).to_string())
}

fn fill_value(value: &mut Value, values: &[(&str, Value)]) {
    match value {
        Value::String(text) => {
            if let Some(name) = text.strip_prefix("${").and_then(|rest| rest.strip_suffix('}')) {
                let (_, filling) = values.iter().find(|(known, _)| *known == name).expect("a placeholder has a value");
                *value = filling.clone();
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| fill_value(item, values)),
        Value::Object(members) => members.values_mut().for_each(|member| fill_value(member, values)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
