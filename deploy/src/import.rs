//! The way in: what is there already, as a commented `deploy.toml`.
//!
//! Architecture invariant: no I/O, no async, no clock, no SDK, no printing.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde_json::Value;

use crate::desired::{made_role, role_name};
use crate::model::run_task::{CapacityProvider, OCCURRENCE_VARIABLE, RunTask, TRIGGER_VARIABLE};
use crate::model::{Network, Schedule, TaskDefinition};

/// What was found, and what a person should know of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Found {
    /// The account.
    pub account: String,
    /// The region.
    pub region: String,
    /// The name of the job to be.
    pub job: String,
    /// The cluster, by name or ARN.
    pub cluster: String,
    /// The family.
    pub family: String,
    /// The container, when it is known.
    pub container: Option<String>,
    /// The command.
    pub command: Vec<String>,
    /// More variables.
    pub environment: BTreeMap<String, String>,
    /// Where the task is placed, when that is not the launch type FARGATE.
    pub capacity_providers: Vec<CapacityProvider>,
    /// Fargate's platform version.
    pub platform_version: Option<String>,
    /// The network.
    pub network: Option<Network>,
    /// When it fires.
    pub timing: Option<FoundTiming>,
    /// Whether `deploy` made the schedule, for this very job.
    pub is_ours: bool,
    /// The secrets that the container has already: (variable, parameter).
    pub secrets: Vec<(String, String)>,
    /// What a person should know.
    pub notes: Vec<String>,
}

/// When a schedule that is there fires.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundTiming {
    /// The six fields, when it is a cron expression.
    pub cron: Option<String>,
    /// The time zone.
    pub timezone: String,
    /// The group.
    pub group: String,
    /// The role.
    pub role: Option<String>,
    /// The path of the role that `deploy` made.
    pub role_path: Option<String>,
    /// The retries and for how many seconds.
    pub retries: Option<(u64, u64)>,
    /// The dead-letter queue.
    pub dead_letter_queue: Option<String>,
    /// The flexible window, in minutes.
    pub flexible_window: Option<u64>,
}

impl Found {
    /// What a schedule says: one with a Universal Target, or one with the ECS target that Terraform and the console make.
    pub fn add_schedule(&mut self, schedule: &Schedule) -> Result<(), String> {
        let target = schedule.0.get("Target").cloned().unwrap_or_default();
        let input: Value = schedule.input().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let arn = target["Arn"].as_str().unwrap_or_default();
        // (where cluster, revision and network stand, where the overrides stand)
        let (request, overrides) = if arn.ends_with(":aws-sdk:ecs:runTask") {
            (input.clone(), member(&input, "overrides").clone())
        } else if let Some(parameters) = target.get("EcsParameters") {
            let mut request = parameters.clone();
            request["Cluster"] = arn.into();
            request["TaskDefinition"] = parameters["TaskDefinitionArn"].clone();
            (request, input)
        } else {
            return Err(format!("its target {arn} starts no ECS task"));
        };
        self.cluster = text(&request, "cluster").unwrap_or("default").to_owned();
        let definition = text(&request, "taskDefinition").ok_or("its target names no task definition")?;
        let tail = definition.rsplit('/').next().unwrap_or(definition);
        self.family = tail.split(':').next().unwrap_or(tail).to_owned();
        let vpc = member(member(&request, "networkConfiguration"), "awsvpcConfiguration");
        if vpc.is_object() {
            self.network = Some(Network {
                subnets: texts(member(vpc, "subnets")).collect(),
                security_groups: texts(member(vpc, "securityGroups")).collect(),
                assign_public_ip: text(vpc, "assignPublicIp") == Some("ENABLED"),
            });
        }
        self.add_placement(&request);
        let told =
            ["cluster", "taskDefinition", "taskDefinitionArn", "launchType", "networkConfiguration", "platformVersion"];
        let more = ["capacityProviderStrategy", "overrides", "count", "taskCount", "clientToken", "startedBy"];
        self.left_out("the request", &request, &[told.as_slice(), &more].concat());
        self.add_overrides(&overrides);
        self.add_timing(schedule, &target);
        Ok(())
    }

    fn add_placement(&mut self, request: &Value) {
        self.platform_version = text(request, "platformVersion").filter(|is| *is != "LATEST").map(str::to_owned);
        for one in member(request, "capacityProviderStrategy").as_array().into_iter().flatten() {
            let number = |name: &str| member(one, name).as_u64().and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
            let name = text(one, "capacityProvider").unwrap_or_default().to_owned();
            let weight = u16::try_from(number("weight")).unwrap_or(u16::MAX);
            self.capacity_providers.push(CapacityProvider { name, weight, base: number("base") });
        }
        if let Some(other) = text(request, "launchType").filter(|is| *is != "FARGATE") {
            self.notes
                .push(format!("its launch type is {other}: the job will run on FARGATE, or on capacity_providers"));
        }
        for count in [member(request, "count"), member(request, "taskCount")] {
            if let Some(count) = count.as_u64().filter(|count| *count != 1) {
                self.notes.push(format!("its Count or TaskCount is {count}: a job is one task"));
            }
        }
    }

    /// What `deploy.toml` has no key for must not vanish in silence.
    fn left_out(&mut self, whose: &str, found: &Value, told: &[&str]) {
        for name in found.as_object().into_iter().flat_map(|members| members.keys()) {
            if !told.iter().any(|told| told.eq_ignore_ascii_case(name)) {
                self.notes.push(format!("{name} of {whose} was left out: there is no key for it here"));
            }
        }
    }

    fn add_overrides(&mut self, overrides: &Value) {
        self.left_out("the overrides", overrides, &["containerOverrides"]);
        let containers = member(overrides, "containerOverrides").as_array().cloned().unwrap_or_default();
        if containers.len() > 1 {
            self.notes.push("it overrides several containers; only the first was taken over".to_owned());
        }
        let Some(container) = containers.first() else { return };
        self.left_out("the container's overrides", container, &["name", "command", "environment"]);
        if self.container.is_none() {
            self.container = text(container, "name").map(str::to_owned);
        }
        let mut words = texts(member(container, "command")).peekable();
        while let Some(word) = words.next() {
            let (name, value) = word.split_once('=').unwrap_or((&word, ""));
            let next_is_value =
                value.is_empty() && word.starts_with('-') && words.peek().is_some_and(|next| !next.starts_with('-'));
            if looks_secret(name, value) && (next_is_value || !value.is_empty()) {
                self.notes.push(format!("{name} of the command was left out: its value looks like a secret"));
                if next_is_value {
                    words.next();
                }
            } else {
                self.command.push(word);
            }
        }
        for variable in member(container, "environment").as_array().into_iter().flatten() {
            let (name, value) =
                (text(variable, "name").unwrap_or_default(), text(variable, "value").unwrap_or_default());
            if name == TRIGGER_VARIABLE || name == OCCURRENCE_VARIABLE {
                continue;
            } else if value.contains("<aws.scheduler.") {
                self.notes.push(format!(
                    "variable {name} was left out: Scheduler fills it in, and a proven run could not have it"
                ));
            } else if looks_secret(name, value) {
                self.notes.push(format!(
                    "variable {name} was left out: it looks like a secret, and its value is readable by many"
                ));
            } else {
                self.environment.insert(name.to_owned(), value.to_owned());
            }
        }
    }

    fn add_timing(&mut self, schedule: &Schedule, target: &Value) {
        let expression = schedule.text("ScheduleExpression").unwrap_or_default();
        let cron = expression.strip_prefix("cron(").and_then(|rest| rest.strip_suffix(')'));
        if cron.is_none() {
            self.notes.push(format!("its expression {expression} is no cron expression: `cron` is yours to write"));
        }
        let group = schedule.text("GroupName").unwrap_or("default").to_owned();
        let name = schedule.text("Name").unwrap_or_default();
        self.notes.push(format!("schedule {group}/{name} is {}, and was not touched", schedule.state()));
        if group == "default" {
            let what = "it stays in the group default, which is nobody's; the job's own schedule will be another one, in a group of its own";
            self.notes.push(format!("{what}: remove the old one before the new one is enabled, or both fire"));
        } else if name != self.job {
            let what = "it stays in its group: a schedule cannot be renamed, and the job's own will be another one";
            self.notes.push(format!(
                "{what}, {0}/{0}: remove the old one before the new one is enabled, or both fire",
                self.job
            ));
        }
        for bound in ["StartDate", "EndDate"].into_iter().filter(|bound| schedule.0.contains_key(*bound)) {
            self.notes.push(format!("its {bound} was left out: there is no key for it here, and apply takes it away"));
        }
        if let Some(action) = schedule.text("ActionAfterCompletion").filter(|action| *action != "NONE") {
            self.notes.push(format!("its ActionAfterCompletion is {action}: apply takes that away"));
        }
        let role = target["RoleArn"].as_str();
        self.is_ours = RunTask::from_scheduler_input(schedule.input().unwrap_or_default())
            .is_ok_and(|run_task| run_task.parts().job == self.job && name == self.job);
        let made = role.filter(|arn| self.is_ours && role_name(arn) == made_role(&self.job));
        let path = made.and_then(|arn| Some(arn.split_once(":role")?.1.strip_suffix(role_name(arn))?.to_owned()));
        let retry = &target["RetryPolicy"];
        let retries = retry["MaximumRetryAttempts"].as_u64().zip(retry["MaximumEventAgeInSeconds"].as_u64());
        self.timing = Some(FoundTiming {
            cron: cron.map(str::to_owned),
            timezone: schedule.text("ScheduleExpressionTimezone").unwrap_or("UTC").to_owned(),
            // Taken over, it would make the old schedule ours, and leave it firing.
            group: if name == self.job { group } else { String::new() },
            role: role.filter(|_| made.is_none()).map(str::to_owned),
            role_path: path.filter(|path| path != "/"),
            // AWS reports its own defaults where nothing was said.
            retries: retries.filter(|both| *both != (185, 86_400)),
            dead_letter_queue: target["DeadLetterConfig"]["Arn"].as_str().map(str::to_owned),
            flexible_window: schedule.0.get("FlexibleTimeWindow").and_then(|w| w["MaximumWindowInMinutes"].as_u64()),
        });
    }

    /// What the family's newest revision says.
    pub fn add_definition(&mut self, definition: &TaskDefinition) -> Result<(), String> {
        let containers = definition.members.get("containerDefinitions").and_then(Value::as_array);
        let names: Vec<_> = containers.into_iter().flatten().filter_map(|c| c["name"].as_str()).collect();
        if self.container.is_none() {
            self.container = names.first().map(|name| (*name).to_owned());
            if names.len() > 1 {
                self.notes
                    .push(format!("the family has several containers; the first was chosen of {}", names.join(", ")));
            }
        }
        let container = self.container.as_ref().and_then(|name| definition.container(name));
        if let (Some(name), None) = (&self.container, container) {
            return Err(format!("family {} has no container {name:?}, but {}", self.family, names.join(", ")));
        }
        let secrets = container.and_then(|container| container.get("secrets")).and_then(Value::as_array);
        for secret in secrets.into_iter().flatten() {
            let (name, from) =
                (text(secret, "name").unwrap_or_default(), text(secret, "valueFrom").unwrap_or_default());
            let parameter = match from.split_once(":parameter/") {
                Some((_, name)) => format!("/{name}"),
                None if from.starts_with('/') => from.to_owned(),
                None => continue,
            };
            self.secrets.push((name.to_owned(), parameter));
        }
        Ok(())
    }

    /// The file.
    pub fn to_toml(&self) -> String {
        let mut out = String::new();
        self.write(&mut out).expect("a string takes everything");
        out
    }

    fn write(&self, out: &mut String) -> std::fmt::Result {
        let job = &self.job;
        writeln!(out, "# What `deploy` is to keep, as it was found. templates/deploy.toml explains every key.\n")?;
        for note in &self.notes {
            writeln!(out, "# note: {note}")?;
        }
        writeln!(out, "account = {}", quoted(&self.account))?;
        writeln!(out, "region = {}\n", quoted(&self.region))?;
        writeln!(out, "[job.{job}]")?;
        writeln!(out, "cluster = {}", quoted(&self.cluster))?;
        writeln!(out, "family = {}", quoted(&self.family))?;
        writeln!(
            out,
            "container = {}  # the one that does the work; the run is judged by its exit code",
            quoted(self.container.as_deref().unwrap_or(""))
        )?;
        match self.command.as_slice() {
            [] => writeln!(
                out,
                "command = []  # what the image does by itself; or [\"--an\", \"argument\"], or ingest = {{ source = \"library\" }} in place of it"
            )?,
            words => writeln!(out, "command = {}", list(words.iter()))?,
        }
        match &self.network {
            Some(Network { subnets, security_groups, assign_public_ip }) => {
                writeln!(out, "subnets = {}", list(subnets.iter()))?;
                writeln!(out, "security_groups = {}", list(security_groups.iter()))?;
                writeln!(out, "assign_public_ip = {assign_public_ip}")?;
            }
            None => writeln!(out, "subnets = []  # to be filled in: no service of the cluster runs this family")?,
        }
        if !self.capacity_providers.is_empty() {
            let one = |CapacityProvider { name, weight, base }: &CapacityProvider| {
                format!("{{ name = {}, weight = {weight}, base = {base} }}", quoted(name))
            };
            let all: Vec<_> = self.capacity_providers.iter().map(one).collect();
            writeln!(out, "capacity_providers = [{}]", all.join(", "))?;
        }
        if let Some(version) = &self.platform_version {
            writeln!(out, "platform_version = {}", quoted(version))?;
        }
        if !self.environment.is_empty() {
            let pairs: Vec<_> =
                self.environment.iter().map(|(k, v)| format!("{} = {}", quoted(k), quoted(v))).collect();
            writeln!(out, "environment = {{ {} }}", pairs.join(", "))?;
        }
        writeln!(out, "\n[job.{job}.schedule]")?;
        let timing = self.timing.clone().unwrap_or_default();
        match &timing.cron {
            Some(cron) => writeln!(out, "cron = {}  # minute hour day month weekday year", quoted(cron))?,
            None => writeln!(out, "cron = \"0 4 1-3 * ? *\"  # an example: minute hour day month weekday year")?,
        }
        let zone = if timing.timezone.is_empty() { "UTC" } else { &timing.timezone };
        writeln!(out, "timezone = {}", quoted(zone))?;
        if !["", "default", job].contains(&timing.group.as_str()) {
            writeln!(out, "group = {}  # taken over with `deploy apply --adopt`", quoted(&timing.group))?;
        }
        if let Some(role) = &timing.role {
            writeln!(out, "role = {}  # used as it is; without this line one is made and kept", quoted(role))?;
        }
        if let Some(path) = &timing.role_path {
            writeln!(out, "role_path = {}", quoted(path))?;
        }
        if let Some((retries, seconds)) = timing.retries {
            writeln!(out, "retries = {retries}\nretry_for = \"{}m\"", seconds.div_ceil(60))?;
        }
        if let Some(minutes) = timing.flexible_window {
            writeln!(out, "flexible_window = \"{minutes}m\"")?;
        }
        if let Some(queue) = &timing.dead_letter_queue {
            writeln!(out, "dead_letter_queue = {}", quoted(queue))?;
        }
        match self.is_ours {
            _ if self.secrets.is_empty() => {}
            true => writeln!(
                out,
                "\n# The container has these secrets. Uncomment those of this job: one that `deploy` has kept and that is not here is taken out."
            )?,
            false => writeln!(
                out,
                "\n# The container has these secrets already, and they stay. Uncomment one for `deploy` to keep it; --adopt takes it over."
            )?,
        }
        for (env, parameter) in &self.secrets {
            writeln!(out, "# [[job.{job}.secret]]\n# env = {}\n# parameter = {}", quoted(env), quoted(parameter))?;
            writeln!(out, "# from = \"env:{env}\"")?;
        }
        let reports = self.command.iter().any(|word| word.starts_with("--ingest."));
        writeln!(out, "\n[job.{job}.gate]")?;
        match reports {
            true => writeln!(out, "proof = \"run-report\"  # exit code 0 and a report that says so"),
            false => {
                writeln!(out, "proof = \"exit-code\"  # \"run-report\" for a job that prints one, as `ingest` does")
            }
        }
    }
}

/// A member, with its first letter in either case: Terraform modules write both, though AWS takes one.
fn member<'v>(value: &'v Value, name: &str) -> &'v Value {
    let (first, rest) = name.split_at(1);
    let pascal = first.to_ascii_uppercase() + rest;
    value.get(name).or_else(|| value.get(&pascal)).unwrap_or(&Value::Null)
}

fn text<'v>(value: &'v Value, name: &str) -> Option<&'v str> {
    member(value, name).as_str()
}

fn texts(value: &Value) -> impl Iterator<Item = String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned)
}

/// By a word of its name, or because its value is an address with a password in it.
fn looks_secret(name: &str, value: &str) -> bool {
    let name = name.to_ascii_uppercase();
    // Of our own flags, this one names a lock.
    let is_lock = name.ends_with("LOCK-KEY") || name.ends_with("LOCK_KEY");
    let words =
        ["KEY", "SECRET", "TOKEN", "PASS", "PASSWORD", "PASSWD", "PWD", "CREDENTIAL", "CREDENTIALS", "AUTH", "PRIVATE"];
    let ends = ["KEY", "SECRET", "TOKEN", "PASSWORD"];
    let is_word = |word: &str| words.contains(&word) || ends.iter().any(|end| word.ends_with(end));
    let user = value.split_once("://").and_then(|(_, rest)| rest.split(['/', '?']).next()?.rsplit_once('@'));
    (!is_lock && name.split(|c: char| !c.is_ascii_alphanumeric()).any(is_word))
        || user.is_some_and(|(user, _)| user.contains(':'))
}

/// A string of JSON is a basic string of TOML.
fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

fn list<'a>(words: impl Iterator<Item = &'a String>) -> String {
    format!("[{}]", words.map(|word| quoted(word)).collect::<Vec<_>>().join(", "))
}
