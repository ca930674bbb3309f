//! What a refusal of AWS probably means, and the way out.

use crate::cloud::{CloudError, ErrorKind};
use crate::exit::{Exit, Stop};

/// Scheduler's words while IAM has not told it of a new role yet, and for ever when the trust policy is wrong.
pub const CANNOT_ASSUME: &str = "must allow AWS EventBridge Scheduler to assume the role";

/// Whether the failure may go away by itself because IAM needs time to tell the other services.
pub fn may_be_propagation(error: &CloudError) -> bool {
    error.said.contains(CANNOT_ASSUME)
        || error.said.contains("ECS was unable to assume the role")
        || (error.kind == ErrorKind::NotFound && error.action == "iam:PutRolePolicy")
}

/// How the program ends with an error, and the way out.
pub fn way_out(error: &anyhow::Error) -> (Exit, String) {
    match (error.downcast_ref::<Stop>(), error.downcast_ref::<CloudError>()) {
        (Some(stop), _) => (stop.exit, stop.hint.clone()),
        (None, Some(error)) => (Exit::Failed, hint(error)),
        (None, None) => (Exit::Failed, String::new()),
    }
}

/// The likely cause and the way out, in a sentence or two.
pub fn hint(error: &CloudError) -> String {
    let CloudError { action, thing, kind, said } = error;
    if *action == crate::apply::INTERRUPTED {
        return "no write was broken off: what is done is done, and the rest was not begun".to_owned();
    }
    if said.contains(CANNOT_ASSUME) {
        return "either IAM has not told Scheduler of the role yet (try again in some minutes), or the role's trust policy names \
                another group: its aws:SourceArn must be the schedule group's ARN, never a schedule's"
            .to_owned();
    }
    if said.contains("iam:PassRole") {
        return "allow iam:PassRole on that role to the caller; Scheduler and ECS check it whenever a role is handed over, and \
                `deploy iam --for VERB` prints all that a verb takes"
            .to_owned();
    }
    if let Some(hint) = key_hint(said) {
        return hint.to_owned();
    }
    match kind {
        ErrorKind::Denied if thing == "the caller" => format!("allow {action} to the caller"),
        ErrorKind::Denied => format!("allow {action} on {thing} to the caller"),
        ErrorKind::NoCredentials => {
            "log in (aws sso login), choose a profile with --profile, or set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY".to_owned()
        }
        ErrorKind::Unreachable => {
            "check the network, the region and, if one is set, --endpoint-url or AWS_ENDPOINT_URL".to_owned()
        }
        ErrorKind::Conflict => {
            format!("{thing} came to be in the meantime: somebody else made it, or an earlier try whose answer was lost")
        }
        ErrorKind::NotFound if action.starts_with("logs:") => {
            format!("{thing} is not there, or no longer; `deploy plan` says whether the job's log group is")
        }
        ErrorKind::NotFound => {
            format!("is {thing} its name, and is it in this account and region? `deploy plan` says what is there")
        }
        ErrorKind::Failing => {
            "AWS itself failed, and the call may have taken effect all the same: look with `deploy status`, then try again"
                .to_owned()
        }
        ErrorKind::Moved => {
            "another operator or a pipeline works on the same job: find out who, then look again with `deploy plan`".to_owned()
        }
        ErrorKind::Throttled => "AWS is asked too often, by all of this account together: wait a minute, then say it again".to_owned(),
        ErrorKind::Invalid | ErrorKind::Other => "AWS's own words above are all that is known".to_owned(),
    }
}

/// What a key of KMS has against it, in the words that SSM passes on.
pub fn key_hint(said: &str) -> Option<&'static str> {
    let has = |words: &[&str]| words.iter().any(|word| said.contains(word));
    let hint = match () {
        () if has(&["kms:Encrypt", "kms:GenerateDataKey", "kms:Decrypt"]) => {
            "allow that on the key to the caller: deploy iam --for apply prints the statement; the key's own policy must allow it too, or \
             leave it to IAM"
        }
        () if !has(&["AWSKMS", "InvalidKeyId", "KMS"]) => return None,
        () if has(&["DisabledException", "is disabled"]) => {
            "switch the key on (aws kms enable-key --key-id KEY), or name another as kms_key"
        }
        () if has(&["KMSInvalidState", "pending deletion"]) => {
            "save the key (aws kms cancel-key-deletion, then enable-key), or name another as kms_key; with it, everything that it \
             encrypts would be lost"
        }
        () if has(&["NotFoundException", "not found", "does not exist"]) => {
            "a key is of one region: kms_key must name one of the parameter's own region; see aws kms list-aliases"
        }
        () => "kms_key must be a symmetric key of KMS that is switched on, by its ARN, its id or alias/NAME",
    };
    Some(hint)
}
