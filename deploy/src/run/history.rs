//! The runs that the log still remembers, by their reports.

use futures_util::future::join_all;
use geuneul::RunReport;
use jiff::{SignedDuration, Timestamp};

use crate::cloud::{Answer, Aws};
use crate::config::Proof;
use crate::model::log::LogStream;
use crate::standing::runs::{PastRun, newest_first};

/// How many streams are looked into for each run that is asked for: a family's service writes to streams of the same prefix.
const STREAMS_A_RUN: usize = 4;
/// So many at once.
const AT_ONCE: usize = 8;
/// How far back each search of the whole log goes, in days, until enough is found; the last one goes to its beginning.
const STRETCHES: [i64; 3] = [31, 186, 36_500];
/// The report is the last line of a run; what another program prints after it is not much. Whoever says that there is none looks further.
const LINES: i32 = 200;

/// Where a job's runs report.
#[derive(Clone, Copy)]
pub struct Reports<'a> {
    /// The cloud.
    pub aws: &'a Aws,
    /// The job.
    pub job: &'a str,
    /// Its cluster.
    pub cluster: &'a str,
    /// Its family.
    pub family: &'a str,
    /// Its container.
    pub container: &'a str,
    /// What a run of it has to show.
    pub proof: Proof,
    /// Whether another job of the configuration has the same family and container: only a report then says whose a stream is.
    pub shared: bool,
    /// The log group.
    pub group: &'a str,
    /// How the names of the container's streams begin.
    pub prefix: &'a str,
}

impl Reports<'_> {
    /// The stream of one task.
    pub fn stream(&self, task: &str) -> LogStream {
        LogStream { group: self.group.to_owned(), name: format!("{}{task}", self.prefix) }
    }

    /// The last runs, newest first, as far as the streams show that were written to last.
    pub async fn recent(&self, count: usize) -> Answer<Vec<PastRun>> {
        Ok(self.newest(count).await?.0)
    }

    /// The last runs, newest first, however many streams others have written to since: then the whole log is searched. The other
    /// answer says why that was not done to the end.
    pub async fn last(&self, count: usize) -> Answer<(Vec<PastRun>, Answer<()>)> {
        let (mut runs, is_all) = self.newest(count).await?;
        let (mut to, mut searched) = (Timestamp::now(), Ok(()));
        for days in STRETCHES {
            if is_all || runs.len() >= count {
                break;
            }
            let from =
                Timestamp::now().checked_sub(SignedDuration::from_hours(24 * days)).unwrap_or(Timestamp::UNIX_EPOCH);
            match self.within(&[(from.max(Timestamp::UNIX_EPOCH), to)]).await {
                Ok(more) => runs = newest_first([runs, more].concat()),
                Err(error) => {
                    searched = Err(error);
                    break;
                }
            }
            to = from;
        }
        runs.truncate(count);
        Ok((runs, searched))
    }

    /// The runs in the newest streams, and whether there is no other stream.
    pub async fn newest(&self, count: usize) -> Answer<(Vec<PastRun>, bool)> {
        let streams = self.aws.newest_streams(self.group).await?;
        let every = streams.len() < Aws::NEWEST_STREAMS;
        let streams: Vec<_> = streams.into_iter().filter(|stream| stream.name.starts_with(self.prefix)).collect();
        let looked_into = streams.len().min(count * STREAMS_A_RUN);
        // Whether a report may stand before what was read of a stream.
        let (mut runs, mut cut) = (Vec::new(), false);
        for some in streams[..looked_into].chunks(AT_ONCE) {
            let calls = some.iter().map(|stream| async move {
                let lines = self.aws.last_log_lines(stream, LINES).await?;
                let report = RunReport::last_of(lines.iter().map(|line| line.text.as_str())).and_then(Result::ok);
                let goes_on = report.is_none() && i32::try_from(lines.len()).is_ok_and(|lines| lines >= LINES);
                Answer::Ok((report.map(|report| PastRun { task: task_of(stream), report }), goes_on))
            });
            for answer in join_all(calls).await {
                let (run, goes_on) = answer?;
                cut |= goes_on;
                runs.extend(run.filter(|run| !run.is_of_another(self.job)));
            }
            if runs.len() >= count {
                break;
            }
        }
        let mut runs = newest_first(runs);
        runs.truncate(count);
        Ok((runs, every && !cut && looked_into == streams.len()))
    }

    /// The runs that reported within some stretches of time, and nothing else of the log.
    pub async fn within(&self, windows: &[(Timestamp, Timestamp)]) -> Answer<Vec<PastRun>> {
        let search = |(from, to): &(Timestamp, Timestamp)| {
            self.aws.lines_with(self.group, self.prefix, geuneul::RUN_REPORT_V1, *from, *to)
        };
        let mut runs = Vec::new();
        for lines in join_all(windows.iter().map(search)).await {
            runs.extend(lines?.iter().filter_map(|(stream, line)| {
                let report = RunReport::from_line(&line.text)?.ok()?;
                Some(PastRun { task: task_of(stream), report }).filter(|run| !run.is_of_another(self.job))
            }));
        }
        Ok(newest_first(runs))
    }
}

pub(super) fn task_of(stream: &LogStream) -> String {
    stream.name.rsplit('/').next().unwrap_or_default().to_owned()
}
