//! What `verify` looks at besides a plan's world. Nothing here writes.

use aws_sdk_iam::types::{ContextEntry, ContextKeyTypeEnum, PolicyEvaluationDecisionType};

use super::{Answer, Aws, CloudError};

impl Aws {
    /// A cluster's status, by its name or ARN.
    pub async fn cluster_status(&self, cluster: &str) -> Answer<String> {
        const ACTION: &str = "ecs:DescribeClusters";
        let answer = self.ecs.describe_clusters().clusters(cluster).send().await;
        let answer = answer.map_err(|e| CloudError::new(ACTION, cluster, &e))?;
        let found = answer.clusters.unwrap_or_default().into_iter().next();
        let status = found.and_then(|found| found.status).filter(|status| status != "INACTIVE");
        status.ok_or_else(|| CloudError::not_found(ACTION, cluster))
    }

    /// For how many days a log group keeps its lines; `None` is for ever.
    pub async fn log_retention(&self, name: &str) -> Answer<Option<u32>> {
        const ACTION: &str = "logs:DescribeLogGroups";
        let answer = self.logs.describe_log_groups().log_group_name_prefix(name).send().await;
        let groups = answer.map_err(|e| CloudError::new(ACTION, name, &e))?.log_groups.unwrap_or_default();
        let found = groups.into_iter().find(|group| group.log_group_name.as_deref() == Some(name));
        let found = found.ok_or_else(|| CloudError::not_found(ACTION, name))?;
        Ok(found.retention_in_days.and_then(|days| u32::try_from(days).ok()))
    }

    /// Whether IAM's simulator says that a role may do something. Nothing is done, and a service control policy may still forbid it.
    pub async fn simulate(&self, role: &str, action: &str, on: &str, when: Option<(&str, &str)>) -> Answer<bool> {
        const ACTION: &str = "iam:SimulatePrincipalPolicy";
        let mut call =
            self.iam.simulate_principal_policy().policy_source_arn(role).action_names(action).resource_arns(on);
        if let Some((key, value)) = when {
            let kind = match key {
                "kms:ResourceAliases" => ContextKeyTypeEnum::StringList,
                _ => ContextKeyTypeEnum::String,
            };
            let entry = ContextEntry::builder().context_key_name(key).context_key_type(kind);
            call = call.context_entries(entry.context_key_values(value).build());
        }
        let answer = call.send().await.map_err(|e| CloudError::new(ACTION, role, &e))?;
        let results = answer.evaluation_results.unwrap_or_default();
        Ok(!results.is_empty() && results.iter().all(|r| r.eval_decision == PolicyEvaluationDecisionType::Allowed))
    }
}
