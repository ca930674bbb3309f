//! Where a task runs, and in which network.

use std::collections::BTreeSet;

/// Where a task is placed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Launch {
    /// `LaunchType` FARGATE.
    Fargate,
    /// A strategy over capacity providers, such as FARGATE_SPOT; ECS takes it in place of a launch type.
    CapacityProviders(Vec<CapacityProvider>),
}

/// One entry of a capacity-provider strategy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CapacityProvider {
    /// `FARGATE`, `FARGATE_SPOT`, or one of the cluster's own.
    pub name: String,
    /// Its share of the tasks.
    pub weight: u16,
    /// How many tasks it gets before the shares count.
    pub base: u32,
}

/// The `awsvpc` network of a task. Subnets and groups are sets: their order means nothing to ECS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Network {
    /// One to sixteen subnets.
    pub subnets: BTreeSet<String>,
    /// Up to five security groups; none means the VPC's default group.
    pub security_groups: BTreeSet<String>,
    /// A public address, which a subnet without NAT or endpoints needs to reach SSM, ECR and the logs.
    pub assign_public_ip: bool,
}
