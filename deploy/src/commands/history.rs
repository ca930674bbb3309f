//! `deploy history`: the runs that the log remembers, however they were started.

use clap::Args;
use serde_json::json;

use super::Context;
use super::tasks_of_job::refuse_elsewhere;
use crate::cloud::TaskDefinitions;
use crate::exit::{Exit, Stop};
use crate::run::history::recent_runs;
use crate::standing::runs::table;

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
    let definition = context.aws.task_definition(&job.family).await?;
    let Some((group, Some(prefix))) = definition.awslogs(&job.container) else {
        let what = format!("the runs are not known: container {} does not write to CloudWatch", job.container);
        return Err(Stop::failed(what, "give it the awslogs driver and a stream prefix").into());
    };
    let prefix = format!("{prefix}/{}/", job.container);
    let runs = recent_runs(&context.aws, group, &prefix, usize::from(args.limit)).await?;
    if args.json {
        let document =
            json!({ "deploy": "history/1", "job": job.name, "account": account, "region": region, "runs": runs });
        out!("{document}");
        return Ok(Exit::Done);
    }
    out!("{} in {account}/{region}\n", job.name);
    if runs.is_empty() {
        out!("  no run that reported is in the log group {group}");
    } else {
        table(&runs).iter().for_each(|line| out!("{line}"));
    }
    Ok(Exit::Done)
}
