//! The schedule group, the schedule, and the log group that is only looked at.

use serde_json::{Map, Value, json};

use super::{
    Cure, Draft, Pin, Pinned, Refusal, ScheduleStep, Sign, Step, Thing, create_log_group, lines, not_compared,
    tag_lines,
};
use crate::model::run_task::InputError;
use crate::model::{Elsewhere, RunTask, Schedule, Seen, State, tags};
use crate::normalise::{Difference, differences};
use crate::receipt::Receipt;

/// What this program decides of a schedule. What is not among these (a key of one's own, a member that AWS adds some day) stays.
const DECIDED: [&str; 11] = [
    "ActionAfterCompletion",
    "Description",
    "EndDate",
    "FlexibleTimeWindow",
    "GroupName",
    "Name",
    "ScheduleExpression",
    "ScheduleExpressionTimezone",
    "StartDate",
    "State",
    "Target",
];

impl Draft<'_> {
    pub(super) fn group(&mut self) {
        let (desired, live) = (self.desired, self.live);
        let name = desired.timing().group.clone();
        let found = match &live.group {
            Seen::Hidden { why } => return self.hidden(Thing::Group, &name, why),
            Seen::Absent => {
                let step = Step::CreateGroup { name: name.clone(), tags: desired.tags.clone() };
                self.item(Thing::Group, name, Sign::Create, "not found").steps.push(step);
                return;
            }
            Seen::Present(found) => found,
        };
        let lacking = tag_lines(&found.tags, &desired.tags);
        let tag = Step::TagGroup { name: name.clone(), arn: desired.group_arn(), tags: desired.tags.clone() };
        match tags::are_ours(&found.tags, &desired.job.name) {
            true if lacking.is_empty() => {
                self.item(Thing::Group, name, Sign::Same, "ours by its tags");
            }
            true => {
                let item = self.item(Thing::Group, name, Sign::Change, "tags differ");
                (item.details, item.steps) = (lacking, vec![tag]);
            }
            false if self.wish.adopt => {
                self.taken_over_firing();
                let item = self.item(Thing::Group, name, Sign::Change, "becomes ours by its tags");
                (item.details, item.steps) = (lacking, vec![tag]);
            }
            false => self.foreign(Thing::Group, &name, "its tags are not those of this job"),
        }
    }

    /// Whose group it is, his schedule fires: taking the group over does not stop it, and proves nothing.
    fn taken_over_firing(&mut self) {
        let found = self.live.schedule.present();
        let proven = matches!(self.live.receipt, Seen::Present(Ok(Receipt::Verified(_))));
        let stays_on = found.is_some_and(|found| found.state() == State::Enabled)
            && !self.wish.disabled
            && !self.desired.job.stopped;
        if stays_on && !proven {
            let name = &self.desired.job.name;
            self.notes.push(format!(
                "schedule {name} is taken over ENABLED and stays so, UNPROVEN: nobody here has seen a run of it; trigger-now proves one"
            ));
        }
    }

    pub(super) fn schedule(&mut self, pinned: &Pinned) {
        let (desired, live) = (self.desired, self.live);
        let name = &desired.job.name;
        if let Seen::Hidden { why } = &live.schedule {
            return self.hidden(Thing::Schedule, name, why);
        }
        match &live.elsewhere {
            Seen::Present(elsewhere) if !elsewhere.is_empty() => return self.moved_group(elsewhere),
            Seen::Hidden { why } => {
                self.notes
                    .push(format!("whether {name} has a schedule in another group could not be looked at: {why}"));
            }
            Seen::Present(_) | Seen::Absent => {}
        }
        let found = live.schedule.present();
        // Without a revision there is nothing to run; why there is none has been said.
        let pin = match (&pinned.pin, &pinned.unseen) {
            (Some(pin), _) => pin,
            (None, Some(why)) => {
                self.item(Thing::Schedule, name, Sign::Unread, not_compared(why));
                return;
            }
            (None, None) => {
                self.item(Thing::Schedule, name, Sign::Blocked, "there is no task definition to run");
                return;
            }
        };
        let stand_in = match pin {
            Pin::Revision(reference) => Some(reference.clone()),
            Pin::New => found.and_then(pinned_revision).or_else(|| desired.revision(1)),
        };
        let Some(stand_in) = stand_in else { return };
        let run_task = desired.run_task(stand_in);
        let input = match RunTask::new(run_task.clone()) {
            Ok(run_task) => run_task.scheduler_input(),
            Err(error) => {
                self.item(Thing::Schedule, name, Sign::Blocked, error.to_string());
                return self.refusals.push(Refusal::new(format!("job {name} cannot be run: {error}"), error.hint()));
            }
        };
        let state = match found {
            Some(found) if !self.wish.disabled && !desired.job.stopped => found.state(),
            _ => State::Disabled,
        };
        let step = ScheduleStep { schedule: self.wanted_schedule(found, state), run_task, pin: pin.clone() };
        match found {
            None => self.new_schedule(step),
            Some(found) => self.existing_schedule(found, step, &input),
        }
    }

    /// Beside a schedule in another group, a new one would run the job twice.
    fn moved_group(&mut self, elsewhere: &[Elsewhere]) {
        let (name, group) = (&self.desired.job.name, &self.desired.timing().group);
        let places: Vec<_> = elsewhere.iter().map(|one| format!("{}/{name} ({})", one.group, one.state)).collect();
        let places = places.join(", ");
        self.item(Thing::Schedule, name, Sign::Blocked, format!("is {places}, and not in group {group}"));
        let what = format!("job {name} has a schedule already: {places}; the configuration says group = {group:?}");
        let hint = format!(
            "set group = {:?} again; to move it, delete that one first: deploy disable --delete",
            elsewhere.first().map_or("", |one| one.group.as_str())
        );
        self.refusals.push(Refusal::new(what, hint));
    }

    fn new_schedule(&mut self, step: ScheduleStep) {
        let (name, timing) = (&self.desired.job.name, self.desired.timing());
        if !self.wish.disabled && !self.desired.job.stopped {
            let what = format!("schedule {name} is new: it is created switched off, and only when --disabled says so");
            self.refusals.push(Refusal::new(what, "say apply --disabled").cured_by(Cure::Disabled));
        }
        let details = vec![
            ("when".to_owned(), format!("{} {}", timing.expression, timing.timezone)),
            ("runs".to_owned(), runs(&step)),
            ("state".to_owned(), "DISABLED (only `deploy enable` changes it)".to_owned()),
        ];
        let item = self.item(Thing::Schedule, name, Sign::Create, "not found");
        item.details = details;
        item.steps.push(Step::CreateSchedule(step));
    }

    fn existing_schedule(&mut self, found: &Schedule, step: ScheduleStep, input: &str) {
        let name = &self.desired.job.name;
        let mut wanted = step.schedule.clone();
        if let Some(target) = wanted.0.get_mut("Target") {
            target["Input"] = input.into();
        }
        let (old, new) = (self.normalisers.schedule(&found.writable()), self.normalisers.schedule(&wanted.0));
        let mut found_differences = differences(&old, &new);
        if step.pin == Pin::New {
            found_differences.retain(|d| d.path != PINNED);
        }
        // A key that stands there twice reads as either, and an escaped placeholder as itself: neither is what AWS makes of it.
        if let Some(text @ Value::String(_)) = found.0.get("Target").and_then(|target| target.get("Input"))
            && let Err(error @ (InputError::Shape(_) | InputError::Escaped)) =
                RunTask::from_scheduler_input(text.as_str().unwrap_or_default())
            && found_differences.is_empty()
        {
            let (old, new) = (Some(error.to_string().into()), Some("as deploy writes it".into()));
            let path =
                if matches!(error, InputError::Escaped) { "Target.Input.placeholder" } else { "Target.Input.keys" };
            found_differences.push(Difference { path: path.to_owned(), old, new });
        }
        let (state, wanted_state) = (found.state(), step.schedule.state());
        if found_differences.is_empty() && step.pin != Pin::New {
            self.item(Thing::Schedule, name, Sign::Same, format!("{state}, runs {}", revision(&step.pin)));
            return;
        }
        let moves = step.pin == Pin::New || found_differences.iter().any(|d| d.path != "State");
        let moves_what = step.pin == Pin::New || found_differences.iter().any(|d| !is_timing(&d.path));
        if wanted_state == State::Enabled && moves_what {
            self.keep_still(format!("job {name} is ENABLED, and this would move what it runs"));
        } else if wanted_state == State::Enabled {
            self.notes.push(format!("job {name} stays ENABLED: this moves when it runs, not what it runs"));
        }
        let why = why(&found_differences, &step.pin);
        let kept = match (state, wanted_state) {
            (State::Enabled, State::Disabled) => "ENABLED -> DISABLED".to_owned(),
            (State::Enabled, State::Enabled) => "ENABLED (kept)".to_owned(),
            (State::Disabled, _) => "DISABLED (kept; only `deploy enable` changes it)".to_owned(),
        };
        found_differences.retain(|d| d.path != "State" && d.path != PINNED);
        let item = self.item(Thing::Schedule, name, Sign::Change, why);
        item.details = lines(&found_differences);
        item.details.push(("state".to_owned(), kept));
        if (state, wanted_state) == (State::Enabled, State::Disabled) {
            item.steps.push(Step::SwitchOff(found.switched_off()));
        }
        if moves {
            item.steps.push(Step::UpdateSchedule(step));
        }
    }

    /// The whole schedule, without the target's Input.
    fn wanted_schedule(&self, found: Option<&Schedule>, state: State) -> Schedule {
        let (desired, timing) = (self.desired, self.desired.timing());
        let mut members: Map<String, Value> = found.map(Schedule::writable).unwrap_or_default();
        members.retain(|name, _| !DECIDED.contains(&name.as_str()));
        let mut target = json!({
            "Arn": desired.target_arn(),
            "RoleArn": desired.role.arn,
            "RetryPolicy": {
                "MaximumEventAgeInSeconds": timing.retry_for.as_secs(),
                "MaximumRetryAttempts": timing.retries,
            },
        });
        if let Some(queue) = &timing.dead_letter_queue {
            target["DeadLetterConfig"] = json!({ "Arn": queue });
        }
        let window = match timing.flexible_window {
            Some(minutes) => json!({ "Mode": "FLEXIBLE", "MaximumWindowInMinutes": minutes }),
            None => json!({ "Mode": "OFF" }),
        };
        let decided = json!({
            "Name": desired.job.name,
            "GroupName": timing.group,
            "FlexibleTimeWindow": window,
            "ScheduleExpression": timing.expression,
            "ScheduleExpressionTimezone": timing.timezone,
            "State": state.as_str(),
            "Target": target,
        });
        members.extend(decided.as_object().cloned().unwrap_or_default());
        Schedule(members)
    }

    pub(super) fn cluster(&mut self) {
        let name = &self.desired.job.cluster;
        let status = match &self.live.cluster {
            Seen::Hidden { why } => {
                self.item(Thing::Cluster, name, Sign::Unread, format!("could not look: {why}"));
                return;
            }
            Seen::Present(status) if status == "ACTIVE" => {
                self.item(Thing::Cluster, name, Sign::Same, "there");
                return;
            }
            Seen::Present(status) => status.as_str(),
            Seen::Absent => "not found",
        };
        self.item(Thing::Cluster, name, Sign::Blocked, status);
        let what = format!("cluster {name} is {status}: no task would start there");
        self.refusals.push(Refusal::new(what, "set `cluster` to one of: aws ecs list-clusters"));
    }

    pub(super) fn log_group(&mut self, pinned: &Pinned) {
        let Some((name, seen)) = &self.live.log_group else { return };
        match seen {
            Seen::Hidden { why } => {
                self.item(Thing::LogGroup, name, Sign::Unread, format!("could not look: {why}"));
            }
            Seen::Present(()) => {
                self.item(Thing::LogGroup, name, Sign::Same, "there");
            }
            Seen::Absent if self.may_be_made_elsewhere(pinned) => {
                self.notes.push(format!("log group {name} is not there yet, or is in another region"));
            }
            Seen::Absent => {
                self.item(Thing::LogGroup, name, Sign::Blocked, "not found: a task of this family would not start");
                self.notes
                    .push(format!("log groups are not ours to make: {}", create_log_group(&self.desired.region, name)));
            }
        }
    }

    /// The log driver makes its group when it is told to; and a group of another region is not looked at from here.
    fn may_be_made_elsewhere(&self, pinned: &Pinned) -> bool {
        let containers = pinned.members.get("containerDefinitions").and_then(Value::as_array).into_iter().flatten();
        let ours = containers.filter(|container| container["name"] == self.desired.job.container.as_str());
        ours.map(|container| &container["logConfiguration"]["options"]).any(|options| {
            options["awslogs-create-group"] == "true"
                || options["awslogs-region"].as_str().is_some_and(|region| region != self.desired.region)
        })
    }
}

/// When it fires and how often it is tried again: what a proof says nothing about, and what an ENABLED job may be given.
fn is_timing(path: &str) -> bool {
    matches!(path, "State" | "ScheduleExpression" | "ScheduleExpressionTimezone")
        || path.starts_with("Target.RetryPolicy")
}

/// Where the Input names the revision.
const PINNED: &str = "Target.Input.TaskDefinition";

/// The revision that a schedule's Input names, when it names one.
pub fn pinned_revision(schedule: &Schedule) -> Option<crate::model::TaskDefinitionRef> {
    let input: Value = serde_json::from_str(schedule.input()?).ok()?;
    input.get("TaskDefinition")?.as_str()?.parse().ok()
}

fn runs(step: &ScheduleStep) -> String {
    let what = revision(&step.pin);
    let command = &step.run_task.command;
    if command.is_empty() { what } else { format!("{what} with {}", command.join(" ")) }
}

fn revision(pin: &Pin) -> String {
    match pin {
        Pin::Revision(reference) => reference.family_and_revision().to_owned(),
        Pin::New => "the new revision".to_owned(),
    }
}

/// The one sentence for what differs.
fn why(found: &[Difference], pin: &Pin) -> String {
    let number = |value: &Option<Value>| {
        let arn = value.as_ref().and_then(Value::as_str).unwrap_or("nothing");
        arn.rsplit(':').next().unwrap_or(arn).to_owned()
    };
    let mut words = Vec::new();
    if *pin == Pin::New {
        words.push("target pins the new revision".to_owned());
    } else if let Some(d) = found.iter().find(|d| d.path == PINNED) {
        words.push(format!("target pins revision {}, not {}", number(&d.new), number(&d.old)));
    }
    if found.iter().any(|d| d.path == "State") {
        words.push("is switched off".to_owned());
    }
    let members: Vec<_> = found.iter().filter(|d| d.path != PINNED && d.path != "State").collect();
    match members.as_slice() {
        [] => {}
        [one] => words.push(format!("{} differs", one.path.rsplit('.').next().unwrap_or(&one.path))),
        several => words.push(format!("{} members differ", several.len())),
    }
    words.join("; ")
}
