//! What was read, judged: what is well, what nobody saw, and what needs a person.

use geuneul::{Outcome, Trigger};
use jiff::Timestamp;

use super::overdue::{Evidence, Log, Overdue, last_due, overdue};
use super::runs::PastRun;
use super::{Facts, FireTime, Fires, Need, NewerRevision, PathNow, Queue, ScheduleNow, Standing, path::path};
use crate::commands::look::minute;
use crate::desired::Desired;
use crate::fingerprint::{Fingerprint, NoFingerprint};
use crate::fire_times;
use crate::fire_times::timetable::{AtOnce, Timetable};
use crate::gate::unsettled;
use crate::model::{Live, Schedule, Seen, State};
use crate::plan::Plan;
use crate::receipt::Receipt;
use crate::run::ending::next_step;

/// How many fire times are shown.
const FIRE_TIMES: usize = 5;

/// How things stand. `program` is how a person writes this command again.
pub fn judge(desired: &Desired, live: &Live, plan: &Plan, facts: &Facts, program: &str) -> Standing {
    let fingerprint = Fingerprint::of(live);
    let mut bench = Bench { desired, live, facts, program, missed: None, needs: Vec::new(), unseen: Vec::new() };
    let schedule = bench.schedule();
    let fires = bench.fires();
    let drift = bench.drift(plan);
    let scheduled_path = bench.path(&fingerprint);
    let overridden = bench.receipt().and_then(Receipt::overridden).cloned();
    let gate = bench.gate(plan, &fingerprint, &scheduled_path, overridden.as_ref());
    bench.left_off(plan, &gate);
    let overdue = bench.overdue();
    let dead_letter_queue = bench.queue();
    bench.newest_run();
    let running = facts.running.as_ref().map_err(|why| bench.unseen(why)).ok();
    let one_off = facts.one_off.clone().unwrap_or_else(|why| {
        bench.unseen(&why);
        None
    });
    let runs_unknown = match &facts.log {
        Log::Read { .. } => {
            let none = facts.has_older && facts.runs.is_empty() && facts.unreported.is_empty();
            none.then(|| "none in the newest streams of the log; history looks into older ones".to_owned())
        }
        Log::Dark(why) => Some(bench.dark(why)),
        Log::Silent(why) => Some(why.clone()),
        Log::Gone(group) => Some(bench.gone(group)),
    };
    let receipt = bench.receipt().and_then(|receipt| match receipt {
        Receipt::Verified(run) => Some(run.as_ref().clone()),
        Receipt::Void(_) | Receipt::Overridden(_) => None,
    });
    let Bench { needs, unseen, .. } = bench;
    Standing {
        deploy: "status/1",
        job: desired.job.name.clone(),
        account: desired.account.clone(),
        region: desired.region.clone(),
        at: facts.clock,
        schedule,
        fires,
        drift,
        gate,
        scheduled_path,
        receipt,
        overridden,
        newer_revisions: newer(desired, live),
        running: running.cloned(),
        one_off,
        runs: facts.runs.iter().take(facts.shown).cloned().collect(),
        unreported: facts.unreported.iter().take(facts.shown).cloned().collect(),
        runs_unknown,
        overdue,
        dead_letter_queue,
        needs,
        unseen,
    }
}

mod gate;

struct Bench<'a> {
    desired: &'a Desired,
    live: &'a Live,
    facts: &'a Facts,
    program: &'a str,
    /// How many fire times have passed while it was off.
    missed: Option<String>,
    needs: Vec<Need>,
    unseen: Vec<String>,
}

impl Bench<'_> {
    fn need(&mut self, what: impl Into<String>, way: impl Into<String>) {
        self.needs.push(Need { what: what.into(), way: way.into() });
    }

    /// Something that nobody looked at, once: one denial hides several things.
    fn unseen(&mut self, why: &str) {
        if !self.unseen.iter().any(|said| said.contains(why) || why.contains(said.as_str())) {
            self.unseen.push(why.to_owned());
        }
    }

    fn found(&self) -> Option<&Schedule> {
        self.live.schedule.present()
    }

    fn is_on(&self) -> bool {
        self.found().is_some_and(|schedule| schedule.state() == State::Enabled)
    }

    fn receipt(&self) -> Option<&Receipt> {
        self.live.receipt.present()?.as_ref().ok()
    }

    fn schedule(&mut self) -> ScheduleNow {
        let (timing, program) = (self.desired.timing(), self.program);
        let group = timing.group.clone();
        let bare = |state: &str| ScheduleNow {
            state: state.to_owned(),
            group: group.clone(),
            expression: String::new(),
            timezone: String::new(),
            since: None,
            off: None,
        };
        match &self.live.schedule {
            Seen::Absent => {
                let elsewhere = self.live.elsewhere.present().cloned().unwrap_or_default();
                if elsewhere.is_empty() {
                    self.need("there is no schedule", format!("{program} apply --disabled"));
                    return bare("absent");
                }
                let places: Vec<_> =
                    elsewhere.iter().map(|one| format!("{}, in group {}", one.state, one.group)).collect();
                self.need(format!("the configuration says group = {group:?}"), format!("{program} plan"));
                bare(&places.join("; "))
            }
            Seen::Hidden { why } => {
                self.unseen(why);
                bare(&format!("not seen: {why}"))
            }
            Seen::Present(schedule) => {
                let table = Timetable::of(schedule);
                let off = (schedule.state() == State::Disabled).then(|| self.off(&table));
                ScheduleNow {
                    state: schedule.state().to_string(),
                    group,
                    expression: table.expression,
                    timezone: table.zone,
                    since: table.written,
                    off,
                }
            }
        }
    }

    /// Why it is off, and what that has cost. AWS does not tell who switched it off.
    fn off(&mut self, table: &Timetable) -> String {
        let since = table.written.map(|at| format!("since {}", minute(at))).unwrap_or_default();
        if self.desired.job.stopped {
            return format!("{since}: the configuration says stopped = true");
        }
        let words = format!("{since}; only `{} enable` switches it on", self.program);
        let missed: Vec<_> = table.last(self.facts.clock, 100).unwrap_or_default();
        let missed: Vec<_> = missed.into_iter().filter(|due| table.written.is_some_and(|at| *due > at)).collect();
        let Some(last) = missed.first() else { return words };
        let count = if missed.len() == 100 { "100 or more".to_owned() } else { missed.len().to_string() };
        self.missed = Some(count.clone());
        format!("{words}\nit has missed {count} fire times since, the last one {}", minute(*last))
    }

    /// Of the live schedule: a fire time that somebody else has set is the one that counts.
    fn fires(&mut self) -> Fires {
        let Some(schedule) = self.found() else { return Fires::default() };
        let (table, now) = (Timetable::of(schedule), self.facts.clock);
        let next = match table.next(now, FIRE_TIMES) {
            Ok(next) => next,
            Err(error) => {
                let at_once = !self.is_on() && table.at_once(now) == AtOnce::Runs;
                let runs = at_once.then_some("; it fires at once when it is switched on");
                return Fires { next: Vec::new(), note: Some(format!("{error}{}", runs.unwrap_or_default())) };
            }
        };
        let mut note = None;
        if next.is_empty() {
            let ever = table.next(Timestamp::UNIX_EPOCH, 1).is_ok_and(|moments| !moments.is_empty());
            let (says, why) = match ever {
                true => ("never again", "the expression's years are over"),
                false => ("never", "no year has such a day and time"),
            };
            note = Some(says.to_owned());
            if self.is_on() {
                self.need(why, "change `cron`");
            }
        } else if !table.window.is_zero() {
            note = Some(format!("each up to {} minutes later", table.window.as_secs() / 60));
        }
        let time = |moment: &jiff::ZonedDateTime| FireTime {
            local: moment.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string(),
            utc: moment.timestamp(),
            shown: fire_times::show(moment),
        };
        Fires { next: next.iter().map(time).collect(), note }
    }

    /// What is there against what is wanted. It matters to whoever sleeps only when the schedule is on.
    fn drift(&mut self, plan: &Plan) -> Vec<String> {
        if plan.differs() && self.is_on() {
            self.need("what fires is not what deploy.toml says", format!("{} plan", self.program));
        }
        plan.unseen().for_each(|why| self.unseen(why));
        unsettled(plan)
    }

    /// That nothing shows it says something only to whoever has looked everywhere.
    fn path(&self, fingerprint: &Result<Fingerprint, NoFingerprint>) -> PathNow {
        let found = path(self.live, fingerprint.as_ref().ok(), &self.facts.runs);
        let hidden = match (fingerprint, &self.facts.log) {
            (Err(error @ NoFingerprint::Hidden { .. }), _) => error.to_string(),
            (_, Log::Dark(why)) => why.clone(),
            (_, Log::Read { .. } | Log::Silent(_) | Log::Gone(_)) => return found,
        };
        if found.proven == Some(false) { PathNow { proven: None, says: format!("not seen: {hidden}") } } else { found }
    }

    fn overdue(&mut self) -> Overdue {
        let Some(schedule) = self.found() else { return Overdue::Off };
        let runs = &self.facts.runs;
        let at = |is: &dyn Fn(&PastRun) -> bool| -> Vec<_> {
            runs.iter().filter(|run| is(run)).filter_map(PastRun::at).collect()
        };
        let scheduled = runs.iter().filter(|run| run.is_by(schedule));
        let scheduled: Vec<_> = scheduled.filter_map(|run| Some((run.at()?, run.began()?))).collect();
        let nobodys = at(&PastRun::is_nobodys);
        let by_hand = at(&|run| run.report.trigger == Trigger::Manual && run.report.outcome == Outcome::Succeeded);
        let unreported = self.facts.unreported.iter().filter(|one| one.trigger == Trigger::Scheduled);
        let (unknown, unreported): (Vec<_>, Vec<_>) = unreported.partition(|one| one.is_unknown());
        let unreported: Vec<_> = unreported.into_iter().map(|one| one.began).collect();
        let timetable = Timetable::of(schedule);
        let due = last_due(&timetable, self.facts.clock).ok().flatten();
        let log = match unknown.first().filter(|one| due.is_some_and(|due| one.began >= due)) {
            Some(_) => Log::Silent("ECS has forgotten who started the task of that time".to_owned()),
            None => self.facts.log.clone(),
        };
        let evidence = Evidence {
            state: schedule.state(),
            timetable: &timetable,
            scheduled: &scheduled,
            unreported: &unreported,
            nobodys: &nobodys,
            by_hand: &by_hand,
            running: self.facts.running.as_ref().ok().map(|tasks| tasks.iter().any(|task| task.scheduled)),
            log,
        };
        let verdict = overdue(&evidence, self.facts.clock);
        match &verdict {
            Overdue::Overdue { due } => self.need(
                format!("no scheduled run since {}", minute(*due)),
                format!("{0} verify: what is in its way; then: {0} trigger-now", self.program),
            ),
            Overdue::Unknown { why, .. } => self.unseen(&format!("whether a run is overdue: {why}")),
            Overdue::Off
            | Overdue::NotYet
            | Overdue::Ran { .. }
            | Overdue::Unreported { .. }
            | Overdue::Running { .. }
            | Overdue::Waiting { .. }
            | Overdue::MadeUp { .. } => {}
        }
        verdict
    }

    fn queue(&mut self) -> Option<Queue> {
        let (arn, depth) = self.facts.queue.as_ref()?;
        match depth {
            Ok(0) => {}
            Ok(depth) => self.need(format!("{depth} undelivered in {arn}"), "read them, then empty the queue"),
            Err(why) => self.unseen(why),
        }
        Some(Queue { arn: arn.clone(), depth: depth.as_ref().ok().copied() })
    }

    /// The newest run decides whether somebody has to come; the older ones are history.
    fn newest_run(&mut self) {
        // A run that only looked, or had nothing to do, does not mend what failed before it.
        let run = self.facts.runs.iter().find(|run| run.did_its_work());
        let silent = self.facts.unreported.first();
        let silent = silent.filter(|one| run.and_then(PastRun::at).is_none_or(|at| one.began > at));
        if let Some(one) = silent {
            if one.is_unknown() {
                let at = minute(one.began);
                self.unseen(&format!("how the run of {at} ended: ECS has forgotten it, and the job prints no report"));
            } else if !one.is_well() {
                let (by, at, says, program) = (one.trigger, minute(one.began), one.says(), self.program);
                let task = &one.task;
                let way = format!("{program} logs {task}, then: {}", self.prove());
                self.need(format!("the {by} run of {at} {says}"), way);
            }
            return;
        }
        let Some(run) = run.filter(|run| !run.is_well()) else { return };
        let outcome = run.report.outcome;
        let what = format!("the newest run ended {outcome}: {}; {}", run.cause(), next_step(outcome));
        self.need(what, format!("{} trigger-now, after that", self.program));
    }

    fn gone(&mut self, group: &str) -> String {
        let region = &self.desired.region;
        self.need(
            format!("there is no log group {group}, and no task of this family starts without it"),
            format!("aws logs create-log-group --region {region} --log-group-name {group}"),
        );
        format!("none: there is no log group {group}")
    }

    /// Without the log the screen lacks a part that matters, unless there is nothing to be read in it.
    fn dark(&mut self, why: &str) -> String {
        self.unseen(why);
        format!("not seen: {why}")
    }
}

/// What was registered since, and whether it would work.
fn newer(desired: &Desired, live: &Live) -> Vec<NewerRevision> {
    let Some(behind) = &live.behind else { return Vec::new() };
    let found = behind.newer.iter().filter_map(|revision| {
        let number = revision.reference()?.revision();
        let secrets = revision.container(&desired.job.container).and_then(|one| one.get("secrets")?.as_array());
        let has = |env: &str| secrets.into_iter().flatten().any(|secret| secret["name"] == env);
        let lacks = desired.parameters.iter().map(|one| &one.env).filter(|env| !has(env)).cloned().collect();
        let registered_by = revision.text("registeredBy").map(str::to_owned);
        Some(NewerRevision { revision: number, registered_by, lacks })
    });
    found.filter(|one| one.revision > behind.pinned.revision()).collect()
}
