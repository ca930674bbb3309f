//! What `destroy` would delete and what it leaves: a pure function of what is wanted and what is there.
//!
//! The order is the reverse of `apply`: what fires goes first, what it needs goes last. Only what carries our mark is deleted.
//!
//! Architecture invariant: no I/O, no async, no clock, no SDK, no printing.

use std::fmt;

use crate::desired::{Desired, SCHEDULER_POLICY_NAME, WantedParameter, role_name};
use crate::model::{Group, Live, Parameter, PolicyDocument, Schedule, Seen, State, tags};
use crate::observe::execution_role;
use crate::one_off;
use crate::plan::{granted_in_other_region, grants};
use crate::templates::EXECUTION_POLICY_SID;

/// One deletion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Removal {
    /// The schedule.
    Schedule {
        /// Its group.
        group: String,
        /// Its name.
        name: String,
        /// Whether it fires now.
        state: State,
    },
    /// The one-off schedule of a run by Scheduler, which that run left behind.
    OneOff {
        /// Its group.
        group: String,
        /// Its name.
        name: String,
    },
    /// The schedule group, when nothing else is in it.
    Group {
        /// Its name.
        name: String,
    },
    /// An inline policy.
    RolePolicy {
        /// The role.
        role: String,
        /// The policy.
        policy: String,
    },
    /// A role.
    Role {
        /// Its name.
        name: String,
    },
    /// A parameter, with every version.
    Parameter {
        /// Its name.
        name: String,
        /// What it holds.
        holds: String,
    },
}

impl fmt::Display for Removal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Removal::Schedule { group, name, state } => write!(f, "schedule {group}/{name}, {state}"),
            Removal::OneOff { group, name } => write!(f, "one-off schedule {group}/{name}"),
            Removal::Group { name } => write!(f, "schedule group {name}"),
            Removal::RolePolicy { role, policy } => write!(f, "policy {role}/{policy}"),
            Removal::Role { name } => write!(f, "role {name}"),
            Removal::Parameter { name, holds } => write!(f, "parameter {name}, {holds}"),
        }
    }
}

/// Something that stays, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    /// What.
    pub thing: String,
    /// Why it stays.
    pub why: String,
    /// Whether it may be ours and could not be looked at.
    pub unread: bool,
}

/// An inline policy on the execution role that is not this job's, and what it says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OtherPolicy {
    /// Its name.
    pub name: String,
    /// What it says.
    pub document: PolicyDocument,
}

/// What a plan does not look at, and a deletion must.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Beside {
    /// What the other jobs of the file want.
    pub jobs: Vec<Desired>,
    /// The other inline policies of the execution role, which may let another job read a parameter of ours.
    pub policies: Seen<Vec<OtherPolicy>>,
    /// Every schedule of the group.
    pub schedules: Seen<Vec<String>>,
    /// The parameter of the receipt.
    pub receipt: Seen<Parameter>,
    /// The parameter of the record of the scheduled path.
    pub scheduled_path: Seen<Parameter>,
}

/// What goes, in this order, and what stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Removals {
    /// The deletions, in order.
    pub steps: Vec<Removal>,
    /// What stays.
    pub left: Vec<Left>,
}

/// What `destroy` would do.
pub fn removals(desired: &Desired, live: &Live, beside: &Beside) -> Removals {
    let mut plan = Removals::default();
    plan.schedule_and_group(desired, live, beside);
    let fires_on = live.schedule != Seen::Absent && plan.steps.is_empty();
    plan.scheduler_role(desired, live, beside);
    plan.execution_policy(desired, live);
    plan.parameter(&beside.receipt, &desired.receipt_parameter, "the receipt", &desired.job.name);
    let (path, name) = (&beside.scheduled_path, &desired.scheduled_path_parameter);
    plan.parameter(path, name, "the record of the scheduled path", &desired.job.name);
    for (wanted, seen) in desired.parameters.iter().zip(&live.parameters) {
        match beside.reader(wanted) {
            Seen::Present(why) if *seen != Seen::Absent => plan.leave(format!("parameter {}", wanted.name), why),
            Seen::Hidden { why } if *seen != Seen::Absent => {
                let why = format!("whether another job reads it: {why}");
                plan.unread(format!("parameter {}", wanted.name), &why);
            }
            _ => plan.parameter(seen, &wanted.name, &format!("the secret {}", wanted.env), &desired.job.name),
        }
    }
    if fires_on {
        for step in std::mem::take(&mut plan.steps) {
            plan.leave(step.to_string(), "the schedule that stays may need it");
        }
    }
    plan.task_definition(desired, live);
    plan
}

impl Beside {
    /// Why somebody else still needs a secret's parameter. What is deleted there cannot be restored.
    fn reader(&self, parameter: &WantedParameter) -> Seen<String> {
        let names_it = |other: &&Desired| other.parameters.iter().any(|one| one.arn == parameter.arn);
        if let Some(other) = self.jobs.iter().find(names_it) {
            return Seen::Present(format!("job {} of this file names it too", other.job.name));
        }
        match &self.policies {
            Seen::Absent => Seen::Absent,
            Seen::Hidden { why } => Seen::Hidden { why: why.clone() },
            Seen::Present(policies) => policies
                .iter()
                .find(|one| grants(&one.document, &parameter.arn))
                .map_or(Seen::Absent, |one| Seen::Present(format!("policy {} lets others read it too", one.name))),
        }
    }
}

impl Removals {
    fn leave(&mut self, thing: impl Into<String>, why: impl Into<String>) {
        self.left.push(Left { thing: thing.into(), why: why.into(), unread: false });
    }

    fn unread(&mut self, thing: impl Into<String>, why: &str) {
        self.left.push(Left { thing: thing.into(), why: format!("could not look: {why}"), unread: true });
    }

    /// A schedule cannot be tagged: whose it is, its group says.
    fn schedule_and_group(&mut self, desired: &Desired, live: &Live, beside: &Beside) {
        let (group, job) = (&desired.timing().group, &desired.job.name);
        let (the_group, the_schedule) = (format!("schedule group {group}"), format!("schedule {group}/{job}"));
        let tags = match &live.group {
            Seen::Absent => return,
            Seen::Hidden { why } => Err((why.as_str(), true)),
            Seen::Present(Group { tags: found, .. }) if !tags::are_ours(found, job) => {
                Err(("not ours: the group's tags are not those of this job", false))
            }
            Seen::Present(_) => Ok(()),
        };
        if let Err((why, unread)) = tags {
            let things = [(live.schedule != Seen::Absent).then_some(the_schedule), Some(the_group)];
            for thing in things.into_iter().flatten() {
                if unread { self.unread(thing, why) } else { self.leave(thing, why) }
            }
            return;
        }
        match &live.schedule {
            Seen::Absent => {}
            Seen::Hidden { why } => {
                self.unread(the_schedule, why);
                return self.leave(the_group, "a schedule is still in it");
            }
            Seen::Present(schedule) => {
                let state = Schedule::state(schedule);
                self.steps.push(Removal::Schedule { group: group.clone(), name: job.clone(), state });
            }
        }
        let name = one_off::name(job);
        if beside.schedules.present().is_some_and(|names| names.contains(&name)) {
            self.steps.push(Removal::OneOff { group: group.clone(), name: name.clone() });
        }
        match &beside.schedules {
            _ if group == "default" => self.leave(the_group, "AWS's own, which cannot be deleted"),
            Seen::Hidden { why } => self.unread(the_group, why),
            Seen::Absent => {}
            Seen::Present(names) => {
                match names.iter().filter(|one| *one != job && **one != name).collect::<Vec<_>>().as_slice() {
                    [] => self.steps.push(Removal::Group { name: group.clone() }),
                    others => {
                        let others = others.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", ");
                        self.leave(the_group, format!("other schedules are in it, and would go with it: {others}"));
                    }
                }
            }
        }
    }

    fn scheduler_role(&mut self, desired: &Desired, live: &Live, beside: &Beside) {
        let name = desired.role.name.clone();
        let thing = format!("role {name}");
        let found = match &live.scheduler_role {
            Seen::Absent => return,
            Seen::Hidden { why } => return self.unread(thing, why),
            Seen::Present(_) if !desired.role.ours => return self.leave(thing, "given in the configuration, not ours"),
            Seen::Present(found) => found,
        };
        if !desired.owns_role(&found.tags) {
            return self.leave(thing, "not ours: its tags are not those of this job");
        }
        if let Some(other) = beside.jobs.iter().find(|other| other.role.arn == desired.role.arn) {
            return self.leave(thing, format!("the schedule of job {} uses it too", other.job.name));
        }
        let policies = match &live.scheduler_role_policies {
            Seen::Absent => return,
            Seen::Hidden { why } => return self.unread(thing, why),
            Seen::Present(policies) => policies,
        };
        if let Some((_, first)) = policies.beside(SCHEDULER_POLICY_NAME).first() {
            return self.leave(thing, format!("somebody gave it the policy {first}, which is not ours"));
        }
        if !policies.inline.is_empty() {
            self.steps.push(Removal::RolePolicy { role: name.clone(), policy: SCHEDULER_POLICY_NAME.to_owned() });
        }
        self.steps.push(Removal::Role { name });
    }

    /// An inline policy cannot be tagged; our statement's id is the mark.
    fn execution_policy(&mut self, desired: &Desired, live: &Live) {
        let policy = desired.execution_policy_name();
        let Some(role) = execution_role(desired, &live.task_definition) else {
            if !desired.parameters.is_empty() {
                let why = "the execution role is not known: the task definition could not be read";
                self.unread(format!("policy {policy}"), why);
            }
            return;
        };
        let role = role_name(&role).to_owned();
        match &live.execution_policy {
            None | Some(Seen::Absent) => {}
            Some(Seen::Hidden { why }) => self.unread(format!("policy {role}/{policy}"), why),
            Some(Seen::Present(found)) if granted_in_other_region(found, desired).is_some() => {
                let region = granted_in_other_region(found, desired).unwrap_or_default();
                self.leave(format!("policy {role}/{policy}"), format!("of the job of the same name in {region}"));
            }
            Some(Seen::Present(found)) if found.0.contains(EXECUTION_POLICY_SID) => {
                self.steps.push(Removal::RolePolicy { role, policy });
            }
            Some(Seen::Present(_)) => self.leave(format!("policy {role}/{policy}"), "not ours: it lacks our statement"),
        }
    }

    fn parameter(&mut self, seen: &Seen<Parameter>, name: &str, holds: &str, job: &str) {
        let thing = format!("parameter {name}");
        match seen {
            Seen::Absent => {}
            Seen::Hidden { why } => self.unread(thing, why),
            Seen::Present(Parameter { tags: None, .. }) => self.unread(thing, "its tags are hidden"),
            Seen::Present(Parameter { tags: Some(found), .. }) if tags::are_ours(found, job) => {
                self.steps.push(Removal::Parameter { name: name.to_owned(), holds: holds.to_owned() });
            }
            Seen::Present(_) => self.leave(thing, "not ours: its tags are not those of this job"),
        }
    }

    /// Revisions stay: a service may run them, and only their owner knows. But whoever starts one needs its parameters.
    fn task_definition(&mut self, desired: &Desired, live: &Live) {
        let family = &desired.job.family;
        match &live.task_definition {
            Seen::Absent => {}
            Seen::Hidden { why } => self.leave(format!("task definition {family}"), format!("could not look: {why}")),
            Seen::Present(found) => {
                let newest = found.reference();
                let newest = newest.as_ref().map_or(family.as_str(), |reference| reference.family_and_revision());
                let secrets = found.container(&desired.job.container).and_then(|container| container.get("secrets"));
                let ours: Vec<_> = secrets.and_then(|list| list.as_array()).into_iter().flatten().collect();
                let names_one = ours.iter().any(|secret| {
                    let from = desired.parameter_arn(secret["valueFrom"].as_str().unwrap_or_default());
                    desired.parameters.iter().any(|parameter| parameter.arn == from)
                });
                let why = match names_one {
                    true => {
                        "a service may run it; it names a parameter of ours, without which no new task of it starts"
                    }
                    false => "not ours to delete, and it needs nothing of ours",
                };
                self.leave(format!("task definition {newest}"), why);
            }
        }
    }
}
