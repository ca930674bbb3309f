//! Following a task to its end: its state, its container's lines, its report.

use std::time::Duration;

use geuneul::RunReport;
use tokio::time::Instant;

use super::ending::Ending;
use super::judge::Report;
use super::progress::Progress;
use crate::cloud::{Aws, CloudError, ErrorKind};
use crate::config::Proof;
use crate::model::log::LogStream;
use crate::model::run_task::Run;
use crate::model::task::Task;

/// The pause between two looks at a task grows to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(3);
/// ECS is eventually consistent: a task that has just been started may be unknown for a while.
const UNKNOWN_FOR: Duration = Duration::from_secs(60);
/// Lines reach the log group seconds after they were printed. How long a stopped task's stream must be quiet before a report
/// that is still missing counts as missing ...
const QUIET_WITHOUT_REPORT: Duration = Duration::from_secs(10);
/// ... before the report that is there counts as the last ...
const QUIET_WITH_REPORT: Duration = Duration::from_secs(1);
/// ... and before lines that are only for a person's eyes count as complete.
const QUIET: Duration = Duration::from_secs(2);

/// Waits until the task has stopped and its log is complete, showing both. The inner error is an end without a stopped task.
pub async fn follow(
    aws: &Aws,
    run: &Run,
    started: Task,
    stream: Option<LogStream>,
    proof: Proof,
    timeout: Duration,
) -> Result<Result<(Task, Report), Ending>, CloudError> {
    let mut progress = Progress::begin();
    let mut tail = Tail { stream, token: None, report: Report::Missing, failing_since: None };
    let stopped = until_stopped(aws, run, started, &mut tail, timeout, &mut progress).await;
    let ended = match stopped {
        Ok(Ok(task)) => {
            tail.drain(aws, run, &task, proof, &mut progress).await;
            progress.state(&task.status);
            Ok(Ok((task, tail.into_report())))
        }
        Ok(Err(ending)) => Ok(Err(ending)),
        Err(error) => Err(error),
    };
    progress.end();
    ended
}

async fn until_stopped(
    aws: &Aws,
    run: &Run,
    started: Task,
    tail: &mut Tail,
    timeout: Duration,
    progress: &mut Progress,
) -> Result<Result<Task, Ending>, CloudError> {
    let mut task = started;
    let mut pause = Duration::from_millis(200);
    let mut last_seen = Instant::now();
    loop {
        if !task.is_stopped() {
            progress.state(&task.status);
        }
        tail.pull(aws, progress).await;
        if task.is_stopped() {
            return Ok(Ok(task)); // Its lines come first; whoever called us says that it has stopped.
        }
        if progress.elapsed() >= timeout {
            return Ok(Err(Ending::TimedOut { status: task.status, waited: timeout }));
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 3 / 2).min(LONGEST_PAUSE);
        let out_of_patience = last_seen.elapsed() >= UNKNOWN_FOR;
        match aws.task(&run.task().cluster, &task.arn).await {
            Ok(Some(seen)) => {
                task = seen;
                last_seen = Instant::now();
            }
            Ok(None) if out_of_patience => return Ok(Err(Ending::Vanished)),
            Err(error) if out_of_patience || error.kind == ErrorKind::Denied => return Err(error),
            // A network that is away for a moment ends no run.
            Ok(None) | Err(_) => {}
        }
    }
}

/// The lines of one stream, as they come.
struct Tail {
    stream: Option<LogStream>,
    token: Option<String>,
    report: Report,
    /// Since when no read has come through.
    failing_since: Option<Instant>,
}

impl Tail {
    /// Shows what is new; says whether there was anything. A stream that may not be read, or that could not be for a while, is given
    /// up, which the report tells.
    async fn pull(&mut self, aws: &Aws, progress: &mut Progress) -> bool {
        let mut any = false;
        while let Some(stream) = &self.stream {
            let (lines, next) = match aws.log_lines(stream, self.token.as_deref()).await {
                Ok(Some(page)) => page,
                Ok(None) => {
                    self.failing_since = None;
                    break;
                }
                Err(error) if error.kind != ErrorKind::Denied && self.is_patient() => break,
                Err(error) => {
                    self.report = Report::NotRead(error.to_string());
                    self.stream = None;
                    break;
                }
            };
            self.failing_since = None;
            for line in &lines {
                any = true;
                match RunReport::from_line(&line.text) {
                    Some(Ok(report)) => {
                        progress.log(&format!("run report: {}, {} fetched", report.outcome, report.fetched));
                        self.report = Report::Found(Box::new(report));
                    }
                    Some(Err(error)) => {
                        progress.log(&line.text);
                        self.report = Report::Unreadable(error.to_string());
                    }
                    None => progress.log(&line.text),
                }
            }
            // The end of a stream gives back the token that it was asked with.
            let at_end = next.is_none() || next == self.token;
            self.token = next.or(self.token.take());
            if at_end {
                break;
            }
        }
        any
    }

    /// Whether a failing read is still to be tried again: a log that is away for a moment ends no proof.
    fn is_patient(&mut self) -> bool {
        self.failing_since.get_or_insert_with(Instant::now).elapsed() < UNKNOWN_FOR
    }

    /// Reads on after the task has stopped, until nothing more comes: the last report counts, and it need not be the first.
    async fn drain(&mut self, aws: &Aws, run: &Run, task: &Task, proof: Proof, progress: &mut Progress) {
        let Some(code) = task.container(&run.task().container).and_then(|container| container.exit_code) else {
            return; // It never ran, and so printed nothing.
        };
        let mut quiet_since = Instant::now();
        loop {
            let enough = match &self.report {
                Report::Missing if code == 0 && proof == Proof::RunReport => QUIET_WITHOUT_REPORT,
                Report::Missing => QUIET,
                _ => QUIET_WITH_REPORT,
            };
            if self.stream.is_none() || quiet_since.elapsed() >= enough {
                return;
            }
            tokio::time::sleep(Duration::from_millis(300)).await;
            // What cannot be read is not quiet.
            if self.pull(aws, progress).await || self.failing_since.is_some() {
                quiet_since = Instant::now();
            }
        }
    }

    fn into_report(self) -> Report {
        match (self.report, self.stream) {
            (Report::Missing, None) => Report::NotRead("the container's log driver is not awslogs".to_owned()),
            (report, _) => report,
        }
    }
}
