//! The keys of `RunTask` as a universal target has them. A field that is not here cannot be sent, and is refused when read.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::CapacityProvider;

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct RunTask {
    pub cluster: String,
    pub task_definition: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_type: Option<LaunchType>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub capacity_provider_strategy: Vec<CapacityProviderItem>,
    pub count: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub platform_version: Option<String>,
    pub client_token: String,
    pub started_by: String,
    pub network_configuration: NetworkConfiguration,
    pub overrides: Overrides,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum LaunchType {
    Fargate,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct CapacityProviderItem {
    pub capacity_provider: String,
    pub weight: u16,
    pub base: u32,
}

impl From<&CapacityProvider> for CapacityProviderItem {
    fn from(CapacityProvider { name, weight, base }: &CapacityProvider) -> Self {
        CapacityProviderItem { capacity_provider: name.clone(), weight: *weight, base: *base }
    }
}

impl From<CapacityProviderItem> for CapacityProvider {
    fn from(CapacityProviderItem { capacity_provider: name, weight, base }: CapacityProviderItem) -> Self {
        CapacityProvider { name, weight, base }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct NetworkConfiguration {
    // One word for AWS: not `AwsVpcConfiguration`.
    pub awsvpc_configuration: AwsvpcConfiguration,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct AwsvpcConfiguration {
    pub subnets: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub security_groups: Vec<String>,
    pub assign_public_ip: Switch,
}

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Switch {
    Enabled,
    Disabled,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct Overrides {
    pub container_overrides: Vec<ContainerOverride>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct ContainerOverride {
    pub name: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub command: Vec<String>,
    pub environment: Vec<Variable>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", deny_unknown_fields)]
pub struct Variable {
    pub name: String,
    pub value: String,
}

/// The API's own keys: the same words with a small first letter.
pub fn camel_case(value: &impl Serialize) -> Value {
    fn lower(value: Value) -> Value {
        match value {
            Value::Object(map) => map
                .into_iter()
                .map(|(key, value)| {
                    let mut letters = key.chars();
                    let first = letters.next().map(|letter| letter.to_ascii_lowercase());
                    (first.into_iter().chain(letters).collect::<String>(), lower(value))
                })
                .collect(),
            Value::Array(items) => items.into_iter().map(lower).collect(),
            scalar => scalar,
        }
    }
    lower(serde_json::to_value(value).expect("a request has only strings, numbers and lists"))
}

/// The Input as a value in which the order of sets does not count. The order of `Command` does.
pub fn canonical(input: &str) -> Result<Value, serde_json::Error> {
    let mut wire: RunTask = serde_json::from_str(input)?;
    let vpc = &mut wire.network_configuration.awsvpc_configuration;
    vpc.subnets.sort();
    vpc.security_groups.sort();
    for container in &mut wire.overrides.container_overrides {
        container.environment.sort_by(|a, b| a.name.cmp(&b.name));
    }
    serde_json::to_value(wire)
}

/// Where two values part, for a person: `StartedBy is "x"; expected "y"`.
pub fn first_difference(path: &str, theirs: &Value, ours: &Value) -> String {
    match (theirs, ours) {
        (Value::Object(a), Value::Object(b)) => {
            let parted = b.iter().find(|(key, value)| a.get(*key) != Some(value));
            match parted {
                Some((key, value)) => {
                    let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                    first_difference(&path, a.get(key).unwrap_or(&Value::Null), value)
                }
                None => format!("{path} has more than {ours}"),
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            let at = a.iter().zip(b).position(|(a, b)| a != b).unwrap_or_default();
            first_difference(&format!("{path}[{at}]"), &a[at], &b[at])
        }
        _ => format!("{path} is {theirs}; expected {ours}"),
    }
}
