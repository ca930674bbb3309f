//! What went wrong at AWS, in one shape for every service.

use aws_smithy_types::error::metadata::ProvideErrorMetadata;

/// A call that AWS refused, or that never reached it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{action} {thing}: {said}")]
pub struct CloudError {
    /// The call, as IAM writes it: `ssm:PutParameter`.
    pub action: &'static str,
    /// What it was about.
    pub thing: String,
    /// What kind of failure it is.
    pub kind: ErrorKind,
    /// What AWS said, with its code; or why it was not reached.
    pub said: String,
}

/// The kinds of failure that this program treats differently.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorKind {
    /// There is no such thing.
    NotFound,
    /// The caller may not.
    Denied,
    /// It is there already, or somebody else changes it.
    Conflict,
    /// AWS does not accept what was sent.
    Invalid,
    /// The caller is nobody: no credentials, or expired ones.
    NoCredentials,
    /// AWS was not reached.
    Unreachable,
    /// It is not any more as the plan saw it.
    Moved,
    /// Anything else.
    Other,
}

impl CloudError {
    /// From the SDK's error.
    pub(super) fn new<E, R>(
        action: &'static str,
        thing: impl Into<String>,
        error: &aws_sdk_sts::error::SdkError<E, R>,
    ) -> CloudError
    where
        E: ProvideErrorMetadata + std::error::Error + 'static,
        R: std::fmt::Debug,
    {
        use aws_sdk_sts::error::SdkError;
        let thing = thing.into();
        let (kind, said) = match error {
            SdkError::ServiceError(service) => {
                let (code, message) = (service.err().code().unwrap_or(""), service.err().message().unwrap_or(""));
                (ErrorKind::of(code, message), format!("{code}: {message}"))
            }
            other => not_sent(&chain(other)),
        };
        CloudError { action, thing, kind, said }
    }

    /// A failure that never left this machine.
    pub(crate) fn local(action: &'static str, thing: impl Into<String>, said: impl Into<String>) -> CloudError {
        CloudError { action, thing: thing.into(), kind: ErrorKind::Other, said: said.into() }
    }

    /// An answer without the thing.
    pub(super) fn not_found(action: &'static str, thing: impl Into<String>) -> CloudError {
        CloudError { action, thing: thing.into(), kind: ErrorKind::NotFound, said: "not found".to_owned() }
    }

    /// The few words of a plan for something that could not be looked at: `iam:GetRole denied`.
    pub fn why_hidden(&self) -> String {
        format!("{} denied", self.action)
    }
}

impl ErrorKind {
    fn of(code: &str, message: &str) -> ErrorKind {
        let has = |words: &[&str]| words.iter().any(|word| code.contains(word));
        if has(&["AccessDenied", "UnauthorizedOperation", "NotAuthorized"]) {
            ErrorKind::Denied
        } else if has(&[
            "ExpiredToken",
            "UnrecognizedClient",
            "InvalidClientTokenId",
            "InvalidSignature",
            "SignatureDoesNotMatch",
        ]) {
            ErrorKind::NoCredentials
        } else if has(&["NotFound", "NoSuchEntity", "InvalidResourceId"])
            || message.contains("Unable to describe task definition")
        {
            ErrorKind::NotFound
        } else if has(&["AlreadyExists", "Conflict", "ConcurrentModification"]) {
            ErrorKind::Conflict
        } else if has(&["Validation", "Invalid", "Malformed", "ClientException"]) {
            ErrorKind::Invalid
        } else {
            ErrorKind::Other
        }
    }
}

/// A call that no answer came to. The SDK lists everything that it tried, which is more than anybody wants to read.
fn not_sent(said: &str) -> (ErrorKind, String) {
    let cause = said
        .trim_start_matches("dispatch failure: ")
        .trim_start_matches("io error: ")
        .lines()
        .next()
        .unwrap_or_default();
    if said.contains("no credentials found in chain") {
        (
            ErrorKind::NoCredentials,
            "there are no AWS credentials, neither in the environment nor in a profile".to_owned(),
        )
    } else if said.contains("credentials") || said.contains("identity") || said.contains("sso") {
        let cause = cause.trim_start_matches("other: ");
        (ErrorKind::NoCredentials, format!("the AWS credentials could not be loaded: {cause}"))
    } else {
        (ErrorKind::Unreachable, format!("AWS was not reached: {cause}"))
    }
}

fn chain(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words = format!("{words}: {error}");
        cause = error.source();
    }
    words
}
