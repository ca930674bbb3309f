//! `trigger-now`: one run, by hand, with what the schedule holds.

use geuneul::Outcome;
use rehearsal::local_aws::Failure;
use serde_json::json;

use crate::scene::{Scene, report};

macro_rules! snapshot {
    ($scene:expr, $arguments:expr) => {
        insta::with_settings!({ filters => Scene::filters(), omit_expression => true }, {
            insta::assert_snapshot!($scene.transcript(&$arguments));
        })
    };
}

#[test]
fn a_proven_run_leaves_a_receipt_and_opens_the_gate() {
    let scene = Scene::applied();
    scene.next_run(&["a line of the container", "\u{1b}[31ma red one\u{7}", &report().to_line()], 0);
    snapshot!(scene, ["trigger-now"]);
    let receipt = scene.receipt();
    assert!(receipt.starts_with(r#"{"geuneul":"verified-run/1","job":"library-sync""#), "{receipt}");
    assert!(receipt.len() <= 4096);
    // What ran is what the schedule holds, and the marks of a run by hand.
    let calls = scene.aws.calls().unwrap();
    let run = &calls.iter().find(|call| call.action == "RunTask").unwrap().request;
    let input: serde_json::Value = serde_json::from_str(scene.schedule()["Target"]["Input"].as_str().unwrap()).unwrap();
    assert_eq!(run["taskDefinition"], input["TaskDefinition"]);
    assert_eq!(
        run["overrides"]["containerOverrides"][0]["command"],
        input["Overrides"]["ContainerOverrides"][0]["Command"]
    );
    assert_eq!(run["startedBy"], "geuneul-deploy/manual/library-sync");
    snapshot!(scene, ["enable"]);
    assert_eq!(scene.schedule()["State"], "ENABLED");
    snapshot!(scene, ["status"]);
}

#[test]
fn a_run_that_proves_nothing_ends_with_4_and_says_why() {
    let scene = Scene::applied();
    // RunTask answers 200 and starts nothing.
    let reason = "Capacity is unavailable at this time. Please try again later or in a different availability zone";
    scene.aws.fail_run_task(&[Failure { arn: None, reason: reason.into(), detail: None }]).unwrap();
    snapshot!(scene, ["trigger-now"]);
    // The container fails.
    let broken = geuneul::RunReport {
        outcome: Outcome::UpstreamFailed,
        error: Some(geuneul::RunError { code: "http_504".into(), message: "page 3: 504 after 5 tries".into() }),
        ..report()
    };
    scene.next_run(&[&broken.to_line()], 69);
    snapshot!(scene, ["trigger-now"]);
    // It ends with 0 and did nothing.
    scene.next_run(&[&geuneul::RunReport { outcome: Outcome::Skipped, ..report() }.to_line()], 0);
    snapshot!(scene, ["trigger-now"]);
    assert!(
        scene.receipt().contains(r#""void":{"#) && scene.receipt().contains("reports skipped"),
        "{}",
        scene.receipt()
    );
    // We do not wait for ever; the task goes on, and nothing new starts beside it.
    scene.next_script("sleep 600");
    snapshot!(scene, ["trigger-now", "--timeout=1s"]);
    let refused = scene.refusal(&["trigger-now"]);
    assert!(refused.starts_with("error: a task of library-sync is running already: arn:aws:ecs:"), "{refused}");
}

#[test]
fn a_task_that_cannot_start_says_what_is_missing() {
    let scene = Scene::set();
    // The family has a secret of its own, and somebody has deleted its parameter.
    let described = scene.call("ecs", "DescribeTaskDefinition", &json!({ "taskDefinition": scene.world.family }));
    let mut definition = described["taskDefinition"].clone();
    for read_only in deploy::model::TaskDefinition::READ_ONLY {
        definition.as_object_mut().unwrap().remove(read_only);
    }
    definition["containerDefinitions"][0]["secrets"] = json!([{ "name": "OTHER", "valueFrom": "/geuneul/other" }]);
    scene.call("ecs", "RegisterTaskDefinition", &definition);
    let reads = |effect: &str| json!({ "Effect": effect, "Action": "ssm:GetParameters", "Resource": "*" });
    scene.put_role_policy("geuneul-execution", "other", &reads("Allow"));
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    snapshot!(scene, ["trigger-now"]);

    // The parameter is there, and the role may not read it after all.
    scene.call("ssm", "PutParameter", &json!({ "Name": "/geuneul/other", "Value": "x", "Type": "SecureString" }));
    scene.put_role_policy("geuneul-execution", "other", &reads("Deny"));
    snapshot!(scene, ["trigger-now"]);
}

#[test]
fn the_run_can_be_printed_instead() {
    let scene = Scene::applied();
    scene.aws.forget_calls().unwrap();
    snapshot!(scene, ["trigger-now", "--print-aws-cli"]);
    assert_eq!(scene.aws.counts().unwrap().get("ecs:RunTask"), None);
}

#[test]
fn an_unsettled_world_proves_nothing() {
    let scene = Scene::applied();
    scene.edit_config(|config| *config = config.replace("--all", "--some"));
    snapshot!(scene, ["trigger-now"]);
    let refused = scene.refusal(&["trigger-now"]);
    assert!(refused.contains("schedule library-sync"), "{refused}");
}
