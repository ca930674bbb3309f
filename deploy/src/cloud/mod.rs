//! AWS, seen through this program's own words: a trait an area, the real implementation for [`Aws`] beside it.
//!
//! Architecture invariant: only files of this folder import `aws_sdk_*`. What leaves it is a value of [`crate::model`] or a
//! [`CloudError`].

mod client;
mod clusters;
mod endpoint;
mod error;
mod history;
mod identity;
mod log_groups;
mod logs;
mod one_off;
mod parameters;
mod queues;
mod raw;
mod receipts;
mod removals;
mod roles;
mod schedules;
mod services;
mod task_definitions;
mod tasks;
mod verification;

use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;

pub use client::Aws;
pub(crate) use client::set_region;
pub use error::{CloudError, ErrorKind};
pub use receipts::ReceiptWriteError;
use serde_json::{Map, Value};

use crate::model::{
    Elsewhere, Group, Identity, NewRole, Parameter, PolicyDocument, Role, RolePolicies, Schedule, Seen, Tags,
    TaskDefinition,
};
use crate::secret::SecretValue;

/// The answer to one call.
pub type Answer<T> = Result<T, CloudError>;

/// Who is asking.
pub trait Whoami {
    /// `sts:GetCallerIdentity`.
    fn identity(&self) -> impl Future<Output = Answer<Identity>>;
}

/// The secrets' parameters.
pub trait Parameters {
    /// The parameter without its value, with its tags.
    fn parameter(&self, name: &str) -> impl Future<Output = Answer<Parameter>>;
    /// When and how often parameters were written last, by their names; one that is not there is left out.
    fn versions(&self, names: &BTreeSet<String>) -> impl Future<Output = Answer<BTreeMap<String, String>>>;
    /// Writes a new SecureString with its tags; an existing one is a conflict. Answers its version.
    fn create_parameter(
        &self,
        name: &str,
        value: &SecretValue,
        key: Option<&str>,
        tags: &Tags,
    ) -> impl Future<Output = Answer<i64>>;
    /// Writes a new version of an existing SecureString. AWS refuses tags here. Answers its version.
    fn overwrite_parameter(
        &self,
        name: &str,
        value: &SecretValue,
        key: Option<&str>,
    ) -> impl Future<Output = Answer<i64>>;
    /// Adds tags to an existing parameter.
    fn tag_parameter(&self, name: &str, tags: &Tags) -> impl Future<Output = Answer<()>>;
}

/// Task definitions.
pub trait TaskDefinitions {
    /// A revision by its ARN, or a family's newest active one.
    fn task_definition(&self, reference: &str) -> impl Future<Output = Answer<TaskDefinition>>;
    /// Registers a revision of exactly these members and tags.
    fn register(&self, members: &Map<String, Value>, tags: &Tags) -> impl Future<Output = Answer<TaskDefinition>>;
}

/// Roles and their inline policies.
pub trait Roles {
    /// A role by its name.
    fn role(&self, name: &str) -> impl Future<Output = Answer<Role>>;
    /// An inline policy of a role.
    fn role_policy(&self, role: &str, policy: &str) -> impl Future<Output = Answer<PolicyDocument>>;
    /// All policies of a role: the names of inline ones, the ARNs of attached ones.
    fn role_policies(&self, role: &str) -> impl Future<Output = Answer<RolePolicies>>;
    /// Which managed policy is behind an ARN, and the version of it that counts.
    fn policy_version(&self, arn: &str) -> impl Future<Output = Answer<String>>;
    /// Creates a role.
    fn create_role(&self, role: &NewRole) -> impl Future<Output = Answer<()>>;
    /// Sets the boundary of what a role may ever do.
    fn put_boundary(&self, role: &str, boundary: &str) -> impl Future<Output = Answer<()>>;
    /// Replaces who may assume a role.
    fn update_trust(&self, role: &str, trust: &PolicyDocument) -> impl Future<Output = Answer<()>>;
    /// Adds tags to a role.
    fn tag_role(&self, role: &str, tags: &Tags) -> impl Future<Output = Answer<()>>;
    /// Writes an inline policy of a role.
    fn put_role_policy(&self, role: &str, policy: &str, document: &PolicyDocument) -> impl Future<Output = Answer<()>>;
    /// Deletes an inline policy of a role; one that is gone already counts as deleted.
    fn delete_role_policy(&self, role: &str, policy: &str) -> impl Future<Output = Answer<()>>;
}

/// Schedules and their groups.
pub trait Schedules {
    /// A group with its tags, which are read by its ARN: whether it is there they tell as well.
    fn group(&self, name: &str, arn: &str) -> impl Future<Output = Answer<Group>>;
    /// Creates a group.
    fn create_group(&self, name: &str, tags: &Tags) -> impl Future<Output = Answer<()>>;
    /// Adds tags to a group, by its ARN.
    fn tag_group(&self, arn: &str, tags: &Tags) -> impl Future<Output = Answer<()>>;
    /// A schedule, whole.
    fn schedule(&self, group: &str, name: &str) -> impl Future<Output = Answer<Schedule>>;
    /// Every schedule of that name, whatever its group.
    fn schedules_named(&self, name: &str) -> impl Future<Output = Answer<Vec<Elsewhere>>>;
    /// Creates a schedule.
    fn create_schedule(&self, schedule: &Schedule) -> impl Future<Output = Answer<()>>;
    /// Replaces a schedule by this one, whole.
    fn update_schedule(&self, schedule: &Schedule) -> impl Future<Output = Answer<()>>;
    /// Deletes a schedule.
    fn delete_schedule(&self, group: &str, name: &str) -> impl Future<Output = Answer<()>>;
}

/// Where containers write to.
pub trait LogGroups {
    /// The log group of that name; answers its name.
    fn log_group(&self, name: &str) -> impl Future<Output = Answer<String>>;
}

/// Where tasks run.
pub trait Clusters {
    /// The status of a cluster, by its name or ARN.
    fn cluster(&self, name: &str) -> impl Future<Output = Answer<String>>;
}

/// Receipts of proven runs, and records of the proven scheduled path.
pub trait Receipts {
    /// The text of a job's receipt or record, by the parameter's name; see [`crate::receipt::parameter`] and
    /// [`crate::scheduled_path::parameter`].
    fn receipt(&self, name: &str) -> impl Future<Output = Answer<String>>;
    /// Both at once, in one call: the texts that there are.
    fn receipts(&self, names: [&str; 2]) -> impl Future<Output = Answer<[Option<String>; 2]>>;
}

/// What `plan` and `apply` need.
pub trait Cloud: Whoami + Parameters + TaskDefinitions + Roles + Schedules + LogGroups + Clusters + Receipts {}

impl<T: Whoami + Parameters + TaskDefinitions + Roles + Schedules + LogGroups + Clusters + Receipts> Cloud for T {}

/// Turns "not there" and "not allowed to look" into answers; what else went wrong stays an error.
pub fn seen<T>(answer: Answer<T>) -> Answer<Seen<T>> {
    match answer {
        Ok(thing) => Ok(Seen::Present(thing)),
        Err(error) if error.kind == ErrorKind::NotFound => Ok(Seen::Absent),
        Err(error) if error.kind == ErrorKind::Denied => Ok(Seen::Hidden { why: error.why_hidden() }),
        Err(error) => Err(error),
    }
}
