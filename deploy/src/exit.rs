//! How a command ends: the exit code, and the two kinds of error that carry a way out.

use std::process::ExitCode;

/// Every exit code of `deploy`. Scripts may rely on them; they do not change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done, or nothing to do.
    Done,
    /// Something failed.
    Failed,
    /// `plan --detailed-exitcode` found changes.
    Pending,
    /// A guard refused; nothing was changed.
    Refused,
    /// The run did not prove itself.
    NotProven,
    /// `status` found something that needs a person.
    NeedsPerson,
    /// The command line or `deploy.toml` is wrong.
    Usage,
    /// `run`: what the container ended with.
    Container(i32),
}

impl Exit {
    /// The exit code.
    pub fn code(self) -> u8 {
        match self {
            Exit::Done => 0,
            Exit::Failed => 1,
            Exit::Pending => 2,
            Exit::Refused => 3,
            Exit::NotProven => 4,
            Exit::NeedsPerson => 5,
            Exit::Usage => 64,
            // A container's code is one byte; what is none is no success either.
            Exit::Container(code) => u8::try_from(code).unwrap_or(u8::MAX),
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

/// An error that knows its exit code and the way out. Inside an [`anyhow::Error`] it decides how the program ends; any other
/// error is [`Exit::Failed`].
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct Stop {
    /// How the program ends.
    pub exit: Exit,
    /// What happened, in a sentence.
    pub what: String,
    /// The way out, printed as `hint:`; may be empty.
    pub hint: String,
}

impl Stop {
    /// A guard refused, and nothing was changed.
    pub fn refused(what: impl Into<String>, hint: impl Into<String>) -> Stop {
        Stop { exit: Exit::Refused, what: what.into(), hint: hint.into() }
    }

    /// Something failed, and this is what to do.
    pub fn failed(what: impl Into<String>, hint: impl Into<String>) -> Stop {
        Stop { exit: Exit::Failed, what: what.into(), hint: hint.into() }
    }

    /// The command line or the configuration is wrong.
    pub fn usage(what: impl Into<String>, hint: impl Into<String>) -> Stop {
        Stop { exit: Exit::Usage, what: what.into(), hint: hint.into() }
    }
}
