//! What would change, and why: a pure function of what is wanted and what is there.
//!
//! A plan leaves no choice to whoever carries it out: a [`Step`] holds everything that is sent, except a secret's value, which a plan
//! never holds, and the number of a revision that is not registered yet, which is [`Pin::New`].
//!
//! Architecture invariant: no I/O, no async, no clock, no SDK, no printing.

mod parameter;
mod refusal;
mod roles;
mod schedule;
mod step;
mod task_definition;
mod trust;

pub use refusal::{Cure, Refusal};
pub use roles::{granted_in_other_region, grants};
pub use schedule::pinned_revision;
pub(crate) use trust::{ECS_TASKS, SCHEDULER, Trust};

pub use step::{Pin, ScheduleStep, Step};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::check;
use crate::desired::Desired;
use crate::model::{Live, Schedule, State, Tags};
use crate::normalise::{Difference, Normalisers};

/// What would change, what would not, what was not seen, and what stands in the way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The job.
    pub job: String,
    /// `ACCOUNT/REGION`.
    pub place: String,
    /// One item a thing, in the order in which they are carried out.
    pub items: Vec<Item>,
    /// Why `apply` would change nothing at all.
    pub refusals: Vec<Refusal>,
    /// What a person should know.
    pub notes: Vec<String>,
    /// Whether the schedule fires now.
    pub state: Option<State>,
}

/// What is planned for one thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// What kind of thing.
    pub thing: Thing,
    /// Its name.
    pub name: String,
    /// What happens to it.
    pub sign: Sign,
    /// Why.
    pub why: String,
    /// More lines: a label and a text.
    pub details: Vec<(String, String)>,
    /// How it happens.
    pub steps: Vec<Step>,
}

/// The kinds of things, in the order in which they are carried out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thing {
    /// A secret's parameter.
    Parameter,
    /// Our inline policy on the execution role.
    Policy,
    /// A revision of the family.
    TaskDefinition,
    /// The scheduler's role with its inline policy.
    Role,
    /// The schedule group.
    Group,
    /// The schedule.
    Schedule,
    /// Where the container writes to; only looked at.
    LogGroup,
    /// Where the task runs; only looked at.
    Cluster,
}

/// What happens to a thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sign {
    /// It is made.
    Create,
    /// It is changed.
    Change,
    /// It should be made or changed, and something stands in the way.
    Blocked,
    /// It is as wanted.
    Same,
    /// We were not allowed to look.
    Unread,
}

/// What the person asked for, besides the configuration.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wish {
    /// End switched off; else the state that is found stays.
    pub disabled: bool,
    /// Take over what is not ours.
    pub adopt: bool,
    /// Move the schedule to the family's newest revision.
    pub latest: bool,
    /// Write the values of these secrets anew, by the names of their variables or parameters.
    pub rotate: Vec<String>,
}

/// What would change.
pub fn plan(desired: &Desired, live: &Live, wish: &Wish, normalisers: Normalisers) -> Plan {
    let mut draft =
        Draft { desired, live, wish, normalisers, items: Vec::new(), refusals: Vec::new(), notes: Vec::new() };
    draft.parameters();
    // What the newest revision reads is taken from it only after another has taken its place.
    let narrows = draft.narrows_policy();
    if !narrows {
        draft.execution_policy();
    }
    let pinned = draft.task_definition();
    if narrows {
        draft.execution_policy();
        draft.keep_readable(&pinned);
    }
    draft.scheduler_role(&pinned);
    draft.group();
    draft.schedule(&pinned);
    draft.log_group(&pinned);
    draft.cluster();
    draft.check(&pinned);
    let Draft { items, refusals, notes, .. } = draft;
    Plan {
        job: desired.job.name.clone(),
        place: format!("{}/{}", desired.account, desired.region),
        items,
        refusals,
        notes,
        state: live.schedule.present().map(Schedule::state),
    }
}

impl Plan {
    /// Every write, in order: what switches off comes first, and before it only what Scheduler asks of the role of any schedule that it
    /// is told to write. As long as the role lacks that, the schedule fires in vain.
    pub fn steps(&self) -> impl Iterator<Item = &Step> {
        let mut steps: Vec<_> = self.items.iter().flat_map(|item| &item.steps).collect();
        if steps.iter().any(|step| matches!(step, Step::SwitchOff(_))) {
            let rank = |step: &&Step| match step {
                Step::CreateRole(_) | Step::UpdateTrust { is_shut: true, .. } => 0,
                Step::SwitchOff(_) => 1,
                _ => 2,
            };
            steps.sort_by_key(rank); // It is stable.
        }
        steps.into_iter()
    }

    /// Whether nothing would change, nothing stands in the way, and nothing that matters was hidden.
    pub fn is_empty(&self) -> bool {
        self.items.iter().all(|item| item.sign == Sign::Same || !item.thing.is_changed_by_us())
    }

    /// Whether something is not as wanted, or stands in the way; what was only not seen does not count.
    pub fn differs(&self) -> bool {
        self.items.iter().any(|item| !matches!(item.sign, Sign::Same | Sign::Unread))
            || self.refusals.iter().any(|refusal| !refusal.unseen)
    }

    /// What could not be looked at that a plan could change; in a few words each.
    pub fn unseen(&self) -> impl Iterator<Item = &str> {
        let hidden = self.items.iter().filter(|item| item.sign == Sign::Unread && item.thing.is_changed_by_us());
        hidden.filter_map(|item| item.why.strip_prefix(HIDDEN))
    }

    /// Whether it switches off a schedule that fires now.
    pub fn switches_off(&self) -> bool {
        self.steps().any(|step| matches!(step, Step::SwitchOff(_)))
    }

    /// The command that makes the log group without which no task would start, when it is not there.
    pub fn makes_log_group(&self) -> Option<String> {
        let missing = self.items.iter().find(|item| item.thing == Thing::LogGroup && item.sign == Sign::Blocked)?;
        let region = self.place.rsplit('/').next().unwrap_or_default();
        Some(create_log_group(region, &missing.name))
    }

    /// How many items have this sign.
    pub fn count(&self, sign: Sign) -> usize {
        self.items.iter().filter(|item| item.sign == sign).count()
    }
}

impl Thing {
    /// Whether a plan could change it; the others are only looked at.
    pub fn is_changed_by_us(self) -> bool {
        !matches!(self, Thing::LogGroup | Thing::Cluster)
    }

    /// How a person calls it.
    pub fn as_str(self) -> &'static str {
        match self {
            Thing::Parameter => "parameter",
            Thing::Policy => "policy",
            Thing::TaskDefinition => "task definition",
            Thing::Role => "role",
            Thing::Group => "schedule group",
            Thing::Schedule => "schedule",
            Thing::LogGroup => "log group",
            Thing::Cluster => "cluster",
        }
    }
}

/// How it is said that nobody looked.
const HIDDEN: &str = "could not look: ";

/// What is said of a thing that was seen, when what it is compared with was not.
fn not_compared(why: &str) -> String {
    format!("could not be compared: {why}")
}

fn create_log_group(region: &str, name: &str) -> String {
    format!("aws logs create-log-group --region {region} --log-group-name {name}")
}

/// A plan in the making. Each part of it is in the file of its thing.
struct Draft<'a> {
    desired: &'a Desired,
    live: &'a Live,
    wish: &'a Wish,
    normalisers: Normalisers,
    items: Vec<Item>,
    refusals: Vec<Refusal>,
    notes: Vec<String>,
}

/// The task definition that the schedule will run.
struct Pinned {
    members: Map<String, Value>,
    pin: Option<Pin>,
    /// Why it was not seen: what hangs on it cannot be compared either.
    unseen: Option<String>,
}

impl Draft<'_> {
    fn item(&mut self, thing: Thing, name: impl Into<String>, sign: Sign, why: impl Into<String>) -> &mut Item {
        let (name, why) = (name.into(), why.into());
        self.items.push(Item { thing, name, sign, why, details: Vec::new(), steps: Vec::new() });
        self.items.last_mut().expect("an item was pushed")
    }

    /// Something that matters and could not be looked at: nothing can be decided about it, so that nothing is changed.
    fn hidden(&mut self, thing: Thing, name: &str, why: &str) {
        self.item(thing, name, Sign::Unread, format!("{HIDDEN}{why}"));
        let action = why.strip_suffix(" denied").unwrap_or(why);
        let what = format!("{} {name} could not be looked at: {why}", thing.as_str());
        let refusal = Refusal::new(what, format!("allow {action} to the caller, {}", self.live.identity.arn));
        self.refusals.push(Refusal { unseen: true, ..refusal });
    }

    /// What is wrong with the task definition that would be used blocks it.
    fn check(&mut self, pinned: &Pinned) {
        let before = self.refusals.len();
        check::check(self.desired, self.live, &pinned.members, &mut self.refusals, &mut self.notes);
        let Some(refusal) = self.refusals.get(before) else { return };
        let why = refusal.what.trim_start_matches(&format!("task definition {} ", self.desired.job.family)).to_owned();
        if let Some(item) = self.items.iter_mut().find(|item| item.thing == Thing::TaskDefinition) {
            (item.sign, item.why) = (Sign::Blocked, why);
            item.steps.clear();
        }
    }

    /// What an ENABLED job runs is not moved under it.
    fn keep_still(&mut self, what: String) {
        let hint = "apply --disabled switches it off first; then trigger-now and enable prove it again";
        self.refusals.push(Refusal::new(what, hint).cured_by(Cure::Disabled));
    }

    /// Something that is there, differs or must be changed, and carries no mark of ours.
    fn foreign(&mut self, thing: Thing, name: &str, why: &str) {
        self.item(thing, name, Sign::Blocked, why);
        let what = format!("{} {name} is there and not ours: {why}", thing.as_str());
        let hint = "take it over with --adopt, or choose another name in the configuration";
        self.refusals.push(Refusal::new(what, hint).cured_by(Cure::Adopt));
    }
}

/// The lines of a plan for tags that are missing or have another value.
fn tag_lines(found: &Tags, wanted: &Tags) -> Vec<(String, String)> {
    let differs = wanted.iter().filter(|(key, value)| found.get(*key) != Some(*value));
    let line = |(key, value): (&String, &String)| {
        let was = found.get(key).map_or("(none)", String::as_str);
        (format!("tag {key}"), format!("{was} -> {value}"))
    };
    differs.map(line).collect()
}

/// The lines of a plan for what differs between two documents.
fn lines(differences: &[Difference]) -> Vec<(String, String)> {
    let text = |d: &Difference, value: &Option<Value>| match value {
        None => "(none)".to_owned(),
        // An Input that is no JSON may hold anything.
        Some(Value::String(_)) if d.path.ends_with("Target.Input") => "(no JSON, not shown)".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => without_variables(other.clone()).to_string(),
    };
    let line = |d: &Difference| match is_private(&d.path) {
        true => (d.path.clone(), "differs (values are not shown)".to_owned()),
        false => (d.path.clone(), format!("{} -> {}", text(d, &d.old), text(d, &d.new))),
    };
    differences.iter().map(line).collect()
}

/// The value of a variable is nobody's business on a screen, secret or not.
fn is_private(member: &str) -> bool {
    member.to_ascii_lowercase().contains("environment")
}

/// A document to show, at whatever depth it differs: variables by their names only.
fn without_variables(mut value: Value) -> Value {
    match &mut value {
        Value::Object(members) => {
            for (member, inner) in members.iter_mut() {
                *inner = match is_private(member) {
                    true => Value::String("(not shown)".to_owned()),
                    false => without_variables(inner.take()),
                };
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = without_variables(item.take())),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    value
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::normalise::differences;

    #[test]
    fn no_value_of_a_variable_is_shown_at_whatever_depth_two_documents_differ() {
        let container = |name: &str| json!({ "name": name, "image": "app:1", "environment": [{ "name": "DB", "value": "canary" }] });
        let input = |containers: &[&str]| {
            let one = |name: &&str| json!({ "Name": name, "Environment": [{ "Name": "DB", "Value": "canary" }] });
            json!({ "Overrides": { "ContainerOverrides": containers.iter().map(one).collect::<Vec<_>>() } })
        };
        let cases = [
            (json!({ "c": [container("app")] }), json!({ "c": [container("app"), container("sidecar")] }), "app:1"),
            (json!({}), container("app"), "environment"),
            (json!({ "Input": input(&["a"]) }), json!({ "Input": input(&["a", "b"]) }), "Overrides"),
            (
                json!({ "Target": { "Input": "{\"canary\"" } }),
                json!({ "Target": { "Input": input(&["a"]) } }),
                "no JSON",
            ),
        ];
        for (old, new, shown) in cases {
            let lines = format!("{:?}", lines(&differences(&old, &new)));
            assert!(!lines.contains("canary") && lines.contains(shown), "{lines}");
        }
    }
}
