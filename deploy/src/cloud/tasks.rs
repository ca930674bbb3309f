//! Tasks: start one, look at one, find those that run.

use aws_sdk_ecs::types::{
    AssignPublicIp, AwsVpcConfiguration, CapacityProviderStrategyItem, ContainerOverride, DesiredStatus, KeyValuePair,
    LaunchType, NetworkConfiguration, TaskOverride,
};

use super::{Aws, CloudError};
use crate::model::run_task::{CapacityProvider, Launch, Run};
use crate::model::task::{self, Container, Failure, Moment, Task, TaskEvent};
use crate::run::readable::quoted;

impl Aws {
    /// RunTask. The client token makes a repeated call start no second task. An answer of 200 without a task is the inner error:
    /// ECS accepted the request and started nothing.
    pub async fn run_task(&self, run: &Run) -> Result<Result<Task, Vec<Failure>>, CloudError> {
        let wanted = run.task();
        let failed = |error| CloudError::new("ecs:RunTask", wanted.task_definition.family_and_revision(), &error);
        let (launch_type, strategy) =
            placement(&wanted.launch).map_err(|e| CloudError::local("ecs:RunTask", wanted.job.as_str(), e))?;
        let answer = self
            .ecs
            .run_task()
            .cluster(&wanted.cluster)
            .task_definition(wanted.task_definition.arn())
            .set_launch_type(launch_type)
            .set_capacity_provider_strategy(strategy)
            .set_platform_version(wanted.platform_version.clone())
            .count(1)
            .client_token(run.client_token())
            .started_by(run.started_by())
            .network_configuration(network(run))
            .overrides(overrides(run))
            .send()
            .await
            .map_err(failed)?;
        Ok(match answer.tasks() {
            [started, ..] => Ok(of_sdk(started)),
            [] => Err(answer
                .failures()
                .iter()
                .map(|failure| Failure {
                    reason: failure.reason().unwrap_or("no reason").to_owned(),
                    detail: failure.detail().map(str::to_owned),
                })
                .collect()),
        })
    }

    /// DescribeTasks of one task; `None` when ECS does not know it (yet: right after RunTask that is normal).
    pub async fn task(&self, cluster: &str, arn: &str) -> Result<Option<Task>, CloudError> {
        let answer = self.ecs.describe_tasks().cluster(cluster).tasks(arn).send().await;
        let answer = answer.map_err(|error| CloudError::new("ecs:DescribeTasks", arn, &error))?;
        Ok(answer.tasks().first().map(of_sdk))
    }

    /// StopTask. The task goes on for a while: SIGTERM, then SIGKILL after its container's stop timeout.
    pub async fn stop_task(&self, cluster: &str, arn: &str, reason: &str) -> Result<(), CloudError> {
        let answer = self.ecs.stop_task().cluster(cluster).task(arn).reason(reason).send().await;
        answer.map(drop).map_err(|error| CloudError::new("ecs:StopTask", arn, &error))
    }

    /// The tasks of a family that have stopped and that ECS still knows: those of about the last hour, in no order.
    pub async fn stopped_tasks(&self, cluster: &str, family: &str) -> Result<Vec<Task>, CloudError> {
        // `startedBy` may be no filter beside another one.
        let listed = self.ecs.list_tasks().cluster(cluster).family(family).desired_status(DesiredStatus::Stopped);
        let (mut found, mut token) = (Vec::new(), None);
        loop {
            let page = listed.clone().set_next_token(token).send().await;
            let page = page.map_err(|error| CloudError::new("ecs:ListTasks", cluster, &error))?;
            let arns = page.task_arns.unwrap_or_default();
            if !arns.is_empty() {
                let described = self.ecs.describe_tasks().cluster(cluster).set_tasks(Some(arns)).send().await;
                let described = described.map_err(|error| CloudError::new("ecs:DescribeTasks", cluster, &error))?;
                found.extend(described.tasks().iter().map(of_sdk));
            }
            token = page.next_token.filter(|token| !token.is_empty());
            if token.is_none() {
                return Ok(found);
            }
        }
    }

    /// The ARNs of the tasks that somebody started and that run, or are about to.
    pub async fn running_tasks(&self, cluster: &str, started_by: &str) -> Result<Vec<String>, CloudError> {
        let pages =
            self.ecs.list_tasks().cluster(cluster).started_by(started_by).desired_status(DesiredStatus::Running);
        let answer = pages.send().await.map_err(|error| CloudError::new("ecs:ListTasks", cluster, &error))?;
        Ok(answer.task_arns().to_vec())
    }
}

fn network(run: &Run) -> NetworkConfiguration {
    let network = &run.task().network;
    let vpc = AwsVpcConfiguration::builder()
        .set_subnets(Some(network.subnets.iter().cloned().collect()))
        .set_security_groups(
            (!network.security_groups.is_empty()).then(|| network.security_groups.iter().cloned().collect()),
        )
        .assign_public_ip(if network.assign_public_ip { AssignPublicIp::Enabled } else { AssignPublicIp::Disabled });
    NetworkConfiguration::builder().awsvpc_configuration(vpc.build().expect("the subnets are set")).build()
}

/// ECS takes a launch type or a strategy, never both.
fn placement(launch: &Launch) -> Result<(Option<LaunchType>, Option<Vec<CapacityProviderStrategyItem>>), String> {
    let item = |one: &CapacityProvider| {
        let item = CapacityProviderStrategyItem::builder().capacity_provider(&one.name);
        let base = i32::try_from(one.base).unwrap_or(i32::MAX);
        item.weight(i32::from(one.weight)).base(base).build().map_err(|error| error.to_string())
    };
    Ok(match launch {
        Launch::Fargate => (Some(LaunchType::Fargate), None),
        Launch::CapacityProviders(strategy) => (None, Some(strategy.iter().map(item).collect::<Result<_, _>>()?)),
    })
}

fn overrides(run: &Run) -> TaskOverride {
    let wanted = run.task();
    let pair = |(name, value)| KeyValuePair::builder().name(name).value(value).build();
    let container = ContainerOverride::builder()
        .name(&wanted.container)
        .set_command((!wanted.command.is_empty()).then(|| wanted.command.clone()))
        .set_environment(Some(run.environment().into_iter().map(pair).collect()));
    TaskOverride::builder().container_overrides(container.build()).build()
}

fn of_sdk(task: &aws_sdk_ecs::types::Task) -> Task {
    let text = |text: Option<&str>| text.unwrap_or_default().to_owned();
    let interface = task.attachments().iter().find(|attachment| attachment.r#type() == Some("ElasticNetworkInterface"));
    let subnet = interface.and_then(|i| i.details().iter().find(|detail| detail.name() == Some("subnetId")));
    Task {
        arn: text(task.task_arn()),
        cluster: text(task.cluster_arn()),
        task_definition: text(task.task_definition_arn()),
        started_by: task.started_by().map(str::to_owned),
        launch_type: task.launch_type().map(|launch| launch.as_str().to_owned()),
        capacity_provider: task.capacity_provider_name().map(str::to_owned),
        platform_version: task.platform_version().map(str::to_owned),
        status: text(task.last_status()),
        stop_code: task.stop_code().map(|code| code.as_str().to_owned()),
        stopped_reason: task.stopped_reason().map(quoted),
        containers: task
            .containers()
            .iter()
            .map(|container| Container {
                name: text(container.name()),
                exit_code: container.exit_code(),
                reason: container.reason().map(quoted),
                image_digest: container.image_digest().map(str::to_owned),
            })
            .collect(),
        overrides: task
            .overrides()
            .map(TaskOverride::container_overrides)
            .unwrap_or_default()
            .iter()
            .map(|container| task::ContainerOverride {
                name: text(container.name()),
                command: container.command().to_vec(),
                environment: container
                    .environment()
                    .iter()
                    .map(|variable| (text(variable.name()), text(variable.value())))
                    .collect(),
            })
            .collect(),
        subnet: subnet.and_then(|detail| detail.value()).map(str::to_owned),
        created_at: task.created_at().map(|at| at.secs()),
        stopped_at: task.stopped_at().map(|at| at.secs()),
        events: events(task),
    }
}

fn events(task: &aws_sdk_ecs::types::Task) -> Vec<TaskEvent> {
    let moments = [
        (task.created_at(), Moment::Created),
        (task.connectivity_at(), Moment::Connected),
        (task.pull_started_at(), Moment::PullStarted),
        (task.pull_stopped_at(), Moment::PullStopped),
        (task.started_at(), Moment::Started),
        (task.stopping_at(), Moment::Stopping),
        (task.execution_stopped_at(), Moment::ExecutionStopped),
        (task.stopped_at(), Moment::Stopped),
    ];
    let known = moments.into_iter().filter_map(|(at, what)| Some((at?.to_millis().ok()?, what)));
    known.map(|(at_ms, what)| TaskEvent { at_ms, what }).collect()
}
