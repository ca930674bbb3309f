//! `deploy disable`: switches the schedule off, also when little else works.
//!
//! With `--schedule GROUP/NAME` it needs no deploy.toml: whoever is woken at night may have nothing but this program and credentials.

use anyhow::Context as _;
use clap::Args;

use super::{Context, read};
use crate::check;
use crate::cli::Global;
use crate::cloud::{Answer, Aws, CloudError, ErrorKind, Schedules, Whoami, seen, set_region};
use crate::exit::{Exit, Stop};
use crate::model::run_task::Starter;
use crate::model::{Elsewhere, Group, Schedule, Seen, State, tags};
use crate::observe::elsewhere;
use crate::{explain, one_off, switch};

/// The flags of `deploy disable`.
#[derive(Debug, Args)]
pub struct DisableArgs {
    /// Delete the schedule in place of switching it off, after saving it to a file; needs no iam:PassRole
    #[arg(long)]
    pub delete: bool,
    /// Also end the job's tasks that run now, whoever started them
    #[arg(long)]
    pub stop_running: bool,
    /// This schedule, without a deploy.toml, in the region that AWS_REGION or the profile names
    #[arg(long, value_name = "GROUP/NAME", value_parser = full_name)]
    pub schedule: Option<(String, String)>,
}

/// Carries the verb out for the job of a configuration.
pub async fn run(context: &Context, args: DisableArgs) -> anyhow::Result<Exit> {
    let desired = context.desired();
    let (group, name) = (&desired.timing().group, &desired.job.name);
    let (identity, schedule) = tokio::join!(context.aws.identity(), context.aws.schedule(group, name));
    check::same_place(&desired, &identity?)?;
    let mut one = One {
        aws: &context.aws,
        program: context.program.clone(),
        args: &args,
        group: group.clone(),
        name: name.clone(),
        cluster: Some(desired.job.cluster.clone()),
    };
    let schedule = match schedule {
        Err(error) if error.kind == ErrorKind::NotFound => {
            let all = elsewhere(&context.aws, &desired).await.context("whether it has a schedule in another group")?;
            let firing = all.iter().find(|one| one.state == State::Enabled || args.delete);
            let Some(Elsewhere { group: other, .. }) = firing else {
                out!("{name}: there is no schedule, and nothing that fires");
                let one_off = one.remove_own_one_off(&desired.group_arn()).await;
                let stopped = one.stop_running(None).await;
                return Ok(if one_off == Exit::Done { stopped } else { one_off });
            };
            err!("note: its schedule is in group {other}, and the configuration says {group}");
            one.group.clone_from(other);
            context.aws.schedule(other, name).await?
        }
        other => other?,
    };
    one.switch(&schedule, &desired.in_group(&one.group).group_arn()).await
}

/// Carries the verb out for a schedule that is named, without a configuration.
pub async fn named(global: &Global, args: DisableArgs) -> anyhow::Result<Exit> {
    let (group, name) = args.schedule.clone().unwrap_or_default();
    let region = set_region(global.profile.as_deref()).await.ok_or_else(|| {
        let what = "no region is set, and without a configuration nothing else says where to look";
        Stop::usage(what, "set AWS_REGION, or name a profile that has one: --profile NAME")
    })?;
    let aws = Aws::connect(&region, global.profile.as_deref(), global.endpoint_url.as_deref()).await?;
    let schedule = match aws.schedule(&group, &name).await {
        Err(error) if error.kind == ErrorKind::NotFound => {
            let what = format!("there is no schedule {group}/{name} in {region}: nothing was switched off");
            return Err(
                Stop::failed(what, "its name and group: aws scheduler list-schedules; its region: AWS_REGION").into()
            );
        }
        other => other?,
    };
    // The group's ARN, which its tags are read by, is a part of the schedule's.
    let arn = schedule.text("Arn").and_then(|arn| arn.split_once(":schedule/")).map(|(head, _)| head.to_owned());
    let arn = format!("{}:schedule-group/{group}", arn.unwrap_or_default());
    let program = format!("{} disable --schedule={group}/{name}", crate::again::program(global));
    One { aws: &aws, program, args: &args, group, name, cluster: None }.switch(&schedule, &arn).await
}

/// One schedule to be switched off.
struct One<'a> {
    aws: &'a Aws,
    program: String,
    args: &'a DisableArgs,
    group: String,
    name: String,
    /// Where its tasks run, when the schedule does not say.
    cluster: Option<String>,
}

const GOES_ON: &str = "a task that is running goes on, and so do retries of an occurrence that is already due";
const RETRIES_GO_ON: &str = "retries of an occurrence that is already due go on, and may start another task";

impl One<'_> {
    async fn switch(&self, schedule: &Schedule, group_arn: &str) -> anyhow::Result<Exit> {
        // This is the emergency switch: whatever keeps the tags from being seen does not keep it from being turned.
        let group = seen(self.aws.group(&self.group, group_arn).await);
        self.guard_ownership(&group.unwrap_or_else(|error| Seen::Hidden { why: error.to_string() }))?;
        let off = match self.args.delete {
            true => self.delete(schedule).await?,
            false => self.off(schedule).await?,
        };
        // What may start a task goes before the tasks, and either also when the schedule could not be switched off.
        let one_off = self.remove_one_off().await;
        let stopped = self.stop_running(Some(schedule)).await;
        Ok([off, one_off, stopped].into_iter().find(|exit| *exit != Exit::Done).unwrap_or(Exit::Done))
    }

    /// The one-off schedule of a `trigger-now --via-scheduler` starts a task as well, be it watched or left behind.
    async fn remove_one_off(&self) -> Exit {
        let name = one_off::name(&self.name);
        match self.aws.delete_schedule(&self.group, &name).await {
            Ok(()) => {
                out!(
                    "{}: deleted the one-off schedule {}/{name}, which trigger-now --via-scheduler made",
                    self.name,
                    self.group
                );
                Exit::Done
            }
            Err(error) if error.kind == ErrorKind::NotFound => Exit::Done,
            // Whoever may not delete it need not, where there is none.
            Err(_) if matches!(seen(self.aws.schedule(&self.group, &name).await), Ok(Seen::Absent)) => Exit::Done,
            Err(error) => {
                err!("error: a one-off schedule {}/{name}, if there is one, stays: {error}", self.group);
                err!("hint: it fires once, within three minutes after it was made; {}", explain::hint(&error));
                Exit::Failed
            }
        }
    }

    /// The same where no schedule was found whose group was looked at: in a group of somebody else's, nothing is ours.
    async fn remove_own_one_off(&self, group_arn: &str) -> Exit {
        match seen(self.aws.group(&self.group, group_arn).await) {
            Ok(Seen::Present(group)) if !tags::are_ours(&group.tags, &self.name) => Exit::Done,
            Ok(Seen::Absent) => Exit::Done,
            _ => self.remove_one_off().await,
        }
    }

    async fn off(&self, schedule: &Schedule) -> anyhow::Result<Exit> {
        let name = &self.name;
        if schedule.state() == State::Disabled {
            out!("{name}: DISABLED already");
            return Ok(Exit::Done);
        }
        if let Err(error) = switch::off(self.aws, schedule).await {
            return self.give_up(schedule, &error);
        }
        let after = self.aws.schedule(&self.group, name).await.context("reading the schedule back")?;
        if after.state() != State::Disabled {
            let hint = format!("look at it: aws scheduler get-schedule --group-name {} --name {name}", self.group);
            return Err(Stop::failed("AWS took the change and does not show it", hint).into());
        }
        out!("{name}: ENABLED -> DISABLED");
        self.goes_on();
        Ok(Exit::Done)
    }

    fn goes_on(&self) {
        out!("note: {}", if self.args.stop_running { RETRIES_GO_ON } else { GOES_ON });
    }

    /// Another's schedule is not ours to switch. When the tags cannot be seen, the name must do: this is the emergency switch.
    fn guard_ownership(&self, group: &Seen<Group>) -> Result<(), Stop> {
        let Group { name, tags: found } = match group {
            Seen::Present(group) => group,
            Seen::Absent => return Ok(()),
            Seen::Hidden { why } => {
                err!("note: whose it is was not seen, {why}; its name must do");
                return Ok(());
            }
        };
        if tags::are_ours(found, &self.name) {
            return Ok(());
        }
        let what = format!("schedule group {name} is not ours: its tags are not those of job {}", self.name);
        let hint = "check `group` in the configuration, or switch the schedule off where it is kept";
        Err(Stop::refused(what, hint))
    }

    async fn delete(&self, schedule: &Schedule) -> anyhow::Result<Exit> {
        let name = &self.name;
        match save(schedule, name) {
            Ok(file) => out!("{name}: saved to {file}"),
            // A folder that takes no file keeps nobody from switching off: what is printed can be kept as well.
            Err(error) => {
                err!("note: {error:#}: keep what is printed here instead");
                out!("{}", serde_json::to_string_pretty(&schedule.0)?);
            }
        }
        self.aws.delete_schedule(&self.group, name).await?;
        out!("{name}: deleted");
        self.goes_on();
        match self.args.schedule {
            None => out!("next: {} apply --disabled", self.program),
            Some(_) => out!("next: deploy apply --disabled, where its deploy.toml is"),
        }
        Ok(Exit::Done)
    }

    fn give_up(&self, schedule: &Schedule, error: &CloudError) -> anyhow::Result<Exit> {
        let name = &self.name;
        err!("error: {name} could not be switched off, it is still ENABLED: {error}");
        err!("hint: {}", explain::hint(error));
        match save(schedule, name) {
            Ok(file) => err!("note: the schedule was saved to {file}"),
            Err(error) => err!("note: the schedule was not saved: {error:#}"),
        }
        let verb = if self.args.schedule.is_some() { "" } else { " disable" };
        err!("hint: deleting it needs neither the role nor iam:PassRole: {}{verb} --delete", self.program);
        Ok(Exit::Failed)
    }

    /// Ends the job's tasks, when that was asked for. Each that could not be ended is named, and the others are ended all the same.
    async fn stop_running(&self, schedule: Option<&Schedule>) -> Exit {
        if !self.args.stop_running {
            return Exit::Done;
        }
        let Some(cluster) = schedule.and_then(cluster_of).or_else(|| self.cluster.clone()) else {
            err!("error: the schedule does not say in which cluster its tasks run: none was ended");
            err!("hint: aws ecs list-tasks, then: aws ecs stop-task");
            return Exit::Failed;
        };
        match self.stop_all(&cluster).await {
            Ok(0) => out!("{}: no task of it is running", self.name),
            Ok(_) => {}
            Err(error) => {
                err!("error: {error}");
                err!("hint: {}", explain::hint(&error));
                return Exit::Failed;
            }
        }
        Exit::Done
    }

    async fn stop_all(&self, cluster: &str) -> Answer<usize> {
        let (mut count, mut failed) = (0, None);
        for starter in Starter::ALL {
            for task in self.aws.running_tasks(cluster, &starter.started_by(&self.name)).await? {
                match self.aws.stop_task(cluster, &task, "stopped with `deploy disable --stop-running`").await {
                    Ok(()) => out!("{}: told to stop: {task}", self.name),
                    Err(error) => failed = Some(error),
                }
                count += 1;
            }
        }
        failed.map_or(Ok(count), Err)
    }
}

/// Where the schedule starts its tasks, whoever wrote its Input.
fn cluster_of(schedule: &Schedule) -> Option<String> {
    let input: serde_json::Value = serde_json::from_str(schedule.input()?).ok()?;
    input.get("Cluster")?.as_str().map(str::to_owned)
}

/// The emergency switch needs no file, and says so when the one that there is cannot be used.
pub fn without_a_file(global: &Global, error: anyhow::Error) -> anyhow::Error {
    match error.downcast::<Stop>() {
        // What is wrong in the environment is in the way of both.
        Ok(stop) if stop.exit == Exit::Usage && read(global).is_err() => {
            let hint =
                format!("{}\nit can be switched off without the file: deploy disable --schedule GROUP/NAME", stop.hint);
            Stop { hint, ..stop }.into()
        }
        Ok(stop) => stop.into(),
        Err(error) => error,
    }
}

/// Writes the schedule beside the person, under a name that is not taken.
fn save(schedule: &Schedule, name: &str) -> anyhow::Result<String> {
    let text = serde_json::to_string_pretty(&schedule.0)?;
    for i in 1.. {
        let path = if i == 1 { format!("{name}.schedule.json") } else { format!("{name}.schedule-{i}.json") };
        match std::fs::File::create_new(&path) {
            Ok(mut file) => {
                use std::io::Write;
                file.write_all(text.as_bytes()).with_context(|| format!("writing {path}"))?;
                return Ok(path);
            }
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => continue,
            Err(error) => return Err(error).with_context(|| format!("cannot save the schedule to {path}")),
        }
    }
    unreachable!("some name is free")
}

fn full_name(text: &str) -> Result<(String, String), String> {
    let legal = |part: &str| {
        (1..=64).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.".contains(&b))
    };
    match text.split_once('/') {
        Some((group, name)) if legal(group) && legal(name) => Ok((group.to_owned(), name.to_owned())),
        _ => Err("a group and a name are expected, such as library-sync/library-sync".to_owned()),
    }
}
