//! `status` and `history`: what a person reads, and the code that a monitor reads.

use geuneul::{Outcome, RunError, Trigger};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::proxy::Proxy;
use crate::scene::{JOB, Scene, report, snapshot};

/// What the scheduled run of an occurrence that is still to come says.
fn scheduled(started_at: &str) -> geuneul::RunReport {
    geuneul::RunReport { trigger: Trigger::Scheduled, started_at: started_at.to_owned(), ..report() }
}

fn json_of(scene: &Scene, arguments: &[&str], code: i32) -> Value {
    serde_json::from_slice(&scene.expect(arguments, code).stdout).unwrap()
}

fn json_of_any(scene: &Scene, arguments: &[&str]) -> Value {
    serde_json::from_slice(&scene.deploy(arguments).output().unwrap().stdout).unwrap()
}

#[test]
fn status_says_what_the_schedule_itself_has_done() {
    let scene = Scene::set();
    snapshot!(scene, ["status"]);
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    snapshot!(scene, ["status"]);
    scene.expect(&["trigger-now"], 0);
    scene.expect(&["enable"], 0);
    snapshot!(scene, ["status"]);

    scene.next_run(&[&scheduled("2099-12-01T04:00:03Z").to_line()], 0);
    scene.fire();
    snapshot!(scene, ["status"]);

    // What may not be looked at is said, and is no good news.
    for action in ["logs:DescribeLogStreams", "ssm:GetParameters", "ecs:ListTasks"] {
        scene.aws.deny(action).unwrap();
    }
    snapshot!(scene, ["status"]);
    scene.aws.clear_faults().unwrap();

    let failed = geuneul::RunReport {
        outcome: Outcome::UpstreamFailed,
        error: Some(RunError {
            code: "http_504".into(),
            message:
                "표준데이터 3쪽: 다섯 번 시도했으나 응답이 없음 (504 Gateway Timeout), 다음 달 갱신 전에 다시 시도"
                    .into(),
        }),
        ..scheduled("2099-12-31T04:00:03Z")
    };
    scene.next_run(&[&failed.to_line()], 69);
    scene.fire();
    snapshot!(scene, ["status"]);
    snapshot!(scene, ["history"]);
    let history = scene.transcript(&["history", "--limit=1"]);
    assert_eq!(history.matches("scheduled").count(), 1, "{history}");
    for line in history.lines() {
        assert!(deploy::columns::width(line) <= 80, "{line}");
    }

    let history = json_of(&scene, &["history", "--json"], 0);
    let runs = history["runs"].as_array().unwrap();
    let told: Vec<_> = runs.iter().map(|run| (&run["report"]["trigger"], &run["report"]["outcome"])).collect();
    assert_eq!(told.len(), 3, "{told:?}");
    assert_eq!((told[0].0, told[2].0), (&json!("scheduled"), &json!("manual")));
    let status = json_of(&scene, &["status", "--json"], 5);
    assert_eq!(status["deploy"], "status/1");
    assert_eq!(status["exit_code"], 5);
    assert_eq!(status["schedule"]["state"], "ENABLED");
    assert_eq!(status["fires"]["next"].as_array().unwrap().len(), 5);
    assert_eq!(status["gate"], json!({ "open": true, "why": [] }));
    assert_eq!(status["scheduled_path"]["proven"], true);
    assert_eq!(status["overdue"], json!({ "verdict": "not_yet" }));
    assert_eq!(status["needs"].as_array().unwrap().len(), 1);
}

#[test]
fn a_run_that_did_not_come_is_overdue_and_one_in_a_busy_log_is_found() {
    let scene = Scene::set();
    let (now, hour) = (Timestamp::now(), jiff::SignedDuration::from_hours(1));
    // A daily job that was due three hours ago, and was switched on ten days ago.
    let due = now - hour * 3;
    let cron = due.strftime("cron = \"%-M %-H * * ? *\"").to_string();
    scene.edit_config(|config| {
        *config = config.replace("cron = \"0 4 1 * ? *\"", &cron).replace("Asia/Seoul", "UTC");
    });
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    scene.expect(&["trigger-now"], 0);
    scene.expect(&["enable"], 0);
    let long_ago = (now - hour * 240).as_second();
    let proxy = Proxy::answering(scene.aws.endpoint(), "GET /schedules/library-sync", move |schedule| {
        schedule["CreationDate"] = json!(long_ago);
        schedule["LastModificationDate"] = json!(long_ago);
    });
    let status = || {
        let mut deploy = scene.deploy(&["status", "--json"]);
        deploy.env("AWS_ENDPOINT_URL", proxy.url());
        let output = deploy.output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let status: Value = serde_json::from_str(&text).unwrap_or_else(|_| panic!("{text}{:?}", output.stderr));
        assert_eq!(status["exit_code"], json!(output.status.code()));
        status
    };
    let prefix = format!("{}/{}", scene.stream_prefix(), scene.world.container);
    // Nothing came of it, and the run by hand has done the work since.
    let found = status();
    assert_eq!((&found["overdue"]["verdict"], &found["exit_code"]), (&json!("made_up"), &json!(0)), "{found:#}");
    let by_hand = found["runs"][0]["task"].as_str().unwrap();
    let stream = format!("{prefix}/{by_hand}");
    scene.call("logs", "DeleteLogStream", &json!({ "logGroupName": scene.world.log_group, "logStreamName": stream }));
    // Nobody knows any more what that run said; that it said nothing, nobody says.
    let found = status();
    assert_eq!((&found["overdue"]["verdict"], &found["exit_code"]), (&json!("overdue"), &json!(5)), "{found:#}");
    assert_eq!(found["unreported"], json!([]));
    let mut screen = scene.deploy(&["status"]);
    screen.env("AWS_ENDPOINT_URL", proxy.url());
    let said = String::from_utf8(screen.output().unwrap().stdout).unwrap();
    assert!(
        said.contains("\n  overdue   YES: nothing has come of what was due ")
            && said.contains("needs a person: no scheduled run since"),
        "{said}"
    );

    let group = &scene.world.log_group;

    // It did run, and the family's service has written to many streams since.
    let write = |stream: &str, at: Timestamp, line: &str| {
        let stream = json!({ "logGroupName": group, "logStreamName": stream });
        scene.call("logs", "CreateLogStream", &stream);
        let mut events = stream.clone();
        events["logEvents"] = json!([{ "timestamp": at.as_millisecond(), "message": line }]);
        scene.call("logs", "PutLogEvents", &events);
    };
    let began = due + jiff::SignedDuration::from_secs(20);
    let says = |occurrence: Option<&str>| {
        let occurrence = occurrence.map(str::to_owned);
        geuneul::RunReport { occurrence, ..scheduled(&began.to_string()) }.to_line()
    };
    // Of another job, of a moment at which the schedule does not fire, or of nobody: no run of this schedule.
    write(&format!("{prefix}/other"), began, &says(Some(&format!("other@{due:.0}"))));
    assert_eq!(status()["overdue"]["verdict"], "overdue");
    write(&format!("{prefix}/odd"), began, &says(Some(&format!("{JOB}@{:.0}", due - hour))));
    let found = status();
    assert_eq!((&found["overdue"]["verdict"], &found["scheduled_path"]["proven"]), (&json!("overdue"), &json!(false)));
    assert_eq!(found["runs"].as_array().unwrap().len(), 1, "another job's run is none of this one's: {found:#}");
    write(&format!("{prefix}/nobodys"), began, &says(None));
    let found = status();
    assert_eq!((&found["overdue"]["verdict"], &found["scheduled_path"]["proven"]), (&json!("unknown"), &json!(false)));
    write(&format!("{prefix}/scheduled-run"), began, &says(Some(&format!("{JOB}@{due:.0}"))));
    for i in 0..25 {
        write(&format!("{prefix}/service-{i}"), now, "GET /api/health 200");
    }
    scene.aws.forget_calls().unwrap();
    let found = status();
    assert_eq!((&found["overdue"]["verdict"], &found["exit_code"]), (&json!("ran"), &json!(0)), "{found:#}");
    // It is older than the only proof, which therefore says nothing of the role that it ran under.
    assert_eq!(found["scheduled_path"]["proven"], false);
    // Only stretches of time after fire times were searched.
    let calls = scene.aws.calls().unwrap();
    let searched: Vec<_> = calls.iter().filter(|call| call.action == "FilterLogEvents").collect();
    assert!(!searched.is_empty() && searched.len() <= 3, "{}", searched.len());
    for call in searched {
        let from = call.request["startTime"].as_i64().unwrap() / 1000;
        assert_eq!((due.as_second() - from).rem_euclid(86_400) / 60, 0, "{}", call.request);
    }

    // Whoever may not search does not know.
    scene.aws.deny("logs:FilterLogEvents").unwrap();
    let found = status();
    assert_eq!((&found["overdue"]["verdict"], &found["exit_code"]), (&json!("unknown"), &json!(1)), "{found:#}");
}

#[test]
fn what_scheduler_could_not_deliver_and_what_nobody_runs_is_on_the_screen() {
    let scene = Scene::set();
    let made = scene.call("sqs", "CreateQueue", &json!({ "QueueName": "lost" }));
    let url = made["QueueUrl"].as_str().unwrap();
    let arn = format!("arn:aws:sqs:{}:{}:lost", scene.world.region, scene.world.account);
    let key = format!("timezone = \"Asia/Seoul\"\ndead_letter_queue = \"{arn}\"");
    scene.edit_config(|config| *config = config.replace("timezone = \"Asia/Seoul\"", &key));
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    scene.expect(&["trigger-now"], 0);
    scene.expect(&["enable"], 0);
    let status = json_of(&scene, &["status", "--json"], 0);
    assert_eq!(status["dead_letter_queue"], json!({ "arn": arn, "depth": 0 }));

    // A pipeline registers a revision without the secret; a message is lost; a task runs.
    let described = scene.call("ecs", "DescribeTaskDefinition", &json!({ "taskDefinition": scene.world.family }));
    let mut definition = described["taskDefinition"].clone();
    for read_only in deploy::model::TaskDefinition::READ_ONLY {
        definition.as_object_mut().unwrap().remove(read_only);
    }
    definition["containerDefinitions"][0].as_object_mut().unwrap().remove("secrets");
    scene.call("ecs", "RegisterTaskDefinition", &definition);
    scene.call("sqs", "SendMessage", &json!({ "QueueUrl": url, "MessageBody": "{}" }));
    scene.next_script("sleep 600");
    scene.expect(&["trigger-now", "--no-wait"], 0);
    snapshot!(scene, ["status"]);
    scene.aws.deny("sqs:GetQueueAttributes").unwrap();
    let status = json_of(&scene, &["status", "--json"], 5);
    assert_eq!(status["unseen"], json!(["sqs:GetQueueAttributes denied"]));

    // It goes down with the job.
    let said = scene.transcript(&["disable", "--stop-running"]);
    assert!(said.contains("library-sync: told to stop: arn:aws:ecs:"), "{said}");
    let running = scene.call("ecs", "ListTasks", &json!({ "cluster": scene.world.cluster }));
    for task in running["taskArns"].as_array().unwrap() {
        scene.aws.wait_for_task(task.as_str().unwrap()).unwrap();
    }
    let said = scene.transcript(&["disable", "--stop-running"]);
    assert!(said.contains("DISABLED already") && said.contains("no task of it is running"), "{said}");
}

#[test]
fn a_run_that_leaves_no_report_is_in_the_list_and_needs_a_person() {
    let scene = Scene::applied();
    scene.expect(&["trigger-now"], 0);
    scene.expect(&["enable"], 0);
    scene.next_run(&["out of luck"], 3);
    scene.fire();
    snapshot!(scene, ["status"]);
    snapshot!(scene, ["history"]);
    let history = json_of(&scene, &["history", "--json"], 0);
    assert_eq!(history["unreported"][0]["ended"], json!({ "with": 3 }), "{history}");

    let one = json_of(&scene, &["history", "--json", "--limit=1"], 0);
    assert_eq!((one["runs"].as_array().unwrap().len(), one["unreported"].as_array().unwrap().len()), (0, 1), "{one}");
    // Who may not look for it does not say that there is none.
    scene.aws.deny("ecs:ListTasks").unwrap();
    let history = json_of(&scene, &["history", "--json"], 1);
    assert_eq!((history["runs"].as_array().unwrap().len(), &history["unreported"]), (1, &Value::Null), "{history}");
    scene.aws.allow("ecs:ListTasks").unwrap();

    // A dry run that goes well mends nothing.
    let looked = geuneul::RunReport { outcome: Outcome::DryRun, ..report() };
    scene.next_run(&[&looked.to_line()], 0);
    scene.expect(&["run", "--", "--ingest.dry-run=true"], 0);
    scene.expect(&["status"], 5);

    // A job that prints no report has run.
    scene.edit_config(|config| *config += "\n[job.library-sync.gate]\nproof = \"exit-code\"\n");
    scene.next_run(&["done"], 0);
    scene.expect(&["trigger-now"], 0);
    let status = String::from_utf8(scene.expect(&["status"], 0).stdout).unwrap();
    assert!(status.contains("ran (it prints no report)"), "{status}");
}

/// What another program prints after the report hides it from nobody.
#[test]
fn a_report_is_found_however_much_comes_after_it() {
    let scene = Scene::applied();
    let more = (0..12_000).map(|i| format!("line {i} of what is still to be said")).collect::<Vec<_>>();
    let report = report().to_line();
    for count in [30, more.len()] {
        let lines: Vec<_> = [report.as_str()].into_iter().chain(more[..count].iter().map(String::as_str)).collect();
        scene.next_run(&lines, 0);
        scene.expect(&["trigger-now"], 0);
    }
    scene.expect(&["enable"], 0);
    let status = json_of(&scene, &["status", "--json"], 0);
    assert_eq!((status["runs"].as_array().unwrap().len(), &status["unreported"]), (2, &json!([])), "{status:#}");
    // Of another version: it is there, and nobody here can read it.
    scene.next_run(&[&report.replace("\"succeeded\"", "\"marvellous\"")], 0);
    scene.expect(&["trigger-now"], 4);
    let status = scene.transcript(&["status"]);
    assert!(
        status.contains("left a report that this version cannot read") && status.contains("exit code: 5"),
        "{status}"
    );
    let history = json_of(&scene, &["history", "--json"], 0);
    assert_eq!(history["unreported"][0]["ended"], "unreadable", "{history}");
}

#[test]
fn a_run_that_calls_itself_scheduled_shows_nothing_of_the_schedule() {
    let scene = Scene::applied();
    scene.expect(&["trigger-now"], 0);
    scene.expect(&["enable"], 0);
    snapshot!(scene, ["run", "--", "--ingest.source=library", "--ingest.trigger=scheduled"]);
    // By whatever way it comes into the log: after the schedule was written, and at no fire time.
    scene.next_run(&[&scheduled("2099-01-01T00:07:00Z").to_line()], 0);
    scene.expect(&["run", "--", "--ingest.source=library"], 0);
    let status = json_of(&scene, &["status", "--json"], 0);
    assert_eq!(status["scheduled_path"]["proven"], false, "{status:#}");
    scene.next_run(&[&report().to_line()], 0);
    let said = scene.transcript(&["trigger-now"]);
    assert!(!said.contains("recorded"), "{said}");
}

#[test]
fn a_scheduled_run_shows_nothing_of_a_role_that_was_first_proven_after_it() {
    let scene = Scene::applied();
    scene.expect(&["trigger-now"], 0);
    scene.expect(&["enable"], 0);
    // A report knows whole seconds: within one, it cannot be told from what was before the schedule was written.
    let written = Timestamp::now().as_second();
    while Timestamp::now().as_second() == written {
        std::thread::yield_now();
    }
    scene.next_run(&[&geuneul::RunReport { trigger: Trigger::Scheduled, ..report() }.to_line()], 0);
    scene.fire();
    let path = || json_of_any(&scene, &["status", "--json"])["scheduled_path"].clone();
    assert_eq!(path()["proven"], true, "{}", path());
    scene.put_role_policy(
        &format!("{JOB}-scheduler"),
        "stop",
        &json!({ "Effect": "Deny", "Action": "*", "Resource": "*" }),
    );
    assert_eq!(path()["proven"], false, "{}", path());
    // By hand it runs: the operator does not need that role.
    scene.next_run(&[&report().to_line()], 0);
    scene.expect(&["trigger-now"], 0);
    let path = path();
    let says = path["says"].as_str().unwrap();
    assert!(path["proven"] == false && says.ends_with("the verified run is younger"), "{says}");
    let said = scene.transcript(&["trigger-now"]);
    assert!(!said.contains("recorded"), "{said}");
}

#[test]
fn without_its_log_group_and_switched_off_behind_our_back_a_job_needs_a_person() {
    let scene = Scene::applied();
    scene.expect(&["trigger-now"], 0);
    scene.expect(&["enable"], 0);
    let mut schedule = scene.schedule();
    schedule["State"] = json!("DISABLED");
    scene.put_schedule(&schedule);
    let said = scene.transcript(&["status"]);
    assert!(said.contains("exit code: 5\n"), "{said}");
    assert!(said.contains("\nneeds a person: it is off\n  deploy enable; or say stopped = true\n"), "{said}");
    scene.expect(&["enable"], 0);
    scene.expect(&["status"], 0);
    scene.call("logs", "DeleteLogGroup", &json!({ "logGroupName": scene.world.log_group }));
    let said = scene.transcript(&["status"]);
    assert!(said.contains("exit code: 5\n"), "{said}");
    assert!(said.contains("\n  aws logs create-log-group --region "), "{said}");
}

#[test]
fn whoever_asks_while_the_run_that_decides_is_at_work_is_told_so() {
    let scene = Scene::applied();
    scene.next_script("sleep 600");
    let mut trigger = scene.deploy(&["trigger-now"]);
    let mut trigger = trigger.stderr(std::process::Stdio::null()).stdout(std::process::Stdio::null()).spawn().unwrap();
    let started =
        || json_of_any(&scene, &["status", "--json"])["running"].as_array().is_some_and(|all| !all.is_empty());
    while !started() {
        std::thread::yield_now();
    }
    let status = scene.transcript(&["status"]);
    assert!(status.contains("gate      closed: the run that decides is at work: deploy attach\n"), "{status}");
    let enable = scene.transcript(&["enable"]);
    assert!(enable.contains("hint: it is at work; see its end: deploy attach "), "{enable}");
    trigger.kill().unwrap();
    trigger.wait().unwrap();
}
