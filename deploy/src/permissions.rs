//! The least that a caller must be allowed for each verb, as a policy document.
//!
//! A test proves each against a local AWS that enforces policies: with exactly this document the verb succeeds, and without any one of
//! its actions it fails, or says what it could not do.
//!
//! Architecture invariant: no I/O, no async, no clock, no SDK.

mod resources;

use clap::ValueEnum;
use serde_json::{Value, json};

use crate::desired::Desired;
use crate::one_off;

/// Whom the policy is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum For {
    /// Whoever runs `deploy plan`.
    Plan,
    /// Whoever runs `deploy apply`.
    Apply,
    /// Whoever runs `deploy trigger-now`.
    Trigger,
    /// Whoever runs `deploy trigger-now --via-scheduler`: no right to run a task, only to let Scheduler do it.
    TriggerViaScheduler,
    /// Whoever runs `deploy run`.
    Run,
    /// Whoever runs `deploy attach`.
    Attach,
    /// Whoever runs `deploy logs`.
    Logs,
    /// Whoever runs `deploy stop`.
    Stop,
    /// Whoever runs `deploy enable`.
    Enable,
    /// Whoever may run `deploy enable --without-receipt`: what `enable` needs, and to record that there was no proof.
    EnableWithoutReceipt,
    /// Whoever runs `deploy disable`, `--delete` and `--stop-running` included.
    Disable,
    /// Whoever runs `deploy status`.
    Status,
    /// Whoever runs `deploy history`.
    History,
    /// Whoever runs `deploy verify`.
    Verify,
    /// Whoever runs `deploy destroy`.
    Destroy,
    /// The scheduler's role itself.
    Scheduler,
}

/// The roles that the task definition names, by ARN: those of the schedule's revision, and those of the one that it may move to. Empty
/// when they are not known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TaskRoles {
    /// It fetches image and secrets.
    pub execution: Vec<String>,
    /// The container has it.
    pub task: Vec<String>,
    /// Whether the task definition could be read; else any role must do.
    pub known: bool,
}

/// The policy document.
pub fn policy(desired: &Desired, roles: &TaskRoles, wanted: For) -> Value {
    let mut draft = Draft { desired, roles, statements: Vec::new() };
    match wanted {
        For::Plan => draft.plan(),
        For::Apply => draft.apply(),
        For::Trigger => draft.trigger(),
        For::TriggerViaScheduler => draft.trigger_via_scheduler(),
        For::Run => draft.run(),
        For::Attach => draft.attach(),
        For::Logs => draft.logs(),
        For::Stop => draft.stop(),
        For::Enable => draft.enable(),
        For::EnableWithoutReceipt => draft.enable_without_receipt(),
        For::Disable => draft.disable(),
        For::Status => draft.status(),
        For::History => draft.history(),
        For::Verify => draft.verify(),
        For::Destroy => draft.destroy(),
        For::Scheduler => return draft.scheduler(),
    }
    json!({ "Version": "2012-10-17", "Statement": draft.statements })
}

struct Draft<'a> {
    desired: &'a Desired,
    roles: &'a TaskRoles,
    statements: Vec<Value>,
}

impl Draft<'_> {
    fn allow(&mut self, actions: &[&str], resources: Vec<String>) {
        self.allow_when(actions, resources, None);
    }

    fn allow_when(&mut self, actions: &[&str], mut resources: Vec<String>, when: Option<(&str, &str, &str)>) {
        resources.sort();
        resources.dedup();
        // A statement about no resource at all is malformed.
        if resources.is_empty() {
            return;
        }
        let mut statement = json!({ "Effect": "Allow", "Action": actions, "Resource": resources });
        if let Some((operator, key, value)) = when {
            statement["Condition"] = json!({ operator: { key: value } });
        }
        self.statements.push(statement);
    }

    /// What decides about a plan, the receipt left out.
    fn look(&mut self) {
        let everything = || vec!["*".to_owned()];
        // The family may read secrets that the file does not name.
        self.allow(&["ssm:DescribeParameters"], everything());
        self.allow(&["ecs:DescribeTaskDefinition"], everything());
        self.allow(&["iam:GetRole"], self.scheduler_role_by_name());
        let mut roles = self.roles_with_our_policies();
        roles.extend(self.scheduler_role_by_name());
        self.allow(&["iam:GetRolePolicy"], roles);
        self.allow(&["iam:ListRolePolicies", "iam:ListAttachedRolePolicies"], self.scheduler_role_by_name());
        self.look_at_managed_policies();
        self.allow(&["scheduler:ListTagsForResource"], vec![self.desired.group_arn()]);
        self.allow(&["scheduler:GetSchedule"], vec![self.schedule()]);
        self.look_at_log_group();
    }

    /// Anybody may have attached any to the role.
    fn look_at_managed_policies(&mut self) {
        self.allow(&["iam:GetPolicy"], vec!["*".to_owned()]);
    }

    fn look_at_receipt(&mut self) {
        self.allow(&["ssm:GetParameters"], vec![self.receipt(), self.scheduled_path()]);
    }

    fn look_at_log_group(&mut self) {
        self.allow(&["logs:DescribeLogGroups"], vec![self.arn("logs", "log-group:*")]);
    }

    fn look_at_runs(&mut self) {
        self.allow(&["logs:DescribeLogStreams", "logs:GetLogEvents"], vec![self.arn("logs", "log-group:*")]);
    }

    fn search_runs(&mut self) {
        self.allow(&["logs:FilterLogEvents"], vec![self.arn("logs", "log-group:*")]);
    }

    fn plan(&mut self) {
        self.look();
        // Before there is a schedule, it is looked for in other groups.
        self.allow(&["scheduler:ListSchedules"], vec!["*".to_owned()]);
        self.allow(&["ecs:DescribeClusters"], vec![self.desired.cluster_arn()]);
        self.look_at_receipt();
        self.allow(&["ssm:ListTagsForResource"], self.parameters());
    }

    fn apply(&mut self) {
        self.plan();
        self.allow(&["ssm:PutParameter", "ssm:AddTagsToResource"], self.parameters());
        self.encrypt();
        self.allow(&["ecs:RegisterTaskDefinition"], vec!["*".to_owned()]);
        let family = self.arn("ecs", &format!("task-definition/{}:*", self.desired.job.family));
        let when = ("StringEquals", "ecs:CreateAction", "RegisterTaskDefinition");
        self.allow_when(&["ecs:TagResource"], vec![family], Some(when));
        self.pass_task_roles();
        if self.desired.role.ours {
            let role = vec![self.desired.role.arn.clone()];
            self.allow(&["iam:TagRole", "iam:UpdateAssumeRolePolicy"], role.clone());
            // Whoever may make roles only within a boundary is allowed no others.
            match &self.desired.role.boundary {
                None => self.allow(&["iam:CreateRole"], role),
                Some(boundary) => {
                    let within = Some(("StringEquals", "iam:PermissionsBoundary", boundary.as_str()));
                    self.allow_when(&["iam:CreateRole", "iam:PutRolePermissionsBoundary"], role, within);
                }
            }
        }
        self.allow(&["iam:PutRolePolicy"], self.roles_with_our_policies());
        // When the last secret is taken out.
        self.allow(&["iam:DeleteRolePolicy"], self.execution_role());
        self.allow(&["scheduler:CreateScheduleGroup", "scheduler:TagResource"], vec![self.desired.group_arn()]);
        self.allow(&["scheduler:CreateSchedule", "scheduler:UpdateSchedule"], vec![self.schedule()]);
        self.pass_scheduler_role();
        // What a run by Scheduler left behind.
        self.allow(&["scheduler:GetSchedule", "scheduler:DeleteSchedule"], vec![self.one_off()]);
    }

    /// SSM encrypts with a key of one's own in the caller's name: `kms:Encrypt`, since values are made of the standard tier (one
    /// that somebody made advanced takes `kms:GenerateDataKey`). Nothing here decrypts.
    fn encrypt(&mut self) {
        let (keys, aliases) = self.desired.named_keys();
        let every = vec![self.desired.every_key_arn()];
        let via = json!({ "kms:ViaService": format!("ssm.{}.amazonaws.com", self.desired.region) });
        let of_the_alias =
            json!({ "StringEquals": via, "ForAnyValue:StringEquals": { "kms:ResourceAliases": aliases } });
        let statements =
            [(keys.is_empty(), keys, json!({ "StringEquals": via })), (aliases.is_empty(), every, of_the_alias)];
        for (_, keys, when) in statements.into_iter().filter(|(none, ..)| !none) {
            let statement =
                json!({ "Effect": "Allow", "Action": ["kms:Encrypt"], "Resource": keys, "Condition": when });
            self.statements.push(statement);
        }
    }

    fn trigger(&mut self) {
        self.look();
        self.look_at_receipt();
        self.look_at_runs();
        self.watch(vec![self.receipt(), self.scheduled_path()]);
        self.allow(&["scheduler:GetSchedule"], vec![self.one_off()]);
        self.run_task();
    }

    /// Scheduler's role starts the task: the caller hands over that role, and starts nothing.
    fn trigger_via_scheduler(&mut self) {
        self.look();
        self.look_at_receipt();
        self.allow(&["logs:GetLogEvents"], vec![self.arn("logs", "log-group:*")]);
        self.watch(vec![self.receipt(), self.scheduled_path()]);
        let actions = ["scheduler:GetSchedule", "scheduler:CreateSchedule", "scheduler:DeleteSchedule"];
        self.allow(&actions, vec![self.one_off()]);
        self.pass_scheduler_role();
    }

    /// A run from its start to what it leaves behind.
    fn watch(&mut self, kept: Vec<String>) {
        self.allow(&["ssm:PutParameter", "ssm:AddTagsToResource", "ssm:ListTagsForResource"], kept);
        self.list_tasks();
        self.allow(&["ecs:DescribeTasks"], self.tasks());
    }

    fn run(&mut self) {
        self.attach();
        self.run_task();
    }

    fn attach(&mut self) {
        self.allow(&["scheduler:GetSchedule"], vec![self.schedule()]);
        self.allow(&["ecs:DescribeTaskDefinition"], vec!["*".to_owned()]);
        self.allow(&["ecs:DescribeTasks"], self.tasks());
        self.allow(&["logs:GetLogEvents"], vec![self.arn("logs", "log-group:*")]);
    }

    fn logs(&mut self) {
        self.list_tasks();
        self.allow(&["ecs:DescribeTaskDefinition"], vec!["*".to_owned()]);
        self.allow(&["ecs:DescribeTasks"], self.tasks());
        // Once ECS has forgotten the job's last task.
        self.allow(&["scheduler:GetSchedule"], vec![self.schedule()]);
        self.look_at_runs();
    }

    fn stop(&mut self) {
        self.allow(&["ecs:DescribeTasks", "ecs:StopTask"], self.tasks());
    }

    fn list_tasks(&mut self) {
        let cluster = self.desired.cluster_arn();
        self.allow_when(&["ecs:ListTasks"], vec!["*".to_owned()], Some(("ArnEquals", "ecs:cluster", &cluster)));
    }

    fn run_task(&mut self) {
        let family = self.arn("ecs", &format!("task-definition/{}:*", self.desired.job.family));
        let cluster = self.desired.cluster_arn();
        self.allow_when(&["ecs:RunTask"], vec![family], Some(("ArnEquals", "ecs:cluster", &cluster)));
        self.pass_task_roles();
    }

    fn tasks(&self) -> Vec<String> {
        vec![format!("{}/*", self.desired.cluster_arn().replacen(":cluster/", ":task/", 1))]
    }

    fn enable(&mut self) {
        self.look();
        self.look_at_receipt();
        self.look_at_runs();
        self.allow(&["scheduler:GetSchedule"], vec![self.one_off()]);
        self.allow(&["scheduler:UpdateSchedule"], vec![self.schedule()]);
        self.pass_scheduler_role();
    }

    fn enable_without_receipt(&mut self) {
        self.enable();
        let actions = ["ssm:PutParameter", "ssm:AddTagsToResource", "ssm:ListTagsForResource"];
        self.allow(&actions, vec![self.receipt()]);
    }

    fn disable(&mut self) {
        // The emergency switch finds the schedule where it is, whatever group the configuration says.
        let (group, name) = (self.desired.in_group("*").group_arn(), &self.desired.job.name);
        let schedule = self.arn("scheduler", &format!("schedule/*/{name}"));
        self.allow(&["scheduler:ListSchedules"], vec!["*".to_owned()]);
        self.allow(&["scheduler:ListTagsForResource"], vec![group]);
        let actions = ["scheduler:GetSchedule", "scheduler:UpdateSchedule", "scheduler:DeleteSchedule"];
        self.allow(&actions, vec![schedule]);
        let one_off = self.arn("scheduler", &format!("schedule/*/{}", one_off::name(name)));
        self.allow(&["scheduler:DeleteSchedule"], vec![one_off]);
        self.pass_scheduler_role();
        self.list_tasks();
        self.allow(&["ecs:StopTask"], self.tasks());
    }

    fn status(&mut self) {
        self.look();
        self.look_at_receipt();
        self.look_at_runs();
        self.search_runs();
        self.list_tasks();
        self.allow(&["scheduler:GetSchedule"], vec![self.one_off()]);
        self.allow(&["ecs:DescribeTasks"], self.tasks());
        let queue = self.desired.timing().dead_letter_queue.clone();
        self.allow(&["sqs:GetQueueAttributes"], queue.into_iter().collect());
    }

    fn history(&mut self) {
        self.allow(&["ecs:DescribeTaskDefinition"], vec!["*".to_owned()]);
        self.look_at_runs();
        self.search_runs();
        self.allow(&["scheduler:GetSchedule"], vec![self.schedule()]);
        self.list_tasks();
        self.allow(&["ecs:DescribeTasks"], self.tasks());
    }

    fn verify(&mut self) {
        if !self.desired.parameters.is_empty() {
            self.allow(&["ssm:DescribeParameters"], vec!["*".to_owned()]);
        }
        self.allow(&["ecs:DescribeTaskDefinition"], vec!["*".to_owned()]);
        self.allow(&["scheduler:ListTagsForResource"], vec![self.desired.group_arn()]);
        self.allow(&["scheduler:GetSchedule"], vec![self.schedule()]);
        self.look_at_log_group();
        self.allow(&["ecs:DescribeClusters"], vec![self.desired.cluster_arn()]);
        let mut roles = self.task_roles();
        roles.push(self.desired.role.arn.clone());
        self.allow(&["iam:GetRole"], roles);
        let mut asked = self.execution_role();
        asked.push(self.desired.role.arn.clone());
        self.allow(&["iam:SimulatePrincipalPolicy"], asked);
    }

    fn destroy(&mut self) {
        let everything = || vec!["*".to_owned()];
        let mut parameters = self.parameters();
        parameters.extend([self.receipt(), self.scheduled_path()]);
        self.allow(&["ssm:DescribeParameters"], everything());
        self.allow(&["ssm:ListTagsForResource", "ssm:DeleteParameter"], parameters);
        self.allow(&["ecs:DescribeTaskDefinition"], everything());
        // Without a secret as well: the last one may just have been taken out of the configuration.
        let reads = ["iam:ListRolePolicies", "iam:ListAttachedRolePolicies", "iam:GetRolePolicy"];
        self.allow(&[&reads[..], &["iam:DeleteRolePolicy"]].concat(), self.execution_role());
        let role = vec![self.desired.role.arn.clone()];
        self.allow(&["iam:GetRole"], role.clone());
        if self.desired.role.ours {
            let actions =
                ["iam:ListRolePolicies", "iam:ListAttachedRolePolicies", "iam:DeleteRolePolicy", "iam:DeleteRole"];
            self.allow(&actions, role);
        }
        let actions = ["scheduler:ListTagsForResource", "scheduler:DeleteScheduleGroup"];
        self.allow(&actions, vec![self.desired.group_arn()]);
        self.allow(&["scheduler:ListSchedules"], everything());
        self.allow(&["scheduler:GetSchedule"], vec![self.schedule()]);
        self.allow(&["scheduler:DeleteSchedule"], vec![self.schedule(), self.one_off()]);
    }

    /// The same document that `apply` writes; where the newest revision has other roles than the schedule's, it may pass both.
    fn scheduler(&self) -> Value {
        serde_json::from_str(&self.desired.scheduler_policy_passing(self.task_roles()).0).unwrap_or_default()
    }

    fn pass_task_roles(&mut self) {
        let when = ("StringEquals", "iam:PassedToService", "ecs-tasks.amazonaws.com");
        self.allow_when(&["iam:PassRole"], self.task_roles(), Some(when));
    }

    fn pass_scheduler_role(&mut self) {
        let when = ("StringEquals", "iam:PassedToService", "scheduler.amazonaws.com");
        self.allow_when(&["iam:PassRole"], vec![self.desired.role.arn.clone()], Some(when));
    }
}
