//! `deploy iam --for VERB`: the least that a caller must be allowed, as a policy to paste.

use clap::Args;

use super::Context;
use crate::cloud::TaskDefinitions;
use crate::desired::Desired;
use crate::exit::Exit;
use crate::permissions::{For, TaskRoles, policy};

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
    let roles = task_roles(context, &desired).await;
    out!("{}", serde_json::to_string_pretty(&policy(&desired, &roles, args.whom))?);
    Ok(Exit::Done)
}

/// The roles are named by the task definition. Whoever writes policies may not be allowed to look at it, or may not be logged in at
/// all: then any role of the account must do, and that is said.
async fn task_roles(context: &Context, desired: &Desired) -> TaskRoles {
    let members = match desired.document() {
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
    let role = |member: &str| {
        let role = members.get(member)?.as_str().filter(|role| !role.is_empty())?;
        Some(desired.role_arn(role))
    };
    TaskRoles { execution: role("executionRoleArn"), task: role("taskRoleArn"), known: true }
}
