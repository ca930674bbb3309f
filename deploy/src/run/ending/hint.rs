//! What to do about each end.

use geuneul::{Outcome, WithheldReason};

use super::{Ending, Way};
use crate::explain;

impl Ending {
    /// What to do about it, one step a line. `program` is how a person writes this command again.
    pub fn hint(&self, program: &str) -> String {
        match self {
            Ending::NotPlaced(failures) => {
                failures.first().map_or("try again", |failure| failure_hint(&failure.reason)).to_owned()
            }
            Ending::Refused(error) => match known_start_hint(&error.said) {
                Some(hint) => hint.to_owned(),
                None => explain::hint(error),
            },
            Ending::NothingStarted { way: Way::Wrong, .. } => {
                format!(
                    "put right what is wrong on the way: {program} plan shows what {program} apply would do about it"
                )
            }
            Ending::NothingStarted { way: Way::WrongAndGiven, .. } => format!(
                "the scheduler's role is yours: give it what `{program} iam --for scheduler` prints\n\
                 for everything else that is wrong: {program} plan"
            ),
            Ending::NothingStarted { way: Way::Denied { by, role }, .. } => {
                let by = if by.is_empty() { "a service control policy, or its like".to_owned() } else { by.join(", ") };
                format!(
                    "all that {program} writes is in order: what is wrong comes from somebody else, {by}\n\
                     look at what it denies, or take it away: aws iam list-role-policies --role-name {role}"
                )
            }
            Ending::NothingStarted { way: Way::NotTaken { hint }, .. } => hint.clone(),
            Ending::NothingStarted { way: Way::InOrder, .. } => format!(
                "to hear ECS's own reason: {program} trigger-now\n\
                 if that one starts, it was capacity, or something that cannot be read from here: a service control policy"
            ),
            Ending::Beside { task, .. } => {
                let id = task.rsplit('/').next().unwrap_or(task);
                format!("wait until it has stopped: {program} attach {id}\nor end it: {program} stop {id}")
            }
            Ending::BesideNotSeen(error) => explain::hint(error),
            Ending::StartNotSeen(error) => {
                format!("{}\nsee whether a task of it runs: {program} logs", explain::hint(error))
            }
            Ending::TimedOut { task, .. } => {
                format!("follow it again: {program} attach {task}\n--timeout waits longer")
            }
            Ending::Detached { task } => format!("follow it again: {program} attach {task}"),
            Ending::Unwatched { task, .. } => {
                format!("looking needs ecs:DescribeTasks; when the cause is gone: {program} attach {task}")
            }
            Ending::NeverStarted { reason } => start_hint(reason).to_owned(),
            Ending::NotAsAsked { differences, .. } => not_as_asked(differences, program),
            Ending::NotReplaced { .. } => format!(
                "the Input holds its < as \\u003c, as Terraform's jsonencode writes it, and Scheduler replaces only the letter itself\n\
                 write it anew: {program} apply --disabled"
            ),
            Ending::OutOfMemory { .. } => {
                format!("register a revision with more memory, then: {program} apply --disabled --latest")
            }
            Ending::Failed { .. } if self.is_usage() => {
                "compare the command in deploy.toml with the --help of the image's version".to_owned()
            }
            Ending::Failed { outcomes, .. } if outcomes.contains(&Outcome::Misconfigured) => format!(
                "look at the container's key, database settings and schema; its log says which\n\
                 if it is the value of a secret: put the right one where its `from` says, then: {program} apply --disabled --rotate NAME"
            ),
            Ending::Failed { others, .. } if !others.is_empty() => {
                "when an essential container ends, the others are killed: look at why the other one ended first"
                    .to_owned()
            }
            Ending::Withheld { reason: WithheldReason::OverCap, .. } => format!(
                "look at what would go, with the schedule's own command: {program} run -- ... --ingest.dry-run=true\n\
                 when it is right, confirm it once: {program} run -- ... --ingest.confirm-deactivations=N"
            ),
            Ending::LogNotRead { why } if why.contains("has no stream") => {
                "the task's revision names another log group, prefix or region than the one that was looked at; or its lines came late"
                    .to_owned()
            }
            Ending::LogNotRead { why } if why.contains("was deleted") => {
                "somebody deleted the log while the task ran, and what it printed went with it".to_owned()
            }
            Ending::LogNotRead { why } if why.contains("another region") => {
                "set awslogs-region in the task definition to the job's region; without a log, gate.proof = \"exit-code\" is what remains"
                    .to_owned()
            }
            other => other.sentence().to_owned(),
        }
    }

    fn is_usage(&self) -> bool {
        matches!(self, Ending::Failed { outcomes, .. } if outcomes.contains(&Outcome::Usage))
    }

    /// Where one sentence does for everybody.
    fn sentence(&self) -> &'static str {
        match self {
            Ending::NothingStarted { way: Way::NotGone, .. } => {
                "find out who else changes schedules in that group, then trigger it again"
            }
            Ending::Vanished => "try again; if it happens twice, look for RunTask in CloudTrail",
            Ending::Interrupted => "trigger it again",
            Ending::NoExitCode { .. } => {
                "compare the container's name in deploy.toml with the task definition's, and look at the task in the ECS console"
            }
            Ending::StoppedByPerson { .. } => "trigger it again when nobody needs it stopped",
            Ending::TakenAway { .. } => {
                "trigger it again; a job that may not be interrupted belongs on FARGATE, not on FARGATE_SPOT"
            }
            Ending::Failed { exit_code: 137, .. } => {
                "killed by force: for its memory, or because it did not end within its stop timeout"
            }
            Ending::Failed { exit_code: 126 | 127, .. } => {
                "the image's entry point cannot run that: an override replaces the command, never the entry point"
            }
            Ending::Failed { .. } => "read the container's log",
            Ending::Withheld { .. } => {
                "trigger it again when the portal is quiet; ingest_rejects has the rows that could not be read"
            }
            Ending::Skipped { .. } => "wait until the other run has ended, then trigger this one again",
            Ending::LogNotRead { .. } => {
                "you need logs:GetLogEvents on the log group of the container; without a log, gate.proof = \"exit-code\" is what remains"
            }
            Ending::NoReport => {
                "is this the image of `ingest`? A job that prints no report needs gate.proof = \"exit-code\" in deploy.toml\n\
                 or it came late, more than 10 s behind the other lines: when the log has it by now, trigger the job again"
            }
            Ending::UnreadableReport { .. } => "use a `deploy` and an `ingest` of the same version",
            Ending::Unsuccessful { outcome: Outcome::DryRun } => {
                "take --ingest.dry-run out of the schedule's command: it would change nothing, every month"
            }
            Ending::Unsuccessful { .. } => {
                "the report and the exit code disagree: use a `deploy` and an `ingest` of the same version"
            }
            Ending::NoRows => "is DATA_GO_KR_BASE_URL the right one?",
            Ending::AllRejected { .. } => {
                "look into ingest_rejects for the reason: the data set's shape may have changed"
            }
            Ending::Incomplete => {
                "trigger it again when the portal is quiet; pages that shift during a crawl are the usual cause"
            }
            Ending::OfAnotherRun { .. } => {
                "does the container print a line that it was given, or is its clock wrong? Only the run's own report counts"
            }
            Ending::NotPlaced(_)
            | Ending::NothingStarted { .. }
            | Ending::StartNotSeen(_)
            | Ending::Beside { .. }
            | Ending::BesideNotSeen(_)
            | Ending::Refused(_)
            | Ending::TimedOut { .. }
            | Ending::Detached { .. }
            | Ending::Unwatched { .. }
            | Ending::NeverStarted { .. }
            | Ending::NotAsAsked { .. }
            | Ending::NotReplaced { .. }
            | Ending::OutOfMemory { .. } => "try again",
        }
    }
}

/// What a person does about an outcome of the container.
pub fn next_step(outcome: Outcome) -> String {
    let (container, exit_code) = (String::new(), i32::from(outcome.exit_code()));
    match outcome {
        Outcome::Withheld => {
            "look at what would be deactivated before you confirm it; the changes are in the database already"
                .to_owned()
        }
        _ => Ending::Failed { container, exit_code, outcomes: vec![outcome], error: None, others: Vec::new() }
            .hint("deploy"),
    }
}

fn not_as_asked(differences: &[String], program: &str) -> String {
    let has = |words: &str| differences.iter().any(|difference| difference.contains(words));
    let cause = if has("task definition is") {
        "another revision ran: somebody moved the schedule, or something between here and ECS changes requests"
    } else if has("command is []") || has(" is missing") {
        "the overrides did not reach ECS, which drops what it does not know; the job did what its image does by default"
    } else {
        "something between here and ECS changes requests, or the cluster has settings of its own"
    };
    format!("{cause}\nsee what is wanted and what is there: {program} plan")
}

/// ECS's reasons are codes for an EC2 cluster and sentences for Fargate.
fn failure_hint(reason: &str) -> &'static str {
    match reason {
        reason if reason.contains("apacity") => "try again later; subnets in several availability zones make it rarer",
        reason if reason.starts_with("RESOURCE") => {
            "the cluster has no room for the task's CPU, memory or network interface"
        }
        "AGENT" => "an instance's ECS agent is disconnected",
        "MISSING" | "INACTIVE" => "something that the request names is gone; `deploy plan` shows what",
        _ => "look the reason up under \"API failures messages\" in the ECS guide",
    }
}

fn start_hint(reason: &str) -> &'static str {
    known_start_hint(reason).unwrap_or("look at the task in the ECS console: stopped tasks are kept for about an hour")
}

/// The three causes of "unable to pull secrets" look alike and need different people.
fn known_start_hint(reason: &str) -> Option<&'static str> {
    let has = |words: &str| reason.contains(words);
    Some(if has("KMS") && (has("isabled") || has("pending deletion") || has("InvalidState")) {
        return explain::key_hint(reason);
    } else if has("unable to assume the role") {
        "the role's trust policy must name ecs-tasks.amazonaws.com; a role that is seconds old needs one more try"
    } else if has("CannotPull") || has("pull image") || has("failed to resolve ref") {
        "the image cannot be pulled: does the tag exist, and may the execution role read the repository?"
    } else if has("log group does not exist") {
        "create the log group that the task definition names; the execution role may not"
    } else if has("logger args") || has("log stream") {
        "the execution role may not write to the log group: it needs logs:CreateLogStream and logs:PutLogEvents"
    } else if has("unable to pull secrets") && (has("AccessDenied") || has("not authorized")) {
        "the execution role may not read the secret; `deploy plan` compares its policy. A policy that is seconds old needs one more try"
    } else if has("nvalid ssm parameters") || has("ParameterNotFound") {
        "a parameter that the revision reads is not in this account and region; if deploy.toml names it, `deploy apply --disabled` writes it"
    } else if has("deadline exceeded") || has("imeout") {
        "the subnet has no way to SSM, ECR or the logs: a NAT, VPC endpoints, or assign_public_ip = true in a public subnet"
    } else if has("apacity") || has("RESOURCE:") {
        "try again later; subnets in several availability zones make it rarer"
    } else if has("ubnet") || has("ecurity group") {
        "compare `subnets` and `security_groups` in deploy.toml with: aws ec2 describe-subnets, aws ec2 describe-security-groups"
    } else if has("CannotStartContainer") {
        "the image's entry point cannot be run: is it built for this architecture?"
    } else {
        return None;
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_that_cannot_be_used_is_explained_where_the_task_does_not_start() {
        let reason = "ResourceInitializationError: unable to pull secrets or registry auth: operation error SSM: GetParameters, \
                      https response error StatusCode: 400, InvalidKeyId: KMSInvalidStateException: the key is pending deletion";
        assert!(start_hint(reason).starts_with("save the key"), "{}", start_hint(reason));
        let disabled = reason.replace("KMSInvalidStateException: the key is pending deletion", "KMS DisabledException");
        assert!(start_hint(&disabled).starts_with("switch the key on"), "{}", start_hint(&disabled));
    }
}
