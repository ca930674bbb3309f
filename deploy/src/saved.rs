//! A plan that was saved to be applied later, by somebody else perhaps: `plan --out FILE`, then `apply FILE`.
//!
//! The file is a promise, not a program: it holds hashes of what was seen and of what each step would send, and `apply` plans anew.
//! When both agree with the file, what is carried out is what was reviewed; else it is refused, with what moved. There is no secret
//! in it, nor anything that a secret could be told from: a plan never holds a value.
//!
//! Architecture invariant: no I/O, no async, no clock, no SDK.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::desired::Desired;
use crate::model::{Live, Schedule, Seen};
use crate::plan::{Plan, Wish};

/// The name of the format and its version.
pub const FORMAT: &str = "saved-plan/1";

/// The file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Saved {
    geuneul: String,
    /// The program's version: another one may send other documents.
    program: String,
    /// The job.
    pub job: String,
    place: String,
    /// What was asked for.
    pub wish: Wish,
    seen: BTreeMap<String, String>,
    steps: Vec<Step>,
    /// What was reviewed, as `plan --json` shows it.
    plan: Value,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    step: String,
    sha256: String,
}

/// Why a saved plan is not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Outdated {
    /// Not a file of this format.
    #[error("it is not a saved plan: {0}")]
    Unreadable(String),
    /// Written by another version.
    #[error("it was saved by deploy {0}, and this is {version}", version = env!("CARGO_PKG_VERSION"))]
    OtherProgram(String),
    /// For another account, region or job.
    #[error("it is for {0}")]
    OtherPlace(String),
    /// The world moved.
    #[error("the world has moved since it was saved: {}", .0.join(", "))]
    WorldMoved(Vec<String>),
    /// The configuration moved.
    #[error("deploy.toml, or a file that it names, has changed since: {}", .0.join(", "))]
    ConfigMoved(Vec<String>),
}

impl Saved {
    /// What is written to the file.
    pub fn new(plan: &Plan, live: &Live, desired: &Desired, wish: &Wish, document: Value) -> Saved {
        Saved {
            geuneul: FORMAT.to_owned(),
            program: env!("CARGO_PKG_VERSION").to_owned(),
            job: plan.job.clone(),
            place: plan.place.clone(),
            wish: wish.clone(),
            seen: seen(live, desired),
            steps: steps(plan),
            plan: document,
        }
    }

    /// Reads the text of a file.
    pub fn read(text: &str) -> Result<Saved, Outdated> {
        let saved: Saved = serde_json::from_str(text).map_err(|error| Outdated::Unreadable(error.to_string()))?;
        if saved.geuneul != FORMAT {
            return Err(Outdated::Unreadable(format!("it says {:?}", saved.geuneul)));
        }
        if saved.program != env!("CARGO_PKG_VERSION") {
            return Err(Outdated::OtherProgram(saved.program));
        }
        Ok(saved)
    }

    /// Refuses unless the plan of this moment is the one that was saved.
    pub fn still(&self, plan: &Plan, live: &Live, desired: &Desired) -> Result<(), Outdated> {
        if (&self.job, &self.place) != (&plan.job, &plan.place) {
            return Err(Outdated::OtherPlace(format!("{} in {}", self.job, self.place)));
        }
        let now = seen(live, desired);
        let names = self.seen.keys().chain(now.keys().filter(|name| !self.seen.contains_key(*name)));
        let moved: Vec<_> = names.filter(|name| self.seen.get(*name) != now.get(*name)).cloned().collect();
        if !moved.is_empty() {
            return Err(Outdated::WorldMoved(moved));
        }
        let now = steps(plan);
        if self.steps != now {
            let either = self.steps.iter().chain(&now);
            let mut moved: Vec<_> = either
                .filter(|step| !(self.steps.contains(step) && now.contains(step)))
                .map(|step| step.step.clone())
                .collect();
            moved.dedup();
            return Err(Outdated::ConfigMoved(moved));
        }
        Ok(())
    }
}

/// One hash a thing that the plan was made of; a schedule has one a member, so that it can be said which moved.
fn seen(live: &Live, desired: &Desired) -> BTreeMap<String, String> {
    // Who asks, where the log goes and what was proven decide nothing about what is sent.
    let Live { identity: _, parameters, newest, task_definition, behind, execution_policy, .. } = live;
    let Live { scheduler_role, scheduler_policy, group, schedule, log_group: _, receipt: _, .. } = live;
    let (family, role, job) = (&desired.job.family, &desired.role.name, &desired.job.name);
    let mut found = BTreeMap::from([
        (format!("newest revision of {family}"), hash(newest)),
        (format!("task definition {family}"), hash(&(task_definition, behind))),
        (format!("policy {}", desired.execution_policy_name()), hash(execution_policy)),
        (format!("role {role}"), hash(scheduler_role)),
        (format!("policy of role {role}"), hash(scheduler_policy)),
        (format!("schedule group {}", desired.timing().group), hash(group)),
    ]);
    for (wanted, parameter) in desired.parameters.iter().zip(parameters) {
        found.insert(format!("parameter {}", wanted.name), hash(parameter));
    }
    match schedule {
        Seen::Present(Schedule(members)) => {
            for (member, value) in members {
                found.insert(format!("schedule {job}: {member}"), hash(&value.to_string()));
            }
        }
        other => drop(found.insert(format!("schedule {job}"), hash(other))),
    }
    found
}

fn steps(plan: &Plan) -> Vec<Step> {
    plan.steps().map(|step| Step { step: step.to_string(), sha256: hash(step) }).collect()
}

fn hash(thing: &impl std::fmt::Debug) -> String {
    hex::encode(&Sha256::digest(format!("{thing:?}"))[..16])
}
