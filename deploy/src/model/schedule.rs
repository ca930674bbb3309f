//! A schedule and its group.

use serde_json::{Map, Value};

use super::Tags;

/// A schedule group. Schedules cannot be tagged, so their group is what shows whose they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Its tags.
    pub tags: Tags,
}

/// Whether a schedule fires.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It fires.
    Enabled,
    /// It does not.
    Disabled,
}

impl State {
    /// AWS's word.
    pub const fn as_str(self) -> &'static str {
        match self {
            State::Enabled => "ENABLED",
            State::Disabled => "DISABLED",
        }
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A schedule of the job's name in another group than the configuration's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Elsewhere {
    /// The group.
    pub group: String,
    /// Whether it fires.
    pub state: State,
}

/// A schedule, whole: the JSON object of GetSchedule, which is UpdateSchedule's plus [`Schedule::READ_ONLY`]. UpdateSchedule replaces everything,
/// so whatever is not sent back is lost; here nothing can be forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule(pub Map<String, Value>);

impl Schedule {
    /// What GetSchedule adds and UpdateSchedule does not take.
    pub const READ_ONLY: [&str; 3] = ["Arn", "CreationDate", "LastModificationDate"];

    /// A member of the schedule that is a string.
    pub fn text(&self, member: &str) -> Option<&str> {
        self.0.get(member)?.as_str()
    }

    /// A member of the target that is a string.
    pub fn target_text(&self, member: &str) -> Option<&str> {
        self.0.get("Target")?.get(member)?.as_str()
    }

    /// The request that the schedule sends when it fires.
    pub fn input(&self) -> Option<&str> {
        self.target_text("Input")
    }

    /// Whether it fires. AWS's default for a schedule that does not say so is ENABLED.
    pub fn state(&self) -> State {
        if self.text("State") == Some("DISABLED") { State::Disabled } else { State::Enabled }
    }

    /// The same schedule, switched.
    pub fn with_state(&self, state: State) -> Schedule {
        let mut members = self.0.clone();
        members.insert("State".to_owned(), state.as_str().into());
        Schedule(members)
    }

    /// The same schedule, switched off, in the form that AWS takes whatever it says: a start date of long ago, which means nothing
    /// any more, may be refused.
    pub fn switched_off(&self) -> Schedule {
        let mut off = self.with_state(State::Disabled);
        off.0.remove("StartDate");
        off
    }

    /// What UpdateSchedule takes: everything but the read-only members.
    pub fn writable(&self) -> Map<String, Value> {
        let mut members = self.0.clone();
        members.retain(|name, _| !Self::READ_ONLY.contains(&name.as_str()));
        members
    }
}
