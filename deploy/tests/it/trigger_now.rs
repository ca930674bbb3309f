//! `trigger-now`: one run, by hand, with what the schedule holds.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use geuneul::Outcome;
use rehearsal::local_aws::Failure;
use serde_json::json;

use crate::proxy::Proxy;
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
fn a_dropped_override_is_not_proven() {
    let scene = Scene::applied();
    // Between us and AWS, the overrides get lost; the job reports a success all the same.
    let forgetful = Proxy::start(scene.aws.endpoint(), |request| {
        request.as_object_mut().unwrap().remove("overrides");
    });
    let mut deploy = scene.deploy(&["trigger-now"]);
    deploy.env("AWS_ENDPOINT_URL", forgetful.url());
    snapshot!(scene, deploy);
    assert!(scene.receipt().contains("\"void\":{"), "{}", scene.receipt());
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
fn whoever_stops_watching_has_no_proof_and_the_task_goes_on() {
    let scene = Scene::applied();
    scene.next_script("sleep 600");
    let mut deploy = scene.deploy(&["trigger-now"]).stderr(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(deploy.stderr.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.any(|line| line == "task RUNNING"));
    let id = deploy.id().to_string();
    assert!(Command::new("kill").args(["-INT", &id]).status().unwrap().success());
    let said: Vec<_> = lines.collect();
    assert_eq!(deploy.wait().unwrap().code(), Some(4), "{said:?}");
    assert_eq!(said[0], "error: the run is not proven: we stopped watching; the task goes on");
    let running = scene.call("ecs", "ListTasks", &json!({ "cluster": scene.world.cluster }));
    assert_eq!(running["taskArns"].as_array().unwrap().len(), 1);
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
    // It ends with 0 and says nothing, or did nothing.
    scene.next_run(&["bye"], 0);
    snapshot!(scene, ["trigger-now"]);
    scene.next_run(&[&geuneul::RunReport { outcome: Outcome::Skipped, ..report() }.to_line()], 0);
    snapshot!(scene, ["trigger-now"]);
    assert!(
        scene.receipt().contains(r#""void":{"#) && scene.receipt().contains("the run did nothing"),
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
