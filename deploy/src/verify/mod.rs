//! What `verify` says: a pure function of what is wanted and what was seen.
//!
//! Every check says how it knows: *proven* by what AWS shows, *simulated* by IAM's simulator or by reading a policy as AWS would, or
//! *not checked*, so that silence is never mistaken for good news.
//!
//! Architecture invariant: no I/O, no async, no clock, no SDK, no printing.

use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use crate::desired::{Desired, role_name};
use crate::model::{Live, ParameterType, Role, Schedule, Seen, TaskDefinition, tags};
use crate::normalise::Normalisers;
use crate::plan::{ECS_TASKS, Plan, SCHEDULER, Sign, Thing, Trust};

/// What became of one check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// As it should be.
    Ok,
    /// Not as it should be.
    Ng,
    /// Nothing to check, or nothing that this program can check.
    Skip,
    /// We were not allowed to look.
    Hidden,
}

/// How a check knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum How {
    /// AWS shows it.
    Proven,
    /// Policies say so, by IAM's simulator or by our reading.
    Simulated,
    /// Nobody looked.
    NotChecked,
}

/// One line of the tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// The branch that it belongs to.
    pub branch: &'static str,
    /// What was checked.
    pub name: String,
    /// What became of it.
    pub verdict: Verdict,
    /// How it is known.
    pub how: How,
    /// What was found.
    pub found: String,
}

/// A role that the task definition names, and what it is.
pub type NamedRole = Option<(String, Seen<Role>)>;

/// What a plan does not look at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Facts {
    /// The cluster's status.
    pub cluster: Seen<String>,
    /// The revision that the schedule's Input names.
    pub pinned: Option<(String, Seen<TaskDefinition>)>,
    /// The role that fetches image and secrets.
    pub execution_role: NamedRole,
    /// The role that the container has.
    pub task_role: NamedRole,
    /// How many days the log group keeps its lines.
    pub retention: Option<Seen<Option<u32>>>,
    /// Whether the execution role may read each parameter, and one that is none of its business.
    pub may_read: Vec<(String, Seen<bool>)>,
    /// Whether the execution role may decrypt with each key of the parameters that is none of AWS's own.
    pub may_decrypt: Vec<(String, Seen<bool>)>,
    /// Whether it may read a parameter that is not the job's.
    pub may_read_others: Option<Seen<bool>>,
    /// What else the policies of the scheduler's role must allow: (what, whether).
    pub may_run: Vec<(String, Seen<bool>)>,
    /// The longest time between two of the next fire times.
    pub interval: Option<Duration>,
}

/// Everything, in the order in which a person would look.
pub fn checks(desired: &Desired, live: &Live, plan: &Plan, facts: &Facts) -> Vec<Check> {
    let mut tree = Tree { branch: "", checks: Vec::new() };
    tree.cluster(desired, facts);
    tree.definition(desired, live, facts);
    tree.roles(desired, facts);
    tree.secrets(desired, live, facts);
    tree.scheduler_role(desired, live, facts);
    tree.log(desired, live, facts);
    tree.schedule(desired, live, plan);
    tree.checks
}

struct Tree {
    branch: &'static str,
    checks: Vec<Check>,
}

impl Tree {
    fn say(&mut self, name: &str, verdict: Verdict, how: How, found: impl Into<String>) {
        self.checks.push(Check { branch: self.branch, name: name.to_owned(), verdict, how, found: found.into() });
    }

    fn judge(&mut self, name: &str, how: How, judged: Result<String, String>) {
        match judged {
            Ok(found) => self.say(name, Verdict::Ok, how, found),
            Err(found) => self.say(name, Verdict::Ng, how, found),
        }
    }

    /// What was not there is wrong, what was hidden is hidden, and what was seen is judged.
    fn look<T>(&mut self, name: &str, how: How, seen: &Seen<T>, judge: impl FnOnce(&T) -> Result<String, String>) {
        match seen {
            Seen::Absent => self.say(name, Verdict::Ng, How::Proven, "not found"),
            Seen::Hidden { why } => self.say(name, Verdict::Hidden, How::NotChecked, why.clone()),
            Seen::Present(thing) => self.judge(name, how, judge(thing)),
        }
    }

    fn allowed(&mut self, name: &str, seen: &Seen<bool>) {
        self.look(name, How::Simulated, seen, |allowed| match allowed {
            true => Ok("allowed".to_owned()),
            false => Err("not allowed by its policies".to_owned()),
        });
    }

    fn cluster(&mut self, desired: &Desired, facts: &Facts) {
        self.branch = "cluster";
        self.look(&desired.job.cluster, How::Proven, &facts.cluster, |status| match status.as_str() {
            "ACTIVE" => Ok("ACTIVE".to_owned()),
            other => Err(format!("it is {other}")),
        });
        self.branch = "network";
        let why = "whether these subnets reach SSM, the registry and the logs shows only when a task starts";
        self.say("subnets, security groups", Verdict::Skip, How::NotChecked, why);
    }

    fn definition(&mut self, desired: &Desired, live: &Live, facts: &Facts) {
        self.branch = "task definition";
        let job = &desired.job;
        self.look(&job.family, How::Proven, &live.newest, |found| {
            let newest = found.reference().map_or(0, |reference| reference.revision());
            active(found).map(|()| format!("newest revision {newest}, ACTIVE"))
        });
        if let Some((reference, pinned)) = &facts.pinned {
            let name = format!("revision of the schedule, {}", reference.rsplit('/').next().unwrap_or_default());
            self.look(&name, How::Proven, pinned, |found| active(found).map(|()| "ACTIVE".to_owned()));
        }
        let used = facts.pinned.as_ref().map(|(_, seen)| seen).unwrap_or(&live.task_definition);
        let Some(used) = used.present() else { return };
        let Some(container) = used.container(&job.container) else {
            return self.say(&format!("container {}", job.container), Verdict::Ng, How::Proven, "not in it");
        };
        self.say(&format!("container {}", job.container), Verdict::Ok, How::Proven, "in it");
        let image = container.get("image").and_then(Value::as_str).unwrap_or_default();
        self.judge("image reference", How::Proven, image_form(image));
        self.say("image in its registry", Verdict::Skip, How::NotChecked, "the registry was not asked");
    }

    fn roles(&mut self, desired: &Desired, facts: &Facts) {
        self.branch = "roles of the task";
        for (what, role) in [("execution role", &facts.execution_role), ("task role", &facts.task_role)] {
            match role {
                None if what == "execution role" && !desired.parameters.is_empty() => {
                    self.say(what, Verdict::Ng, How::Proven, "none, and secrets need one");
                }
                None => self.say(what, Verdict::Skip, How::Proven, "none"),
                Some((arn, seen)) => {
                    let name = format!("{what} {} trusts ECS", role_name(arn));
                    // What ECS says of the tasks of an account: no cluster, no task.
                    let tasks = desired.every_ecs_arn();
                    self.look(&name, How::Simulated, seen, |role| trusts(role, ECS_TASKS, &desired.account, &tasks));
                }
            }
        }
    }

    fn secrets(&mut self, desired: &Desired, live: &Live, facts: &Facts) {
        self.branch = "secrets";
        if desired.parameters.is_empty() {
            return self.say("parameters", Verdict::Skip, How::Proven, "the job has none");
        }
        for (wanted, seen) in desired.parameters.iter().zip(&live.parameters) {
            self.look(&format!("parameter {}", wanted.name), How::Proven, seen, |found| match &found.kind {
                ParameterType::SecureString => Ok(format!("SecureString v{}, value not read", found.version)),
                other => Err(format!("it is a {other}, not a SecureString")),
            });
        }
        if facts.may_read.is_empty() {
            self.say(
                "the execution role may read them",
                Verdict::Skip,
                How::NotChecked,
                "there is no role to ask about",
            );
        }
        for (name, seen) in &facts.may_read {
            self.allowed(&format!("the execution role may read {name}"), seen);
        }
        for (key, seen) in &facts.may_decrypt {
            let name = format!("the execution role may decrypt with {key}");
            match seen {
                // Its policies may name the key that the alias stands for, which nobody has looked up.
                Seen::Present(false) if key.contains("alias/") => {
                    let found = "no policy allows it by the alias; whether one does by the key's ARN was not looked at";
                    self.say(&name, Verdict::Skip, How::NotChecked, found);
                }
                seen => self.allowed(&name, seen),
            }
        }
        match &facts.may_read_others {
            Some(Seen::Present(true)) => {
                let found = "it may read parameters that this job does not have: see its other policies";
                self.say("and no other parameter", Verdict::Ng, How::Simulated, found);
            }
            Some(Seen::Present(false)) => {
                self.say("and no other parameter", Verdict::Ok, How::Simulated, "another name is not allowed");
            }
            Some(Seen::Hidden { why }) => {
                self.say("and no other parameter", Verdict::Hidden, How::NotChecked, why.clone());
            }
            Some(Seen::Absent) | None => {}
        }
    }

    fn scheduler_role(&mut self, desired: &Desired, live: &Live, facts: &Facts) {
        self.branch = "scheduler's role";
        let name = format!("{} trusts Scheduler for group {}", desired.role.name, desired.timing().group);
        let group = desired.group_arn();
        self.look(&name, How::Simulated, &live.scheduler_role, |role| {
            trusts(role, SCHEDULER, &desired.account, &group)
        });
        for (what, seen) in &facts.may_run {
            self.allowed(what, seen);
        }
        let dead_letters = live.schedule.present().and_then(|schedule| dead_letter_queue(schedule));
        if dead_letters.is_none() {
            let found = "the schedule has none: an occurrence that cannot be delivered leaves no trace";
            self.say("dead-letter queue", Verdict::Skip, How::Proven, found);
        }
    }

    fn log(&mut self, desired: &Desired, live: &Live, facts: &Facts) {
        self.branch = "log";
        let definition = live.task_definition.present();
        let place = definition.map(|found| found.log_place(&desired.job.container, &desired.region));
        if let Some(Err(error)) = place {
            return self.say("log group", Verdict::Ng, How::Proven, format!("{error}: its run report cannot be read"));
        }
        let Some((name, seen)) = &live.log_group else { return };
        self.look(&format!("group {name}"), How::Proven, seen, |()| Ok("there".to_owned()));
        if let (Some(retention), Some(interval)) = (&facts.retention, facts.interval) {
            let days = interval.as_secs().div_ceil(86_400);
            self.look("retention against the schedule's interval", How::Proven, retention, |kept| match kept {
                None => Ok("kept for ever".to_owned()),
                Some(kept) if u64::from(*kept) > days => Ok(format!("kept {kept} days, at most {days} between runs")),
                Some(kept) => Err(format!(
                    "kept {kept} days, up to {days} between runs: the last run's log is gone before the next"
                )),
            });
        }
        let options = definition.and_then(|found| found.container(&desired.job.container));
        let mode =
            options.and_then(|container| container.get("logConfiguration")?.get("options")?.get("mode")?.as_str());
        self.judge(
            "mode",
            How::Proven,
            match mode {
                Some("blocking") => Ok("blocking: no line is lost".to_owned()),
                Some(other) => Err(format!("{other}: lines can be lost, and the last one is the proof")),
                None => {
                    Err("not set, and AWS's default has been non-blocking since June 2025: lines can be lost"
                        .to_owned())
                }
            },
        );
    }

    fn schedule(&mut self, desired: &Desired, live: &Live, plan: &Plan) {
        self.branch = "schedule";
        let name = format!("group {}", desired.timing().group);
        self.look(&name, How::Proven, &live.group, |group| match tags::are_ours(&group.tags, &desired.job.name) {
            true => Ok("ours by its tags".to_owned()),
            false => Err("its tags are not those of this job".to_owned()),
        });
        let name = format!("{}/{}", desired.timing().group, desired.job.name);
        self.look(&name, How::Proven, &live.schedule, |schedule| Ok(schedule.state().to_string()));
        let Some(schedule) = live.schedule.present() else { return };
        let target = schedule.target_text("Arn").unwrap_or_default();
        self.judge(
            "target",
            How::Proven,
            match target == desired.target_arn() {
                true => Ok(target.to_owned()),
                false => Err(format!("{target:?} is not {}", desired.target_arn())),
            },
        );
        let parsed = crate::model::RunTask::from_scheduler_input(schedule.input().unwrap_or_default());
        self.judge(
            "Input",
            How::Proven,
            match &parsed {
                Ok(_) => Ok("every key is one that RunTask knows, in PascalCase".to_owned()),
                Err(error) => Err(error.to_string()),
            },
        );
        for item in plan.items.iter().filter(|item| item.thing == Thing::Schedule) {
            self.judge(
                "against deploy.toml",
                How::Proven,
                match item.sign {
                    Sign::Same => Ok("as wanted".to_owned()),
                    _ => Err(item.why.clone()),
                },
            );
        }
    }
}

/// The same reading as the plan's.
fn trusts(role: &Role, service: &str, account: &str, source: &str) -> Result<String, String> {
    let keys = [("aws:sourceaccount", account), ("aws:sourcearn", source)];
    match Trust::of(&Normalisers::default().policy(&role.trust), service, &keys) {
        Trust::Given => Ok(service.to_owned()),
        Trust::Missing(why) => Err(why),
    }
}

fn active(found: &TaskDefinition) -> Result<(), String> {
    match found.text("status") {
        Some("ACTIVE") | None => Ok(()),
        Some(other) => Err(format!("it is {other}: no new task of it starts")),
    }
}

/// The queue that a schedule sends undeliverable occurrences to.
pub fn dead_letter_queue(schedule: &Schedule) -> Option<&str> {
    schedule.0.get("Target")?.get("DeadLetterConfig")?.get("Arn")?.as_str()
}

fn image_form(image: &str) -> Result<String, String> {
    if image.is_empty() || image.chars().any(char::is_whitespace) {
        return Err(format!("{image:?} is no image"));
    }
    if let Some((_, digest)) = image.split_once('@') {
        let hex = digest.strip_prefix("sha256:").unwrap_or_default();
        let whole = hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        return if whole { Ok("by digest".to_owned()) } else { Err(format!("{digest:?} is no digest")) };
    }
    let last = image.rsplit('/').next().unwrap_or(image);
    match last.split_once(':') {
        Some((_, "")) => Err(format!("{image:?} has an empty tag")),
        Some((_, tag)) => Ok(format!("by the tag {tag}, which can be moved")),
        None => Ok("without tag, so that it is whatever `latest` is".to_owned()),
    }
}
