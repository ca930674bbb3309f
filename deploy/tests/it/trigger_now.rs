//! `trigger-now`: one run, by hand, with what the schedule holds.

use serde_json::json;

use crate::scene::{JOB, Scene, report, snapshot};

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
    // The receipt is marked as ours.
    let resource = json!({ "ResourceType": "Parameter", "ResourceId": scene.receipt_parameter() });
    let mut tags = scene.call("ssm", "ListTagsForResource", &resource)["TagList"].as_array().unwrap().clone();
    tags.sort_by_key(|tag| tag["Key"].to_string());
    assert_eq!(
        tags,
        [json!({ "Key": "job", "Value": JOB }), json!({ "Key": "managed-by", "Value": "geuneul-deploy" })]
    );
    snapshot!(scene, ["enable"]);
    assert_eq!(scene.schedule()["State"], "ENABLED");
}

#[test]
fn a_parameter_of_somebody_else_is_not_overwritten() {
    let scene = Scene::applied();
    let theirs = json!({ "Name": scene.receipt_parameter(), "Value": "theirs", "Type": "String" });
    scene.call("ssm", "PutParameter", &theirs);
    snapshot!(scene, ["trigger-now"]);
    assert_eq!(scene.receipt(), "theirs");
    assert_eq!(scene.aws.counts().unwrap().get("ecs:RunTask"), None);
}

#[test]
fn a_role_that_iam_has_not_spread_yet_is_waited_for() {
    let scene = Scene::applied();
    scene.aws.delay_iam(2).unwrap();
    scene.trust_ecs("geuneul-execution");
    let output = scene.expect(&["trigger-now"], 0);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.starts_with("ECS cannot assume the task's role yet; waiting up to 2 minutes for IAM\nstarted "),
        "{said}"
    );
    assert_eq!(scene.aws.counts().unwrap()["ecs:RunTask"], 3);
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
