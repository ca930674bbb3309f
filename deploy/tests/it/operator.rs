//! Working the job: `run`, `attach`, `stop`, `logs`, and what `trigger-now` prints for programs.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use rehearsal::local_aws::Fault;
use serde_json::{Value, json};

use crate::proxy::between;
use crate::scene::{Scene, report, snapshot};
use crate::terminal::on_a_terminal;

/// The ids of the tasks that run.
fn running(scene: &Scene) -> Vec<String> {
    let listed = scene.call("ecs", "ListTasks", &json!({ "cluster": scene.world.cluster }));
    let arns = listed["taskArns"].as_array().unwrap().iter();
    arns.map(|arn| arn.as_str().unwrap().rsplit('/').next().unwrap().to_owned()).collect()
}

/// A task of the same family that somebody else started, as a service does.
fn of_a_service(scene: &Scene) -> String {
    let vpc = json!({ "subnets": scene.world.subnets, "assignPublicIp": "ENABLED" });
    let request = json!({ "cluster": scene.world.cluster, "taskDefinition": scene.world.family, "launchType": "FARGATE",
        "startedBy": "ecs-svc/1234567890123456789", "networkConfiguration": { "awsvpcConfiguration": vpc } });
    let started = scene.call("ecs", "RunTask", &request);
    started["tasks"][0]["taskArn"].as_str().unwrap().rsplit('/').next().unwrap().to_owned()
}

#[test]
fn other_arguments_run_inside_and_end_with_the_containers_code() {
    let scene = Scene::applied();
    scene.expect(&["trigger-now"], 0);
    let receipt = scene.receipt();
    scene.aws.forget_calls().unwrap();
    scene.next_script("echo \"$API_KEY\" | wc -c; echo \"$INGEST_TRIGGER $*\"; exit 5");
    snapshot!(scene, ["run", "--", "status", "--ingest.source=library"]);
    assert_eq!(scene.receipt(), receipt, "a run with other arguments is none of the gate's business");
    // The schedule's own revision and network, and a mark of its own.
    let calls = scene.aws.calls().unwrap();
    let asked = &calls.iter().find(|call| call.action == "RunTask").unwrap().request;
    let input: Value = serde_json::from_str(scene.schedule()["Target"]["Input"].as_str().unwrap()).unwrap();
    assert_eq!(asked["taskDefinition"], input["TaskDefinition"]);
    let vpc = |value: &Value, first: &str, then: &str| value[first][then].as_object().unwrap().len();
    assert_eq!(
        vpc(asked, "networkConfiguration", "awsvpcConfiguration"),
        vpc(&input, "NetworkConfiguration", "AwsvpcConfiguration")
    );
    assert_eq!(asked["startedBy"], "geuneul-deploy/run/library-sync");
    assert_eq!(calls.iter().filter(|call| call.action == "PutParameter").count(), 0);
    scene.expect(&["enable"], 0);
    // It may run beside the job: that is how one looks at a run that is under way.
    scene.expect(&["run", "--print-aws-cli", "--", "x"], 0);
    scene.expect(&["run"], 64);
    for verb in ["stop", "attach", "logs"] {
        let said = scene.expect(&[verb, ""], 64);
        let said = String::from_utf8_lossy(&said.stderr).into_owned();
        assert!(said.contains("it is empty; is the variable set?"), "{said}");
    }
    scene.expect(&["run", "--", "<aws.scheduler.execution-id>"], 64);
}

#[test]
fn a_run_that_never_starts_or_is_not_as_asked_ends_with_1() {
    let scene = Scene::applied();
    let reason = "CannotPullContainerError: failed to resolve ref job:1: not found";
    scene.aws.next_task(&rehearsal::local_aws::Fate::NoStart { reason: reason.into() }).unwrap();
    snapshot!(scene, ["run", "--", "status"]);
    let forgetful = crate::proxy::Proxy::start(scene.aws.endpoint(), |request| {
        request.as_object_mut().unwrap().remove("overrides");
    });
    let mut deploy = scene.deploy(&["run", "--", "status"]);
    deploy.env("AWS_ENDPOINT_URL", forgetful.url());
    let output = deploy.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("the task is not the one that was asked for"), "{said}");
    scene.next_script("sleep 600");
    snapshot!(scene, ["run", "--timeout=1s", "--", "status"]);
    scene.expect(&["stop", &running(&scene)[0]], 0);
    // Nothing to run, nothing started.
    scene.expect(&["destroy", "--yes"], 0);
    let said = String::from_utf8(scene.expect(&["run", "--", "status"], 3).stderr).unwrap();
    assert!(said.starts_with("error: there is no schedule library-sync/library-sync\nhint: make it"), "{said}");
}

#[test]
fn a_run_that_nobody_waits_for_can_be_joined_and_earns_nothing() {
    let scene = Scene::applied();
    scene.expect(&["trigger-now"], 0);
    let flag = scene.path().join("go");
    let line = report().to_line().replace(&report().started_at, r#"'"$(date -u +%Y-%m-%dT%H:%M:%SZ)"'"#);
    scene.next_script(&format!("until test -e {}; do sleep 0.05; done; printf '%s\\n' '{line}'", flag.display()));
    snapshot!(scene, ["trigger-now", "--no-wait"]);
    assert!(scene.receipt().contains("it was started with --no-wait"), "{}", scene.receipt());
    let task = running(&scene).remove(0);
    std::fs::write(flag, "").unwrap();
    snapshot!(scene, ["attach", &task]);
    assert!(scene.receipt().contains(r#""void":{"#), "attach left a receipt: {}", scene.receipt());
    scene.refusal(&["enable"]);
    // A task that has stopped, one that ended badly, one that the schedule started, one with other arguments.
    scene.expect(&["attach", &task], 0);
    scene.next_run(&["no"], 3);
    scene.expect(&["trigger-now", "--no-wait"], 0);
    let failed = running(&scene);
    let failed = failed.first().cloned().unwrap_or_else(|| newest(&scene));
    let said = String::from_utf8(scene.expect(&["attach", &failed], 4).stderr).unwrap();
    assert!(said.contains("error: it did not end well: container app ended with exit code 3"), "{said}");
    scene.expect(&["run", "--no-wait", "--", "x"], 0);
    let said = String::from_utf8(scene.expect(&["attach", &newest(&scene)], 4).stderr).unwrap();
    assert!(said.contains("started by `deploy run`"), "{said}");
    // Not a task at all, and not one of ours.
    let said = String::from_utf8(scene.expect(&["attach", "0123456789abcdef0123456789abcdef"], 1).stderr).unwrap();
    assert!(said.contains("ECS does not know a task") && said.contains("deploy logs 0123"), "{said}");
}

/// The id of the job's newest task, as `logs` finds it.
fn newest(scene: &Scene) -> String {
    let said = String::from_utf8(scene.expect(&["logs"], 0).stderr).unwrap();
    said.split_whitespace().nth(1).unwrap().to_owned()
}

#[test]
fn a_run_of_the_schedule_is_followed_and_judged_as_one() {
    let scene = Scene::applied();
    let scheduled = geuneul::RunReport { trigger: geuneul::Trigger::Scheduled, ..report() };
    scene.next_run(&[&scheduled.to_line()], 0);
    let mut schedule = scene.schedule();
    schedule["State"] = json!("ENABLED");
    scene.put_schedule(&schedule);
    scene.fire();
    let task = newest(&scene);
    snapshot!(scene, ["attach", &task]);
    // Nobody knows any more what it was to be; how it ended is known.
    scene.expect(&["destroy", "--yes"], 0);
    snapshot!(scene, ["attach", &task]);
}

#[test]
fn whoever_joins_a_run_that_was_ended_hears_by_whom() {
    let scene = Scene::applied();
    scene.next_script("exec sleep 600");
    scene.expect(&["run", "--no-wait", "--", "x"], 0);
    let task = running(&scene).remove(0);
    scene.expect(&["stop", &task, "--reason", "the portal is down"], 0);
    snapshot!(scene, ["attach", &task]);
}

#[test]
fn only_a_task_of_the_job_is_stopped() {
    let scene = Scene::applied();
    let flag = scene.path().join("up");
    scene.next_script(&format!("trap 'echo bye; exit 42' TERM; touch {}; sleep 600 & wait", flag.display()));
    scene.expect(&["trigger-now", "--no-wait"], 0);
    while !flag.exists() {
        std::thread::yield_now();
    }
    let service = of_a_service(&scene);
    snapshot!(scene, ["stop", &service]);
    scene.refusal(&["attach", &service]);
    assert_eq!(running(&scene).len(), 2);
    let job = running(&scene).into_iter().find(|id| *id != service).unwrap();
    snapshot!(scene, ["stop", &job, "--reason=the portal is down"]);
    snapshot!(scene, ["stop", &job]);
    let calls = scene.aws.calls().unwrap();
    let stops: Vec<_> = calls.iter().filter(|call| call.action == "StopTask").collect();
    assert_eq!(stops.len(), 1);
    assert_eq!(stops[0].request["reason"], "the portal is down");
    scene.call("ecs", "StopTask", &json!({ "cluster": scene.world.cluster, "task": service }));
}

#[test]
fn logs_are_those_of_the_newest_task_or_of_the_one_that_is_named() {
    let scene = Scene::applied();
    let said = String::from_utf8(scene.expect(&["logs"], 1).stderr).unwrap();
    assert!(said.contains("has no stream") && said.contains("hint: run the job first"), "{said}");
    scene.next_run(&["first"], 0);
    scene.expect(&["run", "--", "x"], 0);
    let first = newest(&scene);
    scene.next_run(&["second", "\u{1b}[31mred"], 0);
    scene.expect(&["run", "--", "x"], 0);
    snapshot!(scene, ["logs"]);
    snapshot!(scene, ["logs", &first]);
    // A service of the same family writes to the same group, and is not the job.
    scene.next_run(&["a service's line"], 0);
    scene
        .aws
        .wait_for_task(&format!(
            "arn:aws:ecs:{}:{}:task/{}/{}",
            scene.world.region,
            scene.world.account,
            scene.world.cluster,
            of_a_service(&scene)
        ))
        .unwrap();
    assert!(!String::from_utf8(scene.expect(&["logs"], 0).stdout).unwrap().contains("service"));
    // ECS forgets a task after an hour; its log stays.
    scene.aws.hide_tasks(1).unwrap();
    assert_eq!(String::from_utf8(scene.expect(&["logs", &first], 0).stdout).unwrap(), "first\n");
    scene.aws.hide_tasks(10).unwrap();
    let said = String::from_utf8(scene.expect(&["logs"], 0).stderr).unwrap();
    assert!(said.starts_with("note: ECS knows no task of this job any more"), "{said}");
    scene.aws.clear_faults().unwrap();
    snapshot!(scene, ["logs", "0123456789abcdef0123456789abcdef"]);
}

#[test]
fn whoever_leaves_is_told_that_the_task_goes_on() {
    let scene = Scene::applied();
    scene.next_script("echo working; exec sleep 600");
    let leave = |arguments: &[&str], code: i32| {
        let mut deploy = scene.deploy(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(deploy.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert_eq!(lines.next().unwrap(), "working");
        assert!(Command::new("kill").args(["-INT", &deploy.id().to_string()]).status().unwrap().success());
        let output = deploy.wait_with_output().unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{said}");
        said
    };
    let said = leave(&["run", "--", "x"], 1);
    let task = running(&scene).remove(0);
    let goes_on =
        "error: its end was not seen: we stopped watching; the task goes on\nhint: follow it again: deploy attach ";
    assert!(said.contains(&format!("{goes_on}{task}\n")), "{said}");
    assert!(!leave(&["logs", "--follow"], 0).contains("error"));
    // A second run beside it would prove nothing about either.
    snapshot!(scene, ["trigger-now"]);
    scene.expect(&["stop", &task], 0);
}

#[test]
fn a_terminal_shows_the_state_and_how_long_it_takes() {
    let scene = Scene::applied();
    let flag = scene.path().join("seen");
    scene.next_script(&format!("echo working; until test -e {}; do sleep 0.05; done; exit 3", flag.display()));
    let mut deploy = on_a_terminal(&scene, &["trigger-now"]);
    let (mut shown, mut screen) = (Vec::new(), deploy.stdout.take().unwrap());
    let drawn = b"\r\x1b[2Ktask RUNNING, 1";
    while !shown.ends_with(drawn) {
        let mut byte = [0];
        screen.read_exact(&mut byte).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&shown)));
        shown.push(byte[0]);
    }
    std::fs::write(flag, "").unwrap();
    screen.read_to_end(&mut shown).unwrap();
    assert_eq!(deploy.wait().unwrap().code(), Some(4));
    let shown = String::from_utf8(shown).unwrap();
    assert!(shown.contains("\r\x1b[2K  | working\r\n"), "a line passes above the progress: {shown:?}");
    assert!(shown.contains("\r\x1b[2Kwhat happened, by time (UTC):\r\n"), "nothing is left on the line: {shown:?}");
}

#[test]
fn a_program_reads_one_document() {
    let scene = Scene::applied();
    let document = |arguments: &[&str], code: i32| -> Value {
        let output = scene.expect(arguments, code);
        serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{}", String::from_utf8_lossy(&output.stdout)))
    };
    let proven = document(&["trigger-now", "--json"], 0);
    assert_eq!((&proven["deploy"], &proven["proven"]), (&json!("trigger-now/1"), &json!(true)));
    assert_eq!(proven["report"]["fetched"], 3555);
    assert_eq!(proven["receipt"]["parameter"], scene.receipt_parameter());
    scene.next_run(&["no"], 3);
    let failed = document(&["trigger-now", "--json"], 4);
    insta::with_settings!({ filters => Scene::filters(), omit_expression => true }, {
        insta::assert_snapshot!(format!("{failed:#}"));
    });
    let left = document(&["trigger-now", "--json", "--no-wait"], 0);
    assert!(left["task"].as_str().unwrap().starts_with("arn:aws:ecs:") && left["proven"] == json!(false), "{left}");
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!((keys(&proven), keys(&failed)), (keys(&left), keys(&left)));

    // Whatever becomes of the run and of its receipt: exactly one.
    scene.aws.wait_for_task(left["task"].as_str().unwrap()).unwrap();
    scene.next_run(&[&report().to_line()], 0);
    let said = |document: &Value, words: &str| {
        assert_eq!(keys(document), keys(&left));
        assert!(document["message"].as_str().unwrap().contains(words), "{document}");
        assert_eq!(document["receipt"], Value::Null);
        assert!(document["hints"][0].as_str().is_some_and(|hint| hint.len() > 20), "{document}");
    };
    // The receipt is voided with two calls, since it is there already; the next ones would keep it.
    scene.aws.fault(&Fault::before("ssm", "PutParameter").skip(2).times(3).throttled()).unwrap();
    let not_kept = document(&["trigger-now", "--json"], 1);
    said(&not_kept, "the run is proven, and its receipt is missing");
    assert_eq!((&not_kept["proven"], &not_kept["report"]["fetched"]), (&json!(true), &json!(3555)));
    assert_eq!(
        not_kept["hints"],
        json!([
            "AWS is asked too often, by all of this account together: wait a minute, then say it again",
            "then prove the job again: deploy trigger-now"
        ])
    );
    scene.aws.clear_faults().unwrap();
    let refusal = String::from_utf8(scene.expect(&["enable"], 3).stderr).unwrap();
    assert!(refusal.contains("its end was not seen, or could not be kept"), "{refusal}");
    let mut begun = false;
    let overtaken = between(&scene, &["trigger-now", "--json"], |call| {
        if call.ends_with(".RunTask") && !std::mem::replace(&mut begun, true) {
            scene.put_receipt("another's");
        }
    });
    assert_eq!(overtaken.status.code(), Some(4));
    said(&serde_json::from_slice(&overtaken.stdout).unwrap(), "another run was begun while this one ran");
    scene.aws.deny("ecs:RunTask").unwrap();
    assert_eq!(document(&["trigger-now", "--json"], 4)["ending"], "refused");
    scene.aws.deny("ssm:PutParameter").unwrap();
    said(&document(&["trigger-now", "--json"], 1), "ssm:PutParameter");
    scene.aws.deny("iam:GetRole").unwrap();
    said(&document(&["trigger-now", "--json"], 3), "needs an empty plan");
    scene.edit_config(|config| config.insert(0, '='));
    said(&document(&["trigger-now", "--json"], 64), "deploy.toml");
}

#[test]
fn a_log_that_never_pauses_neither_outlives_its_reader_nor_the_timeout() {
    let scene = Scene::applied();
    scene.next_script("while :; do echo crawling; done");
    scene.aws.forget_calls().unwrap();
    scene.expect(&["trigger-now", "--timeout=3s"], 4);
    // Between two looks at the task and the clock, a few pages at most.
    let calls = scene.aws.calls().unwrap();
    let pages = calls.split(|call| call.action != "GetLogEvents").map(<[_]>::len).max();
    assert!(pages.is_some_and(|pages| (1..=20).contains(&pages)), "{pages:?}");

    let mut command = scene.deploy(&["logs", "--follow"]);
    let mut deploy = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut lines = BufReader::new(deploy.stdout.take().unwrap());
    lines.read_line(&mut String::new()).unwrap();
    drop(lines);
    assert_eq!(deploy.wait().unwrap().code(), Some(0));
    scene.expect(&["disable", "--stop-running"], 0);
}
