//! `deploy.toml`: what is wanted, parsed once, with every mistake named by line and way out.
//!
//! The file's own shape is in `file`, errors with their place in `place`.
//!
//! Architecture invariant: no value of a secret can stand in this file; a secret has only a place where its value comes from.

mod cron;
mod document;
mod file;
mod place;
mod secret;
mod timing;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::exit::Stop;
use crate::model::{Launch, Network, Tags};
use crate::receipt::Path;
use crate::secret::Origin;

pub use document::{Document, Unusable};

use file::File;
use place::{Here, Place, is_name};

/// A whole `deploy.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Config {
    /// The account that may be changed, and no other.
    pub account: String,
    /// The region that may be changed, and no other.
    pub region: String,
    /// The first part of the receipts' parameter names.
    pub app: String,
    /// The jobs, by name.
    pub jobs: BTreeMap<String, Job>,
}

/// One `[job.NAME]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// The name: of the schedule, in the tags, and of what is derived from it.
    pub name: String,
    /// The cluster's name or ARN.
    pub cluster: String,
    /// The task definition's family.
    pub family: String,
    /// Which revision the schedule is to run.
    pub revision: RevisionPolicy,
    /// A file with the whole task definition, or why it cannot be used; without one, the family's newest revision is adopted as it is.
    pub task_definition: Option<Result<Document, Unusable>>,
    /// The container that does the work.
    pub container: String,
    /// What it is told to do.
    pub command: Vec<String>,
    /// More environment for it.
    pub environment: BTreeMap<String, String>,
    /// Where the task runs.
    pub launch: Launch,
    /// Fargate's platform version; none means the newest.
    pub platform_version: Option<String>,
    /// More tags for whatever can be tagged.
    pub tags: Tags,
    /// Its network.
    pub network: Network,
    /// When it runs.
    pub schedule: Timing,
    /// What it must know and nobody else.
    pub secrets: Vec<Secret>,
    /// What counts as a proof before it is switched on.
    pub gate: Gate,
    /// The declarative stop: apply switches it off, and enable refuses.
    pub stopped: bool,
}

/// Which revision the schedule is to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RevisionPolicy {
    /// The one that it runs now, until somebody moves it with `--latest`; a new schedule begins with the newest.
    #[default]
    Pinned,
    /// The newest at each `apply`: whoever registers one decides what the job runs.
    Latest,
}

/// `[job.NAME.schedule]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timing {
    /// AWS's expression, such as `cron(0 4 1-3 * ? *)`.
    pub expression: String,
    /// The IANA name of the time zone.
    pub timezone: String,
    /// The schedule group.
    pub group: String,
    /// A role of somebody else's that the schedule uses; without it, one is made and kept.
    pub role: Option<String>,
    /// The path of the role that is made and kept, `/` when nothing is said.
    pub role_path: String,
    /// The permissions boundary of the role that is made and kept; without it, whatever boundary is there stays.
    pub permissions_boundary: Option<String>,
    /// The queue that takes what Scheduler could not deliver.
    pub dead_letter_queue: Option<String>,
    /// Scheduler may fire this many minutes late, at a moment of its own.
    pub flexible_window: Option<u32>,
    /// How often Scheduler tries again when it cannot deliver.
    pub retries: u32,
    /// For how long it tries.
    pub retry_for: Duration,
}

/// `[[job.NAME.secret]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Secret {
    /// The environment variable inside the container.
    pub env: String,
    /// The parameter's name.
    pub parameter: String,
    /// Where the value comes from.
    pub from: Origin,
    /// The KMS key that encrypts it, by ARN, id or alias; without it the one that is there, or AWS's own.
    pub kms_key: Option<String>,
}

/// `[job.NAME.gate]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    /// What a run must show.
    pub proof: Proof,
    /// How old a proof may be.
    pub max_age: Duration,
    /// By which way a run must have been started: `Scheduler` wants the record of the scheduled path beside the receipt.
    pub path: Path,
}

/// What a run must show.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Proof {
    /// Exit code 0, and a run report that says `succeeded` with rows.
    RunReport,
    /// Exit code 0; for jobs that print no run report.
    ExitCode,
}

/// Whether a job may be called so.
pub fn is_job_name(text: &str) -> bool {
    is_name(text, "-_", JOB_NAME)
}

/// How long the name of a job may be.
pub const JOB_NAME: usize = 40;

impl Config {
    /// Parses the text of `deploy.toml`. `path` names it in errors, and is where the files that it names are looked for.
    pub fn parse(text: &str, path: &std::path::Path) -> anyhow::Result<Config> {
        let at = Place { text, path };
        let file: File = toml::from_str(text).map_err(|error| at.syntax(&error))?;
        let account = at.check(file.account, "account", "twelve digits", |v| {
            v.len() == 12 && v.bytes().all(|b| b.is_ascii_digit())
        })?;
        let region = at.check(file.region, "region", "a region such as ap-northeast-2", |v| {
            v.split('-').count() >= 3 && v.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        })?;
        let app = match file.app {
            Some(app) => {
                at.check(app, "app", "a name of letters, digits, - and _ that begins with neither aws nor ssm", |v| {
                    let reserved = ["aws", "ssm"].iter().any(|taken| v.to_ascii_lowercase().starts_with(taken));
                    is_name(v, "-_", 64) && !reserved
                })?
            }
            None => "geuneul-deploy".to_owned(),
        };
        let mut jobs = BTreeMap::new();
        let here = Here { account: &account, region: &region, app: &app };
        for (key, table) in file.job {
            let span = key.span();
            let job = table.into_job(key, &at, &here)?;
            // A group's tags say whose every schedule in it is.
            if let Some(other) = jobs.values().find(|other: &&Job| other.schedule.group == job.schedule.group) {
                let what = format!("jobs {} and {} share the group {}", other.name, job.name, job.schedule.group);
                return Err(at.stop(Some(span), what, "give each job a group of its own, or leave `group` out"));
            }
            jobs.insert(job.name.clone(), job);
        }
        if jobs.is_empty() {
            return Err(at.stop(
                None,
                "no job: nothing is wanted",
                "add a table [job.NAME]; each error names the key that is missing in it",
            ));
        }
        Ok(Config { account, region, app, jobs })
    }

    /// The job of that name, or the only one.
    pub fn job(&self, name: Option<&str>) -> anyhow::Result<&Job> {
        let known = || self.jobs.keys().cloned().collect::<Vec<_>>().join(", ");
        match name {
            Some(name) => self.jobs.get(name).ok_or_else(|| {
                Stop::usage(format!("there is no job {name:?} in the file"), format!("known: {}", known())).into()
            }),
            None => {
                let mut jobs = self.jobs.values();
                match (jobs.next(), jobs.next()) {
                    (Some(job), None) => Ok(job),
                    _ => Err(Stop::usage("the file has several jobs", format!("say --job NAME: {}", known())).into()),
                }
            }
        }
    }

    /// The partition that the region lies in.
    pub fn partition(&self) -> &'static str {
        partition(&self.region)
    }
}

fn partition(region: &str) -> &'static str {
    match region.split('-').next() {
        Some("cn") => "aws-cn",
        _ if region.starts_with("us-gov-") => "aws-us-gov",
        _ => "aws",
    }
}
