//! What a run leaves behind, and the world before `deploy`.

use deploy::model::run_task::Run;
use deploy::model::task::{Container, ContainerOverride, Task};
use deploy::model::{Schedule, Tags};
use deploy::run::judge::Report;
use geuneul::{Outcome, RunReport};
use jiff::Timestamp;
use serde_json::json;

use super::moves::Ends;
use super::stage::JOB;
use crate::memory::{self, ACCOUNT, World};
use crate::scene;

/// The task as AWS describes it: as it was asked for, or not quite.
pub fn task(run: &Run, ends: Ends, created: Timestamp) -> Task {
    let asked = run.task();
    let code = if ends == Ends::Failed { 70 } else { 0 };
    let command = if ends == Ends::WithoutCommand { Vec::new() } else { asked.command.clone() };
    Task {
        arn: format!("arn:aws:ecs:ap-northeast-2:{ACCOUNT}:task/geuneul/{}", "0".repeat(32)),
        cluster: asked.cluster.clone(),
        task_definition: asked.task_definition.arn().to_owned(),
        started_by: Some(run.started_by().to_owned()),
        launch_type: Some("FARGATE".to_owned()),
        capacity_provider: None,
        platform_version: None,
        status: "STOPPED".to_owned(),
        stop_code: Some("EssentialContainerExited".to_owned()),
        stopped_reason: None,
        containers: vec![Container { name: "app".into(), exit_code: Some(code), reason: None, image_digest: None }],
        overrides: vec![ContainerOverride { name: "app".into(), command, environment: run.environment() }],
        subnet: asked.network.subnets.first().cloned(),
        created_at: Some(created.as_second()),
        stopped_at: None,
        events: Vec::new(),
    }
}

pub fn report(run: &Run, ends: Ends, created: Timestamp) -> Report {
    let outcome = if ends == Ends::Skipped { Outcome::Skipped } else { Outcome::Succeeded };
    let (trigger, started_at) = (run.trigger(), format!("{created:.0}"));
    Report::Found(Box::new(RunReport { outcome, trigger, started_at, ..scene::report() }))
}

/// The family without the secret, and perhaps a schedule of somebody's that fires already.
pub fn beginning(adopted: bool) -> World {
    let members = json!({
        "family": "geuneul", "networkMode": "awsvpc", "executionRoleArn": format!("arn:aws:iam::{ACCOUNT}:role/execution"),
        "containerDefinitions": [{ "name": "app", "image": "app:1" }],
    });
    let mut world = World::default();
    let revision = memory::revision(members.as_object().expect("an object"), &Tags::new(), 1);
    world.families.insert("geuneul".into(), vec![revision]);
    if adopted {
        let target = json!({ "Arn": "arn:aws:lambda:...", "RoleArn": format!("arn:aws:iam::{ACCOUNT}:role/theirs"), "Input": "{}" });
        let theirs = json!({ "Name": JOB, "GroupName": JOB, "ScheduleExpression": "rate(1 days)", "State": "ENABLED",
            "FlexibleTimeWindow": { "Mode": "OFF" }, "Target": target });
        world.groups.insert(JOB.into(), Tags::new());
        let theirs = memory::stored(&Schedule(theirs.as_object().expect("an object").clone()));
        world.schedules.insert((JOB.into(), JOB.into()), theirs);
    }
    world
}
