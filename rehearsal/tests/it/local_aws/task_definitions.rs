//! Task definitions come back as the server keeps them: more than was sent, and nothing lost.

use serde_json::{Value, json};

use super::{SHELL, shared};

fn minimal() -> Value {
    json!({
        "family": "minimal", "networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"],
        "cpu": "0.25 vCPU", "memory": "1GB", "enableFaultInjection": true,
        "containerDefinitions": [{ "name": "app", "image": SHELL, "portMappings": [{ "containerPort": 80 }] }],
    })
}

#[test]
fn the_server_fills_in_its_defaults_and_keeps_what_it_does_not_know() {
    let stage = shared();
    let answer = stage.aws.ecs("RegisterTaskDefinition", minimal()).unwrap();
    let mut stored = answer["taskDefinition"].clone();
    let registered_at = stored.as_object_mut().unwrap().remove("registeredAt").unwrap();
    assert!(registered_at.is_f64());
    assert_eq!(
        stored,
        json!({
            "family": "minimal", "networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"],
            "cpu": "256", "memory": "1024", "enableFaultInjection": true,
            "containerDefinitions": [{
                "name": "app", "image": SHELL, "cpu": 0, "essential": true,
                "portMappings": [{ "containerPort": 80, "hostPort": 80, "protocol": "tcp" }],
                "environment": [], "mountPoints": [], "volumesFrom": [], "systemControls": [],
            }],
            "volumes": [], "placementConstraints": [], "compatibilities": ["EC2", "FARGATE"], "revision": 1, "status": "ACTIVE",
            "taskDefinitionArn": "arn:aws:ecs:ap-northeast-2:123456789012:task-definition/minimal:1",
            "registeredBy": "arn:aws:iam::123456789012:root",
            "requiresAttributes": [{ "name": "com.amazonaws.ecs.capability.docker-remote-api.1.18" }],
        })
    );
    let again = stage.aws.ecs("RegisterTaskDefinition", minimal()).unwrap();
    assert_eq!(again["taskDefinition"]["revision"], 2, "an identical definition is a new revision");
}

#[test]
fn tags_are_shown_beside_the_definition_and_only_on_request() {
    let stage = shared();
    let describe = |include: Value| {
        let request = json!({ "taskDefinition": stage.world.task_definition, "include": include });
        stage.aws.ecs("DescribeTaskDefinition", request).unwrap()
    };
    assert_eq!(describe(json!([])).get("tags"), None);
    assert_eq!(describe(json!(["TAGS"]))["tags"][0], json!({ "key": "team", "value": "places" }));
}

#[test]
fn an_inactive_revision_is_not_what_the_family_means() {
    let stage = shared();
    let register = || {
        let mut definition = minimal();
        definition["family"] = json!("retired");
        stage.aws.ecs("RegisterTaskDefinition", definition).unwrap()["taskDefinition"]["taskDefinitionArn"].clone()
    };
    let family = || {
        let described = stage.aws.ecs("DescribeTaskDefinition", json!({ "taskDefinition": "retired" }));
        described.map(|answer| answer["taskDefinition"]["revision"].clone())
    };
    let (first, second) = (register(), register());
    assert_eq!(family().unwrap(), 2);
    for (retired, left) in [(second, Some(1)), (first, None)] {
        stage.aws.ecs("DeregisterTaskDefinition", json!({ "taskDefinition": retired })).unwrap();
        match left {
            Some(revision) => assert_eq!(family().unwrap(), revision),
            None => family().unwrap_err().assert("ClientException", "Unable to describe task definition."),
        }
    }
}

#[test]
fn what_registration_refuses_is_refused() {
    let stage = shared();
    let refused = |change: &dyn Fn(&mut Value)| {
        let mut request = minimal();
        change(&mut request);
        stage.aws.ecs("RegisterTaskDefinition", request).unwrap_err()
    };
    let role = stage.world.execution_role.as_str();
    refused(&|d| d["cpu"] = json!("300")).assert("ClientException", "No Fargate configuration exists");
    refused(&|d| d["networkMode"] = json!("bridge")).assert("ClientException", "Fargate only supports network mode");
    refused(&|d| d["containerDefinitions"][0]["secrets"] = json!([{ "name": "K", "valueFrom": "/k" }]))
        .assert("ClientException", "you must also specify a value for 'executionRoleArn'");
    refused(&|d| {
        d["executionRoleArn"] = json!(role);
        d["containerDefinitions"][0]["environment"] = json!([{ "name": "K", "value": "" }]);
        d["containerDefinitions"][0]["secrets"] = json!([{ "name": "K", "valueFrom": "/k" }]);
    })
    .assert(
        "ClientException",
        "not shared with any new or existing environment variables set on the container, such as 'K'.",
    );
    refused(&|d| d["revision"] = json!(7)).assert("ClientException", "unknown field revision");
    refused(&|d| d["tags"] = json!([])).assert("InvalidParameterException", "Tags can not be empty.");
}
