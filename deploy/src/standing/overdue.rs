//! Has the schedule started what it should have?
//!
//! EventBridge Scheduler keeps no record of what it fired, so this compares its fire times with the reports in the log. What a log
//! that forgets, or one that was not read, does not show is *unknown*, never *overdue*.
//!
//! Architecture invariant: pure; whoever asks brings the time.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;

use crate::fire_times::FireTimeError;
use crate::fire_times::timetable::Timetable;
use crate::model::State;

/// How long a run may take from its start to its report before it is missed.
pub const RUN: Duration = Duration::from_secs(20 * 60);
/// The clocks of Scheduler and of the container may differ by this much.
const SKEW: SignedDuration = SignedDuration::from_secs(60);

/// What is known of the log that the reports are in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Log {
    /// It was read, and forgets after this long; `None` is never.
    Read {
        /// How long it keeps a line.
        keeps: Option<Duration>,
    },
    /// It was not read.
    Dark(String),
    /// It was read, and runs of this job print no report.
    Silent(String),
    /// There is none: the log group is gone, and without it no task of the family starts.
    Gone(String),
}

/// What was looked at.
#[derive(Debug, Clone)]
pub struct Evidence<'a> {
    /// Whether it fires.
    pub state: State,
    /// When.
    pub timetable: &'a Timetable,
    /// The scheduled runs that the log remembers: when each was due, and when it began.
    pub scheduled: &'a [(Timestamp, Timestamp)],
    /// When the scheduled tasks began that ended without a report.
    pub unreported: &'a [Timestamp],
    /// When the runs began that call themselves scheduled and do not say of which job.
    pub nobodys: &'a [Timestamp],
    /// When the runs began that a person started and that did their work.
    pub by_hand: &'a [Timestamp],
    /// Whether a task that the schedule started is running; `None` when that could not be seen.
    pub running: Option<bool>,
    /// The log.
    pub log: Log,
}

/// The verdict.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "verdict", rename_all = "snake_case")]
pub enum Overdue {
    /// It is switched off: nothing is expected.
    Off,
    /// No fire time has passed since it was written last.
    NotYet,
    /// The last occurrence has run.
    Ran {
        /// When it was due.
        due: Timestamp,
        /// When the run began.
        began: Timestamp,
    },
    /// The last occurrence has started a task, which ended without a report.
    Unreported {
        /// When it was due.
        due: Timestamp,
        /// When the task began.
        began: Timestamp,
    },
    /// It is running.
    Running {
        /// When it was due.
        due: Timestamp,
    },
    /// It may still come: a flexible window, a retry, a run that has not ended.
    Waiting {
        /// When it was due.
        due: Timestamp,
        /// Until when it may come.
        until: Timestamp,
    },
    /// No scheduled run since the last fire time, but one by hand, which has done its work.
    MadeUp {
        /// When it was due.
        due: Timestamp,
        /// When the run began.
        began: Timestamp,
    },
    /// No scheduled run since the last fire time.
    Overdue {
        /// When it was due.
        due: Timestamp,
    },
    /// Nobody can tell.
    Unknown {
        /// When it was due, if that is known.
        due: Option<Timestamp>,
        /// Why not.
        why: String,
    },
}

/// The last fire time that counts: one before the schedule was written last may have found it switched off.
pub fn last_due(timetable: &Timetable, now: Timestamp) -> Result<Option<Timestamp>, FireTimeError> {
    let since = timetable.written.or(timetable.made).unwrap_or(Timestamp::MIN);
    Ok(timetable.last(now, 1)?.into_iter().find(|due| *due > since))
}

/// Until when a run of that occurrence may come.
pub fn patience(timetable: &Timetable) -> Duration {
    timetable.window + timetable.retry_for + RUN
}

/// Whether a scheduled run is missing.
pub fn overdue(evidence: &Evidence<'_>, now: Timestamp) -> Overdue {
    let Evidence { state, timetable, scheduled, unreported, nobodys, by_hand, running, log } = evidence;
    if *state == State::Disabled {
        return Overdue::Off;
    }
    let due = match last_due(timetable, now) {
        Ok(Some(due)) => due,
        Ok(None) => return Overdue::NotYet,
        Err(error) => return Overdue::Unknown { due: None, why: error.to_string() },
    };
    let last = |moments: &[Timestamp]| moments.iter().copied().filter(|began| *began >= due - SKEW).max();
    // By the time that it was due, which Scheduler told it: one that came late is none of the next occurrence's.
    if let Some((_, began)) = scheduled.iter().find(|(was_due, _)| *was_due >= due) {
        return Overdue::Ran { due, began: *began };
    }
    if let (Some(began), Some(false)) = (last(unreported), running) {
        return Overdue::Unreported { due, began };
    }
    let unknown = |why: String| Overdue::Unknown { due: Some(due), why };
    let until = due.checked_add(patience(timetable)).unwrap_or(Timestamp::MAX);
    let by_hand = by_hand.iter().copied().filter(|began| *began >= due).max();
    let missing = || by_hand.map_or(Overdue::Overdue { due }, |began| Overdue::MadeUp { due, began });
    match (running, log) {
        (Some(true), _) => Overdue::Running { due },
        _ if now < until => Overdue::Waiting { due, until },
        (_, Log::Dark(why) | Log::Silent(why)) => unknown(why.clone()),
        (_, Log::Gone(group)) => unknown(format!("there is no log group {group}")),
        _ if last(nobodys).is_some() => {
            unknown("a run since calls itself scheduled and does not say of which job".to_owned())
        }
        (None, _) => unknown("whether a task is running was not seen".to_owned()),
        (_, Log::Read { keeps: Some(keeps) }) => match longest_interval(timetable, now) {
            Some(interval) if interval > *keeps => unknown(format!(
                "the log group forgets after {} d, and the schedule fires every {} d: keep it longer",
                keeps.as_secs() / 86_400,
                interval.as_secs().div_ceil(86_400)
            )),
            Some(_) => missing(),
            None => unknown("how often the schedule fires is not known".to_owned()),
        },
        (_, Log::Read { keeps: None }) => missing(),
    }
}

/// The longest time between two fire times, those around now among them.
fn longest_interval(timetable: &Timetable, now: Timestamp) -> Option<Duration> {
    let mut moments = timetable.last(now, 12).ok()?;
    moments.reverse();
    moments.extend(timetable.next(now, 12).ok()?.iter().map(jiff::ZonedDateTime::timestamp));
    let gaps = moments.windows(2).map(|pair| pair[0].duration_until(pair[1]));
    gaps.filter_map(|gap| Duration::try_from(gap).ok()).max()
}

#[cfg(test)]
mod tests;
