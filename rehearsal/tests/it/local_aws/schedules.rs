//! Schedules: what is refused, what is filled in, and that they fire - under their own role, at the time the clock shows.

use serde_json::{Value, json};

use super::{Stage, stage};

const ACCOUNT: &str = "123456789012";
const GROUP_ARN: &str = "arn:aws:scheduler:ap-northeast-2:123456789012:schedule-group/jobs";
const ROLE: &str = "arn:aws:iam::123456789012:role/jobs-scheduler";
const CANNOT_ASSUME: &str = "The execution role you provide must allow AWS EventBridge Scheduler to assume the role.";

fn trust(source_arn: &str) -> String {
    let condition =
        json!({ "StringEquals": { "aws:SourceAccount": ACCOUNT }, "ArnLike": { "aws:SourceArn": source_arn } });
    json!({ "Version": "2012-10-17", "Statement": [{
        "Effect": "Allow", "Principal": { "Service": "scheduler.amazonaws.com" }, "Action": "sts:AssumeRole", "Condition": condition,
    }]})
    .to_string()
}

/// The scheduler's role with this trust, and the group.
fn prepare(stage: &Stage, source_arn: &str) {
    let document = trust(source_arn);
    let parameters = [("RoleName", "jobs-scheduler"), ("AssumeRolePolicyDocument", document.as_str())];
    stage.aws.iam("CreateRole", &parameters).unwrap();
    let tags = json!({ "Tags": [{ "Key": "managed-by", "Value": "test" }] });
    stage.aws.scheduler("POST", "/schedule-groups/jobs", tags).unwrap();
}

fn may_run_task(stage: &Stage) -> Value {
    json!({
        "Effect": "Allow", "Action": "ecs:RunTask",
        "Resource": "arn:aws:ecs:ap-northeast-2:123456789012:task-definition/geuneul:*",
        "Condition": { "ArnEquals": { "ecs:cluster": stage.world.cluster_arn } },
    })
}

fn may_pass_roles(stage: &Stage) -> Value {
    json!({
        "Effect": "Allow", "Action": "iam:PassRole", "Resource": [stage.world.execution_role, stage.world.task_role],
        "Condition": { "StringEquals": { "iam:PassedToService": "ecs-tasks.amazonaws.com" } },
    })
}

fn input(stage: &Stage) -> Value {
    json!({
        "Cluster": stage.world.cluster,
        "TaskDefinition": stage.world.task_definition,
        "LaunchType": "FARGATE",
        "StartedBy": "jobs",
        "ClientToken": "jobs-<aws.scheduler.scheduled-time>",
        "NetworkConfiguration": { "AwsvpcConfiguration": { "Subnets": stage.world.subnets, "AssignPublicIp": "ENABLED" } },
        "Overrides": { "ContainerOverrides": [{
            "Name": "app",
            "Command": ["echo $OCCURRENCE"],
            "Environment": [{ "Name": "OCCURRENCE", "Value": "<aws.scheduler.scheduled-time>/<aws.scheduler.attempt-number>" }],
        }]},
    })
}

/// 03:00 in Seoul on the fifth of every month.
fn schedule(state: &str, input: &Value) -> Value {
    json!({
        "GroupName": "jobs",
        "FlexibleTimeWindow": { "Mode": "OFF" },
        "ScheduleExpression": "cron(0 3 5 * ? *)",
        "ScheduleExpressionTimezone": "Asia/Seoul",
        "State": state,
        "Target": { "Arn": "arn:aws:scheduler:::aws-sdk:ecs:runTask", "RoleArn": ROLE, "Input": input.to_string() },
    })
}

#[test]
fn a_schedule_fires_only_when_enabled_and_only_as_far_as_its_role_may() {
    let stage = stage();
    prepare(&stage, GROUP_ARN);
    let monthly = |verb: &str, state: &str| {
        stage.aws.scheduler(verb, "/schedules/monthly", schedule(state, &input(&stage))).unwrap()
    };
    let fire = || stage.local.advance_to_next_fire("jobs/monthly").unwrap();
    monthly("POST", "DISABLED");
    assert!(fire().is_empty());

    monthly("PUT", "ENABLED");
    let [refused] = fire().try_into().unwrap();
    assert!(!refused.delivered);
    assert!(refused.error.unwrap().contains("is not authorized to perform: ecs:RunTask on resource"));

    stage.allow(ROLE, json!([may_run_task(&stage)]));
    let [refused] = fire().try_into().unwrap();
    assert!(refused.error.unwrap().contains("is not authorized to perform: iam:PassRole on resource"));

    stage.allow(ROLE, json!([may_run_task(&stage), may_pass_roles(&stage)]));
    let [fired] = fire().try_into().unwrap();
    assert_eq!((fired.delivered, fired.error), (true, None));
    assert!(
        fired.scheduled_time.ends_with("-04T18:00:00Z"),
        "{} is not 03:00 on the fifth in Seoul",
        fired.scheduled_time
    );
    let task = stage.local.wait_for_task(&fired.tasks[0]).unwrap();
    assert_eq!((&task["startedBy"], &task["containers"][0]["exitCode"]), (&json!("jobs"), &json!(0)));
    assert_eq!(stage.output(&task), [format!("{}/1", fired.scheduled_time)]);

    let lost = rehearsal::local_aws::Failure { arn: None, reason: "RESOURCE:MEMORY".into(), detail: None };
    stage.local.fail_run_task(&[lost]).unwrap();
    let [lost] = fire().try_into().unwrap();
    assert_eq!((lost.delivered, lost.tasks.len(), lost.failures[0].reason.as_str()), (true, 0, "RESOURCE:MEMORY"));
    assert_eq!(stage.local.invocations().unwrap().len(), 4, "a delivery with failures is not tried again");

    monthly("PUT", "DISABLED");
    assert!(fire().is_empty());
}

#[test]
fn a_year_passes_in_one_request() {
    let stage = stage();
    prepare(&stage, GROUP_ARN);
    stage.allow(ROLE, json!([may_run_task(&stage), may_pass_roles(&stage)]));
    stage.aws.scheduler("POST", "/schedules/monthly", schedule("ENABLED", &input(&stage))).unwrap();
    let fired = stage.local.advance(std::time::Duration::from_secs(365 * 86_400)).unwrap();
    assert_eq!(fired.len(), 12);
    assert!(fired.iter().all(|one| one.delivered && one.tasks.len() == 1));
    assert!(fired.is_sorted_by(|one, next| one.scheduled_time < next.scheduled_time));
}

#[test]
fn get_schedule_reports_defaults_that_nobody_sent_and_update_resets_what_is_omitted() {
    let stage = stage();
    prepare(&stage, GROUP_ARN);
    let mut sent = schedule("DISABLED", &input(&stage));
    sent["Description"] = json!("kept only if sent again");
    stage.aws.scheduler("POST", "/schedules/monthly", sent.clone()).unwrap();
    let get = || {
        let mut got = stage.aws.scheduler("GET", "/schedules/monthly?groupName=jobs", Value::Null).unwrap();
        for moment in ["CreationDate", "LastModificationDate"] {
            assert!(got.as_object_mut().unwrap().remove(moment).unwrap().is_f64());
        }
        got
    };
    let mut expected = sent.clone();
    expected["Name"] = json!("monthly");
    expected["Arn"] = json!("arn:aws:scheduler:ap-northeast-2:123456789012:schedule/jobs/monthly");
    expected["ActionAfterCompletion"] = json!("NONE");
    expected["Target"]["RetryPolicy"] = json!({ "MaximumRetryAttempts": 185, "MaximumEventAgeInSeconds": 86400 });
    assert_eq!(get(), expected);

    for omitted in ["State", "Description", "ScheduleExpressionTimezone"] {
        sent.as_object_mut().unwrap().remove(omitted);
        expected.as_object_mut().unwrap().remove(omitted);
    }
    stage.aws.scheduler("PUT", "/schedules/monthly", sent).unwrap();
    expected["State"] = json!("ENABLED");
    expected["ScheduleExpressionTimezone"] = json!("UTC");
    assert_eq!(get(), expected);
}

#[test]
fn what_scheduler_refuses_is_refused() {
    let stage = stage();
    prepare(&stage, GROUP_ARN);
    let create = |change: &dyn Fn(&mut Value)| {
        let mut request = schedule("DISABLED", &input(&stage));
        change(&mut request);
        stage.aws.scheduler("POST", "/schedules/monthly", request).unwrap_err()
    };
    let with_input = |change: &dyn Fn(&mut Value)| {
        let mut input = input(&stage);
        change(&mut input);
        create(&|request| request["Target"]["Input"] = json!(input.to_string()))
    };
    let camel = json!({ "cluster": "geuneul", "taskDefinition": "geuneul" }).to_string();
    create(&|r| r["Target"]["Input"] = json!(camel)).assert(
        "ValidationException",
        "Invalid RequestJson provided. Reason Request payload is missing the following field(s): TaskDefinition.",
    );
    with_input(&|i| i["count"] = json!(1)).assert("ValidationException", "unknown field count");
    with_input(&|i| i["NetworkConfiguration"] = json!({ "AwsVpcConfiguration": {} }))
        .assert("ValidationException", "Input.NetworkConfiguration: unknown field AwsVpcConfiguration");
    with_input(&|i| i["Overrides"]["ContainerOverrides"][0]["Environment"] = json!([{ "name": "A", "Value": "b" }]))
        .assert("ValidationException", "Environment[0]: unknown field name");
    with_input(&|i| i["Overrides"]["Cpu"] = json!(256))
        .assert("ValidationException", "Input.Overrides.Cpu: expected string");
    create(&|r| r["Target"]["Arn"] = json!("arn:aws:scheduler:::aws-sdk:ecs:describeTasks"))
        .assert("ValidationException", "is not a supported service for a target");
    create(&|r| r["ScheduleExpression"] = json!("cron(0 3 5 * *)"))
        .assert("ValidationException", "Invalid Schedule Expression");
    create(&|r| r["ScheduleExpression"] = json!("cron(0 3 5 * * *)"))
        .assert("ValidationException", "Invalid Schedule Expression");
    create(&|r| r["ScheduleExpressionTimezone"] = json!("Asia/Soul"))
        .assert("ValidationException", "Invalid ScheduleExpressionTimezone.");
    create(&|r| r["GroupName"] = json!("other"))
        .assert("ResourceNotFoundException", "Schedule group other does not exist.");
    create(&|r| r["Target"]["RoleArn"] = json!(stage.world.task_role)).assert("ValidationException", CANNOT_ASSUME);

    let monthly = schedule("DISABLED", &input(&stage));
    stage.aws.scheduler("POST", "/schedules/monthly", monthly).unwrap();
    create(&|_| ()).assert("ConflictException", "already exists");
}

#[test]
fn the_trust_condition_must_name_the_group_and_news_of_a_role_travels_slowly() {
    let stage = stage();
    let create = || stage.aws.scheduler("POST", "/schedules/monthly", schedule("DISABLED", &input(&stage)));
    prepare(&stage, "arn:aws:scheduler:ap-northeast-2:123456789012:schedule/jobs/*");
    create().unwrap_err().assert("ValidationException", CANNOT_ASSUME);

    stage.local.delay_iam(2).unwrap();
    let document = trust(GROUP_ARN);
    let parameters = [("RoleName", "jobs-scheduler"), ("PolicyDocument", document.as_str())];
    stage.aws.iam("UpdateAssumeRolePolicy", &parameters).unwrap();
    create().unwrap_err().assert("ValidationException", CANNOT_ASSUME);
    create().unwrap_err().assert("ValidationException", CANNOT_ASSUME);
    create().unwrap();

    stage.local.hold_iam().unwrap();
    stage.aws.iam("UpdateAssumeRolePolicy", &parameters).unwrap();
    let update = || stage.aws.scheduler("PUT", "/schedules/monthly", schedule("DISABLED", &input(&stage)));
    update().unwrap_err().assert("ValidationException", CANNOT_ASSUME);
    stage.local.release_iam().unwrap();
    update().unwrap();
}

#[test]
fn groups_carry_the_tags_and_take_their_schedules_with_them() {
    let stage = stage();
    prepare(&stage, GROUP_ARN);
    stage.aws.scheduler("POST", "/schedules/monthly", schedule("DISABLED", &input(&stage))).unwrap();
    let encode = |arn: &str| percent_encoding::utf8_percent_encode(arn, percent_encoding::NON_ALPHANUMERIC).to_string();
    let tags = stage.aws.scheduler("GET", &format!("/tags/{}", encode(GROUP_ARN)), Value::Null).unwrap();
    assert_eq!(tags["Tags"], json!([{ "Key": "managed-by", "Value": "test" }]));
    let of_schedule =
        format!("/tags/{}", encode("arn:aws:scheduler:ap-northeast-2:123456789012:schedule/jobs/monthly"));
    stage
        .aws
        .scheduler("GET", &of_schedule, Value::Null)
        .unwrap_err()
        .assert("ValidationException", "schedule group ARN");

    let list =
        || stage.aws.scheduler("GET", "/schedules?ScheduleGroup=jobs", Value::Null).unwrap()["Schedules"].clone();
    assert_eq!(list()[0]["Name"], "monthly");
    stage.aws.scheduler("DELETE", "/schedule-groups/jobs", Value::Null).unwrap();
    assert_eq!(list(), json!([]));
    let gone = stage.aws.scheduler("GET", "/schedule-groups/jobs", Value::Null).unwrap_err();
    gone.assert("ResourceNotFoundException", "jobs does not exist");
}

#[test]
fn an_occurrence_that_is_delivered_twice_starts_one_task() {
    let stage = stage();
    prepare(&stage, GROUP_ARN);
    stage.allow(ROLE, json!([may_run_task(&stage), may_pass_roles(&stage)]));
    let mut once = schedule("ENABLED", &input(&stage));
    // The attempt is in the Input: then the request is another one, and the token is refused.
    let ours = input(&stage).to_string().replace("/<aws.scheduler.attempt-number>", "");
    once["Target"]["Input"] = json!(ours);
    once["ScheduleExpression"] = json!("at(2199-01-01T00:00:00)");
    once["ActionAfterCompletion"] = json!("DELETE");
    stage.aws.scheduler("POST", "/schedules/once", once).unwrap();
    assert!(stage.local.deliver_again("jobs/once").is_err(), "it has not fired yet");
    let [fired] = stage.local.advance_to_next_fire("jobs/once").unwrap().try_into().unwrap();
    let again = stage.local.deliver_again("jobs/once").unwrap();
    assert_eq!((again.scheduled_time, again.delivered, &again.tasks), (fired.scheduled_time, true, &fired.tasks));
    assert_ne!(again.execution_id, fired.execution_id);
    let gone = stage.aws.scheduler("GET", "/schedules/once?groupName=jobs", Value::Null).unwrap_err();
    gone.assert("ResourceNotFoundException", "once does not exist");
}

#[test]
fn what_is_refused_is_tried_again_and_then_kept_where_the_schedule_says() {
    let stage = stage();
    prepare(&stage, GROUP_ARN);
    let queue = stage.aws.sqs("CreateQueue", json!({ "QueueName": "dead" })).unwrap();
    let mut monthly = schedule("ENABLED", &input(&stage));
    monthly["Target"]["RetryPolicy"] = json!({ "MaximumRetryAttempts": 2 });
    monthly["Target"]["DeadLetterConfig"] = json!({ "Arn": "arn:aws:sqs:ap-northeast-2:123456789012:dead" });
    stage.aws.scheduler("POST", "/schedules/monthly", monthly).unwrap();
    let fire = || {
        let [fired] = stage.local.advance_to_next_fire("jobs/monthly").unwrap().try_into().unwrap();
        (fired.attempts, fired.delivered, fired.dead_lettered)
    };
    // The role may not even send what it could not deliver.
    assert_eq!(fire(), (3, false, false));
    let may_send = json!({ "Effect": "Allow", "Action": "sqs:SendMessage", "Resource": "*" });
    stage.allow(ROLE, json!([may_send]));
    assert_eq!(fire(), (3, false, true));
    let asked = json!({ "QueueUrl": queue["QueueUrl"], "MessageAttributeNames": ["All"] });
    let message = stage.aws.sqs("ReceiveMessage", asked).unwrap()["Messages"][0].clone();
    let attribute = |name: &str| message["MessageAttributes"][name]["StringValue"].clone();
    assert_eq!((attribute("ERROR_CODE"), attribute("RETRY_ATTEMPTS")), (json!("AccessDeniedException"), json!("2")));
    assert!(attribute("ERROR_MESSAGE").as_str().unwrap().contains("ecs:RunTask"), "{message}");
    assert!(message["Body"].as_str().unwrap().contains("TaskDefinition"), "{message}");

    stage.allow(ROLE, json!([may_run_task(&stage), may_pass_roles(&stage)]));
    stage.local.delay_iam(1).unwrap();
    let document = trust(GROUP_ARN);
    let parameters = [("RoleName", "jobs-scheduler"), ("PolicyDocument", document.as_str())];
    stage.aws.iam("UpdateAssumeRolePolicy", &parameters).unwrap();
    assert_eq!(fire(), (2, true, false));
    let last = stage.local.invocations().unwrap().pop().unwrap();
    let task = stage.local.wait_for_task(&last.tasks[0]).unwrap();
    assert_eq!(stage.output(&task), [format!("{}/2", last.scheduled_time)]);
}
