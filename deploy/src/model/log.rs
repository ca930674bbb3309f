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

/// The streams of one container: ECS puts the task's id behind the prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogPlace {
    /// The log group.
    pub group: String,
    /// How the streams' names begin.
    pub prefix: String,
}

impl LogPlace {
    /// The stream of one task.
    pub fn of_task(self, id: &str) -> LogStream {
        LogStream { name: format!("{}{id}", self.prefix), group: self.group }
    }
}

/// Why nobody here reads what a container writes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoLog {
    /// Another log driver than awslogs, or none.
    #[error("container {0} does not write to CloudWatch")]
    Elsewhere(String),
    /// Without a prefix a stream does not say whose it is.
    #[error("container {0} writes to CloudWatch without a stream prefix")]
    NoPrefix(String),
    /// Where `deploy` does not look.
    #[error("container {container} writes to CloudWatch in {region}, another region than the job's")]
    AnotherRegion {
        /// The container.
        container: String,
        /// Where it writes to.
        region: String,
    },
}

impl NoLog {
    /// What to do about it.
    pub fn hint(&self) -> &'static str {
        match self {
            NoLog::Elsewhere(_) => "`deploy` reads CloudWatch only: give it the awslogs driver and a stream prefix",
            NoLog::NoPrefix(_) => "give its log configuration the option awslogs-stream-prefix",
            NoLog::AnotherRegion { .. } => "`deploy` reads the logs of the job's region: set awslogs-region to it",
        }
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
