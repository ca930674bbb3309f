//! A one-off schedule, what time it is where it is due, and the tasks that somebody started.

use std::collections::BTreeSet;

use aws_sdk_ecs::types::DesiredStatus;
use jiff::Timestamp;

use super::raw::Body;
use super::{Answer, Aws, CloudError, ErrorKind};
use crate::model::Schedule;
use crate::model::task::Task;

impl Aws {
    /// A schedule, if it is there, and what time it is by the clock of the service that fires it; ours may be wrong.
    pub async fn schedule_and_clock(&self, group: &str, name: &str) -> Answer<(Option<Schedule>, Timestamp)> {
        let body = Body::default();
        let call = self.scheduler.get_schedule().group_name(group).name(name).customize();
        let answer = call.interceptor(body.clone()).send().await;
        let schedule = match answer.map_err(|e| CloudError::new("scheduler:GetSchedule", format!("{group}/{name}"), &e))
        {
            Ok(_) => Some(Schedule(body.object())),
            Err(error) if error.kind == ErrorKind::NotFound => None,
            Err(error) => return Err(error),
        };
        Ok((schedule, body.date().unwrap_or_else(Timestamp::now)))
    }

    /// Every task of a family that runs or has stopped lately, by ARN. ECS takes `startedBy` as the only filter, or not at all.
    pub async fn tasks_of(&self, cluster: &str, family: &str, started_by: &str) -> Answer<BTreeSet<String>> {
        let failed = |error| CloudError::new("ecs:ListTasks", cluster, &error);
        let running = self.ecs.list_tasks().cluster(cluster).started_by(started_by);
        let mut found: BTreeSet<_> =
            running.send().await.map_err(failed)?.task_arns.unwrap_or_default().into_iter().collect();
        let stopped = self.ecs.list_tasks().cluster(cluster).family(family).desired_status(DesiredStatus::Stopped);
        let mut token = None;
        loop {
            let page = stopped.clone().set_next_token(token).send().await;
            let page = page.map_err(|error| CloudError::new("ecs:ListTasks", cluster, &error))?;
            found.extend(page.task_arns.unwrap_or_default());
            token = page.next_token.filter(|token| !token.is_empty());
            if token.is_none() {
                return Ok(found);
            }
        }
    }

    /// A task that somebody started and that is not known yet; what others started is known from then on.
    pub async fn new_task(
        &self,
        cluster: &str,
        family: &str,
        started_by: &str,
        known: &mut BTreeSet<String>,
    ) -> Answer<Option<Task>> {
        let found = self.tasks_of(cluster, family, started_by).await?;
        for arn in found.difference(&known.clone()) {
            match self.task(cluster, arn).await? {
                Some(task) if task.started_by.as_deref() == Some(started_by) => return Ok(Some(task)),
                Some(_) => drop(known.insert(arn.clone())),
                None => {} // Just started: ECS is eventually consistent.
            }
        }
        Ok(None)
    }
}
