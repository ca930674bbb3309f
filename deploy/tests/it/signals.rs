//! Ctrl-C, SIGTERM: whenever it comes, it is acted upon, and what is known is said.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, Output};

use serde_json::json;

use crate::proxy::between_of;
use crate::scene::{JOB, Scene};

fn signal(deploy: &Child, signal: &str) {
    assert!(Command::new("kill").args([signal, &deploy.id().to_string()]).status().unwrap().success());
}

/// Runs `deploy ...` and sends it a signal while the answer to the `nth` call of this name is on its way.
fn interrupted_at(scene: &Scene, arguments: &[&str], call: &str, mut nth: u32) -> Output {
    let output = between_of(scene, arguments, |called, deploy| {
        if called == call {
            nth = nth.wrapping_sub(1);
            if nth == 0 {
                signal(deploy, "-TERM");
            }
        }
    });
    assert!(nth == 0 || nth > u32::MAX / 2, "{call} was not called that often");
    output
}

fn said(output: &Output, code: i32) -> String {
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{said}");
    said
}

/// The task that runs, by its id.
fn running(scene: &Scene) -> String {
    let listed = scene.call("ecs", "ListTasks", &json!({ "cluster": scene.world.cluster }));
    listed["taskArns"][0].as_str().expect("a task runs").rsplit('/').next().unwrap().to_owned()
}

const RUN_TASK: &str = "AmazonEC2ContainerServiceV20141113.RunTask";
const PUT_PARAMETER: &str = "AmazonSSM.PutParameter";

#[test]
fn while_a_task_is_being_started_it_is_named_and_goes_on() {
    let scene = Scene::applied();
    scene.next_script("exec sleep 600");
    for (verb, code) in [(&["trigger-now"][..], 4), (&["run", "--", "x"], 1)] {
        let said = said(&interrupted_at(&scene, verb, RUN_TASK, 1), code);
        let task = running(&scene);
        assert!(said.contains("we stopped watching; the task goes on"), "{said}");
        assert!(said.contains(&format!("hint: follow it again: deploy attach {task}\n")), "{said}");
        scene.expect(&["stop", &task], 0);
    }
    assert!(scene.receipt().contains("its end was not watched"), "{}", scene.receipt());
}

/// The same, where the answer is held back until the signal was heard.
fn heard_at(scene: &Scene, arguments: &[&str], call: &str, mut nth: u32) -> String {
    let mut said = String::new();
    let mut stderr = None;
    let output = between_of(scene, arguments, |called, deploy| {
        nth = nth.wrapping_sub(u32::from(called == call));
        if nth == 0 && stderr.is_none() {
            signal(deploy, "-TERM");
            stderr = Some(until_heard(deploy, &mut said));
        }
    });
    stderr.expect("it was called that often").read_to_string(&mut said).unwrap();
    assert_eq!(output.status.code(), Some(4), "{said}");
    said
}

/// Waits until the program says that it has heard a signal, and does not end yet.
fn until_heard(deploy: &mut Child, said: &mut String) -> BufReader<ChildStderr> {
    let mut stderr = BufReader::new(deploy.stderr.take().expect("it is piped"));
    while !said.contains("note: interrupted; what was begun is finished first") {
        assert_ne!(stderr.read_line(said).unwrap(), 0, "{said}");
    }
    stderr
}

#[test]
fn before_anything_is_begun_nothing_is_begun() {
    let scene = Scene::applied();
    scene.expect(&["trigger-now"], 0);
    let proven = scene.receipt();
    scene.aws.forget_calls().unwrap();
    for verb in [&["trigger-now"][..], &["trigger-now", "--via-scheduler"]] {
        let said = heard_at(&scene, verb, &format!("GET /schedules/once.{JOB}"), 1);
        assert!(said.contains("interrupted before anything was started"), "{said}");
        assert!(said.contains("nothing was started, and the receipt is as it was"), "{said}");
    }
    assert_eq!(scene.receipt(), proven);
    let counts = scene.aws.counts().unwrap();
    assert!(!counts.contains_key("ecs:RunTask") && !counts.contains_key("scheduler:CreateSchedule"), "{counts:?}");
    // And once it is begun, before there is a task.
    let said = heard_at(&scene, &["trigger-now"], PUT_PARAMETER, 2);
    assert!(said.contains("interrupted before anything was started"), "{said}");
    assert!(scene.receipt().contains("interrupted before anything was started"), "{}", scene.receipt());
    assert!(!scene.aws.counts().unwrap().contains_key("ecs:RunTask"));
}

#[test]
fn while_the_one_off_schedule_is_made_or_deleted() {
    let scene = Scene::applied();
    let verb = ["trigger-now", "--via-scheduler"];
    let (make, look, delete) = ["POST", "GET", "DELETE"].map(|method| format!("{method} /schedules/once.{JOB}")).into();
    let said_made = said(&interrupted_at(&scene, &verb, &make, 1), 4);
    assert!(said_made.contains("interrupted before anything was started"), "{said_made}");
    assert!(scene.aws.advance(std::time::Duration::from_secs(180)).unwrap().is_empty(), "nothing fires");

    scene.next_script("exec sleep 600");
    let mut made = false;
    let output = between_of(&scene, &verb, |call, deploy| match call {
        call if call == make => made = true,
        call if call == look && std::mem::take(&mut made) => {
            scene.aws.advance_to_next_fire(&format!("{JOB}/once.{JOB}")).unwrap();
        }
        call if call == delete => signal(deploy, "-TERM"),
        _ => {}
    });
    let (said, task) = (said(&output, 4), running(&scene));
    assert!(said.contains("Scheduler started arn:aws:ecs:"), "{said}");
    assert!(said.contains(&format!("hint: follow it again: deploy attach {task}\n")), "{said}");
    scene.expect(&["stop", &task], 0);
}

#[test]
fn a_receipt_that_is_being_written_is_finished_and_a_second_signal_ends_at_once() {
    let scene = Scene::applied();
    // The first one voids it.
    let output = interrupted_at(&scene, &["trigger-now"], PUT_PARAMETER, 2);
    assert!(String::from_utf8_lossy(&output.stdout).contains("the run is proven"), "{}", said(&output, 0));
    scene.expect(&["enable"], 0);

    let (mut nth, mut rest) = (0, String::new());
    let output = between_of(&scene, &["trigger-now"], |call, deploy| {
        nth += u32::from(call == PUT_PARAMETER);
        if nth == 3 && rest.is_empty() {
            signal(deploy, "-INT");
            let mut stderr = until_heard(deploy, &mut rest);
            signal(deploy, "-TERM");
            stderr.read_to_string(&mut rest).unwrap();
        }
    });
    assert_eq!(output.status.code(), Some(143), "{rest}");
    assert!(rest.contains("error: interrupted twice: ended at once"), "{rest}");
}
