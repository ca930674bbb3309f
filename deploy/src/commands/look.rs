//! What every verb but `disable` looks at before anything else: the world, and what `plan` says of it.

use jiff::Timestamp;

use super::Context;
use crate::config::RevisionPolicy;
use crate::desired::Desired;
use crate::exit::Stop;
use crate::fingerprint::Fingerprint;
use crate::gate;
use crate::model::log::{LogPlace, NoLog};
use crate::model::run_task::RunTask;
use crate::model::{Live, Schedule, Seen, State};
use crate::normalise::Normalisers;
use crate::observe::observe;
use crate::plan::{Plan, Wish, plan};
use crate::render;
use crate::standing::path::path;

/// The world, and what `plan` says of it.
pub struct Look {
    /// What is wanted.
    pub desired: Desired,
    /// What is there.
    pub live: Live,
    /// What would change.
    pub plan: Plan,
}

impl Look {
    /// Looks. The wrong account or region is refused before anything else is believed.
    pub async fn at(context: &Context, wish: &Wish) -> anyhow::Result<Look> {
        let mut desired = context.desired();
        if wish.latest {
            desired.job.revision = RevisionPolicy::Latest;
        }
        for name in &wish.rotate {
            if !desired.parameters.iter().any(|parameter| parameter.env == *name || parameter.name == *name) {
                let known: Vec<_> = desired.parameters.iter().map(|parameter| parameter.env.as_str()).collect();
                let what = format!("job {} has no secret of the name given to --rotate", desired.job.name);
                return Err(Stop::usage(what, format!("known: {}", known.join(", "))).into());
            }
        }
        let live = observe(&context.aws, &desired).await?;
        let plan = plan(&desired, &live, wish, Normalisers::default());
        Ok(Look { desired, live, plan })
    }

    /// The schedule; without one there is nothing to run or to switch on.
    pub fn schedule(&self, context: &Context) -> Result<&Schedule, Stop> {
        let (job, group) = (&self.desired.job.name, &self.desired.timing().group);
        match &self.live.schedule {
            Seen::Present(schedule) => Ok(schedule),
            Seen::Absent => Err(Stop::refused(
                format!("there is no schedule {group}/{job}"),
                format!("make it, switched off: {} apply --disabled", context.program),
            )),
            Seen::Hidden { why } => Err(Stop::refused(
                format!("schedule {group}/{job} could not be looked at: {why}"),
                format!("allow that to the caller, {}", self.live.identity.arn),
            )),
        }
    }

    /// What the schedule sends when it fires: read from the live Input, not from the configuration.
    pub fn scheduled_run(&self, context: &Context) -> Result<RunTask, Stop> {
        let input = self.schedule(context)?.input().unwrap_or_default();
        RunTask::from_scheduler_input(input).map_err(|error| {
            let hint = format!("write it anew: {} apply --disabled", context.program);
            Stop::refused(format!("the schedule would not run this job: {error}"), hint)
        })
    }

    /// Without its log group no task starts; who may not look for it should know that nobody did.
    pub fn note_unseen_log_group(&self) {
        if let Some((name, Seen::Hidden { why })) = &self.live.log_group {
            err!("note: whether log group {name} is there was not seen: {why}");
        }
    }

    /// A proof is worth nothing while something is about to change.
    pub fn refuse_unless_settled(&self, context: &Context, verb: &str) -> Result<(), Stop> {
        self.note_unseen_log_group();
        let unsettled = self.unsettled();
        if unsettled.is_empty() {
            return Ok(());
        }
        let what = format!("{verb} needs an empty plan, and it is not: {}", unsettled.join("; "));
        Err(Stop::refused(what, self.way_to_settle(&context.program)))
    }

    /// What makes the plan empty.
    pub fn way_to_settle(&self, program: &str) -> String {
        match render::settle(&self.plan, &Wish::default(), program) {
            Some(command) if self.plan.steps().next().is_none() => format!("make it: {command}\nthen: {program} plan"),
            Some(_) => format!("look, then make it so: {}", render::look_and_settle(&self.plan, program)),
            None => format!("see what stands in the way: {program} plan"),
        }
    }

    /// What differs, was not seen, or stands in the way; in a few words each.
    pub fn unsettled(&self) -> Vec<String> {
        gate::unsettled(&self.plan)
    }

    /// Whether the schedule fires.
    pub fn is_on(&self) -> bool {
        self.live.schedule.present().is_some_and(|schedule| schedule.state() == State::Enabled)
    }

    /// `unproven`, unless Scheduler has started the job as it is now: by the record of that, or by a run in the log; or why that was
    /// not seen.
    pub async fn scheduled_path_note(&self, context: &Context, unproven: &str) -> Option<String> {
        let now = Fingerprint::of(&self.live).ok();
        let on_record = path(&self.live, now.as_ref(), &[]);
        if on_record.proven == Some(true) {
            return None;
        }
        let runs = match self.stream_prefix() {
            None => Ok(Vec::new()),
            Some((group, prefix)) => context.reports(&group, &prefix).recent(5).await,
        };
        match runs.map(|runs| path(&self.live, now.as_ref(), &runs)) {
            Ok(found) if found.proven == Some(true) => None,
            Ok(_) => Some(unproven.to_owned()),
            Err(error) => Some(format!("whether the schedule itself has run the job was not seen: {error}")),
        }
    }

    /// The image of the job's container, when it is not pinned by its digest.
    pub fn unpinned_image(&self) -> Option<&str> {
        let container = self.live.task_definition.present()?.container(&self.desired.job.container)?;
        container.get("image")?.as_str().filter(|image| !image.contains("@sha256:"))
    }

    /// The log group of the job's container, and how the names of its streams begin.
    pub fn stream_prefix(&self) -> Option<(String, String)> {
        let LogPlace { group, prefix } = self.log_place().ok()?;
        Some((group, prefix))
    }

    /// The same, or why it is not read.
    pub fn log_place(&self) -> Result<LogPlace, NoLog> {
        let container = &self.desired.job.container;
        let definition = self.live.task_definition.present().ok_or_else(|| NoLog::Elsewhere(container.clone()))?;
        definition.log_place(container, &self.desired.region)
    }
}

/// A moment for a person: `2026-11-29 03:00 UTC`.
pub fn minute(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M UTC").to_string()
}
