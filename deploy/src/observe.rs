//! Reads everything that one job's plan looks at, in at most three rounds of concurrent calls, and changes nothing.

use std::collections::{BTreeMap, BTreeSet};

use futures_util::future::join_all;

use crate::check;
use crate::cloud::{Answer, Cloud, ErrorKind, Parameters, Roles, Schedules, seen};
use crate::config::RevisionPolicy;
use crate::desired::{Desired, SCHEDULER_POLICY_NAME, role_name};
use crate::model::{Behind, Elsewhere, Live, PolicyDocument, Role, RolePolicies, Schedule, Seen, TaskDefinition, tags};
use crate::plan;
use crate::receipt::Receipt;
use crate::scheduled_path::ScheduledPath;

/// What is there; the wrong account or region is refused.
pub async fn observe(cloud: &impl Cloud, desired: &Desired) -> anyhow::Result<Live> {
    let (role, group, job) = (&desired.role.name, &desired.timing().group, &desired.job);
    let parameters = async {
        let calls =
            desired.parameters.iter().map(|parameter| async move { seen(cloud.parameter(&parameter.name).await) });
        join_all(calls).await.into_iter().collect::<Answer<Vec<_>>>()
    };
    let (
        identity,
        parameters,
        newest,
        scheduler_role,
        scheduler_policy,
        role_policies,
        group_found,
        schedule,
        kept,
        cluster,
    ) = tokio::join!(
        cloud.identity(),
        parameters,
        async { seen(cloud.task_definition(&job.family).await) },
        async { seen(cloud.role(role).await) },
        async { seen(cloud.role_policy(role, SCHEDULER_POLICY_NAME).await) },
        async { seen(cloud.role_policies(role).await) },
        async { seen(cloud.group(group, &desired.group_arn()).await) },
        async { seen(cloud.schedule(group, &job.name).await) },
        async { seen(cloud.receipts([&desired.receipt_parameter, &desired.scheduled_path_parameter]).await) },
        async { seen(cloud.cluster(&job.cluster).await) },
    );
    // Who asks comes first: in the wrong account, every other answer is noise.
    let identity = identity?;
    check::same_place(desired, &identity)?;
    let newest = newest?;
    let schedule = schedule?;
    let there = |text: Option<String>| text.map_or(Seen::Absent, Seen::Present);
    let [receipt, path] = match kept? {
        Seen::Present(texts) => texts.map(there),
        Seen::Absent => [Seen::Absent, Seen::Absent],
        Seen::Hidden { why } => [Seen::Hidden { why: why.clone() }, Seen::Hidden { why }],
    };
    let scheduler_role_policies = role_policies?;
    let scheduler_role = scheduler_role?;
    let (base, others, managed) = tokio::join!(
        base(cloud, desired, &newest, &schedule),
        other_policies(cloud, role, scheduler_role_policies.present()),
        managed_policies(cloud, scheduler_role.present(), scheduler_role_policies.present()),
    );
    let (task_definition, behind) = base?;

    let execution_role = execution_role(desired, &task_definition);
    let log_group = log_group(desired, &task_definition);
    let (elsewhere, execution_policy, log_group, other_secrets) = tokio::join!(
        async {
            match &schedule {
                Seen::Absent => seen(elsewhere(cloud, desired).await),
                Seen::Present(_) | Seen::Hidden { .. } => Ok(Seen::Absent),
            }
        },
        async {
            // Without a secret as well: the last one may just have been taken out of the configuration.
            match execution_role {
                Some(arn) => seen(cloud.role_policy(role_name(&arn), &desired.execution_policy_name()).await).map(Some),
                None => Ok(None),
            }
        },
        async {
            match log_group {
                Some(name) => seen(cloud.log_group(&name).await).map(|seen| Some((name, seen.map(drop)))),
                None => Ok(None),
            }
        },
        other_secrets(cloud, desired, task_definition.present()),
    );
    Ok(Live {
        identity,
        parameters: parameters?,
        other_secrets: other_secrets?,
        newest,
        task_definition,
        behind,
        execution_policy: execution_policy?,
        scheduler_role,
        scheduler_policy: scheduler_policy?,
        scheduler_role_policies,
        scheduler_role_others: others?,
        scheduler_role_managed: managed?,
        group: group_found?,
        schedule,
        elsewhere: elsewhere?,
        cluster: cluster?,
        log_group: log_group?,
        receipt: receipt.map(|text| Receipt::read(&text, &desired.owner)),
        scheduled_path: path.map(|text| ScheduledPath::read(&text, &desired.owner)),
    })
}

/// How many revisions behind the newest are looked at, at most.
const NEWER: u32 = 5;

/// The revision to start from, and what is known of newer ones. A schedule stays on the revision that it pins, while that one can run.
async fn base(
    cloud: &impl Cloud,
    desired: &Desired,
    newest: &Seen<TaskDefinition>,
    schedule: &Seen<Schedule>,
) -> Answer<(Seen<TaskDefinition>, Option<Behind>)> {
    let pinned = schedule.present().and_then(plan::pinned_revision);
    let reference = newest.present().and_then(TaskDefinition::reference);
    let (Some(pinned), Some(newest_reference)) = (pinned, reference) else { return Ok((newest.clone(), None)) };
    if pinned.family() != newest_reference.family() || pinned == newest_reference {
        return Ok((newest.clone(), None));
    }
    let first = newest_reference.revision().saturating_sub(NEWER).max(pinned.revision()) + 1;
    let between = (first..newest_reference.revision()).filter_map(|number| desired.revision(number));
    let calls = between.map(|reference| async move { seen(cloud.task_definition(reference.arn()).await) });
    let (found, between) = tokio::join!(cloud.task_definition(pinned.arn()), join_all(calls));
    let found = seen(found)?;
    let mut newer = between.into_iter().collect::<Answer<Vec<_>>>()?;
    newer.push(newest.clone());
    let newer = newer.into_iter().filter_map(|one| one.present().cloned()).collect();
    let runs = found.present().is_some_and(|found| found.text("status") == Some("ACTIVE"));
    let hidden = matches!(found, Seen::Hidden { .. });
    let stays = hidden || (runs && desired.job.revision == RevisionPolicy::Pinned);
    let task_definition = if stays { found } else { newest.clone() };
    Ok((task_definition, Some(Behind { pinned, runs: runs || hidden, newer })))
}

/// What a role's inline policies say that are not ours: a denial among them keeps Scheduler from starting anything.
async fn other_policies(
    cloud: &impl Roles,
    role: &str,
    policies: Option<&RolePolicies>,
) -> Answer<Vec<(String, Seen<PolicyDocument>)>> {
    let names =
        policies.into_iter().flat_map(|policies| &policies.inline).filter(|name| *name != SCHEDULER_POLICY_NAME);
    let calls = names.map(|name| async move { Ok((name.clone(), seen(cloud.role_policy(role, name).await)?)) });
    join_all(calls).await.into_iter().collect()
}

/// The versions of what the containers read from this account's Parameter Store besides the secrets of the configuration.
async fn other_secrets(
    cloud: &impl Parameters,
    desired: &Desired,
    definition: Option<&TaskDefinition>,
) -> Answer<Seen<BTreeMap<String, Option<String>>>> {
    let here = desired.parameter_arn("/");
    let is_ours = |name: &String| desired.parameters.iter().any(|wanted| wanted.name == *name);
    let read = definition.into_iter().flat_map(TaskDefinition::secrets);
    let names = read.filter_map(|from| Some(format!("/{}", desired.parameter_arn(from).strip_prefix(&here)?)));
    let names: BTreeSet<_> = names.filter(|name| !is_ours(name)).collect();
    if names.is_empty() {
        return Ok(Seen::Absent);
    }
    // An ARN does not tell whether a name at the root begins with a slash.
    let bare = |name: &str| name.trim_start_matches('/').to_owned();
    let spelt: BTreeSet<_> = names.iter().flat_map(|name| [name.clone(), bare(name)]).collect();
    let versions = seen(cloud.versions(&spelt).await)?;
    let one =
        |found: &BTreeMap<String, String>, name: &str| found.get(name).or_else(|| found.get(&bare(name))).cloned();
    Ok(versions.map(|found| names.into_iter().map(|name| (name.clone(), one(&found, &name))).collect()))
}

/// The managed policies of a role, its boundary among them: the same ARN may say something else tomorrow.
async fn managed_policies(
    cloud: &impl Roles,
    role: Option<&Role>,
    policies: Option<&RolePolicies>,
) -> Answer<BTreeMap<String, Seen<String>>> {
    let attached = policies.into_iter().flat_map(|policies| &policies.attached);
    let arns: BTreeSet<_> = attached.chain(role.and_then(|role| role.boundary.as_ref())).collect();
    let calls = arns.into_iter().map(|arn| async move { Ok((arn.clone(), seen(cloud.policy_version(arn).await)?)) });
    join_all(calls).await.into_iter().collect()
}

/// The schedules of the job in other groups than the configuration's: what was made before `group` was changed fires on. A group
/// of somebody else's is left out; one whose tags cannot be seen is not.
pub async fn elsewhere(cloud: &impl Schedules, desired: &Desired) -> Answer<Vec<Elsewhere>> {
    let mut found = Vec::new();
    for one in cloud.schedules_named(&desired.job.name).await? {
        if one.group == desired.timing().group {
            continue;
        }
        let tags = match cloud.group(&one.group, &desired.in_group(&one.group).group_arn()).await {
            Ok(group) => Some(group.tags),
            Err(error) if error.kind == ErrorKind::Denied => None,
            Err(error) => return Err(error),
        };
        if tags.is_none_or(|tags| tags::are_ours(&tags, &desired.job.name)) {
            found.push(one);
        }
    }
    Ok(found)
}

/// The execution role of the task definition that will be used: the given one, else the family's.
pub fn execution_role(desired: &Desired, live: &Seen<TaskDefinition>) -> Option<String> {
    let given = desired.document().map(|document| &document.members);
    let members = given.or_else(|| live.present().map(|found| &found.members))?;
    members.get("executionRoleArn")?.as_str().filter(|arn| !arn.is_empty()).map(str::to_owned)
}

fn log_group(desired: &Desired, live: &Seen<TaskDefinition>) -> Option<String> {
    let given = desired.document().map(|d| TaskDefinition { members: d.members.clone(), tags: Default::default() });
    let found = given.as_ref().or(live.present())?;
    found.awslogs(&desired.job.container).map(|(group, _)| group.to_owned())
}
