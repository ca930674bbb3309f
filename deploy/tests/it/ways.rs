//! The way in and the way out: `init`, `init --from-schedule`, `export --terraform`.

use deploy::cloud::Schedules;
use deploy::config::Config;
use deploy::model::Schedule;
use serde_json::{Value, json};

use crate::inside;
use crate::scene::{JOB, Scene, snapshot};

fn written(scene: &Scene, file: &str) -> String {
    std::fs::read_to_string(scene.path().join(file)).unwrap()
}

fn parsed(scene: &Scene, file: &str) -> deploy::config::Job {
    let path = scene.path().join(file);
    let config = Config::parse(&written(scene, file), &path).unwrap();
    config.job(None).unwrap().clone()
}

/// A schedule of somebody's, in the group `default`.
fn make(scene: &Scene, name: &str, target: &Value) {
    let role = format!("arn:aws:iam::123456789012:role/{JOB}-scheduler");
    let mut target = target.clone();
    target["RoleArn"] = role.into();
    let schedule = json!({ "Name": name, "GroupName": JOB, "ScheduleExpression": "cron(30 3 2 * ? *)", "State": "DISABLED",
        "ScheduleExpressionTimezone": "Asia/Seoul", "FlexibleTimeWindow": { "Mode": "OFF" }, "Target": target });
    let Value::Object(members) = schedule else { unreachable!("an object") };
    inside::run(async { inside::cloud(scene).await.create_schedule(&Schedule(members)).await }).unwrap();
}

#[test]
fn a_cluster_and_a_family_become_a_file_that_plan_takes() {
    let scene = Scene::set();
    let subnets: Vec<_> = scene.world.subnets.clone();
    let vpc = json!({ "subnets": subnets, "securityGroups": scene.world.security_groups, "assignPublicIp": "ENABLED" });
    scene.call(
        "ecs",
        "CreateService",
        &json!({ "cluster": "geuneul", "serviceName": "web", "taskDefinition": "geuneul",
        "desiredCount": 0, "launchType": "FARGATE", "networkConfiguration": { "awsvpcConfiguration": vpc } }),
    );
    snapshot!(scene, ["init", "--config=new.toml", "--job=library-sync", "--cluster=geuneul", "--family=geuneul"]);
    insta::with_settings!({ filters => Scene::filters(), omit_expression => true }, {
        insta::assert_snapshot!("the_file_of_init", written(&scene, "new.toml"));
    });
    assert_eq!(parsed(&scene, "new.toml").network.subnets, subnets.into_iter().collect());
    scene.expect(&["plan", "--config=new.toml"], 0);
    // What is there already is never written over.
    scene.expect(&["init", "--config=new.toml", "--cluster=geuneul", "--family=geuneul"], 3);
    scene.expect(&["init", "--config=other.toml", "--cluster=nobodys", "--family=geuneul"], 1);
    assert!(!scene.path().join("other.toml").exists());
}

#[test]
fn a_schedule_that_terraform_made_is_taken_over() {
    let scene = Scene::applied();
    let subnet = &scene.world.subnets[0];
    // A Universal Target, as with Terraform's `input`.
    let input = json!({ "Cluster": scene.world.cluster_arn, "TaskDefinition": scene.world.task_definition, "LaunchType": "FARGATE",
        "NetworkConfiguration": { "AwsvpcConfiguration": { "Subnets": [subnet], "AssignPublicIp": "ENABLED" } },
        "Overrides": { "ContainerOverrides": [{ "Name": "app", "Command": ["--once", "a \"quoted\" word"], "Environment": [
            { "Name": "MODE", "Value": "monthly" }, { "Name": "API_TOKEN", "Value": "plain" },
            { "Name": "AT", "Value": "<aws.scheduler.scheduled-time>" }] }] } });
    let target = json!({ "Arn": "arn:aws:scheduler:::aws-sdk:ecs:runTask", "Input": input.to_string(),
        "RetryPolicy": { "MaximumRetryAttempts": 2, "MaximumEventAgeInSeconds": 1800 } });
    make(&scene, "universal", &target);
    snapshot!(scene, ["init", "--config=universal.toml", "--from-schedule=library-sync/universal"]);
    insta::with_settings!({ filters => Scene::filters(), omit_expression => true }, {
        insta::assert_snapshot!("the_file_of_init_from_a_schedule", written(&scene, "universal.toml"));
    });
    let job = parsed(&scene, "universal.toml");
    assert_eq!((job.family.as_str(), job.schedule.group.as_str(), job.schedule.retries), ("geuneul", JOB, 2));
    assert_eq!(job.command, ["--once", "a \"quoted\" word"]);
    assert_eq!(job.environment.into_iter().collect::<Vec<_>>(), [("MODE".to_owned(), "monthly".to_owned())]);
    assert!(job.schedule.role.is_some());

    scene.expect(&["init", "--config=nothing.toml", "--from-schedule=library-sync/nobodys"], 1);
}

#[test]
fn what_we_manage_is_handed_to_terraform() {
    let scene = Scene::applied();
    snapshot!(scene, ["export", "--terraform"]);
    let text = String::from_utf8(scene.expect(&["export", "--terraform"], 0).stdout).unwrap();
    assert_eq!(text.matches("\nimport {").count(), 5);
    assert!(text.contains("<aws.scheduler.scheduled-time>") && !text.contains("u003c"));
    scene.aws.deny("iam:GetRole").unwrap();
    scene.expect(&["export", "--terraform"], 1);
}
