//! `deploy.toml`: what is wanted, parsed once, with every mistake named by line and way out.
//!
//! Architecture invariant: no value of a secret can stand in this file; a secret has only a place where its value comes from.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Duration;

use geuneul::{JobCommand, SourceName};
use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::exit::Stop;
use crate::model::{Launch, Network};
use crate::secret::Origin;

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
    /// A file with the whole task definition; without it, the family's newest revision is adopted as it is.
    pub task_definition: Option<Document>,
    /// The container that does the work.
    pub container: String,
    /// What it is told to do.
    pub command: Vec<String>,
    /// More environment for it.
    pub environment: BTreeMap<String, String>,
    /// Where the task runs.
    pub launch: Launch,
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

/// A JSON document from a file beside `deploy.toml`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Document {
    /// Where it was read from.
    pub path: PathBuf,
    /// Its members.
    pub members: serde_json::Map<String, serde_json::Value>,
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
}

/// `[job.NAME.gate]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gate {
    /// What a run must show.
    pub proof: Proof,
    /// How old a proof may be.
    pub max_age: Duration,
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

impl Config {
    /// Parses the text of `deploy.toml`. `path` names it in errors, and is where the files that it names are looked for.
    pub fn parse(text: &str, path: &Path) -> anyhow::Result<Config> {
        let at = At { text, path };
        let file: File = toml::from_str(text).map_err(|error| at.syntax(&error))?;
        let account = at.check(file.account, "account", "twelve digits", |v| {
            v.len() == 12 && v.bytes().all(|b| b.is_ascii_digit())
        })?;
        let region = at.check(file.region, "region", "a region such as ap-northeast-2", |v| {
            v.split('-').count() >= 3 && v.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
        })?;
        let app = match file.app {
            Some(app) => at.check(app, "app", "letters, digits, - and _", |v| name(v, "-_", 64))?,
            None => "geuneul-deploy".to_owned(),
        };
        let mut jobs = BTreeMap::new();
        for (key, table) in file.job {
            jobs.insert(key.get_ref().clone(), table.into_job(key, &at)?);
        }
        if jobs.is_empty() {
            return Err(at.stop(
                None,
                "no job: nothing is wanted",
                "add a [job.NAME] table, as in templates/deploy.toml",
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
        match self.region.split('-').next() {
            Some("cn") => "aws-cn",
            _ if self.region.starts_with("us-gov-") => "aws-us-gov",
            _ => "aws",
        }
    }
}

// What the file may say. Unknown keys are refused everywhere: a misspelt key must not be a silent default.

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    account: Spanned<String>,
    region: Spanned<String>,
    app: Option<Spanned<String>>,
    #[serde(default)]
    job: BTreeMap<Spanned<String>, JobTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct JobTable {
    cluster: Spanned<String>,
    family: Spanned<String>,
    task_definition: Option<Spanned<String>>,
    container: Spanned<String>,
    command: Option<Spanned<Vec<String>>>,
    ingest: Option<Spanned<IngestTable>>,
    #[serde(default)]
    environment: BTreeMap<Spanned<String>, String>,
    subnets: Spanned<Vec<String>>,
    #[serde(default)]
    security_groups: Vec<Spanned<String>>,
    #[serde(default)]
    assign_public_ip: bool,
    #[serde(default)]
    stopped: bool,
    schedule: ScheduleTable,
    #[serde(default)]
    secret: Vec<SecretTable>,
    #[serde(default)]
    gate: GateTable,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct IngestTable {
    source: SourceName,
    #[serde(default)]
    deactivate_stale: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScheduleTable {
    cron: Spanned<String>,
    timezone: Spanned<String>,
    group: Option<Spanned<String>>,
    role: Option<Spanned<String>>,
    retries: Option<Spanned<u32>>,
    retry_for: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct SecretTable {
    env: Spanned<String>,
    parameter: Spanned<String>,
    from: Spanned<String>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct GateTable {
    proof: Option<Proof>,
    max_age: Option<Spanned<String>>,
}

impl JobTable {
    fn into_job(self, key: Spanned<String>, at: &At<'_>) -> anyhow::Result<Job> {
        // The name becomes part of a role's name (64 characters) and of StartedBy (letters, digits, - and _).
        let name = at.check(key, "the job's name", "1 to 40 letters, digits, - and _", |v| name(v, "-_", 40))?;
        let command = match (self.command, self.ingest) {
            (Some(command), None) => command.into_inner(),
            (None, Some(ingest)) => {
                let IngestTable { source, deactivate_stale } = ingest.into_inner();
                JobCommand { deactivate_stale, ..JobCommand::monthly(source) }.argv()
            }
            (Some(command), Some(_)) => {
                let what = format!("job {name} has both `command` and `ingest`");
                return Err(at.stop(Some(command.span()), what, "keep one of them"));
            }
            (None, None) => {
                let hint = "add ingest = { source = \"library\", deactivate_stale = true }, or command = [\"...\"]";
                return Err(at.stop(None, format!("job {name} has no command"), hint));
            }
        };
        let subnets = at.check(self.subnets, "subnets", "a list of 1 to 16 subnet ids", |v| {
            (1..=16).contains(&v.len()) && v.iter().all(|id| id.starts_with("subnet-"))
        })?;
        let mut security_groups = BTreeSet::new();
        for id in self.security_groups {
            security_groups
                .insert(at.check(id, "a security group", "an id such as sg-0123", |v| v.starts_with("sg-"))?);
        }
        let mut environment = BTreeMap::new();
        for (key, value) in self.environment {
            let key = at.check(key, "an environment variable", "letters, digits and _", |v| env_name(v))?;
            environment.insert(key, value);
        }
        let secrets = self.secret.into_iter().map(|table| table.into_secret(at)).collect::<Result<Vec<_>, _>>()?;
        for (i, secret) in secrets.iter().enumerate() {
            if secrets[..i].iter().any(|other| other.env == secret.env) || environment.contains_key(&secret.env) {
                let what = format!("job {name} sets {} twice", secret.env);
                return Err(at.stop(
                    None,
                    what,
                    "ECS refuses a name that two secrets, or a secret and a variable, share",
                ));
            }
        }
        Ok(Job {
            schedule: self.schedule.into_timing(&name, at)?,
            cluster: at.check(self.cluster, "cluster", "a cluster's name or ARN", |v| !v.trim().is_empty())?,
            family: at.check(self.family, "family", "a family without its revision", |v| self::name(v, "-_", 255))?,
            task_definition: self.task_definition.map(|file| at.document(file)).transpose()?,
            container: at.check(self.container, "container", "a container's name", |v| self::name(v, "-_", 255))?,
            command,
            environment,
            launch: Launch::Fargate,
            stopped: self.stopped,
            network: Network {
                subnets: subnets.into_iter().collect(),
                security_groups,
                assign_public_ip: self.assign_public_ip,
            },
            secrets,
            gate: Gate {
                proof: self.gate.proof.unwrap_or(Proof::RunReport),
                max_age: match self.gate.max_age {
                    Some(text) => at.duration(text, "max_age")?,
                    None => Duration::from_secs(7 * 24 * 3600),
                },
            },
            name,
        })
    }
}

impl ScheduleTable {
    fn into_timing(self, job: &str, at: &At<'_>) -> anyhow::Result<Timing> {
        let cron = at.check(self.cron, "cron", "six fields: minute hour day month weekday year", |v| {
            !v.starts_with("cron(") && v.split_whitespace().count() == 6
        })?;
        let fields: Vec<_> = cron.split_whitespace().collect();
        let timezone = at.check(self.timezone, "timezone", "an IANA name such as Asia/Seoul", |v| {
            (1..=50).contains(&v.len()) && jiff::tz::TimeZone::get(v).is_ok()
        })?;
        let group = match self.group {
            Some(group) => at.check(group, "group", "1 to 64 of letters, digits, - _ and .", |v| name(v, "-_.", 64))?,
            None => job.to_owned(),
        };
        let role = match self.role {
            Some(role) => {
                Some(at.check(role, "role", "the ARN of a role", |v| v.contains(":iam::") && v.contains(":role/"))?)
            }
            None => None,
        };
        // AWS's own defaults, 185 tries within a day, would run a monthly job at a time that nobody expects.
        let retries = match self.retries {
            Some(n) => at.check(n, "retries", "0 to 185", |v| *v <= 185)?,
            None => 3,
        };
        let retry_for = match self.retry_for {
            Some(text) => {
                let span = text.span();
                let age = at.duration(text, "retry_for")?;
                if !(60..=86_400).contains(&age.as_secs()) {
                    return Err(at.stop(Some(span), "retry_for is out of range", "write 1m to 24h"));
                }
                age
            }
            None => Duration::from_secs(3600),
        };
        Ok(Timing { expression: format!("cron({})", fields.join(" ")), timezone, group, role, retries, retry_for })
    }
}

impl SecretTable {
    fn into_secret(self, at: &At<'_>) -> anyhow::Result<Secret> {
        let parameter = at.check(self.parameter, "parameter", "a name such as /app/key, not an ARN", |v| {
            let path = v.strip_prefix('/').unwrap_or_default();
            let reserved = path.split('/').next().is_some_and(|s| {
                let s = s.to_ascii_lowercase();
                s.starts_with("aws") || s.starts_with("ssm")
            });
            v.len() <= 900 && !reserved && path.split('/').count() <= 15 && path.split('/').all(|s| name(s, "-_.", 900))
        })?;
        let span = self.from.span();
        let from = self.from.into_inner().parse().map_err(|error: crate::secret::UnknownOrigin| {
            at.stop(Some(span), error.to_string(), "write env:NAME, file:PATH, fd:N or prompt")
        })?;
        Ok(Secret { env: at.check(self.env, "env", "letters, digits and _", |v| env_name(v))?, parameter, from })
    }
}

/// Where we are in the file, for errors.
struct At<'a> {
    text: &'a str,
    path: &'a Path,
}

impl At<'_> {
    fn stop(&self, span: Option<Range<usize>>, what: impl fmt::Display, hint: impl Into<String>) -> anyhow::Error {
        let file = self.path.display();
        let what = match span {
            Some(span) => format!("{file}:{}: {what}", self.text[..span.start].matches('\n').count() + 1),
            None => format!("{file}: {what}"),
        };
        Stop::usage(what, hint).into()
    }

    fn syntax(&self, error: &toml::de::Error) -> anyhow::Error {
        let hint = "templates/deploy.toml shows every key with its meaning";
        self.stop(error.span(), error.message().trim().replace('\n', ", "), hint)
    }

    fn check<T: fmt::Debug>(
        &self,
        value: Spanned<T>,
        key: &str,
        legal: &str,
        is_legal: impl FnOnce(&T) -> bool,
    ) -> anyhow::Result<T> {
        if is_legal(value.get_ref()) {
            return Ok(value.into_inner());
        }
        let what = format!("{key} is {:?}", value.get_ref());
        Err(self.stop(Some(value.span()), what, format!("{key} is {legal}")))
    }

    fn duration(&self, text: Spanned<String>, key: &str) -> anyhow::Result<Duration> {
        let parsed = || {
            let (number, unit) = text.get_ref().split_at_checked(text.get_ref().len().checked_sub(1)?)?;
            let seconds = match unit {
                "m" => 60,
                "h" => 3600,
                "d" => 86_400,
                _ => return None,
            };
            number.parse::<u32>().ok().map(|n| Duration::from_secs(u64::from(n) * seconds))
        };
        let what = || format!("{key} is {:?}", text.get_ref());
        parsed().ok_or_else(|| self.stop(Some(text.span()), what(), "write a number and m, h or d, such as 7d"))
    }

    fn document(&self, file: Spanned<String>) -> anyhow::Result<Document> {
        let path = self.path.parent().unwrap_or(Path::new("")).join(file.get_ref());
        let read = std::fs::read_to_string(&path).map_err(|error| error.to_string());
        let members = read.and_then(|text| serde_json::from_str(&text).map_err(|error| error.to_string()));
        match members {
            Ok(members) => Ok(Document { path, members }),
            Err(error) => {
                let what = format!("cannot use {}: {error}", path.display());
                let hint =
                    "task_definition names a JSON file, relative to this one, as in templates/task-definition.json";
                Err(self.stop(Some(file.span()), what, hint))
            }
        }
    }
}

fn name(text: &str, more: &str, longest: usize) -> bool {
    (1..=longest).contains(&text.len()) && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
}

fn env_name(text: &str) -> bool {
    name(text, "_", 255) && !text.starts_with(|c: char| c.is_ascii_digit())
}
