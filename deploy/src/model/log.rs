//! Log streams and their lines.

use super::task::Task;

/// Where one container of one task writes its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogStream {
    /// The log group.
    pub group: String,
    /// The stream's name.
    pub name: String,
}

impl LogStream {
    /// The stream of a container of a task, as the awslogs driver names it: nothing else writes to it, so that a report found
    /// there is of this task.
    pub fn of(group: &str, prefix: &str, container: &str, task: &Task) -> LogStream {
        LogStream { group: group.to_owned(), name: format!("{prefix}/{container}/{}", task.id()) }
    }
}

/// One line of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// When, in milliseconds since the epoch.
    pub at_ms: i64,
    /// What.
    pub text: String,
}
