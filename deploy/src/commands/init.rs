//! `deploy init`: the way in. Reads what is there and writes a commented `deploy.toml`; changes nothing in AWS.

use std::io::Write;

use anyhow::Context as _;
use clap::Args;

use crate::cli::Global;
use crate::cloud::{Aws, Schedules, TaskDefinitions, Whoami, set_region};
use crate::config::{JOB_NAME, is_job_name};
use crate::exit::{Exit, Stop};
use crate::import::Found;

/// The flags of `deploy init`.
#[derive(Debug, Args)]
pub struct InitArgs {
    /// The cluster that the job is to run on
    #[arg(long, value_name = "NAME", required_unless_present = "from_schedule", value_parser = named)]
    cluster: Option<String>,
    /// The family that it is to run
    #[arg(long, value_name = "NAME", required_unless_present = "from_schedule", value_parser = named)]
    family: Option<String>,
    /// The container that does the work; default: the family's first
    #[arg(long, value_name = "NAME")]
    container: Option<String>,
    /// Take target, network, role and expression from a schedule that is there
    #[arg(long, value_name = "GROUP/NAME", conflicts_with_all = ["cluster", "family"], value_parser = named)]
    from_schedule: Option<String>,
    /// The region; default: that of the environment or the profile
    #[arg(long, value_name = "REGION", value_parser = named)]
    region: Option<String>,
}

/// A variable that was never set comes as nothing, and is no name.
fn named(text: &str) -> Result<String, String> {
    let parts: Vec<_> = text.split('/').filter(|part| !part.trim().is_empty()).collect();
    match parts.is_empty() || text.starts_with('/') || text.ends_with('/') {
        true => Err("it is no name; is the variable set?".to_owned()),
        false => Ok(text.to_owned()),
    }
}

/// Carries the verb out.
pub async fn run(global: &Global, args: InitArgs) -> anyhow::Result<Exit> {
    let path = &global.config;
    if path.exists() {
        let what = format!("{} is there already; nothing was written", path.display());
        return Err(Stop::refused(what, "write another one: deploy init --config OTHER.toml ...").into());
    }
    if let Some(job) = global.job.as_deref().filter(|job| !is_job_name(job)) {
        let what = format!("--job {job:?} is no name of a job");
        return Err(Stop::usage(what, format!("1 to {JOB_NAME} letters, digits, - and _")).into());
    }
    let region = match args.region.clone() {
        Some(region) => region,
        None => set_region(global.profile.as_deref())
            .await
            .ok_or_else(|| Stop::usage("no region is set", "say --region REGION, or set AWS_REGION"))?,
    };
    let aws = Aws::connect(&region, global.profile.as_deref(), global.endpoint_url.as_deref()).await?;
    let found = look(&aws, region, global.job.as_deref(), args).await?;
    let mut file = std::fs::File::create_new(path).with_context(|| format!("cannot write {}", path.display()))?;
    file.write_all(found.to_toml().as_bytes()).with_context(|| format!("writing {}", path.display()))?;
    for note in &found.notes {
        out!("note: {note}");
    }
    out!("wrote {}: job {} of family {} on cluster {}", path.display(), found.job, found.family, found.cluster);
    out!("next: read it, then {} plan", crate::again::program(global));
    Ok(Exit::Done)
}

async fn look(aws: &Aws, region: String, job: Option<&str>, args: InitArgs) -> anyhow::Result<Found> {
    let account = aws.identity().await?.account;
    let named = args.from_schedule.as_deref().or(args.family.as_deref()).unwrap_or_default();
    let named = named.rsplit('/').next().unwrap_or(named);
    let legal = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let job = job.map_or_else(|| named.chars().map(legal).take(JOB_NAME).collect(), str::to_owned);
    let mut found = Found { account, region, job, container: args.container, ..Found::default() };
    if let Some(full_name) = &args.from_schedule {
        let (group, schedule) = full_name.split_once('/').unwrap_or(("default", full_name));
        let live = aws.schedule(group, schedule).await?;
        found.add_schedule(&live).map_err(|why| {
            Stop::refused(
                format!("schedule {full_name} cannot be taken over: {why}"),
                "start from cluster and family: deploy init --cluster NAME --family NAME",
            )
        })?;
    } else {
        found.cluster = args.cluster.unwrap_or_default();
        found.family = args.family.unwrap_or_default();
    }
    // A cluster that is not there is better noticed now.
    aws.cluster_status(&found.cluster).await?;
    found
        .add_definition(&aws.task_definition(&found.family).await?)
        .map_err(|why| Stop::failed(why, "name one of them: --container NAME"))?;
    if found.network.is_none() {
        found.network = aws.service_network(&found.cluster, &found.family).await?;
    }
    Ok(found)
}
