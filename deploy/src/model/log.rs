//! Log streams and their lines.

/// Where one container of one task writes its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogStream {
    /// The log group.
    pub group: String,
    /// The stream's name.
    pub name: String,
}

impl LogStream {
    /// The stream of the same container in another task: ECS puts the task's id last.
    pub fn of_task(self, id: &str) -> LogStream {
        let LogStream { group, name } = self;
        let container = name.rsplit_once('/').map_or(name.as_str(), |(container, _)| container);
        LogStream { name: format!("{container}/{id}"), group }
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
