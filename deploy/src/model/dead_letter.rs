//! What Scheduler keeps of an occurrence that it could not deliver.

use jiff::Timestamp;

/// A message in a schedule's dead-letter queue, by Scheduler's own attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeadLetter {
    /// The ARN of the schedule.
    pub schedule: String,
    /// When the occurrence was due.
    pub due: Option<Timestamp>,
    /// What Scheduler was told when it called the target: the code and the words.
    pub error: String,
}

impl DeadLetter {
    /// Whether it is of this schedule (`group/name`), due at a moment or later.
    pub fn is_of(&self, schedule: &str, from: Timestamp) -> bool {
        self.schedule.ends_with(&format!("schedule/{schedule}")) && self.due.is_none_or(|due| due >= from)
    }
}
