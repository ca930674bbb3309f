//! Following a task to its end: its state, its container's lines, its report.

use std::cell::Cell;
use std::future::pending;
use std::time::Duration;

use tokio::time::Instant;

use super::ending::Ending;
use super::judge::Report;
use super::progress::{Lines, Progress};
use super::tail::Tail;
use crate::cloud::{Aws, CloudError, ErrorKind};
use crate::interrupt::Interrupt;
use crate::model::log::{LogLine, LogStream, NoLog};
use crate::model::task::Task;

/// The pause between two looks at a task grows to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(3);
/// The pause between two looks at its log.
const LOG_PAUSE: Duration = Duration::from_secs(1);
/// ECS is eventually consistent: a task that has just been started may be unknown for a while.
pub const UNKNOWN_FOR: Duration = Duration::from_secs(60);
/// Lines reach the log group seconds after they were printed. How long a stopped task's stream must be quiet before a report
/// that is still missing counts as missing ...
const QUIET_WITHOUT_REPORT: Duration = Duration::from_secs(10);
/// ... before the report that is there counts as the last ...
const QUIET_WITH_REPORT: Duration = Duration::from_secs(1);
/// ... and before lines that are only for a person's eyes count as complete.
const QUIET: Duration = Duration::from_secs(2);

/// How many pages of lines are read between two looks at the task and the clock.
const PAGES: usize = 5;

/// What is followed, and how.
pub struct Watch<'a> {
    /// The cloud.
    pub aws: &'a Aws,
    /// Its cluster.
    pub cluster: &'a str,
    /// The container whose lines are shown.
    pub container: &'a str,
    /// Where that container writes to, or why that is not read.
    pub stream: Result<LogStream, NoLog>,
    /// Whether a run report is expected.
    pub awaits_report: bool,
    /// How long it may take.
    pub timeout: Duration,
    /// How long ECS may not know it, or not answer; [`UNKNOWN_FOR`].
    pub patience: Duration,
    /// Where the lines go.
    pub lines: Lines,
}

/// A task that has stopped, and what it said.
pub struct Watched {
    /// The task.
    pub task: Task,
    /// The report of its container.
    pub report: Report,
    /// The last lines of its container.
    pub last_lines: Vec<LogLine>,
}

/// Waits until the task has stopped and its log is complete, showing both. Ctrl-C, SIGTERM and SIGHUP end the watching, never the task;
/// one that has stopped is judged all the same.
pub async fn follow(watch: Watch<'_>, started: Task) -> Result<Watched, Ending> {
    let id = started.id().to_owned();
    let (mut interrupt, stopped) = (Interrupt::listen(), Cell::new(false));
    let leave = async {
        interrupt.comes().await;
        if stopped.get() {
            pending().await
        }
    };
    tokio::select! {
        biased;
        () = leave => Err(Ending::Detached { task: id }),
        watched = to_its_end(&watch, started, &stopped) => watched,
    }
}

async fn to_its_end(watch: &Watch<'_>, started: Task, stopped: &Cell<bool>) -> Result<Watched, Ending> {
    let mut progress = Progress::begin(watch.lines);
    let mut tail = Tail::of(watch.aws, watch.stream.clone());
    let task = until_stopped(watch, started, &mut tail, &mut progress).await?;
    stopped.set(true);
    let code = task.container(watch.container).and_then(|container| container.exit_code);
    // Without a code it never ran, and so printed nothing.
    if let Some(code) = code {
        let awaits_report = watch.awaits_report && code == 0;
        tail.drain(&mut progress, |report| match report {
            Report::Missing if awaits_report => QUIET_WITHOUT_REPORT,
            Report::Missing => QUIET,
            _ => QUIET_WITH_REPORT,
        })
        .await;
    }
    progress.state(&task.status);
    let (report, last_lines) = tail.into_parts();
    Ok(Watched { task, report, last_lines })
}

async fn until_stopped(
    watch: &Watch<'_>,
    started: Task,
    tail: &mut Tail<'_>,
    progress: &mut Progress,
) -> Result<Task, Ending> {
    let (mut task, mut pause) = (started, Duration::from_millis(200));
    let (mut last_seen, mut last_look) = (Instant::now(), Instant::now());
    loop {
        if !task.is_stopped() {
            progress.state(&task.status);
        }
        tail.pull(progress, PAGES).await;
        if task.is_stopped() {
            return Ok(task); // Its lines come first; whoever called us says that it has stopped.
        }
        if progress.elapsed() >= watch.timeout {
            let (waited, id) = (watch.timeout, task.id().to_owned());
            return Err(Ending::TimedOut { status: task.status, waited, task: id });
        }
        tokio::time::sleep(pause.min(LOG_PAUSE)).await;
        if last_look.elapsed() < pause {
            continue;
        }
        last_look = Instant::now();
        pause = (pause * 3 / 2).min(LONGEST_PAUSE);
        let out_of_patience = last_seen.elapsed() >= watch.patience;
        match watch.aws.task(watch.cluster, &task.arn).await {
            Ok(Some(seen)) => {
                task = seen;
                last_seen = Instant::now();
            }
            Ok(None) if out_of_patience => return Err(Ending::Vanished),
            Err(error) if out_of_patience || error.kind == ErrorKind::Denied => return Err(unwatched(&task, &error)),
            // A network that is away for a moment ends no run.
            Ok(None) | Err(_) => {}
        }
    }
}

fn unwatched(task: &Task, error: &CloudError) -> Ending {
    Ending::Unwatched { why: error.to_string(), task: task.id().to_owned() }
}
