//! Every normaliser is needed: with any one of them off, the plan of a world that is as wanted is no longer empty.

use std::collections::BTreeMap;

use deploy::cloud::{Roles, Schedules, TaskDefinitions};
use deploy::desired::SCHEDULER_POLICY_NAME;
use deploy::model::PolicyDocument;
use deploy::normalise::{Normaliser, Normalisers};
use deploy::plan::Wish;
use serde_json::{Value, json};

use crate::inside;
use crate::scene::{JOB, Scene};

#[test]
fn each_normaliser_switched_off_makes_the_plan_of_a_converged_world_non_empty() {
    let scene = Scene::set();
    // What a person writes: no defaults, units, names, and an order of their own.
    let document = json!({
        "executionRoleArn": scene.world.execution_role,
        "taskRoleArn": scene.world.task_role,
        "networkMode": "awsvpc",
        "requiresCompatibilities": ["FARGATE"],
        "cpu": ".25 vCPU",
        "memory": "0.5 GB",
        "containerDefinitions": [{
            "name": scene.world.container,
            "image": "123456789012.dkr.ecr.ap-northeast-2.amazonaws.com/job:1",
            "portMappings": [{ "containerPort": 8080 }],
            "environment": [{ "name": "B", "value": "2" }, { "name": "A", "value": "1" }],
            "secrets": [{ "name": "DB_PASSWORD", "valueFrom": "/app/db_password" }],
        }],
    });
    std::fs::write(scene.path().join("task.json"), document.to_string()).unwrap();
    scene.edit_config(|config| {
        *config = config.replace("container = ", "task_definition = \"task.json\"\ncontainer = ")
    });
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    inside::run(disturb(&scene));

    let plan = inside::run(inside::planned(&scene, Wish::default(), Normalisers::default()));
    assert!(plan.is_empty(), "{plan:#?}");
    let mut seen = BTreeMap::new();
    for rule in Normaliser::ALL {
        let plan = inside::run(inside::planned(&scene, Wish::default(), Normalisers::without(rule)));
        let moved: Vec<_> =
            plan.items.iter().filter(|item| !item.steps.is_empty()).map(|item| item.thing.as_str()).collect();
        seen.insert(rule, moved);
    }
    insta::assert_debug_snapshot!("what_each_normaliser_keeps_quiet", seen);
    assert!(seen.values().all(|moved| !moved.is_empty()));
}

/// Writes the same things in other words, as AWS or another tool does: nothing that means anything is changed.
async fn disturb(scene: &Scene) {
    let cloud = inside::cloud(scene).await;
    let desired = inside::desired(scene);

    let live = cloud.task_definition(&scene.world.family).await.unwrap();
    let mut members = live.writable();
    let container = members["containerDefinitions"][0].as_object_mut().unwrap();
    container["environment"].as_array_mut().unwrap().reverse();
    container["secrets"] = json!([
        { "name": "DB_PASSWORD", "valueFrom": desired.parameter_arn("/app/db_password") },
        { "name": "API_KEY", "valueFrom": "/geuneul/api_key" },
    ]);
    let registered = cloud.register(&members, &live.tags).await.unwrap();

    let mut schedule = cloud.schedule(JOB, JOB).await.unwrap();
    let mut input: Value = serde_json::from_str(schedule.input().unwrap()).unwrap();
    input["TaskDefinition"] = json!(registered.reference().unwrap().arn());
    let network = &mut input["NetworkConfiguration"]["AwsvpcConfiguration"];
    network["Subnets"].as_array_mut().unwrap().reverse();
    schedule.0["Target"]["Input"] = json!(serde_json::to_string_pretty(&input).unwrap());
    cloud.update_schedule(&schedule).await.unwrap();

    let policy = cloud.role_policy(&desired.role.name, SCHEDULER_POLICY_NAME).await.unwrap();
    let mut policy = Normalisers::default().policy(&policy);
    for statement in policy["Statement"].as_array_mut().unwrap() {
        let action = statement["Action"].take();
        statement["Action"] = json!([action]);
    }
    policy["Statement"].as_array_mut().unwrap().reverse();
    let policy = PolicyDocument(policy.to_string());
    cloud.put_role_policy(&desired.role.name, SCHEDULER_POLICY_NAME, &policy).await.unwrap();
}
