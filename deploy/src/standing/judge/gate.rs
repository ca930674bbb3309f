//! The gate of a job: whether it is open, what it means that it is not, and what opens it.

use geuneul::Outcome;
use jiff::Timestamp;

use super::Bench;
use crate::fingerprint::{Fingerprint, NoFingerprint};
use crate::gate::{self, Closed};
use crate::model::Live;
use crate::plan::Plan;
use crate::receipt::{Overridden, Receipt, Void};
use crate::render;
use crate::standing::{Gate, PathNow};

impl Bench<'_> {
    pub(super) fn gate(
        &mut self,
        plan: &Plan,
        fingerprint: &Result<Fingerprint, NoFingerprint>,
        path: &PathNow,
        overridden: Option<&Overridden>,
    ) -> Gate {
        let (program, clock) = (self.program, self.facts.clock);
        let closed = |why: Vec<String>| Gate { open: Some(false), why };
        if self.desired.job.stopped && !self.is_on() {
            return closed(vec!["the configuration says stopped = true".to_owned()]);
        }
        if plan.differs() {
            let first = render::look_and_settle(plan, program);
            return closed(vec![format!("enable refuses while the plan is not empty; first: {first}")]);
        }
        // Said by the drift already.
        if plan.unseen().next().is_some() {
            return Gate { open: None, why: gate::unsettled(plan) };
        }
        let now = match fingerprint {
            Ok(now) => now,
            Err(error @ NoFingerprint::Hidden { .. }) => {
                self.unseen(&error.to_string());
                return Gate { open: None, why: vec![error.to_string()] };
            }
            Err(error) => {
                if self.is_on() {
                    self.need("what fires is not proven", format!("{program} plan"));
                }
                return closed(vec![error.to_string()]);
            }
        };
        let Live { receipt, scheduled_path, .. } = self.live;
        let Err(reasons) = gate::open(receipt, scheduled_path, now, &self.desired.job.gate, clock) else {
            return Gate { open: Some(true), why: Vec::new() };
        };
        let mut why: Vec<_> = reasons.iter().map(ToString::to_string).collect();
        if let [Closed::Hidden(hidden) | Closed::PathHidden(hidden)] = reasons.as_slice() {
            self.unseen(hidden);
            return Gate { open: None, why };
        }
        // Nobody proves a monthly job every week, and what the schedule itself has done since needs no other proof.
        let since = |at: Timestamp| {
            self.facts.runs.iter().any(|run| {
                self.found().is_some_and(|schedule| run.is_by(schedule))
                    && run.report.outcome == Outcome::Succeeded
                    && run.earliest().is_some_and(|began| began > at)
            })
        };
        let matters = |closed: &&Closed| match closed {
            Closed::TooOld { .. } => false,
            Closed::Overridden(overridden) => !since(overridden.at),
            closed if closed.is_about_the_path() => path.proven != Some(true),
            _ => true,
        };
        if self.is_on() && reasons.iter().any(|closed| matters(&closed)) {
            let what = match overridden {
                Some(_) => "it was switched on without a proof",
                None => "what fires is not proven",
            };
            let next = self.at_work().map_or_else(|| self.prove(), |task| format!("{program} attach {task}"));
            self.need(what, next);
        }
        if self.is_on() && reasons.iter().all(|closed| matches!(closed, Closed::TooOld { .. })) {
            why.push(format!("age switches nothing off: it stays on; a new enable would need {program} trigger-now"));
        }
        if let Some(task) = self.at_work() {
            why = vec![format!("the run that decides is at work: {program} attach {task}")];
        }
        closed(why)
    }

    /// A job that is off and not meant to be runs never again, and looks well everywhere else.
    pub(super) fn left_off(&mut self, plan: &Plan, gate: &Gate) {
        if self.is_on() || self.found().is_none() || self.desired.job.stopped {
            return;
        }
        let program = self.program;
        let next = match gate.open {
            _ if plan.differs() => render::look_and_settle(plan, program),
            Some(true) => format!("{program} enable"),
            Some(false) => self.at_work().map_or_else(|| self.prove(), |task| format!("{program} attach {task}")),
            None => format!("{program} plan"),
        };
        let missed = self.missed.take().map(|count| format!(" and has missed {count} fire times")).unwrap_or_default();
        self.need(format!("it is off{missed}"), format!("{next}; or say stopped = true"));
    }

    /// The task whose end decides, while it is at work.
    fn at_work(&self) -> Option<&str> {
        let Receipt::Void(Void { ending: None, .. }) = self.receipt()? else { return None };
        let task = self.facts.running.as_ref().ok()?.first()?;
        Some(task.task.rsplit('/').next().unwrap_or(&task.task))
    }

    /// What proves it: the way that was tried last, when that is what failed.
    pub(super) fn prove(&self) -> String {
        let Live { receipt, scheduled_path, .. } = self.live;
        let reasons = Fingerprint::of(self.live)
            .ok()
            .and_then(|now| gate::open(receipt, scheduled_path, &now, &self.desired.job.gate, self.facts.clock).err());
        let via = reasons.unwrap_or_default().iter().any(Closed::wants_scheduler);
        format!("{} trigger-now{}", self.program, if via { " --via-scheduler" } else { "" })
    }
}
