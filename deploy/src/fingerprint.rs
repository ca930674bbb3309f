//! What the next scheduled run depends on, as one hash a field: when a proof is to count, none of them may have moved since.
//!
//! What names an occurrence is outside, and nothing else: see [`RunTask::fingerprint_text`].
//!
//! Architecture invariant: computed from what was read, never from what was wanted; no I/O.

use std::collections::BTreeSet;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::model::run_task::{InputError, RunTask};
use crate::model::{Live, PolicyDocument, Role, Seen};

/// The hashes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fingerprint {
    target: Hash,
    role: Hash,
    input: Hash,
    revision: Hash,
    content: Hash,
    image: Hash,
    secrets: Hash,
}

/// A field of the fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// The API that the schedule calls.
    Target,
    /// The scheduler's role: its ARN, its trust, its boundary, all of its policies.
    Role,
    /// The request, without what names its occurrence.
    Input,
    /// Which revision of the task definition.
    Revision,
    /// What that revision says.
    Content,
    /// The image, by digest when it is pinned by one.
    Image,
    /// The versions of the secrets' parameters, and when they were written.
    Secrets,
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Field::Target => "the schedule's target",
            Field::Role => "the scheduler's role",
            Field::Input => "the schedule's Input",
            Field::Revision => "the task definition's revision",
            Field::Content => "the task definition's content",
            Field::Image => "the container's image",
            Field::Secrets => "the version of a secret",
        })
    }
}

/// Why there is no fingerprint of the world as it is.
#[derive(Debug, thiserror::Error)]
pub enum NoFingerprint {
    /// It is not there.
    #[error("there is no {0}")]
    Absent(&'static str),
    /// We were not allowed to look.
    #[error("the {what} could not be looked at: {why}")]
    Hidden {
        /// What.
        what: &'static str,
        /// What AWS said.
        why: String,
    },
    /// The schedule does something else than running this job.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The schedule pins another revision than the family's newest.
    #[error("the schedule runs {pinned}, and the newest revision is {newest}")]
    NotNewest {
        /// What the Input says.
        pinned: String,
        /// What is there.
        newest: String,
    },
}

impl Fingerprint {
    /// Of the world as it was read.
    pub fn of(live: &Live) -> Result<Fingerprint, NoFingerprint> {
        let schedule = needed(&live.schedule, "schedule")?;
        let role = needed(&live.scheduler_role, "scheduler's role")?;
        let policy = match &live.scheduler_policy {
            Seen::Absent => "none".to_owned(), // A role of somebody else's has no policy of ours.
            other => document(needed(other, "policy of the scheduler's role")?),
        };
        let beside = beside(live, role)?;
        let definition = needed(&live.task_definition, "task definition")?;
        let task = RunTask::from_scheduler_input(schedule.input().unwrap_or_default())?;
        let pinned = task.parts().task_definition.arn();
        let newest = definition.text("taskDefinitionArn").unwrap_or_default();
        if pinned != newest {
            return Err(NoFingerprint::NotNewest { pinned: pinned.to_owned(), newest: newest.to_owned() });
        }
        let image = definition.container(&task.parts().container).and_then(|container| container.get("image"));
        let mut versions = Vec::new();
        for parameter in &live.parameters {
            let parameter = needed(parameter, "parameter of a secret")?;
            let written = parameter.written_ms.map_or_else(|| "unknown".to_owned(), |at| at.to_string());
            versions.push(format!("{}={}@{written}", parameter.name, parameter.version));
        }
        if let Seen::Present(_) | Seen::Hidden { .. } = &live.other_secrets {
            let others = needed(&live.other_secrets, "versions of the family's other secrets")?;
            versions.extend(others.iter().map(|(name, is)| format!("{name}={}", is.as_deref().unwrap_or("gone"))));
        }
        versions.sort();
        let [target, role_arn] = ["Arn", "RoleArn"].map(|member| schedule.target_text(member).unwrap_or_default());
        Ok(Fingerprint {
            target: Hash::of(&[target]),
            role: Hash::of(&[&[role_arn, &role.arn, &document(&role.trust), &policy], &texts(&beside)[..]].concat()),
            input: Hash::of(&[&task.fingerprint_text()]),
            revision: Hash::of(&[pinned]),
            content: Hash::of(&[&Value::Object(definition.writable()).to_string()]),
            image: Hash::of(&[image.and_then(Value::as_str).unwrap_or_default()]),
            secrets: Hash::of(&texts(&versions)),
        })
    }

    /// The part on which the way from Scheduler to a task depends.
    pub fn of_path(&self) -> PathFingerprint {
        let Fingerprint { target, role, input, revision, content: _, image: _, secrets: _ } = self.clone();
        PathFingerprint { target, role, input, revision }
    }

    /// The fields that are not what they were.
    pub fn moved(&self, now: &Fingerprint) -> Vec<Field> {
        let Fingerprint { target, role, input, revision, content, image, secrets } = self;
        [
            (Field::Target, target, &now.target),
            (Field::Role, role, &now.role),
            (Field::Input, input, &now.input),
            (Field::Revision, revision, &now.revision),
            (Field::Content, content, &now.content),
            (Field::Image, image, &now.image),
            (Field::Secrets, secrets, &now.secrets),
        ]
        .into_iter()
        .filter_map(|(field, then, now)| (then != now).then_some(field))
        .collect()
    }
}

/// What it takes until a task is started: whom Scheduler calls, with which role, for what. The revision names the roles that are
/// handed over; what the container then does with its image and secrets is no part of the way to it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PathFingerprint {
    target: Hash,
    role: Hash,
    input: Hash,
    revision: Hash,
}

impl PathFingerprint {
    /// The fields that are not what they were.
    pub fn moved(&self, now: &Fingerprint) -> Vec<Field> {
        let PathFingerprint { target, role, input, revision } = self;
        [
            (Field::Target, target, &now.target),
            (Field::Role, role, &now.role),
            (Field::Input, input, &now.input),
            (Field::Revision, revision, &now.revision),
        ]
        .into_iter()
        .filter_map(|(field, then, now)| (then != now).then_some(field))
        .collect()
    }
}

/// SHA-256, in hex.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Hash(String);

impl Hash {
    /// Of several texts; where one ends and the next begins counts.
    fn of(texts: &[&str]) -> Hash {
        let mut hasher = Sha256::new();
        for text in texts {
            hasher.update(text.len().to_be_bytes());
            hasher.update(text);
        }
        Hash(hex::encode(hasher.finalize()))
    }
}

/// What bounds the scheduler's role, and what else it may or may not do, whoever gave it that: one denial is enough to keep it from
/// starting a task.
fn beside(live: &Live, role: &Role) -> Result<Vec<String>, NoFingerprint> {
    let version = |arn: &String| match live.scheduler_role_managed.get(arn) {
        Some(seen @ Seen::Hidden { .. }) => needed(seen, "version of a policy of the scheduler's role").cloned(),
        // One that is gone is another one when it comes back.
        seen => Ok(seen.and_then(Seen::present).map_or("gone", String::as_str).to_owned()),
    };
    let mut texts = Vec::new();
    if let Some(arn) = &role.boundary {
        texts.push(format!("boundary {arn} {}", version(arn)?));
    }
    if let Seen::Present(_) | Seen::Hidden { .. } = &live.scheduler_role_policies {
        let policies = needed(&live.scheduler_role_policies, "list of the scheduler's role's policies")?;
        let attached: BTreeSet<_> = policies.attached.iter().collect();
        for arn in attached {
            texts.push(format!("attached {arn} {}", version(arn)?));
        }
    }
    let mut others: Vec<_> = live.scheduler_role_others.iter().collect();
    others.sort_by_key(|(name, _)| name);
    for (name, seen) in others {
        let other = needed(seen, "another policy of the scheduler's role")?;
        texts.extend([format!("inline {name}"), document(other)]);
    }
    Ok(texts)
}

fn texts(list: &[String]) -> Vec<&str> {
    list.iter().map(String::as_str).collect()
}

fn needed<'a, T>(seen: &'a Seen<T>, what: &'static str) -> Result<&'a T, NoFingerprint> {
    match seen {
        Seen::Present(thing) => Ok(thing),
        Seen::Absent => Err(NoFingerprint::Absent(what)),
        Seen::Hidden { why } => Err(NoFingerprint::Hidden { what, why: why.clone() }),
    }
}

/// A policy document without its spelling: IAM returns it percent-encoded, and its white space means nothing.
fn document(document: &PolicyDocument) -> String {
    let text = percent_encoding::percent_decode_str(&document.0).decode_utf8_lossy();
    serde_json::from_str::<Value>(&text).map_or_else(|_| text.into_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests;
