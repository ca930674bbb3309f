//! Schedules, whole, and their groups.

use aws_sdk_scheduler::types::{FlexibleTimeWindow, FlexibleTimeWindowMode, ScheduleState, Tag, Target};

use super::raw::{Body, sending};
use super::{Answer, Aws, CloudError, Schedules};
use crate::model::{Elsewhere, Group, Schedule, State, Tags};

/// What only the SDK knows: the token that makes its retries safe.
const KEEP: &[&str] = &["ClientToken"];

impl Schedules for Aws {
    async fn group(&self, name: &str, arn: &str) -> Answer<Group> {
        let answer = self.scheduler.list_tags_for_resource().resource_arn(arn).send().await;
        let answer = answer.map_err(|e| CloudError::new("scheduler:ListTagsForResource", name, &e))?;
        let tags = answer.tags.unwrap_or_default().into_iter().map(|tag| (tag.key, tag.value)).collect();
        Ok(Group { name: name.to_owned(), tags })
    }

    async fn create_group(&self, name: &str, tags: &Tags) -> Answer<()> {
        let answer = self.scheduler.create_schedule_group().name(name).set_tags(Some(to_sdk(tags))).send().await;
        answer.map(drop).map_err(|e| CloudError::new("scheduler:CreateScheduleGroup", name, &e))
    }

    async fn tag_group(&self, arn: &str, tags: &Tags) -> Answer<()> {
        let call = self.scheduler.tag_resource().resource_arn(arn).set_tags(Some(to_sdk(tags)));
        call.send().await.map(drop).map_err(|e| CloudError::new("scheduler:TagResource", arn, &e))
    }

    async fn schedule(&self, group: &str, name: &str) -> Answer<Schedule> {
        const ACTION: &str = "scheduler:GetSchedule";
        let body = Body::default();
        let call = self.scheduler.get_schedule().group_name(group).name(name);
        let answer = call.customize().interceptor(body.clone()).send().await;
        answer.map_err(|e| CloudError::new(ACTION, format!("{group}/{name}"), &e))?;
        Ok(Schedule(body.object()))
    }

    async fn schedules_named(&self, name: &str) -> Answer<Vec<Elsewhere>> {
        let (mut found, mut token) = (Vec::new(), None);
        loop {
            let page = self.scheduler.list_schedules().name_prefix(name).set_next_token(token).send().await;
            let page = page.map_err(|e| CloudError::new("scheduler:ListSchedules", name, &e))?;
            let exactly = page.schedules.into_iter().filter(|schedule| schedule.name.as_deref() == Some(name));
            found.extend(exactly.map(|schedule| Elsewhere {
                group: schedule.group_name.unwrap_or_else(|| "default".to_owned()),
                state: if schedule.state == Some(ScheduleState::Disabled) { State::Disabled } else { State::Enabled },
            }));
            token = page.next_token.filter(|token| !token.is_empty());
            if token.is_none() {
                return Ok(found);
            }
        }
    }

    async fn create_schedule(&self, schedule: &Schedule) -> Answer<()> {
        const ACTION: &str = "scheduler:CreateSchedule";
        let (name, target, window) = required(ACTION, schedule)?;
        let call = self.scheduler.create_schedule().name(name).schedule_expression("").target(target);
        let call = call.flexible_time_window(window).customize().mutate_request(sending(body(schedule), KEEP));
        call.send().await.map(drop).map_err(|e| CloudError::new(ACTION, full_name(schedule), &e))
    }

    async fn update_schedule(&self, schedule: &Schedule) -> Answer<()> {
        const ACTION: &str = "scheduler:UpdateSchedule";
        let (name, target, window) = required(ACTION, schedule)?;
        let call = self.scheduler.update_schedule().name(name).schedule_expression("").target(target);
        let call = call.flexible_time_window(window).customize().mutate_request(sending(body(schedule), KEEP));
        call.send().await.map(drop).map_err(|e| CloudError::new(ACTION, full_name(schedule), &e))
    }

    async fn delete_schedule(&self, group: &str, name: &str) -> Answer<()> {
        let answer = self.scheduler.delete_schedule().group_name(group).name(name).send().await;
        answer.map(drop).map_err(|e| CloudError::new("scheduler:DeleteSchedule", format!("{group}/{name}"), &e))
    }
}

/// What travels in the body; the name travels in the address.
fn body(schedule: &Schedule) -> serde_json::Map<String, serde_json::Value> {
    let mut members = schedule.writable();
    members.remove("Name");
    members
}

fn full_name(schedule: &Schedule) -> String {
    format!("{}/{}", schedule.text("GroupName").unwrap_or("default"), schedule.text("Name").unwrap_or_default())
}

/// What the SDK wants to see before it sends anything; the body is replaced.
fn required(action: &'static str, schedule: &Schedule) -> Answer<(String, Target, FlexibleTimeWindow)> {
    let local = |what: &dyn std::fmt::Display| CloudError::local(action, full_name(schedule), what.to_string());
    let name = schedule.text("Name").ok_or_else(|| local(&"the schedule has no name"))?;
    let target = Target::builder().arn("-").role_arn("-").build().map_err(|e| local(&e))?;
    let window = FlexibleTimeWindow::builder().mode(FlexibleTimeWindowMode::Off).build().map_err(|e| local(&e))?;
    Ok((name.to_owned(), target, window))
}

fn to_sdk(tags: &Tags) -> Vec<Tag> {
    let tag = |(key, value): (&String, &String)| Tag::builder().key(key).value(value).build().ok();
    tags.iter().filter_map(tag).collect()
}
