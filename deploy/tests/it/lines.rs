//! The lines of a container are complete, from the first to the last, whatever the log does.

use rehearsal::local_aws::Fault;
use serde_json::json;

use crate::scene::{Scene, report};

/// What a verb printed to stdout, line by line.
fn printed(scene: &Scene, arguments: &[&str], code: i32) -> Vec<String> {
    let output = scene.expect(arguments, code);
    String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect()
}

fn run(scene: &Scene, script: &str) -> Vec<String> {
    scene.next_script(script);
    printed(scene, &["run", "--", "x"], 0)
}

fn numbered(count: u32) -> Vec<String> {
    (1..=count).map(|n| format!("line {n}")).collect()
}

#[test]
fn five_thousand_lines_and_the_lines_of_a_moment_are_all_there() {
    let scene = Scene::applied();
    let all = "i=1; while [ $i -le 5000 ]; do echo line $i; i=$((i+1)); done";
    assert_eq!(run(&scene, all), numbered(5000));
    // Once more by whoever looks later.
    assert_eq!(printed(&scene, &["logs"], 0), numbered(5000));
    // Gone before anybody could look.
    assert_eq!(run(&scene, "echo line 1; echo line 2"), numbered(2));
    // A proof shows them as well.
    scene.next_run(&["line 1", &report().to_line()], 0);
    let said = String::from_utf8(scene.expect(&["trigger-now"], 0).stderr).unwrap();
    assert!(said.contains("  | line 1\n  | run report: succeeded"), "{said}");
}

#[test]
fn a_stream_that_appears_late_lines_that_come_late_and_pages_lose_nothing() {
    let scene = Scene::applied();
    let some = "i=1; while [ $i -le 200 ]; do echo line $i; i=$((i+1)); done";
    scene.aws.log_pages_of(7).unwrap();
    assert_eq!(run(&scene, some), numbered(200));
    scene.aws.clear_faults().unwrap();

    scene.aws.hide_streams(4).unwrap();
    assert_eq!(run(&scene, some), numbered(200));

    // All of it late: the tail of a task that has stopped.
    scene.aws.late_lines(5, 1).unwrap();
    assert_eq!(run(&scene, some), numbered(200));
    // Every third line late: when it comes, those that were printed after it have been read.
    scene.aws.late_lines(5, 3).unwrap();
    let mut lines = run(&scene, some);
    assert_ne!(lines, numbered(200), "nothing was late");
    lines.sort_by_key(|line| line["line ".len()..].parse::<u32>().unwrap());
    assert_eq!(lines, numbered(200));
    // A report that is late counts.
    scene.aws.late_lines(9, 1).unwrap();
    scene.next_run(&["line 1", &report().to_line()], 0);
    scene.expect(&["trigger-now"], 0);
}

#[test]
fn throttling_and_a_driver_that_cuts_lines_lose_nothing() {
    let scene = Scene::applied();
    // More refusals than the SDK tries to get over by itself.
    for action in ["GetLogEvents", "DescribeTasks"] {
        let service = if action == "GetLogEvents" { "logs" } else { "ecs" };
        scene.aws.fault(&Fault::before(service, action).times(7).throttled()).unwrap();
        assert_eq!(run(&scene, "echo line 1; echo line 2"), numbered(2));
        scene.aws.clear_faults().unwrap();
    }
    let long = "head -c 40000 /dev/zero | tr '\\0' x; echo; echo line 1";
    assert_eq!(run(&scene, long), ["x".repeat(40_000), "line 1".to_owned()]);
    // A report behind such a line is a report.
    let now = r#"'"$(date -u +%Y-%m-%dT%H:%M:%SZ)"'"#;
    let line = report().to_line().replace(&report().started_at, now);
    scene.next_script(&format!("head -c 40000 /dev/zero | tr '\\0' x; echo; printf '%s\\n' '{line}'"));
    scene.expect(&["trigger-now"], 0);
}

#[test]
fn whoever_follows_sees_lines_before_the_task_has_stopped() {
    use std::io::{BufRead, BufReader};
    use std::process::Stdio;

    let scene = Scene::applied();
    let flag = scene.path().join("seen");
    scene.next_script(&format!("echo line 1; until test -e {}; do sleep 0.05; done; echo line 2", flag.display()));
    // It goes on only once its first line has been seen.
    let watch = |arguments: &[&str]| {
        let mut deploy = scene.deploy(arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(deploy.stdout.take().unwrap()).lines().map(Result::unwrap);
        assert_eq!(lines.next().unwrap(), "line 1");
        std::fs::write(&flag, "").unwrap();
        assert_eq!(lines.collect::<Vec<_>>(), ["line 2"]);
        assert_eq!(deploy.wait().unwrap().code(), Some(0));
        std::fs::remove_file(&flag).unwrap();
    };
    watch(&["run", "--", "x"]);
    // What was deleted before it was read is not complete.
    let mut deploy = scene.deploy(&["run", "--", "x"]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut first = String::new();
    BufReader::new(deploy.stdout.as_mut().unwrap()).read_line(&mut first).unwrap();
    scene.call("logs", "DeleteLogGroup", &json!({ "logGroupName": scene.world.log_group }));
    std::fs::write(&flag, "").unwrap();
    let ended = deploy.wait_with_output().unwrap();
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(ended.status.code() == Some(1) && said.contains("was deleted before it was read to its end"), "{said}");
    std::fs::remove_file(&flag).unwrap();
    scene.call("logs", "CreateLogGroup", &json!({ "logGroupName": scene.world.log_group }));
    scene.expect(&["run", "--no-wait", "--", "x"], 0);
    watch(&["logs", "--follow"]);
    assert_eq!(printed(&scene, &["logs", "--follow"], 0), numbered(2), "one that has stopped is printed");
}
