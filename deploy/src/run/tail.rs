//! The lines of one container, as they come and complete: from before it runs until nothing more comes after it has stopped.

use std::collections::{HashMap, VecDeque};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use geuneul::RunReport;
use tokio::time::Instant;

use super::judge::Report;
use super::lines::Joiner;
use super::progress::Progress;
use crate::cloud::{Aws, ErrorKind};
use crate::model::log::{LogLine, LogStream, NoLog};

/// How long a read that fails is tried again: a log that is away for a moment ends no proof.
const PATIENCE: Duration = Duration::from_secs(60);
/// The pause between two looks at the log of a task that has stopped.
const PAUSE: Duration = Duration::from_millis(300);
/// How many of the last lines are kept, for whoever looks back.
const KEPT: usize = 20;

/// What a task that has stopped has printed is read to its end.
const ALL: usize = usize::MAX;

/// One log stream, read on and on.
pub struct Tail<'a> {
    aws: &'a Aws,
    stream: Option<LogStream>,
    place: Place,
    report: Report,
    /// Every event that was read, to tell those that arrive late.
    seen: HashMap<u64, u32>,
    appeared: bool,
    /// Since when no read has come through.
    failing_since: Option<Instant>,
    last: VecDeque<LogLine>,
}

/// How far a stream has been read.
#[derive(Default)]
struct Place {
    token: Option<String>,
    joiner: Joiner,
}

/// One page of the stream.
struct Page {
    events: Vec<LogLine>,
    token: Option<String>,
    /// The end of a stream gives back the token that it was asked with.
    is_last: bool,
}

impl<'a> Tail<'a> {
    /// At the beginning of the stream, which need not be there yet.
    pub fn of(aws: &'a Aws, stream: Result<LogStream, NoLog>) -> Tail<'a> {
        let (stream, report) = match stream {
            Ok(stream) => (Some(stream), Report::Missing),
            Err(error) => (None, Report::NotRead(error.to_string())),
        };
        let (place, seen, last) = (Place::default(), HashMap::new(), VecDeque::new());
        Tail { aws, stream, place, report, seen, appeared: false, failing_since: None, last }
    }

    /// The report that was found last.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Shows what is new, up to so many pages, since a container may print faster than it is read; says whether there was anything.
    pub async fn pull(&mut self, progress: &mut Progress, pages: usize) -> bool {
        let mut any = false;
        for _ in 0..pages {
            let Some(Page { events, token, is_last }) = self.page(self.place.token.clone()).await else { break };
            for event in events {
                any = true;
                *self.seen.entry(fingerprint(&event)).or_default() += 1;
                for line in self.place.joiner.push(event) {
                    self.note(&line);
                    self.show(line, progress);
                }
            }
            self.place.token = token;
            if is_last {
                break;
            }
        }
        any
    }

    /// Reads on after the task has stopped until nothing has come for as long as `enough` says.
    pub async fn drain(&mut self, progress: &mut Progress, enough: impl Fn(&Report) -> Duration) {
        self.pull(progress, ALL).await;
        let mut quiet_since = Instant::now();
        while self.stream.is_some() {
            // What cannot be read is not quiet.
            if self.failing_since.is_none() && quiet_since.elapsed() >= enough(&self.report) {
                if !self.catch_up(progress).await && self.failing_since.is_none() {
                    break;
                }
                quiet_since = Instant::now();
            }
            tokio::time::sleep(PAUSE).await;
            if self.pull(progress, ALL).await || self.failing_since.is_some() {
                quiet_since = Instant::now();
            }
        }
        if let Some(line) = self.place.joiner.rest() {
            self.note(&line);
            self.show(line, progress);
        }
    }

    /// Reads the whole stream once more. A line that arrives late belongs before lines that have been read, and their token passes
    /// over it; the report that counts is the last one by time, not by arrival.
    async fn catch_up(&mut self, progress: &mut Progress) -> bool {
        let (mut place, mut again) = (Place::default(), HashMap::<u64, u32>::new());
        let (mut report, mut is_late, mut any) = (Report::Missing, false, false);
        loop {
            let Some(Page { events, token, is_last }) = self.page(place.token.clone()).await else {
                if self.failing_since.is_none() || self.stream.is_none() {
                    return any;
                }
                tokio::time::sleep(PAUSE).await;
                continue;
            };
            for event in events {
                let key = fingerprint(&event);
                let times = again.entry(key).and_modify(|times| *times += 1).or_insert(1);
                let seen = self.seen.entry(key).or_default();
                if *times > *seen {
                    *seen += 1;
                    is_late = true;
                }
                let lines = place.joiner.push(event);
                let are_late = !lines.is_empty() && std::mem::take(&mut is_late);
                for line in lines {
                    report = of_line(&line).unwrap_or(report);
                    if are_late {
                        any = true;
                        self.show(line, progress);
                    }
                }
            }
            place.token = token;
            if is_last {
                break;
            }
        }
        self.report = report;
        // It has come as far as the other one, and further by what arrived meanwhile.
        self.place = place;
        any
    }

    /// The next page, or nothing: the stream is not there (yet), or it cannot be read. One that may not be read, or that could not be
    /// for a while, is given up, which the report tells.
    async fn page(&mut self, token: Option<String>) -> Option<Page> {
        let stream = self.stream.as_ref()?;
        match self.aws.log_lines(stream, token.as_deref()).await {
            // What was there and is not any more will not come back, and its last lines are not known.
            Ok(None) if self.appeared => {
                self.report = Report::NotRead(format!(
                    "{} in {} was deleted before it was read to its end",
                    stream.name, stream.group
                ));
                self.stream = None;
                None
            }
            Ok(found) => {
                self.failing_since = None;
                let (events, next) = found?;
                self.appeared = true;
                let is_last = next.is_none() || next == token;
                Some(Page { events, token: next.or(token), is_last })
            }
            Err(error) => {
                let since = self.failing_since.get_or_insert_with(Instant::now);
                if error.kind == ErrorKind::Denied || since.elapsed() >= PATIENCE {
                    self.report = Report::NotRead(error.to_string());
                    self.stream = None;
                }
                None
            }
        }
    }

    fn note(&mut self, line: &LogLine) {
        if let Some(report) = of_line(line) {
            self.report = report;
        }
    }

    fn show(&mut self, mut line: LogLine, progress: &mut Progress) {
        match of_line(&line) {
            Some(Report::Found(report)) => {
                let summary = format!("run report: {}, {} fetched", report.outcome, report.fetched);
                progress.report(&line.text, &summary);
                line.text = summary;
            }
            _ => progress.log(&line.text),
        }
        self.last.push_back(line);
        if self.last.len() > KEPT {
            self.last.pop_front();
        }
    }

    /// What the stream held: its last report, and its last lines.
    pub fn into_parts(self) -> (Report, Vec<LogLine>) {
        let report = match (self.report, self.stream) {
            (Report::Missing, Some(LogStream { group, name })) if !self.appeared => {
                Report::NotRead(format!("the log group {group} has no stream {name}"))
            }
            (report, _) => report,
        };
        (report, self.last.into())
    }
}

fn of_line(line: &LogLine) -> Option<Report> {
    Some(match RunReport::from_line(&line.text)? {
        Ok(report) => Report::Found(Box::new(report)),
        Err(error) => Report::Unreadable(error.to_string()),
    })
}

fn fingerprint(event: &LogLine) -> u64 {
    let mut hasher = DefaultHasher::new();
    (event.at_ms, &event.text).hash(&mut hasher);
    hasher.finish()
}
