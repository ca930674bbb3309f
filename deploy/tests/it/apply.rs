//! `apply`: what is really sent, what stands in its way, and every way in which it can break off.

use std::time::Duration;

use deploy::apply::{Patience, apply};
use deploy::cloud::{Roles, Schedules};
use deploy::explain;
use deploy::guard::Guard;
use deploy::model::{State, TaskDefinition, tags};
use deploy::plan::Wish;
use deploy::secret::SecretValue;
use deploy::templates;
use rehearsal::local_aws::Fault;
use serde_json::{Value, json};

use crate::inside;
use crate::plan::{refused, writes};
use crate::scene::{JOB, Scene};

#[test]
fn the_documents_of_templates_are_what_is_sent() {
    let scene = Scene::set();
    let queue = format!("arn:aws:sqs:{}:{}:undelivered", scene.world.region, scene.world.account);
    let groups = format!(
        "security_groups = {:?}\n[job.{JOB}.schedule]\ndead_letter_queue = {queue:?}",
        scene.world.security_groups
    );
    scene.edit_config(|config| *config = config.replace(&format!("[job.{JOB}.schedule]"), &groups));
    scene.aws.forget_calls().unwrap();
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    let order = [
        "ssm:PutParameter",
        "iam:PutRolePolicy",
        "ecs:RegisterTaskDefinition",
        "iam:CreateRole",
        "iam:PutRolePolicy",
        "scheduler:CreateScheduleGroup",
        "scheduler:CreateSchedule",
    ];
    assert_eq!(writes(&scene), order);

    let desired = inside::desired(&scene);
    let calls = scene.aws.calls().unwrap();
    let sent = |action: &str, nth: usize| &calls.iter().filter(|call| call.action == action).nth(nth).unwrap().request;
    let document =
        |request: &Value, member: &str| -> Value { serde_json::from_str(request[member].as_str().unwrap()).unwrap() };
    let arn = format!("arn:aws:ssm:{}:{}:parameter/geuneul/api_key", scene.world.region, scene.world.account);
    let none = json!([]);
    let values = [
        ("PARAMETER_ARNS", json!([arn])),
        ("KEY_ARNS", none.clone()),
        ("KEY_ALIASES", none.clone()),
        ("EVERY_KEY_ARN", none),
    ];
    let execution = templates::fill(templates::EXECUTION_POLICY, &values);
    assert_eq!(document(sent("PutRolePolicy", 0), "PolicyDocument"), execution);
    let group = format!("arn:aws:scheduler:{}:{}:schedule-group/{JOB}", scene.world.region, scene.world.account);
    let trust = [("ACCOUNT", json!(scene.world.account)), ("GROUP_ARN", json!(group))];
    let trust = templates::fill(templates::SCHEDULER_TRUST, &trust);
    assert_eq!(document(sent("CreateRole", 0), "AssumeRolePolicyDocument"), trust);
    let family = scene.world.task_definition.rsplit_once(':').unwrap().0;
    let policy = [
        ("EVERY_REVISION_ARN", json!(format!("{family}:*"))),
        ("CLUSTER_ARN", json!(scene.world.cluster_arn)),
        ("PASSED_ROLE_ARNS", json!([scene.world.execution_role, scene.world.task_role])),
        ("DEAD_LETTER_QUEUE_ARNS", json!([queue])),
    ];
    let policy = templates::fill(templates::SCHEDULER_POLICY, &policy);
    assert_eq!(document(sent("PutRolePolicy", 1), "PolicyDocument"), policy);

    let schedule = sent("CreateSchedule", 0);
    let input: Value = serde_json::from_str(schedule["Target"]["Input"].as_str().unwrap()).unwrap();
    let network = &desired.job.network;
    let environment = &input["Overrides"]["ContainerOverrides"][0]["Environment"];
    let values = [
        ("CLUSTER", json!(scene.world.cluster)),
        ("REVISION_ARN", json!(format!("{family}:2"))),
        ("CLIENT_TOKEN", input["ClientToken"].clone()),
        ("STARTED_BY", input["StartedBy"].clone()),
        ("SUBNETS", json!(network.subnets)),
        ("SECURITY_GROUPS", json!(network.security_groups)),
        ("ASSIGN_PUBLIC_IP", json!("ENABLED")),
        ("CONTAINER", json!(scene.world.container)),
        ("COMMAND", json!(["--once", "--all"])),
        ("ENVIRONMENT", environment.clone()),
    ];
    assert_eq!(input, templates::fill(templates::RUN_TASK_INPUT, &values));
    assert_eq!(schedule["State"], "DISABLED");
    assert_eq!(
        schedule["Target"]["RetryPolicy"],
        json!({ "MaximumEventAgeInSeconds": 3600, "MaximumRetryAttempts": 3 })
    );

    inside::run(async {
        let cloud = inside::cloud(&scene).await;
        let role = cloud.role(&desired.role.name).await.unwrap();
        let group = cloud.group(JOB, &desired.group_arn()).await.unwrap();
        assert!(tags::are_ours(&role.tags, JOB) && tags::are_ours(&group.tags, JOB));
        let live = deploy::observe::observe(&cloud, &desired).await.unwrap();
        let parameter = live.parameters[0].present().unwrap();
        assert!(tags::are_ours(parameter.tags.as_ref().unwrap(), JOB));
        assert!(tags::are_ours(&live.task_definition.present().unwrap().tags, JOB));
    });
}

#[test]
fn an_adopted_task_definition_keeps_everything_it_had() {
    let scene = Scene::set();
    let mut before = maximal(&scene);
    scene.call("ecs", "RegisterTaskDefinition", &before);
    let described = |scene: &Scene| {
        scene.call(
            "ecs",
            "DescribeTaskDefinition",
            &json!({ "taskDefinition": scene.world.family, "include": ["TAGS"] }),
        )
    };
    let old = described(&scene);
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    let new = described(&scene);
    let writable = |answer: &Value| {
        TaskDefinition { members: answer["taskDefinition"].as_object().unwrap().clone(), tags: Default::default() }
            .writable()
    };
    let (old_members, mut new_members) = (Value::Object(writable(&old)), Value::Object(writable(&new)));
    let secrets = new_members["containerDefinitions"][0]["secrets"].as_array_mut().unwrap();
    assert_eq!(secrets.pop().unwrap()["name"], "API_KEY");
    assert_eq!(new_members, old_members);
    // And what was registered is what was described: nothing was lost on the first way either.
    for (member, value) in before.as_object_mut().unwrap() {
        if member != "tags" && member != "containerDefinitions" {
            assert_eq!(&new["taskDefinition"][member], value, "{member}");
        }
    }
    let tags: Vec<_> = new["tags"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tag| (tag["key"].as_str().unwrap(), tag["value"].as_str().unwrap()))
        .collect();
    let mut tags = tags;
    tags.sort();
    assert_eq!(tags, [("job", JOB), ("managed-by", "geuneul-deploy"), ("team", "도서관")]);
}

#[test]
fn a_given_task_definition_is_registered_and_then_as_wanted() {
    let scene = Scene::set();
    let mut document = maximal(&scene);
    for member in ["tags", "family"] {
        document.as_object_mut().unwrap().remove(member);
    }
    document["cpu"] = json!(".25 vCPU");
    document["memory"] = json!("0.5 GB");
    std::fs::write(scene.path().join("task.json"), document.to_string()).unwrap();
    scene.edit_config(|config| {
        *config = config.replace("container = ", "task_definition = \"task.json\"\ncontainer = ")
    });
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    scene.expect(&["plan", "--detailed-exitcode"], 0);
    document["containerDefinitions"][0]["image"] = json!("another:2");
    std::fs::write(scene.path().join("task.json"), document.to_string()).unwrap();
    let said = scene.transcript(&["plan", "--detailed-exitcode"]);
    assert!(said.contains("containerDefinitions[app].image") && said.contains("-> another:2"), "{said}");
}

#[test]
fn apply_never_switches_on_and_does_not_move_an_enabled_job() {
    let scene = Scene::set();
    let said = refused(&scene, &["apply", "--yes"]);
    assert!(said.contains("schedule library-sync is new"), "{said}");
    let said = refused(&scene, &["apply", "--disabled"]);
    assert!(said.contains("nobody is here to confirm"), "{said}");
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    switch_on(&scene);
    // Nothing to do: ENABLED is as wanted as DISABLED.
    scene.expect(&["plan", "--detailed-exitcode"], 0);
    scene.expect(&["apply"], 0);
    assert_eq!(scene.schedule()["State"], "ENABLED");
    // What an enabled job runs is moved only by switching it off first.
    scene.edit_config(|config| *config = config.replace("--all", "--some"));
    let said = refused(&scene, &["apply", "--yes"]);
    assert!(said.contains("ENABLED"), "{said}");
    insta::with_settings!({ filters => Scene::filters(), omit_expression => true }, {
        insta::assert_snapshot!("apply_to_an_enabled_job", scene.transcript(&["apply", "--disabled", "--yes"]));
    });
    assert_eq!(scene.schedule()["State"], "DISABLED");
    // Another value of its secret is what a rotation is for: it is said what that means, and the job stays as it is.
    switch_on(&scene);
    let output = scene.expect(&["apply", "--rotate", "API_KEY", "--yes"], 0);
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("a proven run of API_KEY v1 no longer counts"), "{said}");
    assert_eq!(scene.schedule()["State"], "ENABLED");
    // `stopped` in the configuration says the same for good.
    scene.edit_config(|config| *config = config.replace("container = ", "stopped = true\ncontainer = "));
    scene.expect(&["plan", "--detailed-exitcode"], 2);
    scene.expect(&["apply", "--yes"], 0);
    assert_eq!(scene.schedule()["State"], "DISABLED");
    refused(&scene, &["enable"]);
    scene.edit_config(|config| *config = config.replace("stopped = true\n", ""));
    // Plain apply keeps DISABLED as well.
    scene.edit_config(|config| *config = config.replace("--some", "--all"));
    scene.expect(&["apply", "--yes"], 0);
    assert_eq!(scene.schedule()["State"], "DISABLED");
}

#[test]
fn after_a_failure_at_any_step_apply_again_converges() {
    let writes = [
        ("ssm", "PutParameter"),
        ("iam", "PutRolePolicy"),
        ("ecs", "RegisterTaskDefinition"),
        ("iam", "CreateRole"),
        ("scheduler", "CreateScheduleGroup"),
        ("scheduler", "CreateSchedule"),
    ];
    // Once the call is not carried out; once it is, and the answer is lost: then the next apply finds what it made.
    for fault in [Fault::before, Fault::after] {
        let scene = Scene::set();
        for (service, action) in writes {
            scene.aws.fault(&fault(service, action).error(400, "ValidationException", "made to fail")).unwrap();
            let output = scene.expect(&["apply", "--disabled", "--yes"], 1);
            let said = String::from_utf8(output.stderr).unwrap();
            assert!(
                said.contains("made to fail") && said.contains("goes on from here: deploy apply --disabled"),
                "{said}"
            );
            if action == "CreateScheduleGroup" {
                assert!(said.contains("not attempted: create schedule library-sync"), "{said}");
            }
        }
        scene.expect(&["apply", "--disabled", "--yes"], 0);
        scene.expect(&["plan", "--detailed-exitcode"], 0);
        assert_eq!(scene.schedule()["State"], "DISABLED");
    }
}

#[test]
fn being_told_to_slow_down_is_no_failure() {
    let scene = Scene::set();
    let calls = [
        ("ssm", "PutParameter"),
        ("iam", "CreateRole"),
        ("ecs", "RegisterTaskDefinition"),
        ("scheduler", "CreateSchedule"),
    ];
    for (service, action) in calls {
        scene.aws.fault(&Fault::before(service, action).times(2).throttled()).unwrap();
    }
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    scene.expect(&["plan", "--detailed-exitcode"], 0);
    let calls = scene.aws.calls().unwrap();
    assert_eq!(calls.iter().filter(|call| call.action == "CreateSchedule").count(), 3);
}

#[test]
fn iam_is_waited_for() {
    let scene = Scene::set();
    scene.aws.delay_iam(2).unwrap();
    let output = scene.expect(&["apply", "--disabled", "--yes"], 0);
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("waiting: IAM may need"), "{said}");
    scene.expect(&["plan", "--detailed-exitcode"], 0);
}

/// Switches the schedule on behind everybody's back.
fn switch_on(scene: &Scene) {
    inside::run(async {
        let cloud = inside::cloud(scene).await;
        let schedule = cloud.schedule(JOB, JOB).await.unwrap();
        cloud.update_schedule(&schedule.with_state(State::Enabled)).await.unwrap();
    });
}

/// A task definition with as much in it as Fargate and the local AWS take.
fn maximal(scene: &Scene) -> Value {
    let image = "123456789012.dkr.ecr.ap-northeast-2.amazonaws.com/job:1";
    json!({
        "family": scene.world.family,
        "taskRoleArn": scene.world.task_role,
        "executionRoleArn": scene.world.execution_role,
        "networkMode": "awsvpc",
        "requiresCompatibilities": ["FARGATE"],
        "cpu": "256",
        "memory": "512",
        "pidMode": "task",
        "enableFaultInjection": true,
        "ephemeralStorage": { "sizeInGiB": 30 },
        "runtimePlatform": { "cpuArchitecture": "X86_64", "operatingSystemFamily": "LINUX" },
        "volumes": [{ "name": "spool" }],
        "proxyConfiguration": {
            "type": "APPMESH", "containerName": "proxy", "properties": [{ "name": "ProxyIngressPort", "value": "15000" }]
        },
        "containerDefinitions": [
            {
                "name": scene.world.container,
                "image": image,
                "command": ["serve"],
                "essential": true,
                "environment": [{ "name": "EMPTY", "value": "" }, { "name": "A", "value": "1" }],
                "secrets": [{ "name": "DB_PASSWORD", "valueFrom": "/app/db_password" }],
                "portMappings": [{ "containerPort": 8080 }],
                "mountPoints": [{ "sourceVolume": "spool", "containerPath": "/spool", "readOnly": false }],
                "ulimits": [{ "name": "nofile", "softLimit": 1024, "hardLimit": 4096 }],
                "healthCheck": { "command": ["CMD", "true"], "interval": 30 },
                "dependsOn": [{ "containerName": "proxy", "condition": "START" }],
                "restartPolicy": { "enabled": true },
                "linuxParameters": { "initProcessEnabled": true },
                "dockerLabels": { "org.example": "yes" },
                "versionConsistency": "enabled",
                "stopTimeout": 120,
                "readonlyRootFilesystem": true,
                "user": "65532",
                "logConfiguration": {
                    "logDriver": "awslogs",
                    "options": {
                        "awslogs-group": scene.world.log_group,
                        "awslogs-region": scene.world.region,
                        "awslogs-stream-prefix": "app"
                    }
                }
            },
            { "name": "proxy", "image": image, "essential": false, "cpu": 10 }
        ],
        "tags": [{ "key": "team", "value": "도서관" }]
    })
}

#[test]
fn what_ecs_or_scheduler_would_refuse_is_refused_here() {
    let scene = Scene::set();
    let plain = json!({ "Name": "/geuneul/api_key", "Value": "x", "Type": "String" });
    scene.call("ssm", "PutParameter", &plain);
    let said = refused(&scene, &["apply", "--disabled", "--yes"]);
    assert!(said.contains("parameter /geuneul/api_key is a String"), "{said}");

    scene.edit_config(|config| *config = config.replace("container = \"app\"", "container = \"apq\""));
    let said = refused(&scene, &["apply", "--disabled", "--yes"]);
    assert!(said.contains("no container \"apq\"") && said.contains("one of: app"), "{said}");

    scene.edit_config(|config| *config = config.replace("family = \"geuneul\"", "family = \"other\""));
    let said = refused(&scene, &["apply", "--disabled", "--yes"]);
    assert!(said.contains("no task definition family other to adopt"), "{said}");

    // A role of somebody else's is only looked at: here the execution role, which Scheduler may not assume.
    let role = format!("[job.{JOB}.schedule]\nrole = \"{}\"", scene.world.execution_role);
    scene.edit_config(|config| *config = config.replace(&format!("[job.{JOB}.schedule]"), &role));
    let said = refused(&scene, &["apply", "--disabled", "--yes"]);
    assert!(said.contains("does not trust scheduler.amazonaws.com"), "{said}");
}

#[test]
fn a_failure_says_what_is_done_what_is_not_and_how_to_go_on() {
    let scene = Scene::set();
    scene.aws.deny("iam:CreateRole").unwrap();
    insta::with_settings!({ filters => Scene::filters(), omit_expression => true }, {
        insta::assert_snapshot!("apply_that_breaks_off", scene.transcript(&["apply", "--disabled", "--yes"]));
    });
    scene.aws.allow("iam:CreateRole").unwrap();
    scene.expect(&["apply", "--disabled", "--yes"], 0);
}

#[test]
fn iam_is_not_waited_for_for_ever() {
    let scene = Scene::set();
    scene.aws.hold_iam().unwrap();
    let failure = inside::run(async {
        let (cloud, desired) = (inside::cloud(&scene).await, inside::desired(&scene));
        let wish = Wish { disabled: true, ..Wish::default() };
        let plan = inside::planned(&scene, wish, Default::default()).await;
        assert!(plan.refusals.is_empty() && desired.parameters.len() == 1);
        let Ok((value, _)) = SecretValue::new(b"value".to_vec()) else { panic!("a good value") };
        let values = [("API_KEY".to_owned(), value)].into();
        let live = deploy::observe::observe(&cloud, &desired).await.unwrap();
        let guard = Guard::of(&desired, &live, &plan);
        let patience = Patience { limit: Duration::from_millis(40), pause: Duration::from_millis(10) };
        apply(&cloud, guard, &plan, &values, patience, &mut |_| ()).await.unwrap_err()
    });
    assert_eq!((failure.done.len(), failure.rest.len()), (6, 0));
    let hint = explain::hint(&failure.error);
    assert!(hint.contains("has not told Scheduler") && hint.contains("aws:SourceArn"), "{hint}");
}
