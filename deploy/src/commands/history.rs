//! `deploy history`: the runs that the log remembers, however they were started.

use clap::Args;
use jiff::Timestamp;
use serde_json::json;

use super::Context;
use super::tasks_of_job::{at_work, refuse_elsewhere, running, schedule};
use crate::exit::{Exit, Stop};
use crate::model::Schedule;
use crate::model::log::LogPlace;
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
    // Without it, the family's newest revision is the best guess; what that may have missed is said.
    let schedule = schedule(context, &desired).await;
    let definition = at_work(context, &desired, schedule.as_ref().ok().and_then(Option::as_ref)).await?;
    let LogPlace { group, prefix } = definition
        .log_place(&job.container, region)
        .map_err(|error| Stop::failed(format!("the runs are not known: {error}"), error.hint()))?;
    let limit = usize::from(args.limit);
    let reports = context.reports(&group, &prefix);
    let (runs, searched) = reports.last(limit).await?;
    let found = match schedule {
        Ok(schedule) => without_report(context, &reports, &runs, schedule.as_ref()).await,
        Err(error) => Err(error.into()),
    };
    let (Found { runs: more, mut unreported }, unseen) = match found {
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
            let where_ = if searched.is_ok() { "in" } else { "in the newest streams of" };
            out!("  no run that reported is {where_} the log group {group}");
        } else {
            table(&runs, &unreported).iter().for_each(|line| out!("{line}"));
        }
    }
    let earlier = searched.err().map(|error| format!("runs before the newest streams of the log: {error}"));
    let without = unseen.map(|why| format!("runs that left no report: {why}"));
    let unseen: Vec<_> = earlier.into_iter().chain(without).collect();
    unseen.iter().for_each(|what| err!("not seen: {what}"));
    Ok(if unseen.is_empty() { Exit::Done } else { Exit::Failed })
}

/// The tasks that ended and left no report, and the reports that were behind too many other streams.
async fn without_report(
    context: &Context,
    reports: &Reports<'_>,
    known: &[PastRun],
    schedule: Option<&Schedule>,
) -> anyhow::Result<Found> {
    let running = running(context, reports.cluster, reports.job).await?;
    let running: Vec<_> = running.into_iter().map(|(_, arn)| arn).collect();
    let windows = schedule.map(|schedule| due_windows(schedule, Timestamp::now())).unwrap_or_default();
    Ok(unreported(reports, known, &running, &windows).await?)
}
