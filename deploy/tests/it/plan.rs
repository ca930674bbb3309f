//! `plan`: what a person reads, and what it costs.

use std::process::Stdio;
use std::time::Duration;

use deploy::cloud::{Roles, Schedules, TaskDefinitions};
use deploy::model::PolicyDocument;
use serde_json::json;

use crate::inside;
use crate::scene::{JOB, Scene};

fn snapshot(name: &str, text: String) {
    insta::with_settings!({ filters => Scene::filters(), omit_expression => true }, {
        insta::assert_snapshot!(name, text);
    });
}

#[test]
fn an_empty_world_and_the_world_after_apply() {
    let scene = Scene::set();
    snapshot("plan_in_an_empty_world", scene.transcript(&["plan"]));
    snapshot("apply_in_an_empty_world", scene.transcript(&["apply", "--disabled", "--yes"]));
    scene.aws.forget_calls().unwrap();
    snapshot("plan_after_apply", scene.transcript(&["plan", "--detailed-exitcode"]));
    let counts = scene.aws.counts().unwrap();
    let calls: u64 = counts.values().sum();
    assert!(calls <= 14, "{calls} calls: {counts:?}");
    scene.aws.slow(Duration::from_millis(300)).unwrap();
    scene.aws.forget_calls().unwrap();
    scene.expect(&["plan", "--detailed-exitcode"], 0);
    let rounds = scene.aws.calls().unwrap().iter().map(|call| call.round).max().unwrap();
    scene.aws.slow(Duration::ZERO).unwrap();
    assert!(rounds <= 3, "{rounds} rounds");
    eprintln!("plan of a converged job: {calls} calls in {rounds} rounds");
    snapshot("apply_with_nothing_to_do", scene.transcript(&["apply", "--disabled"]));
}

#[test]
fn an_input_whose_placeholder_is_escaped_is_no_input_of_ours() {
    let scene = Scene::applied();
    let mut schedule = scene.schedule();
    let input = schedule["Target"]["Input"].as_str().unwrap().replace('<', "\\u003c").replace('>', "\\u003e");
    schedule["Target"]["Input"] = json!(input);
    scene.put_schedule(&schedule);
    snapshot("plan_of_an_escaped_input", scene.transcript(&["plan", "--detailed-exitcode"]));
    scene.expect(&["trigger-now"], 3);
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    scene.expect(&["plan", "--detailed-exitcode"], 0);
}

#[test]
fn what_somebody_else_changed_is_seen_named_and_put_right() {
    let scene = Scene::applied();
    inside::run(async {
        let cloud = inside::cloud(&scene).await;
        // Another pipeline registers a revision for the service, and knows nothing of the secret.
        let mut members = cloud.task_definition(&scene.world.family).await.unwrap().writable();
        members["containerDefinitions"][0]["secrets"].take();
        members["containerDefinitions"][0].as_object_mut().unwrap().remove("secrets");
        cloud.register(&members, &Default::default()).await.unwrap();
        // Somebody widens what the scheduler may do, and moves the hour.
        let wide = json!({ "Version": "2012-10-17", "Statement": [{ "Effect": "Allow", "Action": "ecs:*", "Resource": "*" }] });
        cloud
            .put_role_policy(&format!("{JOB}-scheduler"), "run-task", &PolicyDocument(wide.to_string()))
            .await
            .unwrap();
        let mut schedule = cloud.schedule(JOB, JOB).await.unwrap();
        schedule.0.insert("ScheduleExpression".into(), "cron(30 5 1 * ? *)".into());
        cloud.update_schedule(&schedule).await.unwrap();
    });
    scene.aws.deny("logs:DescribeLogGroups").unwrap();
    snapshot("plan_after_drift", scene.transcript(&["plan"]));
    scene.expect(&["plan", "--detailed-exitcode"], 1);
    scene.aws.allow("logs:DescribeLogGroups").unwrap();
    scene.expect(&["plan", "--detailed-exitcode"], 2);
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    scene.expect(&["plan", "--detailed-exitcode"], 0);
}

#[test]
fn what_else_our_role_may_do_is_shown_and_left() {
    let scene = Scene::applied();
    let role = format!("{JOB}-scheduler");
    scene.put_role_policy(&role, "extra", &json!({ "Effect": "Allow", "Action": "s3:*", "Resource": "*" }));
    scene.attach_policy(&role, "arn:aws:iam::aws:policy/ReadOnlyAccess");
    let said = scene.transcript(&["plan", "--detailed-exitcode"]);
    assert!(said.contains("exit code: 0") && said.contains("what else it may do is not ours"), "{said}");
    assert!(
        said.contains("      inline    extra, not ours") && said.contains("      attached  ReadOnlyAccess, not ours"),
        "{said}"
    );
    // Who may assume it is told statement by statement, and its conditions with their operators.
    let arn = format!("arn:aws:scheduler:ap-northeast-2:123456789012:schedule-group/{JOB}");
    let condition =
        json!({ "StringEquals": { "aws:SourceAccount": "123456789012" }, "ArnEquals": { "aws:SourceArn": arn } });
    let principal = json!({ "Service": "scheduler.amazonaws.com" });
    let trust =
        json!({ "Effect": "Allow", "Principal": principal, "Action": "sts:AssumeRole", "Condition": condition });
    scene.put_trust(&role, &trust);
    snapshot("plan_of_a_role_that_others_changed", scene.transcript(&["plan"]));
    scene.aws.deny("iam:ListAttachedRolePolicies").unwrap();
    let said = scene.transcript(&["plan"]);
    assert!(said.contains("could not look for more policies: iam:ListAttachedRolePolicies denied"), "{said}");
    scene.aws.allow("iam:ListAttachedRolePolicies").unwrap();
    let said = String::from_utf8(scene.expect(&["destroy", "--yes"], 0).stdout).unwrap();
    assert!(said.contains("somebody gave it the policy extra, which is not ours"), "{said}");
}

#[test]
fn what_could_not_be_looked_at_is_shown_and_never_guessed() {
    let scene = Scene::set();
    for action in ["iam:GetRole", "ssm:DescribeParameters", "scheduler:GetSchedule"] {
        scene.aws.deny(action).unwrap();
    }
    snapshot("plan_half_blind", scene.transcript(&["plan", "--detailed-exitcode"]));
    refused(&scene, &["apply", "--disabled", "--yes"]);
}

#[test]
fn the_wrong_account_or_region_is_refused_before_anything_else() {
    let scene = Scene::set();
    scene.edit_config(|config| *config = config.replace(&scene.world.account, "999999999999"));
    snapshot("plan_in_the_wrong_account", scene.transcript(&["plan"]));
    for verb in [&["apply", "--disabled", "--yes"][..], &["disable"], &["enable"], &["trigger-now"]] {
        refused(&scene, verb);
    }
    scene.edit_config(|config| *config = config.replace("999999999999", &scene.world.account));
    let output = scene.deploy(&["apply", "--disabled", "--yes"]).env("AWS_REGION", "us-east-1").output().unwrap();
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("the region is us-east-1, the configuration is for ap-northeast-2"), "{said}");
    assert_eq!(writes(&scene), Vec::<String>::new());
}

/// Expects exit 3 and not one write.
pub fn refused(scene: &Scene, arguments: &[&str]) -> String {
    scene.aws.forget_calls().unwrap();
    let output = scene.expect(arguments, 3);
    assert_eq!(writes(scene), Vec::<String>::new(), "{arguments:?} wrote");
    String::from_utf8(output.stderr).unwrap()
}

/// The calls that change something, since the last time that calls were forgotten.
pub fn writes(scene: &Scene) -> Vec<String> {
    let reads = ["Get", "Describe", "List"];
    let calls = scene.aws.calls().unwrap().into_iter();
    let writes = calls.filter(|call| !reads.iter().any(|read| call.action.starts_with(read)));
    writes.map(|call| format!("{}:{}", call.service, call.action)).collect()
}

#[test]
fn a_reader_that_went_away_is_no_reason_to_panic() {
    let scene = Scene::set();
    for (verb, code) in [
        (&["plan"][..], 0),
        (&["apply", "--disabled", "--yes"], 0),
        // Switched off, and not told to be.
        (&["status"], 5),
        (&["trigger-now"], 0),
        (&["enable"], 0),
        (&["disable"], 0),
    ] {
        let mut child = scene.deploy(verb).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop((child.stdout.take(), child.stderr.take()));
        let status = child.wait().unwrap();
        assert_eq!(status.code(), Some(code), "{verb:?}");
    }
    assert_eq!(scene.schedule()["State"], "DISABLED");
    // A disk that is full is such a reader, too; and it must not stop a change between two steps.
    let full = || std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    scene.edit_config(|config| *config = config.replace("--all", "--some"));
    let mut apply = scene.deploy(&["apply", "--disabled", "--yes"]);
    let status = apply.env("RUST_LOG", "trace").stdout(full()).stderr(full()).status().unwrap();
    // All is done, and what was said of it is lost.
    assert_eq!(status.code(), Some(1));
    assert!(scene.schedule()["Target"]["Input"].as_str().unwrap().contains("--some"));
}
