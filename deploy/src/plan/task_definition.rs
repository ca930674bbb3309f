//! The task definition: an existing one is adopted with everything it has, and only what is missing is added.

use serde_json::{Map, Value, json};

use super::{Draft, Pin, Pinned, Refusal, Sign, Step, Thing, lines};
use crate::config::{RevisionPolicy, Unusable};
use crate::desired::Desired;
use crate::model::{Behind, Seen, Tags, TaskDefinition};
use crate::normalise::{Normalisers, differences};

impl Draft<'_> {
    pub(super) fn task_definition(&mut self) -> Pinned {
        let (desired, live) = (self.desired, self.live);
        let family = &desired.job.family;
        let given = desired.document().map(|document| &document.members);
        if let Some(Unusable { what, hint }) = desired.unusable_document() {
            self.item(Thing::TaskDefinition, family, Sign::Blocked, what.clone());
            self.refusals.push(Refusal::new(what, hint));
            let members = live.task_definition.present().map(TaskDefinition::writable).unwrap_or_default();
            return Pinned { members, pin: None, unseen: None };
        }
        self.behind();
        match (&live.task_definition, given) {
            (Seen::Hidden { why }, _) => {
                self.hidden(Thing::TaskDefinition, family, why);
                Pinned { members: given.cloned().unwrap_or_default(), pin: None, unseen: Some(why.clone()) }
            }
            (Seen::Absent, None) => {
                self.item(Thing::TaskDefinition, family, Sign::Blocked, "not found");
                let what = format!("there is no task definition family {family} to adopt");
                let hint = "register one, or give a whole one with `task_definition = \"FILE.json\"`; templates/task-definition.json is a start";
                self.refusals.push(Refusal::new(what, hint));
                Pinned { members: Map::new(), pin: None, unseen: None }
            }
            (Seen::Absent, Some(given)) => {
                let (members, _) = self.wanted(given);
                let step = Step::Register { members: members.clone(), tags: desired.tags.clone() };
                self.item(Thing::TaskDefinition, family, Sign::Create, "not found; its first revision")
                    .steps
                    .push(step);
                Pinned { members, pin: Some(Pin::New), unseen: None }
            }
            (Seen::Present(found), given) => self.revision(found, given),
        }
    }

    /// What a person should know of the revisions that the schedule does not run.
    fn behind(&mut self) {
        let Some(Behind { pinned, runs, newer }) = &self.live.behind else { return };
        let (desired, family) = (self.desired, &self.desired.job.family);
        if !runs {
            self.notes.push(format!(
                "revision {} of {family}, which the schedule runs, is INACTIVE or gone: it cannot start; the newest one takes its place",
                pinned.revision()
            ));
        } else if desired.job.revision == RevisionPolicy::Pinned {
            self.notes.push(format!(
                "the schedule stays on revision {}; {family} has newer ones: apply --latest moves it",
                pinned.revision()
            ));
        }
        for revision in newer.iter().filter(|one| one.reference().is_some_and(|one| one.revision() > pinned.revision()))
        {
            let number = revision.reference().map_or(0, |reference| reference.revision());
            let by = revision.text("registeredBy").unwrap_or("somebody");
            let has = |env: &str| {
                let secrets = revision.container(&desired.job.container).and_then(|one| one.get("secrets")?.as_array());
                secrets.into_iter().flatten().any(|secret| secret["name"] == env)
            };
            let lacks: Vec<_> = desired.parameters.iter().map(|one| one.env.as_str()).filter(|env| !has(env)).collect();
            let lacks = if lacks.is_empty() { String::new() } else { format!(", without {}", lacks.join(", ")) };
            self.notes.push(format!("revision {number} was registered by {by}{lacks}"));
        }
    }

    fn revision(&mut self, found: &TaskDefinition, given: Option<&Map<String, Value>>) -> Pinned {
        let (desired, normalisers) = (self.desired, self.normalisers);
        let adopted = found.writable();
        let (mut members, missing) = self.wanted(given.unwrap_or(&adopted));
        let stale = if given.is_none() { self.drop_stale_secrets(&mut members) } else { Vec::new() };
        let arn = |name: &str| desired.parameter_arn(name);
        let (old, new) = (normalisers.task_definition(&adopted, &arn), normalisers.task_definition(&members, &arn));
        let differences = differences(&old, &new);
        let family = &desired.job.family;
        let reference = found.reference();
        let revision = reference.as_ref().map_or(0, |reference| reference.revision());
        if differences.is_empty() {
            self.item(Thing::TaskDefinition, family, Sign::Same, format!("revision {revision}"));
            return Pinned { members: adopted, pin: reference.map(Pin::Revision), unseen: None };
        }
        let what = match given {
            Some(_) => "differs from the given document".to_owned(),
            None if missing.missing.is_empty() && missing.moved.is_empty() => {
                format!("{} no longer wanted", named(&stale))
            }
            None => missing.to_string(),
        };
        let moved: Vec<_> =
            missing.moved.iter().map(|(env, from, to)| (env.clone(), format!("{from} -> {to}"))).collect();
        for (env, from, _) in &missing.moved {
            self.notes.push(format!(
                "secret {env} was read from {from}, which stays as it is; delete it when nobody needs it"
            ));
        }
        let step = Step::Register { members: members.clone(), tags: register_tags(found, desired) };
        let why = format!("new revision after {revision}: {what}");
        let item = self.item(Thing::TaskDefinition, family, Sign::Change, why);
        item.steps.push(step);
        item.details = if given.is_some() { lines(&differences) } else { moved };
        item.details.extend(stale.iter().map(|name| (format!("secret {name}"), "is taken out".to_owned())));
        Pinned { members, pin: Some(Pin::New), unseen: None }
    }

    /// Takes the secrets out of the job's container that are there because of us and that the configuration no longer names: those
    /// whose parameters our policy on the execution role names. Everybody else's stay.
    fn drop_stale_secrets(&self, members: &mut Map<String, Value>) -> Vec<String> {
        let stale = self.no_longer_wanted();
        let mut dropped = Vec::new();
        let containers = members.get_mut("containerDefinitions").and_then(Value::as_array_mut).into_iter().flatten();
        for container in containers.filter(|container| container["name"] == self.desired.job.container.as_str()) {
            let Some(secrets) = container.get_mut("secrets").and_then(Value::as_array_mut) else { continue };
            secrets.retain(|secret| {
                let from = secret["valueFrom"].as_str().unwrap_or_default();
                let stays = !stale.contains(&self.desired.parameter_arn(from));
                if !stays {
                    dropped.push(secret["name"].as_str().unwrap_or_default().to_owned());
                }
                stays
            });
        }
        dropped
    }

    /// The document with the job's secrets in its container, and what was put right.
    fn wanted(&self, base: &Map<String, Value>) -> (Map<String, Value>, Secrets) {
        let (desired, normalisers) = (self.desired, self.normalisers);
        let mut members = base.clone();
        members.insert("family".to_owned(), desired.job.family.clone().into());
        let containers = members.get_mut("containerDefinitions").and_then(Value::as_array_mut);
        let container = containers
            .into_iter()
            .flatten()
            .find(|container| container["name"] == desired.job.container.as_str())
            .and_then(Value::as_object_mut);
        let missing = container.map(|container| add_secrets(container, desired, normalisers));
        (members, missing.unwrap_or_default())
    }
}

/// What was not right with a container's secrets.
#[derive(Default)]
struct Secrets {
    /// Variables that had no secret.
    missing: Vec<String>,
    /// Variables that had another one: which, and which they get.
    moved: Vec<(String, String, String)>,
}

impl std::fmt::Display for Secrets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let said = |names: &[&str], one: &str, several: &str| match names {
            [] => None,
            [name] => Some(format!("secret {name} {one}")),
            names => Some(format!("secrets {} {several}", names.join(", "))),
        };
        let missing: Vec<_> = self.missing.iter().map(String::as_str).collect();
        let moved: Vec<_> = self.moved.iter().map(|(env, ..)| env.as_str()).collect();
        let words = [said(&missing, "is missing", "are missing"), said(&moved, "points elsewhere", "point elsewhere")];
        f.write_str(&words.into_iter().flatten().collect::<Vec<_>>().join("; "))
    }
}

fn add_secrets(container: &mut Map<String, Value>, desired: &Desired, normalisers: Normalisers) -> Secrets {
    let mut missing = Secrets::default();
    if desired.parameters.is_empty() {
        return missing;
    }
    let list = container.entry("secrets").or_insert_with(|| json!([]));
    let Some(list) = list.as_array_mut() else { return missing };
    for parameter in &desired.parameters {
        let wanted = json!({ "name": parameter.env, "valueFrom": parameter.arn });
        match list.iter_mut().find(|secret| secret["name"] == parameter.env.as_str()) {
            Some(there) if normalisers.same_secret(there, &wanted, &|name| desired.parameter_arn(name)) => continue,
            Some(there) => {
                let from = there["valueFrom"].as_str().unwrap_or_default();
                let short = from.split_once(":parameter").map_or(from, |(_, name)| name).to_owned();
                missing.moved.push((parameter.env.clone(), short, parameter.name.clone()));
                *there = wanted;
            }
            None => {
                list.push(wanted);
                missing.missing.push(parameter.env.clone());
            }
        }
    }
    missing
}

fn named(secrets: &[String]) -> String {
    match secrets {
        [one] => format!("secret {one} is"),
        several => format!("secrets {} are", several.join(", ")),
    }
}

/// What the revision had, and ours. AWS keeps the names that start with `aws:` to itself.
fn register_tags(found: &TaskDefinition, desired: &Desired) -> Tags {
    let mut tags = found.tags.clone();
    tags.retain(|name, _| !name.to_ascii_lowercase().starts_with("aws:"));
    tags.extend(desired.tags.clone());
    tags
}
