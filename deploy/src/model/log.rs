//! Log streams and their lines.

/// Where one container of one task writes its lines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogStream {
    /// The log group.
    pub group: String,
    /// The stream's name.
    pub name: String,
}

/// One line of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogLine {
    /// When, in milliseconds since the epoch.
    pub at_ms: i64,
    /// What.
    pub text: String,
}
