//! What `destroy` looks at besides a plan's world, and its writes. What is gone already counts as deleted.

use super::{Answer, Aws, CloudError, ErrorKind};

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
