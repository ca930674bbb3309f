//! The file that `task_definition` names. It is read with the configuration and judged only where it is needed: whoever wants to
//! switch a job off, or to see how it does, must not be kept from it by a file that is missing.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::exit::Stop;
use crate::model::TaskDefinition;

/// A whole task definition from a file beside `deploy.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Its members.
    pub members: Map<String, Value>,
}

/// Why such a file cannot be used, and the way out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unusable {
    /// What is wrong.
    pub what: String,
    /// The way out.
    pub hint: String,
}

impl From<&Unusable> for Stop {
    fn from(Unusable { what, hint }: &Unusable) -> Stop {
        Stop::usage(what, hint)
    }
}

/// Reads the file, as `deploy.toml` names it, and looks for what RegisterTaskDefinition would refuse or never give back.
pub(super) fn read(path: &Path, family: &str) -> Result<Document, Unusable> {
    let unusable = |why: String, hint: String| Unusable { what: format!("cannot use {}: {why}", path.display()), hint };
    let read = std::fs::read_to_string(path).map_err(|error| error.to_string());
    let parsed = read.and_then(|text| serde_json::from_str(&text).map_err(|error| error.to_string()));
    let members: Map<String, Value> = parsed.map_err(|why| {
        let hint = "task_definition names a JSON file, relative to deploy.toml, as in templates/task-definition.json";
        unusable(why, hint.to_owned())
    })?;
    let read_only: Vec<_> = TaskDefinition::READ_ONLY.iter().filter(|name| members.contains_key(**name)).collect();
    if !read_only.is_empty() {
        let names = read_only.iter().map(|name| format!(".{name}")).collect::<Vec<_>>().join(", ");
        let why = format!("{} is what ECS says of a revision, and nobody tells it", names.replace('.', ""));
        return Err(unusable(why, format!("take it out: jq 'del({names})'")));
    }
    if members.contains_key("tags") {
        let hint = "move them to `tags` of the job in deploy.toml: parameter, role and group get them as well";
        return Err(unusable("it has tags".to_owned(), hint.to_owned()));
    }
    match members.get("family") {
        None => {}
        Some(Value::String(found)) if found == family => {}
        Some(found) => {
            let hint = "make the two the same, or leave `family` out of the document";
            return Err(unusable(format!("its family is {found}, and the job's is {family:?}"), hint.to_owned()));
        }
    }
    if let Some(at) = members.iter().find_map(|(name, value)| null(name, value)) {
        let hint = "leave it out: ECS keeps no null, and the plan would never be empty";
        return Err(unusable(format!("{at} is null"), hint.to_owned()));
    }
    Ok(Document { members })
}

/// Where the first null stands.
fn null(at: &str, value: &Value) -> Option<String> {
    match value {
        Value::Null => Some(at.to_owned()),
        Value::Array(items) => items.iter().enumerate().find_map(|(i, item)| null(&format!("{at}[{i}]"), item)),
        Value::Object(members) => members.iter().find_map(|(name, value)| null(&format!("{at}.{name}"), value)),
        Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

/// The file's place, which is relative to `deploy.toml`.
pub(super) fn beside(configuration: &Path, file: &str) -> PathBuf {
    configuration.parent().unwrap_or(Path::new("")).join(file)
}
