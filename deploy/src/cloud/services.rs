//! Services, as far as `init` looks at them: where the family runs today.

use super::{Answer, Aws, CloudError};
use crate::model::Network;

impl Aws {
    /// The network of a service of that cluster that runs the family.
    pub async fn service_network(&self, cluster: &str, family: &str) -> Answer<Option<Network>> {
        let mut token = None;
        loop {
            // As many as DescribeServices takes.
            let page = self.ecs.list_services().cluster(cluster).max_results(10).set_next_token(token).send().await;
            let page = page.map_err(|e| CloudError::new("ecs:ListServices", cluster, &e))?;
            let arns = page.service_arns.unwrap_or_default();
            if !arns.is_empty() {
                let found = self.ecs.describe_services().cluster(cluster).set_services(Some(arns)).send().await;
                let found = found.map_err(|e| CloudError::new("ecs:DescribeServices", cluster, &e))?;
                let runs = |arn: &str| arn.rsplit('/').next().and_then(|tail| tail.split(':').next()) == Some(family);
                let services = found.services.unwrap_or_default();
                let service = services.into_iter().find(|service| service.task_definition.as_deref().is_some_and(runs));
                if let Some(vpc) = service.and_then(|s| s.network_configuration).and_then(|n| n.awsvpc_configuration) {
                    return Ok(Some(Network {
                        assign_public_ip: vpc.assign_public_ip == Some(aws_sdk_ecs::types::AssignPublicIp::Enabled),
                        subnets: vpc.subnets.into_iter().collect(),
                        security_groups: vpc.security_groups.unwrap_or_default().into_iter().collect(),
                    }));
                }
            }
            token = page.next_token.filter(|token| !token.is_empty());
            if token.is_none() {
                return Ok(None);
            }
        }
    }
}
