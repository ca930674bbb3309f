//! What `destroy` looks at besides a plan's world, and its writes. What is gone already counts as deleted.

use super::{Answer, Aws, CloudError, ErrorKind};
use crate::removal::RolePolicies;

impl Aws {
    /// The names of every schedule in a group.
    pub async fn schedules_in(&self, group: &str) -> Answer<Vec<String>> {
        let mut names = Vec::new();
        let mut token = None;
        loop {
            let page = self.scheduler.list_schedules().group_name(group).set_next_token(token).send().await;
            let page = page.map_err(|e| CloudError::new("scheduler:ListSchedules", group, &e))?;
            names.extend(page.schedules.into_iter().filter_map(|schedule| schedule.name));
            token = page.next_token.filter(|token| !token.is_empty());
            if token.is_none() {
                return Ok(names);
            }
        }
    }

    /// Everything that would keep IAM from deleting a role.
    pub async fn role_policies(&self, role: &str) -> Answer<RolePolicies> {
        let inline = self.iam.list_role_policies().role_name(role).send();
        let attached = self.iam.list_attached_role_policies().role_name(role).send();
        let (inline, attached) = tokio::join!(inline, attached);
        let inline = inline.map_err(|e| CloudError::new("iam:ListRolePolicies", role, &e))?;
        let attached = attached.map_err(|e| CloudError::new("iam:ListAttachedRolePolicies", role, &e))?;
        let attached = attached.attached_policies.unwrap_or_default();
        let attached = attached.into_iter().filter_map(|policy| policy.policy_name).collect();
        Ok(RolePolicies { inline: inline.policy_names, attached })
    }

    /// Deletes a schedule group, and with it every schedule that is still inside.
    pub async fn delete_group(&self, name: &str) -> Answer<()> {
        let answer = self.scheduler.delete_schedule_group().name(name).send().await;
        gone(answer.map(drop).map_err(|e| CloudError::new("scheduler:DeleteScheduleGroup", name, &e)))
    }

    /// Deletes an inline policy of a role.
    pub async fn delete_role_policy(&self, role: &str, policy: &str) -> Answer<()> {
        let answer = self.iam.delete_role_policy().role_name(role).policy_name(policy).send().await;
        gone(answer.map(drop).map_err(|e| CloudError::new("iam:DeleteRolePolicy", format!("{role}/{policy}"), &e)))
    }

    /// Deletes a role that has no policies any more.
    pub async fn delete_role(&self, name: &str) -> Answer<()> {
        let answer = self.iam.delete_role().role_name(name).send().await;
        gone(answer.map(drop).map_err(|e| CloudError::new("iam:DeleteRole", name, &e)))
    }

    /// Deletes a parameter with all its versions.
    pub async fn delete_parameter(&self, name: &str) -> Answer<()> {
        let answer = self.ssm.delete_parameter().name(name).send().await;
        gone(answer.map(drop).map_err(|e| CloudError::new("ssm:DeleteParameter", name, &e)))
    }
}

/// An earlier try whose answer was lost, or somebody else, may have been faster.
pub(super) fn gone(answer: Answer<()>) -> Answer<()> {
    match answer {
        Err(error) if error.kind == ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
