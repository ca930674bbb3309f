//! What `deploy.toml` may say. Unknown keys are refused everywhere: a misspelt key must not be a silent default.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use geuneul::{JobCommand, SourceName};
use serde::Deserialize;
use toml::Spanned;

use super::place::{Place, is_name, is_variable};
use super::{Gate, Job, Proof, Secret, Timing};
use crate::fire_times;
use crate::model::{Launch, Network};

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
    pub(super) fn into_job(self, key: Spanned<String>, at: &Place<'_>) -> anyhow::Result<Job> {
        // The name becomes part of a role's name (64 characters) and of StartedBy (letters, digits, - and _).
        let name =
            at.check(key, "the job's name", "a name of 1 to 40 letters, digits, - and _", |v| is_name(v, "-_", 40))?;
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
            security_groups.insert(at.check(id, "security_groups", "an id such as sg-0123", |v| v.starts_with("sg-"))?);
        }
        let mut environment = BTreeMap::new();
        for (key, value) in self.environment {
            let key = at.check(key, "environment", "the name of a variable", |v| is_variable(v))?;
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
            cluster: at.check(self.cluster, "cluster", "a cluster's name or ARN", |v| {
                let name = v
                    .rsplit_once(":cluster/")
                    .filter(|(arn, _)| arn.starts_with("arn:"))
                    .map_or(v.as_str(), |(_, name)| name);
                is_name(name, "-_", 255)
            })?,
            family: at.check(self.family, "family", "a family without its revision", |v| is_name(v, "-_", 255))?,
            task_definition: self.task_definition.map(|file| at.document(file)).transpose()?,
            container: at.check(self.container, "container", "a container's name", |v| is_name(v, "-_", 255))?,
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

const CRON_HINT: &str =
    "the six fields are: minute hour day month weekday year; as in 0 4 1-3 * ? *, with ? as day or as weekday";

/// What is wrong with the shape of the six fields; what is inside of them is the parser's to say.
fn cron_fault(fields: &[&str]) -> Option<String> {
    match fields {
        [first, ..] if first.starts_with("cron(") => Some("it holds the fields alone, without cron(...)".to_owned()),
        [_, _, "?", _, "?", _] => Some("day and weekday are both ?; only one of them is left open".to_owned()),
        [_, _, day, _, weekday, _] if *day != "?" && *weekday != "?" => {
            Some("day and weekday are both set; one of them must be ?".to_owned())
        }
        [_, _, _, _, _, _] => None,
        other => Some(format!("it has {} fields, not six", other.len())),
    }
}

impl ScheduleTable {
    fn into_timing(self, job: &str, at: &Place<'_>) -> anyhow::Result<Timing> {
        let cron_span = self.cron.span();
        let fields: Vec<_> = self.cron.get_ref().split_whitespace().collect();
        if let Some(fault) = cron_fault(&fields) {
            return Err(at.stop(Some(cron_span), format!("cron is {:?}: {fault}", self.cron.get_ref()), CRON_HINT));
        }
        let timezone = at.check(self.timezone, "timezone", "an IANA name such as Asia/Seoul", |v| {
            (1..=50).contains(&v.len()) && jiff::tz::TimeZone::get(v).is_ok_and(|zone| zone.iana_name() == Some(v))
        })?;
        let group = match self.group {
            Some(group) => {
                at.check(group, "group", "a name of 1 to 64 letters, digits, - _ and .", |v| is_name(v, "-_.", 64))?
            }
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
            Some(n) => at.check(n, "retries", "a number from 0 to 185", |v| *v <= 185)?,
            None => 3,
        };
        let retry_for = match self.retry_for {
            Some(text) => {
                let span = text.span();
                let age = at.duration(text, "retry_for")?;
                if !(60..=86_400).contains(&age.as_secs()) {
                    return Err(at.stop(
                        Some(span),
                        "retry_for is out of what AWS takes, 1m to 24h",
                        "as in: retry_for = \"1h\"",
                    ));
                }
                age
            }
            None => Duration::from_secs(3600),
        };
        let expression = format!("cron({})", fields.join(" "));
        // From the beginning of time: years that are over are no mistake of the file, and `disable` must still work then.
        let first = fire_times::next(&expression, &timezone, jiff::Timestamp::UNIX_EPOCH, 1)
            .map_err(|error| at.stop(Some(cron_span.clone()), error, CRON_HINT))?;
        if first.is_empty() {
            let what = format!("{expression} never fires: no year has such a day and time in {timezone}");
            return Err(at.stop(Some(cron_span), what, CRON_HINT));
        }
        Ok(Timing { expression, timezone, group, role, retries, retry_for })
    }
}

impl SecretTable {
    fn into_secret(self, at: &Place<'_>) -> anyhow::Result<Secret> {
        let parameter = at.check_unseen(
            self.parameter,
            "parameter",
            "a parameter's name such as /app/key (an ARN is none)",
            |v| {
                let path = v.strip_prefix('/').unwrap_or_default();
                let reserved = path.split('/').next().is_some_and(|s| {
                    let s = s.to_ascii_lowercase();
                    s.starts_with("aws") || s.starts_with("ssm")
                });
                v.len() <= 900
                    && !reserved
                    && path.split('/').count() <= 15
                    && path.split('/').all(|s| is_name(s, "-_.", 900))
            },
        )?;
        let span = self.from.span();
        let from = self.from.into_inner().parse().map_err(|error: crate::secret::UnknownOrigin| {
            at.stop(Some(span), error.to_string(), "write env:NAME, file:PATH, fd:N or prompt")
        })?;
        Ok(Secret { env: at.check_unseen(self.env, "env", "the name of a variable", is_variable)?, parameter, from })
    }
}
