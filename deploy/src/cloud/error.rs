//! What went wrong at AWS, in one shape for every service.

use aws_smithy_types::error::metadata::ProvideErrorMetadata;

use crate::run::readable::quoted;

/// A call that AWS refused, or that never reached it.
#[derive(Debug, Clone, PartialEq, Eq)]
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

impl std::error::Error for CloudError {}

impl std::fmt::Display for CloudError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let CloudError { action, thing, kind, said } = self;
        match kind {
            // Nobody's fault but the caller's or the network's: which call came first says nothing.
            ErrorKind::NoCredentials | ErrorKind::Unreachable => f.write_str(said),
            ErrorKind::NotFound
            | ErrorKind::Denied
            | ErrorKind::Conflict
            | ErrorKind::Invalid
            | ErrorKind::Moved
            | ErrorKind::Failing
            | ErrorKind::Throttled
            | ErrorKind::Other => {
                write!(f, "{action} {thing}: {said}")
            }
        }
    }
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
    /// AWS itself failed: whether the call took effect, nobody knows.
    Failing,
    /// AWS was asked too often.
    Throttled,
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
                match ErrorKind::of(code, message) {
                    kind if code.is_empty() && message.is_empty() => {
                        (kind, "the answer has neither a code nor words: is that AWS?".to_owned())
                    }
                    kind @ ErrorKind::NoCredentials => {
                        (kind, format!("AWS does not take these credentials: {code}: {message}"))
                    }
                    kind => (kind, quoted(&format!("{code}: {message}"))),
                }
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
        } else if has(&["Throttl", "TooManyRequests", "TooManyUpdates", "RequestLimitExceeded"])
            || message.contains("Rate exceeded")
        {
            ErrorKind::Throttled
        } else if has(&["NotFound", "NoSuchEntity", "InvalidResourceId"])
            || message.contains("Unable to describe task definition")
        {
            ErrorKind::NotFound
        } else if has(&["AlreadyExists", "Conflict", "ConcurrentModification"]) {
            ErrorKind::Conflict
        } else if has(&["ServerException", "InternalServer", "InternalFailure", "InternalError", "ServiceUnavailable"])
        {
            ErrorKind::Failing
        } else if has(&["Validation", "Invalid", "Malformed", "ClientException"]) {
            ErrorKind::Invalid
        } else {
            ErrorKind::Other
        }
    }
}

/// A call that no answer came to. The SDK lists everything that it tried, which is more than anybody wants to read.
fn not_sent(said: &str) -> (ErrorKind, String) {
    let cause = sentence(said);
    if said.contains("no credentials found in chain") || said.contains("IMDS") {
        (
            ErrorKind::NoCredentials,
            "there are no AWS credentials: not in the environment, not in a profile, not from this machine".to_owned(),
        )
    } else if said.contains("credential")
        || said.contains("profile")
        || said.contains("identity")
        || said.contains("sso")
    {
        (ErrorKind::NoCredentials, format!("the AWS credentials could not be loaded: {cause}"))
    } else {
        (ErrorKind::Unreachable, format!("AWS was not reached: {cause}"))
    }
}

/// The innermost cause that is words for a person. The SDK wraps it in its own, and some of those print whole requests.
fn sentence(said: &str) -> &str {
    let first = said.lines().next().unwrap_or_default();
    let words = first.split(": ").filter(|part| !WRAPPING.contains(part));
    let is_dump = |part: &&str| part.contains(" {") || part.contains("SdkBody");
    let words: Vec<_> = words.take_while(|part| !is_dump(part)).collect();
    let (Some(begin), Some(end)) = (words.first(), words.last()) else { return "the request could not be sent" };
    // What is left is one stretch of the text.
    let begin = first.find(begin).unwrap_or(0);
    let end = first.find(end).map_or(first.len(), |at| at + end.len());
    first.get(begin..end).unwrap_or(first)
}

/// What the SDK puts before a cause, and what says nothing to a person.
const WRAPPING: [&str; 13] = [
    "dispatch failure",
    "io error",
    "other",
    "failed to construct request",
    "request has timed out",
    "response error",
    "an error occurred while loading credentials",
    "an error occurred while loading an identity",
    "unhandled error",
    "client error (Connect)",
    "tcp connect error",
    "the credential provider was not enabled",
    "the credential provider was not properly configured",
];

fn chain(error: &dyn std::error::Error) -> String {
    let mut words = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        words = format!("{words}: {error}");
        cause = error.source();
    }
    words
}
