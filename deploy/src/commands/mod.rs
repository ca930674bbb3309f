//! The verbs, one file each. A verb is a story of a few lines: observe, plan, guard, apply, report.

pub mod apply;
pub mod attach;
pub mod attempt;
pub mod completions;
pub mod destroy;
pub mod disable;
pub mod enable;
pub mod export;
pub mod history;
pub mod iam;
pub mod init;
pub mod logs;
pub mod look;
pub mod path_record;
pub mod plan;
pub mod run;
pub mod status;
pub mod stop;
pub mod tasks_of_job;
pub mod trigger_now;
pub mod verdict;
pub mod verify;
pub mod via_scheduler;
pub mod watched;

use crate::again;
use crate::cli::Global;
use crate::cloud::Aws;
use crate::config::{Config, Job};
use crate::desired::Desired;
use crate::exit::Stop;
use crate::render::Style;
use crate::run::history::Reports;

/// What every verb starts from: the file, the job of it, and AWS.
pub struct Context {
    /// The whole file.
    pub config: Config,
    /// The job at hand.
    pub job: Job,
    /// The real cloud.
    pub aws: Aws,
    /// How to print on stdout.
    pub style: Style,
    /// How a person writes this command again: `deploy`, plus the global flags that were given.
    pub program: String,
}

impl Context {
    /// Reads the configuration and builds the clients; asks AWS nothing.
    pub async fn new(global: &Global) -> anyhow::Result<Context> {
        let (config, job) = read(global)?;
        let aws = Aws::connect(&config.region, global.profile.as_deref(), global.endpoint_url.as_deref()).await?;
        Ok(Context { config, job, aws, style: global.color.style(), program: again::program(global) })
    }
}

/// The configuration, and which of its jobs is meant.
fn read(global: &Global) -> anyhow::Result<(Config, Job)> {
    let text = std::fs::read_to_string(&global.config).map_err(|error| {
        let what = format!("cannot read {}: {error}", global.config.display());
        Stop::usage(what, "say --config FILE, or write the file: each error then names the key that is missing in it")
    })?;
    let config = Config::parse(&text, &global.config)?;
    let job = config.job(global.job.as_deref())?.clone();
    Ok((config, job))
}

impl Context {
    /// Where the job's runs report: a log group, and how the names of the container's streams begin.
    pub fn reports<'a>(&'a self, group: &'a str, prefix: &'a str) -> Reports<'a> {
        let Job { name, cluster, family, container, gate, .. } = &self.job;
        let mut others = self.config.jobs.values().filter(|other| other.name != *name);
        let shared = others.any(|other| (&other.family, &other.container) == (family, container));
        let (aws, proof) = (&self.aws, gate.proof);
        Reports { aws, job: name, cluster, family, container, proof, shared, group, prefix }
    }

    /// What the job wants.
    pub fn desired(&self) -> Desired {
        Desired::new(&self.config, &self.job)
    }
}
