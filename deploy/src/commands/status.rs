//! `deploy status`: is it on, when does it fire, does the gate stand open, what did the last runs say?

use std::time::Duration;

use clap::Args;
use jiff::{SignedDuration, Timestamp};

use super::Context;
use super::look::Look;
use super::tasks_of_job::started_by;
use crate::cloud::{CloudError, ErrorKind};
use crate::config::Proof;
use crate::exit::Exit;
use crate::fire_times::timetable::Timetable;
use crate::model::Seen;
use crate::model::run_task::Starter;
use crate::one_off::{self, Found};
use crate::plan::Wish;
use crate::run::unreported::{self, OCCURRENCES, due_windows};
use crate::standing::judge::judge;
use crate::standing::overdue::{Log, patience};
use crate::standing::runs::{PastRun, newest_first};
use crate::standing::{Facts, RunningTask, Standing, render};
use crate::verify::dead_letter_queue;

/// How many runs the screen shows.
const SHOWN: usize = 5;
/// How long after its fire time a run's report may be printed.
const LONGEST_RUN: SignedDuration = SignedDuration::from_hours(24);

/// The flags of `deploy status`.
#[derive(Debug, Args)]
pub struct StatusArgs {
    /// Print JSON, one object; docs/status-json.md describes it
    #[arg(long)]
    json: bool,
}

/// Carries the verb out.
pub async fn run(context: &Context, args: StatusArgs) -> anyhow::Result<Exit> {
    let look = Look::at(context, &Wish::default()).await?;
    let facts = gather(context, &look, Timestamp::now()).await;
    let standing = judge(&look.desired, &look.live, &look.plan, &facts, &context.program);
    match args.json {
        true => out!("{}", as_json(&standing)?),
        false => render::lines(&standing, &context.program).iter().for_each(|line| out!("{line}")),
    }
    Ok(standing.exit())
}

fn as_json(standing: &Standing) -> anyhow::Result<String> {
    let mut document = serde_json::to_value(standing)?;
    document["exit_code"] = standing.exit().code().into();
    Ok(document.to_string())
}

/// What a plan does not look at, in two rounds of concurrent calls. Nothing here fails as a whole: a screen with a hole says where.
async fn gather(context: &Context, look: &Look, clock: Timestamp) -> Facts {
    let (aws, live) = (&context.aws, &look.live);
    let queue = live.schedule.present().and_then(dead_letter_queue).map(str::to_owned);
    let (past, running, one_off, depth) =
        tokio::join!(past_runs(context, look, clock), running(context, look), one_off(context, look), async {
            match &queue {
                Some(arn) => Some(aws.queue_depth(arn).await.map_err(|error| why(&error))),
                None => None,
            }
        });
    let Past { mut runs, mut log, has_older } = past;
    let mut unreported = Vec::new();
    if let (Some((group, prefix)), Some(schedule), false) =
        (look.stream_prefix(), live.schedule.present(), matches!(log, Log::Dark(_) | Log::Gone(_)))
    {
        let at_work: Vec<_> = running.iter().flatten().map(|task| task.task.clone()).collect();
        let reports = context.reports(&group, &prefix);
        match unreported::unreported(&reports, &runs, &at_work, &due_windows(schedule, clock)).await {
            Ok(found) => {
                runs = newest_first([runs, found.runs].concat());
                unreported = found.unreported;
            }
            Err(error) => log = Log::Dark(why(&error)),
        }
    }
    Facts { clock, runs, has_older, unreported, shown: SHOWN, log, running, one_off, queue: queue.zip(depth) }
}

/// The one-off schedule that is still to fire: watched by somebody, or left behind.
async fn one_off(context: &Context, look: &Look) -> Result<Option<String>, String> {
    let (group, name) = (&look.desired.timing().group, one_off::name(&look.desired.job.name));
    let (found, now) = context.aws.schedule_and_clock(group, &name).await.map_err(|error| why(&error))?;
    let awaited = found.is_some_and(|found| one_off::found(&found, now) == Found::Awaited);
    Ok(awaited.then(|| format!("{group}/{name}")))
}

struct Past {
    runs: Vec<PastRun>,
    log: Log,
    /// Whether there are more streams than were looked into.
    has_older: bool,
}

/// The last runs, and those that came of the last fire times: a busy family writes many other streams in between.
async fn past_runs(context: &Context, look: &Look, clock: Timestamp) -> Past {
    let dark = |runs, why| Past { runs, log: Log::Dark(why), has_older: false };
    let Some((group, prefix)) = look.stream_prefix() else {
        let why = match (&look.live.task_definition, look.log_place()) {
            (Seen::Hidden { why }, _) => why.clone(),
            (Seen::Present(_) | Seen::Absent, place) => place.err().map_or_else(String::new, |error| error.to_string()),
        };
        return dark(Vec::new(), why);
    };
    let (reports, windows) = (context.reports(&group, &prefix), windows(look, clock));
    let (recent, keeps) = tokio::join!(reports.newest(SHOWN), context.aws.log_retention(&group));
    let mut has_older = false;
    let recent = match recent {
        Ok((runs, is_all)) => {
            has_older = !is_all;
            runs
        }
        Err(error) if error.kind == ErrorKind::NotFound => {
            return Past { runs: Vec::new(), log: no_group(look, group), has_older };
        }
        Err(error) => return dark(Vec::new(), why(&error)),
    };
    let keeps = match keeps {
        Ok(days) => days.map(|days| Duration::from_secs(u64::from(days) * 86_400)),
        Err(error) => return dark(recent, why(&error)),
    };
    // What has been seen already is not looked for again.
    let schedule = look.live.schedule.present();
    let is_seen = |due| recent.iter().any(|run| schedule.is_some_and(|one| run.is_by(one)) && run.at() == Some(due));
    let missing: Vec<_> = windows.into_iter().filter(|(due, _)| !is_seen(*due)).collect();
    match reports.within(&missing).await {
        Err(error) => dark(recent, why(&error)),
        Ok(_) if look.desired.job.gate.proof == Proof::ExitCode && recent.is_empty() => Past {
            runs: recent,
            log: Log::Silent("gate.proof is \"exit-code\": such a job prints no report".to_owned()),
            has_older,
        },
        Ok(more) => Past { runs: newest_first([recent, more].concat()), log: Log::Read { keeps }, has_older },
    }
}

/// Before the first task a group may be missing that the log driver makes; else nothing starts without it.
fn no_group(look: &Look, group: String) -> Log {
    let container = look.live.task_definition.present().and_then(|found| found.container(&look.desired.job.container));
    let is_made = container.is_some_and(|one| one["logConfiguration"]["options"]["awslogs-create-group"] == "true");
    match &look.live.log_group {
        Some((_, Seen::Absent)) if !is_made => Log::Gone(group),
        _ => Log::Read { keeps: None },
    }
}

/// Where the runs of the last fire times would have reported.
fn windows(look: &Look, clock: Timestamp) -> Vec<(Timestamp, Timestamp)> {
    let Some(schedule) = look.live.schedule.present() else { return Vec::new() };
    let table = Timetable::of(schedule);
    let longest = LONGEST_RUN + SignedDuration::try_from(patience(&table)).unwrap_or(LONGEST_RUN);
    let last = table.last(clock, OCCURRENCES).unwrap_or_default();
    last.into_iter().map(|due| (due, due.checked_add(longest).map_or(clock, |end| end.min(clock)))).collect()
}

/// The tasks of the job that run, whoever started them.
async fn running(context: &Context, look: &Look) -> Result<Vec<RunningTask>, String> {
    let job = &look.desired.job;
    let mut found = Vec::new();
    for starter in Starter::ALL {
        let (scheduled, started) = (starter == Starter::Schedule, started_by(starter));
        match context.aws.running_tasks(&job.cluster, &starter.started_by(&job.name)).await {
            Ok(tasks) => found.extend(tasks.into_iter().map(|task| RunningTask { task, scheduled, started })),
            // No cluster, no task.
            Err(error) if error.kind == ErrorKind::NotFound => {}
            Err(error) => return Err(why(&error)),
        }
    }
    Ok(found)
}

fn why(error: &CloudError) -> String {
    if error.kind == ErrorKind::Denied { error.why_hidden() } else { error.to_string() }
}
