//! Tasks really run, see what they should see, and end as ECS says.

use rehearsal::local_aws::Fate;
use serde_json::{Value, json};

use super::{SHELL, shared, stage};

const KEY: &str = "aB3+/=kept-secret";

#[test]
fn a_secret_reaches_the_task_only_if_the_execution_role_may_read_it() {
    let stage = stage();
    let put = json!({ "Name": "/geuneul/key", "Value": KEY, "Type": "SecureString" });
    stage.aws.ssm("PutParameter", put).unwrap();
    let with_secret =
        stage.register(|app| app["secrets"] = json!([{ "name": "SERVICE_KEY", "valueFrom": "/geuneul/key" }]));

    let refused = stage.run(&with_secret, "echo started");
    assert_eq!(refused["stopCode"], "TaskFailedToStart");
    assert_eq!(refused["containers"][0].get("exitCode"), None);
    let reason = refused["stoppedReason"].as_str().unwrap();
    assert!(reason.starts_with("ResourceInitializationError: unable to pull secrets or registry auth"), "{reason}");
    assert!(reason.contains("not authorized to perform: ssm:GetParameters on resource: arn:aws:ssm:"), "{reason}");

    let parameter = "arn:aws:ssm:ap-northeast-2:123456789012:parameter/geuneul/key";
    stage.allow(
        &stage.world.execution_role,
        json!({ "Effect": "Allow", "Action": "ssm:GetParameters", "Resource": parameter }),
    );
    let ran = stage.run(&with_secret, r#"test "$SERVICE_KEY" = 'aB3+/=kept-secret' && echo same"#);
    assert_eq!(ran["containers"][0]["exitCode"], 0);
    assert_eq!(stage.output(&ran), ["same"]);

    let state = stage.local.state().unwrap();
    assert!(state.contains("(secret value)"));
    // The script above carries the value on purpose: it is in the task's overrides, its input and the call log.
    assert!(state.matches(KEY).count() > 0, "the search itself finds what is there");
    stage.local.forget_calls().unwrap();
    let elsewhere: Value = serde_json::from_str(&stage.local.state().unwrap()).unwrap();
    for part in ["parameters", "parameter_history", "task_definitions", "roles", "schedules", "log_groups", "calls"] {
        assert!(!elsewhere[part].to_string().contains(KEY), "{part}");
    }
}

#[test]
fn a_task_sees_its_own_environment_and_nothing_of_the_server() {
    let stage = shared();
    let mut request = stage.run_request(&stage.world.task_definition, "env | cut -d= -f1 | sort | tr '\\n' ' '");
    request["overrides"]["containerOverrides"][0]["environment"] =
        json!([{ "name": "OVERRIDE", "value": "" }, { "name": "DB_HOST", "value": "other" }]);
    let task = stage.local.wait_for_task(&stage.start(request)).unwrap();
    assert_eq!(
        stage.output(&task),
        ["DB_HOST ECS_CONTAINER_METADATA_URI_V4 FROM_IMAGE OVERRIDE PATH PWD "],
        "the shell adds PWD"
    );
}

#[test]
fn a_stopped_task_is_described_as_it_was_asked_for() {
    let stage = shared();
    let task = stage.run(&stage.world.task_definition, "echo out; echo err >&2; exit 7");
    assert_eq!(stage.output(&task), ["out", "err"]);
    assert_eq!(task["stopCode"], "EssentialContainerExited");
    assert_eq!(task["stoppedReason"], "Essential container in task exited");
    assert_eq!(task["startedBy"], "test");
    assert_eq!(task["group"], "family:geuneul");
    assert_eq!(task["taskDefinitionArn"], stage.world.task_definition);
    assert_eq!(task["overrides"]["containerOverrides"][0]["command"], json!(["echo out; echo err >&2; exit 7"]));
    assert_eq!(task["attachments"][0]["details"][0], json!({ "name": "subnetId", "value": "subnet-00000001" }));
    for moment in ["createdAt", "startedAt", "stoppingAt", "stoppedAt"] {
        assert!(task[moment].is_f64(), "{moment}");
    }
    let container = &task["containers"][0];
    assert_eq!((&container["exitCode"], &container["lastStatus"]), (&json!(7), &json!("STOPPED")));
    let digest = container["imageDigest"].as_str().unwrap();
    assert!(digest.starts_with("sha256:") && digest.len() == 71, "{digest}");
    assert_eq!(
        stage.run(&stage.world.task_definition, "true")["containers"][0]["imageDigest"],
        digest,
        "the digest is stable"
    );

    let image = |program: &str| {
        stage.local.image("local/rebuilt:1", &rehearsal::local_aws::Image::new(program)).unwrap();
        let definition = stage.register(|app| app["image"] = json!("local/rebuilt:1"));
        stage.run(&definition, "/dev/null")["containers"][0]["imageDigest"].clone()
    };
    assert_ne!(image("/bin/cat"), image("/bin/ls"), "a rebuilt program is another image");
}

#[test]
fn stop_sends_sigterm_then_sigkill_and_reports_the_real_exit_code() {
    let stage = shared();
    let patient = stage.register(|app| app["stopTimeout"] = json!(60));
    let impatient = stage.register(|app| app["stopTimeout"] = json!(1));
    let stop = |definition: &str, script: &str| {
        let arn = stage.start(stage.run_request(definition, script));
        let started = || stage.aws.output(&stage.world.log_group, &stage.world.container, &arn);
        while stage.aws.logs("DescribeLogStreams", json!({ "logGroupName": stage.world.log_group })).unwrap()["logStreams"]
            .as_array()
            .unwrap()
            .iter()
            .all(|stream| !arn.ends_with(stream["logStreamName"].as_str().unwrap().rsplit('/').next().unwrap()))
            || started().is_empty()
        {
            std::thread::yield_now();
        }
        let request = json!({ "cluster": stage.world.cluster, "task": arn, "reason": "enough" });
        let answered = stage.aws.ecs("StopTask", request).unwrap();
        assert_eq!(answered["task"]["desiredStatus"], "STOPPED");
        let task = stage.local.wait_for_task(&arn).unwrap();
        assert_eq!((&task["stopCode"], &task["stoppedReason"]), (&json!("UserInitiated"), &json!("enough")));
        (task["containers"][0]["exitCode"].as_i64().unwrap(), stage.output(&task))
    };
    let polite = "trap 'echo bye; exit 42' TERM; echo up; sleep 1000 & wait";
    assert_eq!(stop(&patient, polite), (42, vec!["up".into(), "bye".into()]));
    assert_eq!(stop(&impatient, "trap '' TERM; echo up; sleep 1000; :").0, 137);
}

#[test]
fn a_task_that_cannot_start_says_why() {
    let stage = shared();
    let reason = |definition: &str| {
        let task = stage.run(definition, "true");
        assert_eq!(task["stopCode"], "TaskFailedToStart");
        task["stoppedReason"].as_str().unwrap().to_owned()
    };
    let unknown = stage.register(|app| app["image"] = json!("local/unknown:9"));
    assert!(reason(&unknown).starts_with("CannotPullContainerError: "));
    let nowhere = stage.register(|app| app["logConfiguration"]["options"]["awslogs-group"] = json!("/ecs/nowhere"));
    assert!(reason(&nowhere).contains("The specified log group does not exist."));
    let nameless = stage.register(|app| {
        app["image"] = json!(SHELL);
        app["logConfiguration"]["options"]["awslogs-group"] = json!("/ecs/geuneul");
        app["secrets"] = json!([{ "name": "KEY", "valueFrom": "/no/such" }]);
    });
    stage.allow(&stage.world.execution_role, json!({ "Effect": "Allow", "Action": "ssm:*", "Resource": "*" }));
    assert!(reason(&nameless).contains("invalid ssm parameters: /no/such"));
}

#[test]
fn the_essential_container_decides_and_the_others_end_with_it() {
    let stage = shared();
    let both = stage.register_all(|containers| {
        let mut sidecar = containers[0].clone();
        sidecar["name"] = json!("sidecar");
        sidecar["essential"] = json!(false);
        sidecar["command"] = json!(["exit 9"]);
        sidecar["portMappings"] = json!([]);
        containers.push(sidecar);
    });
    let codes = |task: &Value| [0, 1].map(|index| task["containers"][index]["exitCode"].clone());
    let task = stage.run(&both, "exit 3");
    assert_eq!(task["stopCode"], "EssentialContainerExited");
    assert_eq!(codes(&task)[0], 3);

    let mut request = stage.run_request(&both, "until test -e ../up; do :; done; exit 0");
    let endless = json!({ "name": "sidecar", "command": ["trap 'exit 5' TERM; touch ../up; sleep 1000 & wait"] });
    request["overrides"]["containerOverrides"].as_array_mut().unwrap().push(endless);
    let task = stage.local.wait_for_task(&stage.start(request)).unwrap();
    assert_eq!(codes(&task), [0, 5], "the sidecar was asked to stop");
}

#[test]
fn a_client_token_starts_one_task() {
    let stage = shared();
    let mut request = stage.run_request(&stage.world.task_definition, "true");
    request["clientToken"] = json!("once");
    let first = stage.start(request.clone());
    assert_eq!(stage.start(request.clone()), first);
    request["startedBy"] = json!("somebody else");
    stage.aws.ecs("RunTask", request).unwrap_err().assert("ConflictException", "different parameters");
}

#[test]
fn a_role_that_changed_is_assumable_only_after_a_while() {
    let stage = stage();
    stage.local.delay_iam(1).unwrap();
    let trust = json!({ "Version": "2012-10-17", "Statement": [{
        "Effect": "Allow", "Principal": { "Service": "ecs-tasks.amazonaws.com" }, "Action": "sts:AssumeRole",
    }]});
    let parameters = [("RoleName", "geuneul-execution"), ("PolicyDocument", &trust.to_string())];
    stage.aws.iam("UpdateAssumeRolePolicy", &parameters).unwrap();
    let request = stage.run_request(&stage.world.task_definition, "true");
    let refused = stage.aws.ecs("RunTask", request.clone()).unwrap_err();
    refused.assert(
        "ClientException",
        "ECS was unable to assume the role 'arn:aws:iam::123456789012:role/geuneul-execution'",
    );
    stage.start(request);
}

#[test]
fn what_ecs_refuses_is_refused() {
    let stage = shared();
    let secret = stage.register(|app| app["secrets"] = json!([{ "name": "KEY", "valueFrom": "/k" }]));
    let refused = |change: &dyn Fn(&mut Value)| {
        let mut request = stage.run_request(&secret, "true");
        change(&mut request);
        stage.aws.ecs("RunTask", request).unwrap_err()
    };
    refused(&|r| r["overrides"]["containerOverrides"][0]["name"] = json!("web"))
        .assert("InvalidParameterException", "container named web is not a container in the TaskDefinition");
    refused(&|r| r["overrides"]["containerOverrides"][0]["environment"] = json!([{ "name": "KEY", "value": "x" }]))
        .assert("ClientException", "The secret name must be unique and not shared");
    refused(&|r| r["overrides"]["containerOverrides"][0]["command"] = json!(["x".repeat(8200)]))
        .assert("InvalidParameterException", "Overrides length must be at most 8192");
    refused(&|r| r["Overrides"] = json!({})).assert("InvalidParameterException", "unknown field Overrides");
    refused(&|r| r["cluster"] = json!("other")).assert("ClusterNotFoundException", "Cluster not found.");
    refused(&|r| r["taskDefinition"] = json!("other")).assert("ClientException", "TaskDefinition not found.");
    refused(&|r| r["networkConfiguration"] = json!({}))
        .assert("InvalidParameterException", "Network Configuration must be provided when networkMode 'awsvpc'");
    refused(&|r| r["networkConfiguration"]["awsvpcConfiguration"]["subnets"] = json!(["subnet-9"]))
        .assert("InvalidParameterException", "The subnet ID 'subnet-9' does not exist");
    refused(&|r| r["launchType"] = json!("EC2")).assert("InvalidParameterException", "No Container Instances");

    stage.aws.ecs("DeregisterTaskDefinition", json!({ "taskDefinition": secret })).unwrap();
    refused(&|_| ()).assert("ClientException", "TaskDefinition is inactive");
}

#[test]
fn a_task_ends_as_its_fate_wants() {
    let stage = stage();
    let end = |fate: &Fate| {
        stage.local.next_task(fate).unwrap();
        let task = stage.run(&stage.world.task_definition, "echo up; exec sleep 1000");
        let container = task["containers"][0].clone();
        (task["stopCode"].as_str().unwrap().to_owned(), container["exitCode"].clone(), container["reason"].clone())
    };
    let reason = json!("OutOfMemoryError: Container killed due to memory usage");
    assert_eq!(end(&Fate::OutOfMemory), ("EssentialContainerExited".into(), json!(137), reason));
    assert_eq!(end(&Fate::SpotInterruption), ("SpotInterruption".into(), json!(143), Value::Null));
    assert_eq!(end(&Fate::HostLost), ("TerminationNotice".into(), json!(143), Value::Null));
    let never = Fate::NoStart { reason: "ResourceInitializationError: context deadline exceeded".into() };
    assert_eq!(end(&never), ("TaskFailedToStart".into(), Value::Null, Value::Null));
    assert_eq!(stage.run(&stage.world.task_definition, "exit 3")["containers"][0]["exitCode"], 3, "one fate, one task");
}

#[test]
fn lines_arrive_late_in_pages_and_in_pieces() {
    let stage = stage();
    stage.local.late_lines(2, 2).unwrap();
    let task = stage.run(&stage.world.task_definition, "echo 1; echo 2; sleep 0.02; echo 3");
    assert_eq!(stage.output(&task), ["1", "3"]);
    assert_eq!(stage.output(&task), ["1", "2", "3"], "a late line has its own time");
    stage.local.clear_faults().unwrap();
    let long = "head -c 40000 /dev/zero | tr '\\0' x; echo";
    let task = stage.run(&stage.world.task_definition, long);
    assert_eq!(stage.output(&task).iter().map(String::len).collect::<Vec<_>>(), [16384, 16384, 7232]);
    stage.local.log_pages_of(2).unwrap();
    assert_eq!(stage.output(&task).len(), 2);
    stage.local.hide_streams(1).unwrap();
    let stream = format!("app/app/{}", task["taskArn"].as_str().unwrap().rsplit('/').next().unwrap());
    let request = json!({ "logGroupName": stage.world.log_group, "logStreamName": stream });
    stage.aws.logs("GetLogEvents", request).unwrap_err().assert("ResourceNotFoundException", "does not exist");
    assert_eq!(stage.output(&task).len(), 2);
}
