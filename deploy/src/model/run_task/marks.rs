//! What names an occurrence: the only fields in which two runs of one request differ.

use std::collections::BTreeMap;

use geuneul::Trigger;

use super::wire::camel_case;
use super::{OCCURRENCE_VARIABLE, Parts, RunTask, SCHEDULED_TIME, TRIGGER_VARIABLE};

/// ECS: the longest `clientToken`.
pub(super) const MAX_CLIENT_TOKEN: usize = 64;
/// ECS: the longest `startedBy`.
pub(super) const MAX_STARTED_BY: usize = 128;

/// `startedBy` of what Scheduler starts, before the job's name.
pub(super) const STARTED_BY_SCHEDULE: &str = "geuneul-deploy/scheduled/";
const STARTED_BY_PERSON: &str = "geuneul-deploy/manual/";
const STARTED_BY_OPERATOR: &str = "geuneul-deploy/run/";
const STARTED_BY_ONE_OFF: &str = "geuneul-deploy/via-scheduler/";

/// One run that a person starts: a unique name for it and its time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Occurrence {
    /// Unique, up to 50 letters, digits or hyphens.
    pub id: String,
    /// RFC 3339, UTC.
    pub time: String,
}

/// By which of our ways a task was started.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Starter {
    /// By the schedule.
    Schedule,
    /// By a person, with the schedule's own command.
    Trigger,
    /// By a schedule that fires once, for a person.
    OneOff,
    /// By a person, with other arguments.
    Run,
}

impl Starter {
    /// All of them.
    pub const ALL: [Starter; 4] = [Starter::Schedule, Starter::Trigger, Starter::OneOff, Starter::Run];

    /// What the task says of it.
    pub fn started_by(self, job: &str) -> String {
        let before = match self {
            Starter::Schedule => STARTED_BY_SCHEDULE,
            Starter::Trigger => STARTED_BY_PERSON,
            Starter::OneOff => STARTED_BY_ONE_OFF,
            Starter::Run => STARTED_BY_OPERATOR,
        };
        format!("{before}{job}")
    }

    /// Who started a task of this job; `None` when it was none of us.
    pub fn of(started_by: &str, job: &str) -> Option<Starter> {
        Starter::ALL.into_iter().find(|starter| starter.started_by(job) == started_by)
    }

    /// What the job is told of it.
    pub fn trigger(self) -> Trigger {
        match self {
            Starter::Schedule => Trigger::Scheduled,
            Starter::Trigger | Starter::OneOff | Starter::Run => Trigger::Manual,
        }
    }
}

/// What names an occurrence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Marks {
    pub(super) client_token: String,
    pub(super) started_by: String,
    trigger: Trigger,
    /// The job's name is in it: jobs may share a family and a container, and their reports then stand side by side in one log.
    occurrence: String,
}

/// `JOB@TIME`: what a run is told of itself, and says again in its report.
fn named(job: &str, time: &str) -> String {
    format!("{job}@{time}")
}

/// The job and the time of an occurrence, as a run repeats them; `None` when it is no text of ours.
pub fn of_occurrence(text: &str) -> Option<(&str, &str)> {
    text.split_once('@').filter(|(job, _)| !job.is_empty())
}

impl Marks {
    /// For `startedBy` and the token alone.
    pub(super) fn nameless(self) -> Marks {
        Marks { client_token: String::new(), started_by: String::new(), ..self }
    }

    pub(super) fn environment(&self, further: &BTreeMap<String, String>) -> BTreeMap<String, String> {
        let mut all = further.clone();
        all.insert(TRIGGER_VARIABLE.to_owned(), self.trigger.to_string());
        all.insert(OCCURRENCE_VARIABLE.to_owned(), self.occurrence.clone());
        all
    }
}

impl RunTask {
    /// The run of this request that a person starts now.
    pub fn manual(&self, occurrence: Occurrence) -> Run {
        self.started(Starter::Trigger, occurrence)
    }

    /// The run that an operator starts now: not one of the schedule's.
    pub fn by_operator(&self, occurrence: Occurrence) -> Run {
        self.started(Starter::Run, occurrence)
    }

    fn started(&self, starter: Starter, occurrence: Occurrence) -> Run {
        let Occurrence { id, time } = occurrence;
        let marks = Marks {
            client_token: format!("{}-{id}", self.token_prefix()),
            started_by: starter.started_by(&self.0.job),
            trigger: starter.trigger(),
            occurrence: named(&self.0.job, &time),
        };
        debug_assert!(marks.client_token.len() <= MAX_CLIENT_TOKEN && marks.started_by.len() <= MAX_STARTED_BY);
        Run { task: self.clone(), marks }
    }

    /// The run of this request that Scheduler starts at `time`, as it writes the time of the occurrence.
    pub fn scheduled_at(&self, time: &str) -> Run {
        let Marks { client_token, started_by, trigger, occurrence: _ } = self.scheduled();
        let client_token = client_token.replace(SCHEDULED_TIME, time);
        let occurrence = named(&self.0.job, time);
        Run { task: self.clone(), marks: Marks { client_token, started_by, trigger, occurrence } }
    }

    /// The run of this request that a one-off schedule starts at `time`, for the person who made it. It is that person's run, and says
    /// so: one that calls itself scheduled would be skipped while the minimum interval since the last one has not passed.
    pub fn via_scheduler(&self, time: &str) -> Run {
        let marks = Marks {
            client_token: format!("{}-once-{time}", self.token_prefix()),
            started_by: Starter::OneOff.started_by(&self.0.job),
            trigger: Starter::OneOff.trigger(),
            occurrence: named(&self.0.job, time),
        };
        debug_assert!(marks.client_token.len() <= MAX_CLIENT_TOKEN && marks.started_by.len() <= MAX_STARTED_BY);
        Run { task: self.clone(), marks }
    }

    /// The Input of that one-off schedule: the schedule's own but for the three marks, with the same placeholder for the time.
    pub fn one_off_input(&self) -> String {
        let wire = self.wire(&self.via_scheduler(SCHEDULED_TIME).marks);
        serde_json::to_string(&wire).expect("a request has only strings, numbers and lists")
    }

    pub(super) fn scheduled(&self) -> Marks {
        Marks {
            client_token: format!("{}-{SCHEDULED_TIME}", self.token_prefix()),
            started_by: format!("{STARTED_BY_SCHEDULE}{}", self.0.job),
            trigger: Trigger::Scheduled,
            occurrence: named(&self.0.job, SCHEDULED_TIME),
        }
    }
}

/// A [`RunTask`] with the marks of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    task: RunTask,
    marks: Marks,
}

impl Run {
    /// The request.
    pub fn task(&self) -> &Parts {
        self.task.parts()
    }

    /// Makes a repeated request start no second task.
    pub fn client_token(&self) -> &str {
        &self.marks.client_token
    }

    /// By which the task can be found again.
    pub fn started_by(&self) -> &str {
        &self.marks.started_by
    }

    /// Who starts it.
    pub fn trigger(&self) -> Trigger {
        self.marks.trigger
    }

    /// Every variable of the override, those of the occurrence included.
    pub fn environment(&self) -> BTreeMap<String, String> {
        self.marks.environment(&self.task.0.environment)
    }

    /// What `aws ecs run-task --cli-input-json` takes: the same request with the API's own camelCase keys.
    pub fn cli_json(&self) -> String {
        let json = camel_case(&self.task.wire(&self.marks));
        serde_json::to_string_pretty(&json).expect("a JSON value renders")
    }
}
