//! Everything can be made to fail, in the protocol of the service that fails.

use rehearsal::local_aws::{Failure, Fault};
use serde_json::json;

use super::{shared, stage};

fn parameter(name: &str) -> serde_json::Value {
    json!({ "Name": name, "Value": "v", "Type": "String" })
}

#[test]
fn a_call_fails_before_or_after_its_effect() {
    let stage = stage();
    let put = |name: &str| stage.aws.ssm("PutParameter", parameter(name));
    stage.local.fault(&Fault::before("ssm", "PutParameter").skip(1).throttled()).unwrap();
    put("/first").unwrap();
    put("/second").unwrap_err().assert("ThrottlingException", "Rate exceeded");
    put("/second").unwrap();
    stage.local.fault(&Fault::after("ssm", "PutParameter").times(2)).unwrap();
    put("/third").unwrap_err().assert("InternalServerException", "made this call fail");
    put("/third").unwrap_err().assert("InternalServerException", "made this call fail");
    put("/third").unwrap_err().assert("ParameterAlreadyExists", "already exists");

    stage.local.fault(&Fault::before("iam", "GetRole").error(503, "ServiceUnavailable", "a & b")).unwrap();
    let role = [("RoleName", "geuneul-task")];
    stage.aws.iam("GetRole", &role).unwrap_err().assert("ServiceUnavailable", "a &amp; b");
    let xml = stage.aws.iam("GetRole", &role).unwrap().to_string();
    assert!(xml.contains("%7B%22Version%22"), "the trust policy is percent-encoded: {xml}");
}

#[test]
fn a_denied_action_is_denied_in_the_words_of_iam() {
    let stage = stage();
    for action in ["logs:DescribeLogGroups", "iam:GetRole", "ecs:*", "scheduler:GetSchedule"] {
        stage.local.deny(action).unwrap();
    }
    let words = |action: &str| {
        format!("User: arn:aws:iam::123456789012:root is not authorized to perform: {action} on resource: ")
    };
    let denied = stage.aws.logs("DescribeLogGroups", json!({})).unwrap_err();
    denied.assert("AccessDeniedException", &words("logs:DescribeLogGroups"));
    let denied = stage.aws.iam("GetRole", &[("RoleName", "geuneul-task")]).unwrap_err();
    denied.assert("AccessDenied", &words("iam:GetRole"));
    let denied = stage.aws.ecs("ListClusters", json!({})).unwrap_err();
    denied.assert("AccessDeniedException", &words("ecs:ListClusters"));
    let denied = stage.aws.scheduler("GET", "/schedules/x", json!(null)).unwrap_err();
    denied.assert("AccessDeniedException", &words("scheduler:GetSchedule"));
    stage.local.allow("ecs:*").unwrap();
    stage.local.deny("iam:PassRole").unwrap();
    let denied = stage.aws.ecs("RunTask", stage.run_request(&stage.world.family, "true")).unwrap_err();
    denied.assert("AccessDeniedException", &words("iam:PassRole"));
    stage.aws.ecs("ListClusters", json!({})).unwrap();
    stage.local.clear_faults().unwrap();
    stage.aws.logs("DescribeLogGroups", json!({})).unwrap();
}

#[test]
fn run_task_and_describe_tasks_answer_200_with_failures() {
    let stage = stage();
    let reason = "Capacity is unavailable at this time. Please try again later or in a different availability zone";
    stage.local.fail_run_task(&[Failure { arn: None, reason: reason.into(), detail: None }]).unwrap();
    let request = stage.run_request(&stage.world.family, "true");
    let answer = stage.aws.ecs("RunTask", request.clone()).unwrap();
    assert_eq!(answer, json!({ "tasks": [], "failures": [{ "reason": reason }] }));
    let task = stage.start(request);
    let describe =
        || stage.aws.ecs("DescribeTasks", json!({ "cluster": stage.world.cluster, "tasks": [task] })).unwrap();
    stage.local.hide_tasks(1).unwrap();
    assert_eq!(describe()["failures"], json!([{ "arn": task, "reason": "MISSING" }]));
    assert_eq!(describe()["tasks"][0]["taskArn"], json!(task));
}

#[test]
fn calls_are_counted_and_the_world_is_not() {
    let stage = stage();
    assert!(stage.local.counts().unwrap().is_empty());
    let secret = json!({ "Name": "/s", "Value": "hush", "Type": "SecureString" });
    stage.aws.ssm("PutParameter", secret).unwrap();
    stage.aws.ssm("PutParameter", json!({ "Name": "/s", "Value": "hush!", "Overwrite": true })).unwrap();
    stage.aws.iam("GetRole", &[("RoleName", "nobody")]).unwrap_err();
    let counts = stage.local.counts().unwrap();
    assert_eq!(counts, [("iam:GetRole".to_owned(), 1), ("ssm:PutParameter".to_owned(), 2)].into());
    let calls = stage.local.calls().unwrap();
    assert_eq!(calls[0].request, json!({ "Name": "/s", "Value": "(secret value)", "Type": "SecureString" }));
    assert_eq!((calls[2].status, calls[2].error.as_deref()), (Some(404), Some("NoSuchEntity")));
    assert!(!stage.local.state().unwrap().contains("hush"));
    stage.local.forget_calls().unwrap();
    assert!(stage.local.counts().unwrap().is_empty());
}

#[test]
fn what_parameter_store_refuses_is_refused() {
    let stage = shared();
    let put = |body| stage.aws.ssm("PutParameter", body).unwrap_err();
    stage.aws.ssm("PutParameter", parameter("/p")).unwrap();
    put(parameter("/p")).assert("ParameterAlreadyExists", "already exists");
    put(json!({ "Name": "/p", "Value": "v", "Overwrite": true, "Tags": [{ "Key": "a", "Value": "b" }] }))
        .assert("ValidationException", "tags and overwrite can't be used together");
    put(json!({ "Name": "/p", "Value": "v", "Overwrite": true, "Type": "SecureString" }))
        .assert("HierarchyTypeMismatchException", "unique parameter");
    put(json!({ "Name": "/q", "Value": "", "Type": "String" }))
        .assert("ValidationException", "greater than or equal to 1");
    put(json!({ "Name": "/q", "Value": "{{x}}", "Type": "String" })).assert("ValidationException", "can't nest");
    put(json!({ "Name": "/q", "Value": "v".repeat(4097), "Type": "String" })).assert("ValidationException", "4096");
    put(json!({ "Name": "a/b", "Value": "v", "Type": "String" })).assert("ValidationException", "Parameter name");
}
