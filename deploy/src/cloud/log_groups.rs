//! Log groups, as far as a plan looks at them.

use super::{Answer, Aws, CloudError, LogGroups};

impl LogGroups for Aws {
    async fn log_group(&self, name: &str) -> Answer<String> {
        const ACTION: &str = "logs:DescribeLogGroups";
        let answer = self.logs.describe_log_groups().log_group_name_prefix(name).send().await;
        let answer = answer.map_err(|e| CloudError::new(ACTION, name, &e))?;
        // The shortest name comes first, so that an exact match is on the first page.
        let found = answer.log_groups.unwrap_or_default().into_iter().filter_map(|g| g.log_group_name);
        found.into_iter().find(|found| found == name).ok_or_else(|| CloudError::not_found(ACTION, name))
    }
}
