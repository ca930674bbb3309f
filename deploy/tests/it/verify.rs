//! `verify`: everything at once, as a tree and as JSON; what is wrong is found, and what nobody saw is not called good.

use deploy::cloud::Roles;
use deploy::model::PolicyDocument;
use serde_json::{Value, json};

use crate::inside;
use crate::scene::{JOB, Scene, snapshot};

fn checks(scene: &Scene, code: i32) -> Vec<Value> {
    let output = scene.expect(&["verify", "--json"], code);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(answer["deploy"], "verify/1");
    answer["checks"].as_array().unwrap().clone()
}

fn wrong(scene: &Scene) -> Vec<String> {
    let all = checks(scene, 5);
    all.iter()
        .filter(|check| check["verdict"] == "ng")
        .map(|check| check["name"].as_str().unwrap().to_owned())
        .collect()
}

#[test]
fn an_empty_world_a_good_one_and_a_blind_look() {
    let scene = Scene::set();
    snapshot!(scene, ["verify"]);
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    scene.aws.forget_calls().unwrap();
    snapshot!(scene, ["verify"]);
    let reads = ["Get", "Describe", "List", "Simulate"];
    assert!(scene.aws.calls().unwrap().iter().all(|call| reads.iter().any(|read| call.action.starts_with(read))));
    scene.aws.deny("iam:SimulatePrincipalPolicy").unwrap();
    scene.aws.deny("ssm:DescribeParameters").unwrap();
    let hidden = checks(&scene, 1).into_iter().filter(|check| check["verdict"] == "hidden").count();
    assert_eq!(hidden, 6);
}

#[test]
fn what_would_fail_at_night_is_found() {
    let scene = Scene::applied();
    let role = format!("{JOB}-scheduler");
    let set_policy = |name: &str, policy: &str, statement: Value| scene.put_role_policy(name, policy, &statement);

    // Scheduler may only start the task: ECS would refuse to be handed the roles.
    set_policy(&role, "run-task", json!({ "Effect": "Allow", "Action": "ecs:RunTask", "Resource": "*" }));
    let found = wrong(&scene);
    assert_eq!(found, ["may pass geuneul-execution to ECS", "may pass geuneul-task to ECS"]);
    scene.expect(&["apply", "--disabled", "--yes"], 0);

    // The execution role reads everything, by a policy that is not ours.
    set_policy("geuneul-execution", "wide", json!({ "Effect": "Allow", "Action": "ssm:*", "Resource": "*" }));
    assert_eq!(wrong(&scene), ["and no other parameter"]);
    set_policy("geuneul-execution", "wide", json!({ "Effect": "Allow", "Action": "s3:GetObject", "Resource": "*" }));

    // The role trusts a schedule in place of a group, as old guides say.
    let arn = format!("arn:aws:scheduler:ap-northeast-2:123456789012:schedule/{JOB}/*");
    let old = json!({ "Version": "2012-10-17", "Statement": { "Effect": "Allow", "Action": "sts:AssumeRole",
        "Principal": { "Service": ["scheduler.amazonaws.com"] }, "Condition": { "ArnLike": { "aws:SourceArn": arn } } } });
    inside::run(async {
        let cloud = inside::cloud(&scene).await;
        cloud.update_trust(&role, &PolicyDocument(old.to_string())).await.unwrap();
    });
    assert_eq!(wrong(&scene), ["library-sync-scheduler trusts Scheduler for group library-sync"]);
    scene.expect(&["apply", "--disabled", "--yes"], 0);

    // Statements for somebody else stand before the one for us, and ECS is trusted as its guide recommends.
    let allow = |service: &str, action: &str, condition: Value| json!({ "Effect": "Allow", "Action": action, "Principal": { "Service": service }, "Condition": condition });
    let other = json!({ "ArnLike": { "aws:SourceArn": arn } });
    let open = json!({ "Bool": { "aws:SecureTransport": "true" }, "StringNotEquals": { "aws:SourceAccount": "999999999999" } });
    let scheduler = "scheduler.amazonaws.com";
    let ours = json!({ "Version": "2012-10-17", "Statement": [allow(scheduler, "sts:AssumeRole", other), allow(scheduler, "sts:Assume*", open)] });
    let guide = |account: &str| {
        let condition = json!({ "ArnLike": { "aws:SourceArn": format!("arn:aws:ecs:ap-northeast-2:{account}:*") }, "StringEquals": { "aws:SourceAccount": account } });
        json!({ "Version": "2012-10-17", "Statement": allow("ecs-tasks.amazonaws.com", "sts:AssumeRole", condition) })
    };
    let trust = |name: &str, policy: Value| {
        inside::run(async {
            inside::cloud(&scene).await.update_trust(name, &PolicyDocument(policy.to_string())).await.unwrap();
        });
    };
    trust(&role, ours);
    trust("geuneul-task", guide("123456789012"));
    checks(&scene, 0);
    trust("geuneul-task", guide("999999999999"));
    assert_eq!(wrong(&scene), ["task role geuneul-task trusts ECS"]);
    trust("geuneul-task", guide("123456789012"));
    scene.expect(&["apply", "--disabled", "--yes"], 0);

    // A pipeline deregisters the revision that the schedule is pinned to, and the log is kept for a week.
    scene.call("ecs", "DeregisterTaskDefinition", &json!({ "taskDefinition": "geuneul:2" }));
    scene.call("logs", "PutRetentionPolicy", &json!({ "logGroupName": "/ecs/geuneul", "retentionInDays": 7 }));
    let found = wrong(&scene);
    assert!(found.contains(&"revision of the schedule, geuneul:2".to_owned()), "{found:?}");
    assert!(found.contains(&"retention against the schedule's interval".to_owned()), "{found:?}");
}
