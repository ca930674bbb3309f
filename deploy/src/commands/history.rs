//! `deploy history`: the runs that the log remembers, however they were started.

use clap::Args;
use jiff::Timestamp;
use serde_json::json;

use super::Context;
use super::tasks_of_job::{refuse_elsewhere, revision, running};
use crate::cloud::{ErrorKind, Schedules};
use crate::exit::{Exit, Stop};
use crate::run::history::Reports;
use crate::run::unreported::{Found, due_windows, unreported};
use crate::standing::runs::{PastRun, newest, newest_first, table};

/// The flags of `deploy history`.
#[derive(Debug, Args)]
pub struct HistoryArgs {
    /// How many runs, newest first
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u16).range(1..=50))]
    limit: u16,
    /// Print JSON, one object; docs/status-json.md describes it
    #[arg(long)]
    json: bool,
}

/// Carries the verb out.
pub async fn run(context: &Context, args: HistoryArgs) -> anyhow::Result<Exit> {
    let desired = context.desired();
    let (job, account, region) = (&desired.job, &desired.account, &desired.region);
    refuse_elsewhere(context, &desired).await?;
    let definition = revision(context, &desired).await?;
    let Some((group, Some(prefix))) = definition.awslogs(&job.container) else {
        let what = format!("the runs are not known: container {} does not write to CloudWatch", job.container);
        return Err(Stop::failed(what, "give it the awslogs driver and a stream prefix").into());
    };
    let prefix = format!("{prefix}/{}/", job.container);
    let limit = usize::from(args.limit);
    let reports = context.reports(group, &prefix);
    let runs = reports.recent(limit).await?;
    let (Found { runs: more, mut unreported }, unseen) = match without_report(context, &reports, &runs).await {
        Ok(found) => (found, None),
        Err(error) => (Found::default(), Some(format!("{error:#}"))),
    };
    let mut runs = newest_first([runs, more].concat());
    newest(&mut runs, &mut unreported, limit);
    if args.json {
        let looked = unseen.is_none().then_some(&unreported);
        let document = json!({ "deploy": "history/1", "job": job.name, "account": account, "region": region, "runs": runs, "unreported": looked });
        out!("{document}");
    } else {
        out!("{} in {account}/{region}\n", job.name);
        if runs.is_empty() && unreported.is_empty() {
            out!("  no run that reported is in the log group {group}");
        } else {
            table(&runs, &unreported).iter().for_each(|line| out!("{line}"));
        }
    }
    let Some(why) = unseen else { return Ok(Exit::Done) };
    err!("not seen: runs that left no report: {why}");
    Ok(Exit::Failed)
}

/// The tasks that ended and left no report, and the reports that were behind too many other streams.
async fn without_report(context: &Context, reports: &Reports<'_>, known: &[PastRun]) -> anyhow::Result<Found> {
    let desired = context.desired();
    let (job, group) = (&desired.job.name, &desired.timing().group);
    let schedule = match context.aws.schedule(group, job).await {
        Ok(schedule) => Some(schedule),
        Err(error) if error.kind == ErrorKind::NotFound => None,
        Err(error) => return Err(error.into()),
    };
    let running = running(context, reports.cluster, job).await?;
    let running: Vec<_> = running.into_iter().map(|(_, arn)| arn).collect();
    let windows = schedule.as_ref().map(|schedule| due_windows(schedule, Timestamp::now())).unwrap_or_default();
    Ok(unreported(reports, known, &running, &windows).await?)
}
