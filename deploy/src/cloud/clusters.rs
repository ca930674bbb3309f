//! Where tasks run.

use super::{Answer, Aws, CloudError, Clusters};

impl Clusters for Aws {
    // A cluster that is not there is no error of the call: it is missing in the answer, with a failure beside it.
    async fn cluster(&self, name: &str) -> Answer<String> {
        let answer = self.ecs.describe_clusters().clusters(name).send().await;
        let answer = answer.map_err(|error| CloudError::new("ecs:DescribeClusters", name, &error))?;
        let found = answer.clusters().first().ok_or_else(|| CloudError::not_found("ecs:DescribeClusters", name))?;
        Ok(found.status().unwrap_or_default().to_owned())
    }
}
