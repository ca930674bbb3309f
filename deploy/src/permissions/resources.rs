//! What the statements are about, by ARN.

use super::Draft;
use crate::one_off;

impl Draft<'_> {
    pub(super) fn parameters(&self) -> Vec<String> {
        self.desired.parameters.iter().map(|parameter| parameter.arn.clone()).collect()
    }

    pub(super) fn receipt(&self) -> String {
        self.desired.parameter_arn(&self.desired.receipt_parameter)
    }

    pub(super) fn scheduled_path(&self) -> String {
        self.desired.parameter_arn(&self.desired.scheduled_path_parameter)
    }

    pub(super) fn schedule(&self) -> String {
        self.arn("scheduler", &format!("schedule/{}/{}", self.desired.timing().group, self.desired.job.name))
    }

    pub(super) fn one_off(&self) -> String {
        self.arn(
            "scheduler",
            &format!("schedule/{}/{}", self.desired.timing().group, one_off::name(&self.desired.job.name)),
        )
    }

    pub(super) fn any_role(&self) -> String {
        self.desired.role_arn("*")
    }

    pub(super) fn execution_role(&self) -> Vec<String> {
        if self.roles.known { self.roles.execution.clone() } else { vec![self.any_role()] }
    }

    pub(super) fn task_roles(&self) -> Vec<String> {
        let mut roles = self.execution_role();
        roles.extend(self.roles.task.clone());
        roles
    }

    /// While there is no such role, IAM knows of no path: then the call is about the bare name.
    pub(super) fn scheduler_role_by_name(&self) -> Vec<String> {
        let role = &self.desired.role;
        vec![role.arn.clone(), self.desired.role_arn(&role.name)]
    }

    pub(super) fn roles_with_our_policies(&self) -> Vec<String> {
        let mut roles = vec![self.desired.role.arn.clone()];
        roles.extend(self.execution_role());
        roles
    }

    pub(super) fn arn(&self, service: &str, tail: &str) -> String {
        // The group's ARN has partition, region and account where every regional ARN has them.
        let group = self.desired.group_arn();
        let parts: Vec<_> = group.splitn(6, ':').collect();
        format!("{}:{}:{service}:{}:{}:{tail}", parts[0], parts[1], parts[3], parts[4])
    }
}
