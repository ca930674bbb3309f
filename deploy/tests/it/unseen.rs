//! What was not looked at is neither well nor wrong: every right that a verb asks for is taken away, one at a time.

use serde_json::{Value, json};

use crate::scene::{Scene, report};

/// Every action that `iam --for VERB` prints.
fn rights(scene: &Scene, verb: &str) -> Vec<String> {
    let policy: Value = serde_json::from_slice(&scene.expect(&["iam", "--for", verb], 0).stdout).unwrap();
    let statements = policy["Statement"].as_array().unwrap();
    let mut actions: Vec<_> = statements
        .iter()
        .flat_map(|statement| statement["Action"].as_array().unwrap())
        .map(|action| action.as_str().unwrap().to_owned())
        .collect();
    actions.sort();
    actions.dedup();
    actions
}

#[test]
fn what_status_did_not_see_of_a_healthy_job_needs_no_person() {
    let scene = Scene::applied();
    scene.expect(&["trigger-now"], 0);
    scene.expect(&["enable"], 0);
    scene.expect(&["status"], 0);
    let mut wrong = Vec::new();
    for action in rights(&scene, "status") {
        scene.aws.deny(&action).unwrap();
        let output = scene.deploy(&["status", "--json"]).output().unwrap();
        scene.aws.allow(&action).unwrap();
        let code = output.status.code().unwrap();
        let Ok(status) = serde_json::from_slice::<Value>(&output.stdout) else {
            wrong.push(format!("{action}: {code} {}", String::from_utf8_lossy(&output.stderr)));
            continue;
        };
        let (needs, open, unseen) = (&status["needs"], &status["gate"]["open"], &status["unseen"]);
        // Only once a fire time has passed; only when a managed policy is attached to the role.
        let seen = ["logs:FilterLogEvents", "iam:GetPolicy"].contains(&action.as_str());
        let once = unseen.as_array().is_some_and(|said| said.len() == usize::from(!seen));
        let path = &status["scheduled_path"]["proven"];
        if *needs != json!([]) || *open == false || code != i32::from(!seen) || !once || *path == true {
            wrong.push(format!("{action}: {code} {status:#}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Every `deploy run` and every task of a service writes a stream of its own: a run that is behind too many of them is not missing.
#[test]
fn what_was_not_looked_into_is_not_said_to_hold_nothing() {
    let scene = Scene::applied();
    let described = scene.call("ecs", "DescribeTaskDefinition", &json!({ "taskDefinition": scene.world.family }));
    let options = &described["taskDefinition"]["containerDefinitions"][0]["logConfiguration"]["options"];
    let prefix = format!("{}/{}", options["awslogs-stream-prefix"].as_str().unwrap(), scene.world.container);
    let now = jiff::Timestamp::now().as_millisecond();
    let write = |i: i64, line: &str| {
        let stream = json!({ "logGroupName": scene.world.log_group, "logStreamName": format!("{prefix}/{i}") });
        scene.call("logs", "CreateLogStream", &stream);
        let mut events = stream.clone();
        events["logEvents"] = json!([{ "timestamp": now - 60_000 + i, "message": line }]);
        scene.call("logs", "PutLogEvents", &events);
    };
    write(0, &report().to_line());
    (1..=30).for_each(|i| write(i, "GET /api/health 200"));
    let status = scene.transcript(&["status"]);
    assert!(status.contains("none in the newest streams of the log; history looks"), "{status}");
    let history: Value = serde_json::from_slice(&scene.expect(&["history", "--json"], 0).stdout).unwrap();
    assert_eq!(history["runs"].as_array().unwrap().len(), 1, "{history}");
}
