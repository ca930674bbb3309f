//! Starting the run by Scheduler: a one-off schedule is made, the task that it starts is found, and the schedule is deleted on
//! every way out. What a killed process leaves behind fires once at most, and AWS deletes it.

use std::collections::BTreeSet;
use std::time::Duration;

use jiff::Timestamp;
use tokio::time::Instant;

use super::progress::{Lines, Progress};
use crate::cloud::{Answer, Aws, CloudError, ErrorKind, Schedules};
use crate::explain::may_be_propagation;
use crate::interrupt::{Interrupt, Interrupted};
use crate::model::run_task::{OCCURRENCE_VARIABLE, Run, RunTask, of_occurrence};
use crate::model::task::Task;
use crate::model::{Schedule, State};
use crate::one_off::{self, Found, PATIENCE};

/// How long Scheduler may not know of a role's trust yet.
const ROLE_PROPAGATION: Duration = Duration::from_secs(120);
/// How long after its minute the task of a schedule that is gone may be missing from ECS's lists.
const UNLISTED_UNTIL: Duration = Duration::from_secs(90);
/// For how long calls may fail before the wait is given up.
const FAILING_FOR: Duration = Duration::from_secs(60);
/// The pause between two looks grows to this.
const LONGEST_PAUSE: Duration = Duration::from_secs(3);

/// Why no task of it is followed.
#[derive(Debug)]
pub enum NotStarted {
    /// Ctrl-C or another signal to end, before anything was started.
    Interrupted,
    /// Ctrl-C, and the task had been started all the same.
    Detached(Box<Task>),
    /// Nothing came of it.
    Nothing {
        /// What was seen of the one-off schedule.
        seen: String,
        /// When it fired, if it did.
        fired: Option<Timestamp>,
    },
    /// Whether something came of it was not seen.
    Unseen {
        /// What AWS said.
        why: CloudError,
        /// A task that came of it, and cannot be looked at.
        task: Option<String>,
    },
    /// The one-off schedule was refused.
    Refused(CloudError),
}

impl NotStarted {
    fn unseen(why: CloudError) -> NotStarted {
        // What cannot be described was listed, and was not there before.
        let task = (why.action == "ecs:DescribeTasks").then(|| why.thing.clone());
        NotStarted::Unseen { why, task }
    }
}

/// What became of the wait.
enum Waited {
    Task(Box<Task>),
    Interrupted,
    Nothing { seen: String, fired: bool },
}

/// A one-off schedule that is there, and what is needed to know its task by.
pub struct Made {
    due: Timestamp,
    starter: String,
    known: BTreeSet<String>,
    interrupt: Interrupt,
}

/// The one-off schedule of a job.
pub struct OneOff<'a> {
    aws: &'a Aws,
    of: &'a Schedule,
    task: &'a RunTask,
    group: String,
    name: String,
}

impl<'a> OneOff<'a> {
    /// Of the job's schedule, and of what it sends.
    pub fn new(aws: &'a Aws, of: &'a Schedule, task: &'a RunTask) -> OneOff<'a> {
        let group = of.text("GroupName").unwrap_or("default").to_owned();
        OneOff { aws, of, task, group, name: one_off::name(&task.parts().job) }
    }

    /// Its group and name.
    pub fn full_name(&self) -> String {
        format!("{}/{}", self.group, self.name)
    }

    /// Removes what an earlier run left behind; says whether somebody waits for one instead.
    pub async fn clear(&self) -> Answer<Option<Found>> {
        clear(self.aws, &self.group, &self.name).await
    }

    /// Whether one is there, and what it means; changes nothing.
    pub async fn found(&self) -> Answer<Option<Found>> {
        let (schedule, now) = self.aws.schedule_and_clock(&self.group, &self.name).await?;
        Ok(schedule.map(|schedule| one_off::found(&schedule, now)))
    }

    /// Makes it: from here on it fires, unless it is deleted.
    pub async fn make(&self) -> Answer<Result<Made, NotStarted>> {
        let parts = self.task.parts();
        let starter = self.task.via_scheduler("").started_by().to_owned();
        let known = self.aws.tasks_of(&parts.cluster, parts.task_definition.family(), &starter).await?;
        let mut interrupt = Interrupt::listen();
        match self.create(&mut interrupt).await {
            Ok(Ok(_)) if interrupt.came() => {
                self.delete().await;
                Ok(Err(NotStarted::Interrupted))
            }
            Ok(Ok(due)) => Ok(Ok(Made { due, starter, known, interrupt })),
            Ok(Err(Interrupted)) => Ok(Err(NotStarted::Interrupted)),
            Err(error) => {
                // What was refused is not there, and what somebody else made stays; a lost answer may be one to a yes.
                if matches!(
                    error.kind,
                    ErrorKind::Unreachable | ErrorKind::Failing | ErrorKind::Throttled | ErrorKind::Other
                ) {
                    self.delete().await;
                }
                Ok(Err(NotStarted::Refused(error)))
            }
        }
    }

    /// Waits for its task, and deletes it.
    pub async fn wait_for_task(&self, made: Made) -> Result<(Run, Task), NotStarted> {
        let parts = self.task.parts();
        let family = parts.task_definition.family();
        let Made { due, starter, mut known, mut interrupt } = made;
        let waited = self.wait(&mut known, &starter, due, &mut interrupt).await;
        self.delete().await;
        match waited.map_err(NotStarted::unseen)? {
            Waited::Task(task) => {
                let written = task.overrides.iter().find(|one| one.name == parts.container);
                let written = written.and_then(|one| one.environment.get(OCCURRENCE_VARIABLE));
                // Of another job, it is a difference.
                let written = written.and_then(|text| of_occurrence(text)).filter(|(job, _)| *job == parts.job);
                let time = one_off::occurrence(written.map(|(_, time)| time), due);
                Ok((self.task.via_scheduler(&time), *task))
            }
            // It may have fired between the last look and the deletion.
            Waited::Interrupted => match self.aws.new_task(&parts.cluster, family, &starter, &mut known).await {
                Ok(Some(task)) => Err(NotStarted::Detached(Box::new(task))),
                Ok(None) => Err(NotStarted::Interrupted),
                Err(why) => Err(NotStarted::unseen(why)),
            },
            Waited::Nothing { seen, fired } => Err(NotStarted::Nothing { seen, fired: fired.then_some(due) }),
        }
    }

    /// CreateSchedule; answers when it is due. What IAM has not told Scheduler yet is waited for, and nothing else is tried twice.
    async fn create(&self, interrupt: &mut Interrupt) -> Answer<Result<Timestamp, Interrupted>> {
        let begun = Instant::now();
        let mut pause = Duration::from_secs(1);
        loop {
            if interrupt.came() {
                return Ok(Err(Interrupted));
            }
            let (_, now) = self.aws.schedule_and_clock(&self.group, &self.name).await?;
            let due = one_off::due(now);
            let one_off = one_off::schedule(self.of, &self.task.parts().job, self.task.one_off_input(), due);
            match self.aws.create_schedule(&one_off).await {
                Ok(()) => {
                    err!("made the one-off schedule {}", self.full_name());
                    return Ok(Ok(due));
                }
                Err(error) if may_be_propagation(&error) && begun.elapsed() < ROLE_PROPAGATION => {
                    if pause == Duration::from_secs(1) {
                        err!("Scheduler cannot assume its role yet; waiting up to 2 minutes for IAM");
                    }
                    let _ = interrupt.sleep(pause).await;
                    pause = (pause * 2).min(Duration::from_secs(10));
                }
                Err(error) => return Err(error),
            }
        }
    }

    async fn wait(
        &self,
        known: &mut BTreeSet<String>,
        starter: &str,
        due: Timestamp,
        interrupt: &mut Interrupt,
    ) -> Answer<Waited> {
        let mut progress = Progress::begin(Lines::Beside);
        let mut pause = Duration::from_millis(200);
        let (mut failing, mut there): (Option<Instant>, bool) = (None, false);
        loop {
            match self.look(known, starter, due, &mut there, &mut progress).await {
                Ok(Some(waited)) => break Ok(waited),
                Ok(None) => failing = None,
                Err(error) if error.kind == ErrorKind::Denied => break Err(error),
                // A network that is away for a moment ends no run.
                Err(error) if failing.get_or_insert_with(Instant::now).elapsed() >= FAILING_FOR => break Err(error),
                Err(_) => {}
            }
            if interrupt.sleep(pause).await == Err(Interrupted) {
                break Ok(Waited::Interrupted);
            }
            pause = (pause * 3 / 2).min(LONGEST_PAUSE);
        }
    }

    /// One look: the schedule and AWS's clock first, so that what had fired by then is in the lists that are read afterwards.
    async fn look(
        &self,
        known: &mut BTreeSet<String>,
        starter: &str,
        due: Timestamp,
        there: &mut bool,
        progress: &mut Progress,
    ) -> Answer<Option<Waited>> {
        let (schedule, now) = self.aws.schedule_and_clock(&self.group, &self.name).await?;
        let parts = self.task.parts();
        let found = self.aws.new_task(&parts.cluster, parts.task_definition.family(), starter, known).await?;
        if let Some(task) = found {
            return Ok(Some(Waited::Task(Box::new(task))));
        }
        let since = |moment: Timestamp| Duration::try_from(now.duration_since(moment)).unwrap_or_default();
        let at = due.strftime("%H:%M:%S UTC");
        let nothing = |fired: bool, seen: &str| Ok(Some(Waited::Nothing { seen: seen.to_owned(), fired }));
        match &schedule {
            // Once it was seen: a read may lag behind the write.
            None if now < due && *there => nothing(false, "somebody deleted the one-off schedule before it was due"),
            None if since(due) >= UNLISTED_UNTIL => {
                nothing(true, "the one-off schedule has fired, and no task came of it")
            }
            Some(one_off) if one_off.state() == State::Disabled => {
                nothing(false, "somebody switched the one-off schedule off")
            }
            Some(_) if since(due) >= PATIENCE => {
                nothing(true, &format!("the one-off schedule was due at {at}, and no task came of it"))
            }
            None if now >= due => {
                progress.state("fired by Scheduler, not seen yet");
                Ok(None)
            }
            None | Some(_) => {
                *there |= schedule.is_some();
                progress.state(&format!("due from Scheduler within a minute of {at}"));
                Ok(None)
            }
        }
    }

    /// On every way out.
    pub async fn delete(&self) {
        match self.aws.delete_schedule(&self.group, &self.name).await {
            Ok(()) => {}
            Err(error) if error.kind == ErrorKind::NotFound => {}
            Err(error) => {
                err!("note: the one-off schedule {} stays: {error}", self.full_name());
                err!(
                    "note: it fires once at most; the next trigger-now --via-scheduler or apply removes what is left of it"
                );
            }
        }
    }
}

/// Removes the one-off schedule that an earlier run left behind. One that somebody waits for stays.
pub async fn clear(aws: &Aws, group: &str, name: &str) -> Answer<Option<Found>> {
    let (schedule, now) = aws.schedule_and_clock(group, name).await?;
    let Some(schedule) = schedule else { return Ok(None) };
    let found = one_off::found(&schedule, now);
    if found == Found::LeftOver {
        match aws.delete_schedule(group, name).await {
            Err(error) if error.kind != ErrorKind::NotFound => return Err(error),
            _ => err!("removed the one-off schedule {group}/{name}, which an earlier run left behind"),
        }
    }
    Ok(Some(found))
}
