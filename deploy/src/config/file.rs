//! What `deploy.toml` may say. Unknown keys are refused everywhere: a misspelt key must not be a silent default.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use geuneul::{FLAG_PREFIX, JobCommand, SourceName};
use serde::Deserialize;
use toml::Spanned;

use super::place::{Here, Place, is_name, is_variable};
use super::secret::SecretTable;
use super::timing::ScheduleTable;
use super::{Gate, Job, Proof, RevisionPolicy, document};
use crate::model::run_task::CapacityProvider;
use crate::model::{Launch, Network, Tags, tags};
use crate::receipt::Path;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    pub(super) account: Spanned<String>,
    pub(super) region: Spanned<String>,
    pub(super) app: Option<Spanned<String>>,
    #[serde(default)]
    pub(super) job: BTreeMap<Spanned<String>, JobTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JobTable {
    cluster: Spanned<String>,
    family: Spanned<String>,
    #[serde(default)]
    revision: RevisionPolicy,
    task_definition: Option<String>,
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
    capacity_providers: Vec<Spanned<ProviderTable>>,
    platform_version: Option<Spanned<String>>,
    #[serde(default)]
    tags: BTreeMap<Spanned<String>, Spanned<String>>,
    #[serde(default)]
    allow_fixed: bool,
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
struct ProviderTable {
    name: String,
    #[serde(default = "one")]
    weight: u16,
    #[serde(default)]
    base: u32,
}

fn one() -> u16 {
    1
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct IngestTable {
    source: SourceName,
    #[serde(default)]
    deactivate_stale: bool,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct GateTable {
    proof: Option<Proof>,
    max_age: Option<Spanned<String>>,
    path: Option<Path>,
}

impl JobTable {
    pub(super) fn into_job(self, key: Spanned<String>, at: &Place<'_>, here: &Here<'_>) -> anyhow::Result<Job> {
        // The name becomes part of a role's name (64 characters) and of StartedBy (letters, digits, - and _).
        let name =
            at.check(key, "the job's name", "a name of 1 to 40 letters, digits, - and _", |v| super::is_job_name(v))?;
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
        if command.iter().any(|one| one.starts_with(&format!("{FLAG_PREFIX}trigger"))) {
            let what = format!("job {name} has {FLAG_PREFIX}trigger: a run by hand would be told the same");
            return Err(at.stop(None, what, "leave it out: each run is told who started it, by INGEST_TRIGGER"));
        }
        // A pinned file never changes: on a schedule it would be loaded again for ever.
        if let Some(argument) =
            command.iter().find(|one| one.starts_with("--ingest.sha256")).filter(|_| !self.allow_fixed)
        {
            let flag = argument.split('=').next().unwrap_or(argument);
            let hint = "schedule a source that changes, or say allow_fixed = true";
            return Err(at.stop(
                None,
                format!("job {name} has {flag}: a fixed source that a schedule would reload for ever"),
                hint,
            ));
        }
        let subnets = at.check(self.subnets, "subnets", "a list of 1 to 16 subnet ids", |v| {
            (1..=16).contains(&v.len()) && v.iter().all(|id| id.starts_with("subnet-"))
        })?;
        let mut security_groups = BTreeSet::new();
        for id in self.security_groups {
            security_groups.insert(at.check(id, "security_groups", "an id such as sg-0123", |v| v.starts_with("sg-"))?);
        }
        let mut environment = BTreeMap::new();
        for (key, value) in self.environment {
            let key = at.check(key, "environment", "the name of a variable", |v| is_variable(v))?;
            environment.insert(key, value);
        }
        let secrets =
            self.secret.into_iter().map(|table| table.into_secret(at, here)).collect::<Result<Vec<_>, _>>()?;
        for (i, secret) in secrets.iter().enumerate() {
            if let Some(other) = secrets[..i].iter().find(|other| other.parameter == secret.parameter) {
                let what = format!(
                    "job {name} keeps two secrets, {} and {}, in parameter {}",
                    other.env, secret.env, secret.parameter
                );
                return Err(at.stop(
                    None,
                    what,
                    "a parameter holds one value: give each secret a parameter of its own",
                ));
            }
            if secrets[..i].iter().any(|other| other.env == secret.env) || environment.contains_key(&secret.env) {
                let what = format!("job {name} sets {} twice", secret.env);
                return Err(at.stop(
                    None,
                    what,
                    "ECS refuses a name that two secrets, or a secret and a variable, share",
                ));
            }
        }
        let family = at.check(self.family, "family", "a family without its revision", |v| is_name(v, "-_", 255))?;
        let document = self.task_definition.map(|file| document::beside(at.path, &file));
        Ok(Job {
            schedule: self.schedule.into_timing(&name, at, here)?,
            cluster: at.check_here(self.cluster, "cluster", "a cluster's name or ARN", here, |v| {
                let name = v
                    .rsplit_once(":cluster/")
                    .filter(|(arn, _)| arn.starts_with("arn:") && arn.split(':').count() == 5)
                    .map_or(v.as_str(), |(_, name)| name);
                is_name(name, "-_", 255)
            })?,
            revision: self.revision,
            task_definition: document.map(|path| document::read(&path, &family)),
            family,
            container: at.check(self.container, "container", "a container's name", |v| is_name(v, "-_", 255))?,
            command,
            environment,
            launch: placement(self.capacity_providers, at)?,
            platform_version: match self.platform_version {
                Some(version) => {
                    Some(at.check(version, "platform_version", "LATEST or a number such as 1.4.0", |v| {
                        v == "LATEST" || (v.contains('.') && v.split('.').all(|n| n.parse::<u16>().is_ok()))
                    })?)
                }
                None => None,
            },
            tags: more_tags(self.tags, at)?,
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
                    Some(text) => {
                        let span = text.span();
                        let age = at.duration(text, "max_age")?;
                        if age.is_zero() {
                            let what = "max_age is zero: no proof could ever be young enough";
                            return Err(at.stop(Some(span), what, "as in: max_age = \"7d\""));
                        }
                        age
                    }
                    None => Duration::from_secs(7 * 24 * 3600),
                },
                path: self.gate.path.unwrap_or(Path::Direct),
            },
            name,
        })
    }
}

fn placement(strategy: Vec<Spanned<ProviderTable>>, at: &Place<'_>) -> anyhow::Result<Launch> {
    if strategy.is_empty() {
        return Ok(Launch::Fargate);
    }
    let span = strategy[0].span();
    let list: Vec<_> = strategy
        .into_iter()
        .map(|one| {
            let ProviderTable { name, weight, base } = one.into_inner();
            CapacityProvider { name, weight, base }
        })
        .collect();
    let legal = |one: &CapacityProvider| is_name(&one.name, "-_", 255) && one.weight <= 1000 && one.base <= 100_000;
    // ECS takes one base, and wants some weight above nothing.
    let bases = list.iter().filter(|one| one.base > 0).count();
    if list.len() > 20 || bases > 1 || list.iter().all(|one| one.weight == 0) || !list.iter().all(legal) {
        let hint = "1 to 20 of { name = \"FARGATE_SPOT\", weight = 0 to 1000, base = 0 to 100000 }; one base, and some weight above 0";
        return Err(at.stop(Some(span), "capacity_providers is no strategy that ECS takes", hint));
    }
    Ok(Launch::CapacityProviders(list))
}

/// What a tag of one's own may be called.
const LEGAL_TAG: &str =
    "1 to 128 characters; managed-by, job and region (in upper or lower case) and what begins with aws: are taken";

fn more_tags(tags: BTreeMap<Spanned<String>, Spanned<String>>, at: &Place<'_>) -> anyhow::Result<Tags> {
    let mut found = Tags::new();
    for (key, value) in tags {
        let span = key.span();
        let key = at.check(key, "a tag", LEGAL_TAG, |v| {
            // For IAM `Job` and `job` are one key.
            let taken = [tags::MANAGED_BY.0, tags::JOB, tags::REGION].iter().any(|ours| v.eq_ignore_ascii_case(ours));
            (1..=128).contains(&v.chars().count()) && !taken && !v.to_ascii_lowercase().starts_with("aws:")
        })?;
        if let Some(other) = found.keys().find(|other| other.to_lowercase() == key.to_lowercase()) {
            let hint = "keep one of them: for IAM, upper and lower case are the same key";
            return Err(at.stop(Some(span), format!("tags {other} and {key} are one key"), hint));
        }
        let value = at.check(value, "a tag's value", "up to 256 characters", |v| v.chars().count() <= 256)?;
        found.insert(key, value);
    }
    // IAM takes 50 tags; ours are among them.
    if found.len() > 40 {
        return Err(at.stop(None, format!("{} tags", found.len()), "keep to 40: AWS takes 50, and some are ours"));
    }
    Ok(found)
}
