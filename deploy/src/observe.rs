//! Reads everything that one job's plan looks at, in two rounds of concurrent calls, and changes nothing.

use futures_util::future::join_all;

use crate::check;
use crate::cloud::{Answer, Cloud, seen};
use crate::desired::{Desired, SCHEDULER_POLICY_NAME, role_name};
use crate::model::{Live, Seen, TaskDefinition};
use crate::receipt::Receipt;

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
        task_definition,
        scheduler_role,
        scheduler_policy,
        group_found,
        schedule,
        receipt,
        cluster,
    ) = tokio::join!(
        cloud.identity(),
        parameters,
        async { seen(cloud.task_definition(&job.family).await) },
        async { seen(cloud.role(role).await) },
        async { seen(cloud.role_policy(role, SCHEDULER_POLICY_NAME).await) },
        async { seen(cloud.group(group, &desired.group_arn()).await) },
        async { seen(cloud.schedule(group, &job.name).await) },
        async { seen(cloud.receipt(&desired.receipt_parameter).await) },
        async { seen(cloud.cluster(&job.cluster).await) },
    );
    // Who asks comes first: in the wrong account, every other answer is noise.
    let identity = identity?;
    check::same_place(desired, &identity)?;
    let task_definition = task_definition?;

    let execution_role = execution_role(desired, &task_definition);
    let log_group = log_group(desired, &task_definition);
    let (execution_policy, log_group) = tokio::join!(
        async {
            match execution_role.filter(|_| !desired.parameters.is_empty()) {
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
    );
    Ok(Live {
        identity,
        parameters: parameters?,
        task_definition,
        execution_policy: execution_policy?,
        scheduler_role: scheduler_role?,
        scheduler_policy: scheduler_policy?,
        group: group_found?,
        schedule: schedule?,
        cluster: cluster?,
        log_group: log_group?,
        receipt: receipt?.map(|text| Receipt::read(&text, &desired.owner)),
    })
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
