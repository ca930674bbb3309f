//! `deploy iam --for VERB`: the least that a caller must be allowed, as a policy to paste.

use clap::Args;
use serde_json::{Map, Value};

use super::Context;
use crate::check;
use crate::cloud::{CloudError, ErrorKind, Schedules, TaskDefinitions, Whoami};
use crate::desired::Desired;
use crate::exit::Exit;
use crate::permissions::{For, TaskRoles, policy};
use crate::plan::pinned_revision;

/// The flags of `deploy iam`.
#[derive(Debug, Args)]
pub struct IamArgs {
    /// Whom the policy is for
    #[arg(long = "for", value_enum, value_name = "VERB")]
    pub whom: For,
}

/// Carries the verb out.
pub async fn run(context: &Context, args: IamArgs) -> anyhow::Result<Exit> {
    let desired = context.desired();
    // Whoever writes policies may not be logged in at all; who is, elsewhere, would get the roles of another account.
    let (identity, roles) = tokio::join!(context.aws.identity(), task_roles(context, &desired));
    if let Ok(identity) = identity {
        check::same_place(&desired, &identity)?;
    }
    out!("{}", serde_json::to_string_pretty(&policy(&desired, &roles, args.whom))?);
    Ok(Exit::Done)
}

/// The roles are named by the task definitions: the schedule's, which runs, and the one that `apply` would take. Whoever writes policies
/// may not be allowed to look at them, or may not be logged in at all: then any role of the account must do, and that is said.
async fn task_roles(context: &Context, desired: &Desired) -> TaskRoles {
    let newest = match desired.document() {
        Some(document) => document.members.clone(),
        None => match context.aws.task_definition(&desired.job.family).await {
            Ok(found) => found.members,
            Err(error) => {
                err!("note: the policy names every role of the account: {error}");
                err!(
                    "hint: run it again where ecs:DescribeTaskDefinition is allowed, and it names the family's own roles"
                );
                return TaskRoles::default();
            }
        },
    };
    let pinned = pinned(context, desired).await.unwrap_or_else(|error| {
        err!("note: the policy leaves out the roles of the revision that the schedule runs: {error}");
        err!("hint: run it again where scheduler:GetSchedule and ecs:DescribeTaskDefinition are allowed");
        None
    });
    let role = |member: &str| -> Vec<String> {
        let named = pinned.iter().chain([&newest]).filter_map(|members| members.get(member)?.as_str());
        let mut roles: Vec<_> = named.filter(|role| !role.is_empty()).map(|role| desired.role_arn(role)).collect();
        roles.dedup();
        roles
    };
    TaskRoles { execution: role("executionRoleArn"), task: role("taskRoleArn"), known: true }
}

/// The revision that the schedule runs, if there is one.
async fn pinned(context: &Context, desired: &Desired) -> Result<Option<Map<String, Value>>, CloudError> {
    let schedule = match context.aws.schedule(&desired.timing().group, &desired.job.name).await {
        Err(error) if error.kind == ErrorKind::NotFound => return Ok(None),
        answer => answer?,
    };
    let Some(reference) = pinned_revision(&schedule) else { return Ok(None) };
    match context.aws.task_definition(reference.arn()).await {
        Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
        answer => Ok(Some(answer?.members)),
    }
}
