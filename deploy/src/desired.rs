//! What one job wants of AWS: a pure function of the configuration.
//!
//! Architecture invariant: no I/O, no async, no clock, no SDK.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::config::{Config, Document, Job, Timing, Unusable};
use crate::model::run_task::Parts;
use crate::model::{PolicyDocument, Tags, TaskDefinitionRef, parameter, tags};
use crate::sealed::Owner;
use crate::secret::Origin;
use crate::templates;
use crate::{receipt, scheduled_path};

/// What one job wants of AWS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Desired {
    /// The job as configured.
    pub job: Job,
    /// The only account that may be changed.
    pub account: String,
    /// The only region that may be changed.
    pub region: String,
    partition: &'static str,
    /// What everything of the job is tagged with.
    pub tags: Tags,
    /// The secrets' parameters.
    pub parameters: Vec<WantedParameter>,
    /// The role that the schedule uses.
    pub role: WantedRole,
    /// Whose receipts count.
    pub owner: Owner,
    /// Where the receipt of the proven run is kept.
    pub receipt_parameter: String,
    /// Where the record of the proven scheduled path is kept.
    pub scheduled_path_parameter: String,
}

/// A secret's parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedParameter {
    /// The variable inside the container.
    pub env: String,
    /// The parameter's name.
    pub name: String,
    /// The parameter's ARN.
    pub arn: String,
    /// Where its value comes from.
    pub from: Origin,
    /// The KMS key that encrypts it, when one was named.
    pub kms_key: Option<String>,
}

/// The role that the schedule uses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedRole {
    /// Its name.
    pub name: String,
    /// Its ARN.
    pub arn: String,
    /// Whether it is ours to make and keep; else it is used as it is.
    pub ours: bool,
    /// Its path, when it is ours.
    pub path: String,
    /// Its permissions boundary, when one was named.
    pub boundary: Option<String>,
}

/// The name of our inline policy on the scheduler's role.
pub const SCHEDULER_POLICY_NAME: &str = "run-task";

impl Desired {
    /// What a job wants.
    pub fn new(config: &Config, job: &Job) -> Desired {
        let (account, region, partition) = (&config.account, &config.region, config.partition());
        let parameter = |secret: &crate::config::Secret| WantedParameter {
            env: secret.env.clone(),
            name: secret.parameter.clone(),
            arn: format!(
                "arn:{partition}:ssm:{region}:{account}:parameter/{}",
                secret.parameter.trim_start_matches('/')
            ),
            from: secret.from.clone(),
            kms_key: secret.kms_key.clone(),
        };
        let (path, boundary) = (job.schedule.role_path.clone(), job.schedule.permissions_boundary.clone());
        let role = match &job.schedule.role {
            Some(arn) => WantedRole { name: role_name(arn).to_owned(), arn: arn.clone(), ours: false, path, boundary },
            None => {
                let name = made_role(&job.name);
                let arn = format!("arn:{partition}:iam::{account}:role{path}{name}");
                WantedRole { arn, name, ours: true, path, boundary }
            }
        };
        Desired {
            account: account.clone(),
            region: region.clone(),
            partition,
            tags: job.tags.clone().into_iter().chain(tags::ours(&job.name)).collect(),
            parameters: job.secrets.iter().map(parameter).collect(),
            role,
            receipt_parameter: receipt::parameter(&config.app, &job.name),
            scheduled_path_parameter: scheduled_path::parameter(&config.app, &job.name),
            owner: Owner::of(config, job),
            job: job.clone(),
        }
    }

    /// What the scheduler's role is tagged with. Roles are of the whole account, so that the region belongs to it.
    pub fn role_tags(&self) -> Tags {
        let mut tags = self.tags.clone();
        tags.insert(tags::REGION.to_owned(), self.region.clone());
        tags
    }

    /// Whether a role's tags say that it is of this job, here.
    pub fn owns_role(&self, found: &Tags) -> bool {
        tags::are_ours(found, &self.job.name) && found.get(tags::REGION) == Some(&self.region)
    }

    /// The other region whose job of this name a role is of, by its tags.
    pub fn other_region<'a>(&self, found: &'a Tags) -> Option<&'a str> {
        let region = found.get(tags::REGION).filter(|_| tags::are_ours(found, &self.job.name))?;
        (*region != self.region).then_some(region)
    }

    /// When the schedule fires.
    pub fn timing(&self) -> &Timing {
        &self.job.schedule
    }

    /// The task definition that was given whole, if one was.
    pub fn document(&self) -> Option<&Document> {
        self.job.task_definition.as_ref()?.as_ref().ok()
    }

    /// Why the task definition that was given whole cannot be used.
    pub fn unusable_document(&self) -> Option<&Unusable> {
        self.job.task_definition.as_ref()?.as_ref().err()
    }

    /// The name of our inline policy on the execution role.
    pub fn execution_policy_name(&self) -> String {
        format!("geuneul-deploy-{}", self.job.name)
    }

    /// The group's ARN.
    pub fn group_arn(&self) -> String {
        let Desired { account, region, partition, .. } = self;
        format!("arn:{partition}:scheduler:{region}:{account}:schedule-group/{}", self.timing().group)
    }

    /// The same job with its schedule in another group.
    pub fn in_group(&self, group: &str) -> Desired {
        let mut moved = self.clone();
        group.clone_into(&mut moved.job.schedule.group);
        moved
    }

    /// The cluster's ARN.
    pub fn cluster_arn(&self) -> String {
        let Desired { account, region, partition, job, .. } = self;
        if job.cluster.starts_with("arn:") {
            return job.cluster.clone();
        }
        format!("arn:{partition}:ecs:{region}:{account}:cluster/{}", job.cluster)
    }

    /// A role's ARN, from its ARN or name.
    pub fn role_arn(&self, role: &str) -> String {
        let Desired { account, partition, .. } = self;
        if role.starts_with("arn:") {
            return role.to_owned();
        }
        format!("arn:{partition}:iam::{account}:role/{role}")
    }

    /// The ARN of a parameter that is written by name or ARN.
    pub fn parameter_arn(&self, reference: &str) -> String {
        let Desired { account, region, partition, .. } = self;
        if reference.starts_with("arn:") {
            return reference.to_owned();
        }
        format!("arn:{partition}:ssm:{region}:{account}:parameter/{}", reference.trim_start_matches('/'))
    }

    /// A revision of the family.
    pub fn revision(&self, revision: u32) -> Option<TaskDefinitionRef> {
        let Desired { account, region, partition, job, .. } = self;
        format!("arn:{partition}:ecs:{region}:{account}:task-definition/{}:{revision}", job.family).parse().ok()
    }

    /// What the execution role may read: exactly the secrets' parameters, and what decrypts them where that is no key of AWS's own.
    pub fn execution_policy(&self) -> PolicyDocument {
        let arns: Vec<_> = self.parameters.iter().map(|parameter| parameter.arn.clone()).collect();
        let (keys, aliases) = self.named_keys();
        let values = [
            ("PARAMETER_ARNS", json!(arns)),
            ("KEY_ARNS", json!(keys)),
            ("KEY_ALIASES", json!(aliases)),
            ("EVERY_KEY_ARN", json!(self.every_key_arn())),
        ];
        PolicyDocument(templates::fill(templates::EXECUTION_POLICY, &values).to_string())
    }

    /// The KMS keys that the configuration names, AWS's own left out: their ARNs, and their aliases. A policy's resource knows no
    /// alias: an alias is a condition on every key of the account.
    pub fn named_keys(&self) -> (Vec<String>, Vec<String>) {
        let named: BTreeSet<_> = self.parameters.iter().filter_map(|parameter| parameter.kms_key.as_deref()).collect();
        let named = named.into_iter().filter(|key| !parameter::is_same_key(key, parameter::AWS_OWN_KEY));
        let (aliases, keys): (Vec<_>, Vec<_>) = named.partition(|key| key.contains("alias/"));
        let aliases = aliases.iter().filter_map(|alias| Some(alias[alias.find("alias/")?..].to_owned())).collect();
        (keys.into_iter().map(|key| self.key_arn(key)).collect(), aliases)
    }

    /// The ARN of a key, from its ARN or id.
    pub fn key_arn(&self, key: &str) -> String {
        if key.starts_with("arn:") { key.to_owned() } else { self.every_key_arn().replace('*', key) }
    }

    /// What stands for every key of the account, here.
    pub fn every_key_arn(&self) -> String {
        let Desired { account, region, partition, .. } = self;
        format!("arn:{partition}:kms:{region}:{account}:key/*")
    }

    /// What ECS says it acts for when it assumes a task's roles.
    pub fn every_ecs_arn(&self) -> String {
        let Desired { account, region, partition, .. } = self;
        format!("arn:{partition}:ecs:{region}:{account}:*")
    }

    /// Who may assume the scheduler's role: Scheduler, on behalf of schedules of our group.
    pub fn trust(&self) -> PolicyDocument {
        let values = [("ACCOUNT", json!(self.account)), ("GROUP_ARN", json!(self.group_arn()))];
        templates::policy(templates::SCHEDULER_TRUST, &values)
    }

    /// What the scheduler's role may do: start this family on this cluster, and hand over the roles that the task definition names.
    pub fn scheduler_policy(&self, task_definition: &Map<String, Value>) -> PolicyDocument {
        let roles =
            ["executionRoleArn", "taskRoleArn"].iter().filter_map(|member| task_definition.get(*member)?.as_str());
        self.scheduler_policy_passing(roles.map(|role| self.role_arn(role)).collect())
    }

    /// The same for roles that are known by their ARNs.
    pub fn scheduler_policy_passing(&self, mut roles: Vec<String>) -> PolicyDocument {
        let Desired { account, region, partition, job, .. } = self;
        roles.dedup();
        let every = format!("arn:{partition}:ecs:{region}:{account}:task-definition/{}:*", job.family);
        let values = [
            ("EVERY_REVISION_ARN", json!(every)),
            ("CLUSTER_ARN", json!(self.cluster_arn())),
            ("PASSED_ROLE_ARNS", json!(roles)),
            ("DEAD_LETTER_QUEUE_ARNS", json!(job.schedule.dead_letter_queue.iter().collect::<Vec<_>>())),
        ];
        PolicyDocument(templates::fill(templates::SCHEDULER_POLICY, &values).to_string())
    }

    /// The one RunTask request of the job, pinned to a revision.
    pub fn run_task(&self, task_definition: TaskDefinitionRef) -> Parts {
        let job = &self.job;
        Parts {
            cluster: job.cluster.clone(),
            task_definition,
            launch: job.launch.clone(),
            platform_version: job.platform_version.clone(),
            network: job.network.clone(),
            container: job.container.clone(),
            command: job.command.clone(),
            environment: job.environment.clone(),
            job: job.name.clone(),
        }
    }

    /// What the schedule's target is.
    pub fn target_arn(&self) -> String {
        format!("arn:{}:scheduler:::aws-sdk:ecs:runTask", self.partition)
    }
}

/// The name of the role that is made and kept for a job's schedule.
pub fn made_role(job: &str) -> String {
    format!("{job}-scheduler")
}

/// The name in a role's ARN, behind its path; a bare name is its own.
pub fn role_name(role: &str) -> &str {
    role.rsplit('/').next().unwrap_or(role)
}
