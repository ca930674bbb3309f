//! It ends with its parent, and nothing is left: no process, no folder.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{Stage, stage};

/// Starts a task that would never end; returns the folder it works in and its process.
fn endless_task(stage: &Stage) -> (PathBuf, String) {
    let script = "sleep 1000 & echo $! > child; echo $$ > pid; pwd; wait";
    let arn = stage.start(stage.run_request(&stage.world.family, script));
    let home = wait_for("the task's folder", || {
        let state: serde_json::Value = serde_json::from_str(&stage.local.state().unwrap()).unwrap();
        let text = state["log_groups"].to_string();
        let id = arn.rsplit('/').next().unwrap();
        let events = text.split_once(id)?.1.split_once("\"message\":\"/")?.1;
        Some(PathBuf::from(format!("/{}", events.split('"').next()?)))
    });
    let child = std::fs::read_to_string(home.join("child")).unwrap();
    (home, child.trim().to_owned())
}

fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        match look() {
            Some(found) => return found,
            None => assert!(start.elapsed() < Duration::from_secs(20), "{what}: not within 20 s"),
        }
        std::thread::yield_now();
    }
}

/// A process whose entry is gone, or that only waits to be reaped.
fn has_ended(pid: &str) -> bool {
    match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
        Ok(stat) => stat.rsplit(')').next().is_some_and(|rest| rest.trim_start().starts_with('Z')),
        Err(_) => true,
    }
}

/// How many processes have a command line that ends so.
fn running(command: &str) -> usize {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let lines = processes.filter_map(|entry| std::fs::read(entry.path().join("cmdline")).ok());
    lines.filter(|line| String::from_utf8_lossy(line).replace('\0', " ").trim_end().ends_with(command)).count()
}

#[test]
fn dropping_it_ends_its_tasks_also_those_that_are_just_starting() {
    let stage = stage();
    let (home, child) = endless_task(&stage);
    let server = stage.local.pid().to_string();
    let marker = format!("sleep 54321.{}", std::process::id());
    for _ in 0..10 {
        stage.start(stage.run_request(&stage.world.family, &format!("exec {marker}")));
    }
    assert!(!has_ended(&child) && !has_ended(&server));
    drop(stage);
    assert!(has_ended(&server) && !home.exists());
    // SIGKILL was sent; when the kernel is done with it is another matter.
    wait_for("the task's child ends", || has_ended(&child).then_some(()));
    wait_for("tasks that were just starting end", || (running(&marker) == 0).then_some(()));
}

#[test]
fn killing_it_ends_its_tasks_too() {
    let stage = stage();
    let (home, child) = endless_task(&stage);
    let killed = std::process::Command::new("kill").args(["-KILL", &stage.local.pid().to_string()]).status().unwrap();
    assert!(killed.success());
    wait_for("the task's child ends", || has_ended(&child).then_some(()));
    wait_for("the folder vanishes", || (!Path::exists(&home)).then_some(()));
}
