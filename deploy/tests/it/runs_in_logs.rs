//! Where the job's runs are looked for: in the log of the revision that the schedule runs, behind however many other streams, and never
//! in another job's.

use deploy::cloud::TaskDefinitions;
use jiff::Timestamp;
use serde_json::json;

use crate::inside;
use crate::scene::{JOB, Scene, report, snapshot};

fn out(scene: &Scene, arguments: &[&str], code: i32) -> String {
    String::from_utf8(scene.expect(arguments, code).stdout).unwrap()
}

fn err(scene: &Scene, arguments: &[&str], code: i32) -> String {
    String::from_utf8(scene.expect(arguments, code).stderr).unwrap()
}

/// The same once ECS has forgotten every task.
fn forgotten<T>(scene: &Scene, look: impl FnOnce() -> T) -> T {
    scene.aws.hide_tasks(100).unwrap();
    let found = look();
    scene.aws.clear_faults().unwrap();
    found
}

#[test]
fn a_newer_revision_that_logs_elsewhere_hides_nothing_of_what_the_schedule_runs() {
    let scene = Scene::applied();
    scene.expect(&["trigger-now"], 0);
    let said = err(&scene, &["logs"], 0);
    let task = said.split_whitespace().nth(1).unwrap();
    let options =
        json!({ "awslogs-group": "/ecs/new", "awslogs-stream-prefix": "new", "awslogs-region": scene.world.region });
    for log in [json!({ "logDriver": "awslogs", "options": options }), json!({ "logDriver": "awsfirelens" })] {
        inside::run(async {
            let cloud = inside::cloud(&scene).await;
            let mut members = cloud.task_definition(&scene.world.family).await.unwrap().writable();
            members["containerDefinitions"][0]["logConfiguration"] = log;
            cloud.register(&members, &Default::default()).await.unwrap();
        });
        assert!(out(&scene, &["history"], 0).contains("  succeeded  "));
        forgotten(&scene, || {
            assert!(out(&scene, &["history"], 0).contains("  succeeded  "));
            for arguments in [&["logs"][..], &["logs", task]] {
                assert!(out(&scene, arguments, 0).contains(geuneul::RUN_REPORT_V1));
            }
        });
    }
}

#[test]
fn a_run_is_found_behind_however_many_other_streams() {
    let scene = Scene::applied();
    scene.expect(&["trigger-now"], 0);
    let now = Timestamp::now().as_millisecond();
    let prefix = format!("{}/{}", scene.stream_prefix(), scene.world.container);
    for i in 0..41 {
        let stream = json!({ "logGroupName": scene.world.log_group, "logStreamName": format!("{prefix}/service-{i}") });
        scene.call("logs", "CreateLogStream", &stream);
        let mut events = stream.clone();
        events["logEvents"] = json!([{ "timestamp": now, "message": "GET /api/health 200" }]);
        scene.call("logs", "PutLogEvents", &events);
    }
    forgotten(&scene, || assert!(out(&scene, &["history"], 0).contains("  succeeded  ")));
    // Who may not search does not say that there is none.
    scene.aws.hide_tasks(100).unwrap();
    scene.aws.deny("logs:FilterLogEvents").unwrap();
    let output = scene.expect(&["history"], 1);
    let said = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(said[0].contains("no run that reported is in the newest streams of the log group"), "{said:?}");
    assert!(said[1].starts_with("not seen: runs before the newest streams of the log: "), "{said:?}");
}

#[test]
fn a_log_of_another_region_is_not_called_missing() {
    let scene = Scene::applied();
    inside::run(async {
        let cloud = inside::cloud(&scene).await;
        let mut members = cloud.task_definition(&scene.world.family).await.unwrap().writable();
        members["containerDefinitions"][0]["logConfiguration"]["options"]["awslogs-region"] = json!("us-east-1");
        members["containerDefinitions"][0]["logConfiguration"]["options"]["awslogs-group"] = json!("/ecs/there");
        cloud.register(&members, &Default::default()).await.unwrap();
    });
    let verify = out(&scene, &["verify"], 0);
    assert!(verify.contains(": newest revision 3, ACTIVE"), "{verify}");
    scene.expect(&["apply", "--disabled", "--latest", "--yes"], 0);
    snapshot!(scene, ["run", "--", "x"]);
    snapshot!(scene, ["history"]);
    snapshot!(scene, ["logs"]);
    let status = out(&scene, &["status"], 5);
    assert!(
        status.contains("not seen: container app writes to CloudWatch in us-east-1")
            && !status.contains("create-log-group"),
        "{status}"
    );
}

#[test]
fn another_jobs_log_is_not_shown_for_this_ones() {
    let scene = Scene::set();
    scene.edit_config(|config| {
        let (head, job) = config.split_once("[job.").unwrap();
        let other = job.replace(JOB, "other").replace("/geuneul/api_key", "/geuneul/other_key");
        *config = format!("{head}[job.{job}\n[job.{other}");
    });
    let of = |job: &'static str, verb: &'static str| ["--job", job, verb];
    for job in [JOB, "other"] {
        scene.expect(&["--job", job, "apply", "--disabled", "--yes"], 0);
    }
    scene.next_run(&["of the other", &report().to_line()], 0);
    scene.expect(&of("other", "trigger-now"), 0);
    let said = forgotten(&scene, || err(&scene, &of(JOB, "logs"), 1));
    assert!(said.contains("no newer stream") && said.contains(&format!("--job {JOB} history")), "{said}");
    scene.next_run(&["of this one", &report().to_line()], 0);
    scene.expect(&of(JOB, "trigger-now"), 0);
    scene.next_run(&["of the other", &report().to_line()], 0);
    scene.expect(&of("other", "trigger-now"), 0);
    let shown = forgotten(&scene, || out(&scene, &of(JOB, "logs"), 0));
    assert!(shown.starts_with("of this one\n"), "{shown}");
}
