//! What AWS gives back in other words than it was told, and the forms in which the two are compared.
//!
//! Every rule is one [`Normaliser`], and every comparison takes a [`Normalisers`], so that a test can switch off any one of them and
//! see that the plan is no longer empty: a rule that changes nothing has no business here.

use serde_json::{Map, Value, json};

use crate::model::PolicyDocument;

/// A difference that means nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Normaliser {
    /// The schedule's Input is JSON in a string: white space and the order of members mean nothing.
    JsonInString,
    /// Subnets and security groups are sets.
    UnorderedNetwork,
    /// Scheduler fills in what a schedule leaves out.
    ScheduleDefaults,
    /// IAM returns policies percent-encoded.
    PolicyEncoding,
    /// In a policy, a list of one is its element, and lists are sets.
    PolicyLists,
    /// ECS fills in empty lists, at every depth.
    EmptyLists,
    /// ECS fills in `cpu` 0 and `essential` true, and the numbers of a health check.
    ContainerDefaults,
    /// ECS fills in the protocol and, under awsvpc, the host port.
    PortDefaults,
    /// ECS turns `1 vCPU` and `2 GB` into numbers.
    TaskSize,
    /// Containers, variables and secrets have names, and no order.
    NamedOrder,
    /// A parameter's name stands for its ARN.
    SecretReference,
}

impl Normaliser {
    /// Every rule.
    pub const ALL: [Normaliser; 11] = [
        Normaliser::JsonInString,
        Normaliser::UnorderedNetwork,
        Normaliser::ScheduleDefaults,
        Normaliser::PolicyEncoding,
        Normaliser::PolicyLists,
        Normaliser::EmptyLists,
        Normaliser::ContainerDefaults,
        Normaliser::PortDefaults,
        Normaliser::TaskSize,
        Normaliser::NamedOrder,
        Normaliser::SecretReference,
    ];
}

/// The rules that are on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Normalisers {
    off: Option<Normaliser>,
}

impl Normalisers {
    /// All but one; for tests.
    pub fn without(off: Normaliser) -> Normalisers {
        Normalisers { off: Some(off) }
    }

    /// Whether a rule is on.
    pub fn has(self, rule: Normaliser) -> bool {
        self.off != Some(rule)
    }

    /// A policy in the form in which two are compared.
    pub fn policy(self, document: &PolicyDocument) -> Value {
        let text = if self.has(Normaliser::PolicyEncoding) {
            percent_encoding::percent_decode_str(&document.0).decode_utf8_lossy().into_owned()
        } else {
            document.0.clone()
        };
        // What is no JSON is no policy of ours; as a string it differs from every one.
        let Ok(mut policy) = serde_json::from_str(&text) else { return Value::String(text) };
        if self.has(Normaliser::PolicyLists) {
            sort_policy(&mut policy);
        }
        policy
    }

    /// A schedule in the form in which two are compared; its Input is opened.
    pub fn schedule(self, members: &Map<String, Value>) -> Value {
        let mut schedule = members.clone();
        if self.has(Normaliser::ScheduleDefaults) {
            default(&mut schedule, "ActionAfterCompletion", json!("NONE"));
            default(&mut schedule, "Description", json!(""));
            default(&mut schedule, "GroupName", json!("default"));
            default(&mut schedule, "ScheduleExpressionTimezone", json!("UTC"));
            default(&mut schedule, "State", json!("ENABLED"));
        }
        if let Some(target) = schedule.get_mut("Target").and_then(Value::as_object_mut) {
            if self.has(Normaliser::ScheduleDefaults) {
                let retries = json!({ "MaximumEventAgeInSeconds": 86_400, "MaximumRetryAttempts": 185 });
                default(target, "RetryPolicy", retries);
            }
            if let Some(input) = target.get_mut("Input") {
                *input = self.input(input);
            }
        }
        Value::Object(schedule)
    }

    fn input(self, input: &Value) -> Value {
        if !self.has(Normaliser::JsonInString) {
            return input.clone();
        }
        let parsed = input.as_str().and_then(|text| serde_json::from_str(text).ok());
        let Some(mut input): Option<Value> = parsed else { return input.clone() };
        if self.has(Normaliser::UnorderedNetwork)
            && let Some(network) = input.pointer_mut("/NetworkConfiguration/AwsvpcConfiguration")
        {
            for member in ["Subnets", "SecurityGroups"] {
                if let Some(ids) = network.get_mut(member).and_then(Value::as_array_mut) {
                    ids.sort_by_key(Value::to_string);
                }
            }
        }
        input
    }

    /// A task definition in the form in which two are compared. `parameter_arn` spells a parameter's name out.
    pub fn task_definition(self, members: &Map<String, Value>, parameter_arn: &dyn Fn(&str) -> String) -> Value {
        let mut members = members.clone();
        if self.has(Normaliser::TaskSize) {
            for (member, unit) in [("cpu", "vcpu"), ("memory", "gb")] {
                if let Some(size) = members.get(member).and_then(Value::as_str).and_then(|text| units(text, unit)) {
                    members.insert(member.to_owned(), size.to_string().into());
                }
            }
        }
        let awsvpc = members.get("networkMode").and_then(Value::as_str) == Some("awsvpc");
        let containers = members.get_mut("containerDefinitions").and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
            self.container(container, awsvpc, parameter_arn);
        }
        if self.has(Normaliser::NamedOrder) {
            sort_by_name(&mut members, "containerDefinitions");
        }
        if self.has(Normaliser::EmptyLists) {
            drop_empty_lists(&mut members);
        }
        Value::Object(members)
    }

    /// Whether two entries of a container's `secrets` mean the same.
    pub fn same_secret(self, a: &Value, b: &Value, parameter_arn: &dyn Fn(&str) -> String) -> bool {
        let from = |secret: &Value| {
            let reference = secret["valueFrom"].as_str().unwrap_or_default().to_owned();
            if self.has(Normaliser::SecretReference) { parameter_arn(&reference) } else { reference }
        };
        a["name"] == b["name"] && from(a) == from(b)
    }

    fn container(self, container: &mut Map<String, Value>, awsvpc: bool, parameter_arn: &dyn Fn(&str) -> String) {
        if self.has(Normaliser::ContainerDefaults) {
            default(container, "cpu", json!(0));
            default(container, "essential", json!(true));
            if let Some(check) = container.get_mut("healthCheck").and_then(Value::as_object_mut) {
                default(check, "interval", json!(30));
                default(check, "timeout", json!(5));
                default(check, "retries", json!(3));
            }
        }
        let ports = container.get_mut("portMappings").and_then(Value::as_array_mut);
        for port in ports.into_iter().flatten().filter_map(Value::as_object_mut) {
            if self.has(Normaliser::PortDefaults) {
                default(port, "protocol", json!("tcp"));
                if let (true, Some(number)) = (awsvpc, port.get("containerPort").cloned()) {
                    default(port, "hostPort", number);
                }
            }
        }
        let secrets = container.get_mut("secrets").and_then(Value::as_array_mut);
        for secret in secrets.into_iter().flatten().filter_map(Value::as_object_mut) {
            if let (true, Some(from)) = (self.has(Normaliser::SecretReference), secret.get("valueFrom")) {
                let arn = parameter_arn(from.as_str().unwrap_or_default());
                secret.insert("valueFrom".to_owned(), arn.into());
            }
        }
        if self.has(Normaliser::NamedOrder) {
            sort_by_name(container, "environment");
            sort_by_name(container, "secrets");
        }
    }
}

fn default(members: &mut Map<String, Value>, member: &str, value: Value) {
    members.entry(member).or_insert(value);
}

fn drop_empty_lists(members: &mut Map<String, Value>) {
    members.retain(|_, value| value.as_array().is_none_or(|list| !list.is_empty()));
    for value in members.values_mut() {
        match value {
            Value::Object(members) => drop_empty_lists(members),
            Value::Array(items) => items.iter_mut().filter_map(Value::as_object_mut).for_each(drop_empty_lists),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
}

fn sort_by_name(members: &mut Map<String, Value>, list: &str) {
    if let Some(items) = members.get_mut(list).and_then(Value::as_array_mut) {
        items.sort_by_key(|item| item.get("name").and_then(Value::as_str).unwrap_or_default().to_owned());
    }
}

/// `1 vCPU` -> 1024, `0.5 GB` -> 512; a plain number is itself.
pub(crate) fn units(text: &str, unit: &str) -> Option<u64> {
    let text = text.trim().to_ascii_lowercase();
    match text.strip_suffix(unit) {
        Some(number) => number.trim().parse::<f64>().ok().map(|number| (number * 1024.0).round() as u64),
        None => text.parse().ok(),
    }
}

/// A list of one becomes its element, lists are sorted; at every depth, because in a policy every list is a set.
fn sort_policy(value: &mut Value) {
    match value {
        Value::Array(items) => {
            items.iter_mut().for_each(sort_policy);
            items.sort_by_key(Value::to_string);
            if items.len() == 1 {
                *value = items.remove(0);
            }
        }
        Value::Object(members) => members.values_mut().for_each(sort_policy),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// One place at which two documents differ.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Difference {
    /// The way to it: `Target.Input.Cluster`.
    pub path: String,
    /// What is there.
    pub old: Option<Value>,
    /// What is wanted.
    pub new: Option<Value>,
}

/// Every place at which two documents in compared form differ.
pub fn differences(old: &Value, new: &Value) -> Vec<Difference> {
    let mut found = Vec::new();
    walk("", Some(old), Some(new), &mut found);
    found
}

fn walk(path: &str, old: Option<&Value>, new: Option<&Value>, found: &mut Vec<Difference>) {
    match (old, new) {
        (Some(Value::Object(a)), Some(Value::Object(b))) => {
            let names: std::collections::BTreeSet<_> = a.keys().chain(b.keys()).collect();
            for name in names {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                walk(&path, a.get(name), b.get(name), found);
            }
        }
        (Some(Value::Array(a)), Some(Value::Array(b))) if a.len() == b.len() && a.iter().all(Value::is_object) => {
            for (i, (a, b)) in a.iter().zip(b).enumerate() {
                let label = b.get("name").or_else(|| b.get("Name")).and_then(Value::as_str);
                let path = format!("{path}[{}]", label.map_or_else(|| i.to_string(), str::to_owned));
                walk(&path, Some(a), Some(b), found);
            }
        }
        (a, b) if a == b => {}
        (a, b) => found.push(Difference { path: path.to_owned(), old: a.cloned(), new: b.cloned() }),
    }
}
