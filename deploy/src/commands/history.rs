//! `deploy history`: the runs that the log remembers, however they were started.

use clap::Args;
use serde_json::json;

use super::Context;
use super::look::Look;
use crate::exit::{Exit, Stop};
use crate::plan::Wish;
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
    let look = Look::at(context, &Wish::default()).await?;
    let Some((group, prefix)) = look.stream_prefix() else {
        let what = "the runs are not known: the container's log driver is not awslogs";
        return Err(Stop::failed(what, "look where the container's log goes").into());
    };
    let runs = recent_runs(&context.aws, &group, &prefix, usize::from(args.limit)).await?;
    if args.json {
        let (job, account, region) = (&look.desired.job.name, &look.desired.account, &look.desired.region);
        let document = json!({ "deploy": "history/1", "job": job, "account": account, "region": region, "runs": runs });
        out!("{document}");
        return Ok(Exit::Done);
    }
    out!("{} in {}\n", look.desired.job.name, look.plan.place);
    if runs.is_empty() {
        out!("  no run that reported is in the log group {group}");
        return Ok(Exit::Done);
    }
    table(&runs).iter().for_each(|line| out!("{line}"));
    Ok(Exit::Done)
}
