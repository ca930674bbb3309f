//! When a schedule that was read from AWS fires, and when it should have fired.
//!
//! It may be somebody else's work: a `rate()`, an `at()`, a start or an end. So this reads the schedule, not the configuration.
//!
//! Architecture invariant: pure; whoever asks brings the time.

use std::time::Duration;

use jiff::civil::DateTime;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp, ZonedDateTime};
use serde_json::Value;

use super::{FireTimeError, next};
use crate::model::Schedule;

/// The schedule's own words about when it fires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Timetable {
    /// AWS's expression.
    pub expression: String,
    /// The IANA name of its zone.
    pub zone: String,
    /// It does not fire before.
    pub start: Option<Timestamp>,
    /// It does not fire after.
    pub end: Option<Timestamp>,
    /// It may fire this much later.
    pub window: Duration,
    /// For how long an occurrence that could not be delivered is tried again.
    pub retry_for: Duration,
    /// When it was made: it cannot have fired before.
    pub made: Option<Timestamp>,
    /// When it was written last: whether it was on before, nobody knows.
    pub written: Option<Timestamp>,
}

/// What switching the schedule on does at that very moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AtOnce {
    /// Nothing: the next fire time is the first.
    Nothing,
    /// A fire time was less than a minute ago, and Scheduler is exact to the minute: that one may still count.
    Perhaps,
    /// It runs: a `rate()` without a start begins to count where it is switched on.
    Runs,
}

impl Timetable {
    /// Of a schedule as GetSchedule shows it.
    pub fn of(schedule: &Schedule) -> Timetable {
        let moment = |member: &str| schedule.0.get(member).and_then(moment);
        let number = |object: Option<&Value>, member: &str| object.and_then(|found| found.get(member)?.as_u64());
        let target = schedule.0.get("Target");
        let minutes = number(schedule.0.get("FlexibleTimeWindow"), "MaximumWindowInMinutes").unwrap_or(0);
        // AWS's own default, when nothing is said, is a day.
        let retry_for = number(target.and_then(|target| target.get("RetryPolicy")), "MaximumEventAgeInSeconds");
        Timetable {
            expression: schedule.text("ScheduleExpression").unwrap_or_default().to_owned(),
            zone: schedule.text("ScheduleExpressionTimezone").unwrap_or("UTC").to_owned(),
            start: moment("StartDate"),
            end: moment("EndDate"),
            window: Duration::from_secs(60 * minutes),
            retry_for: Duration::from_secs(retry_for.unwrap_or(86_400)),
            made: moment("CreationDate"),
            written: moment("LastModificationDate"),
        }
    }

    /// The next moments after `after` at which it fires, in its zone.
    pub fn next(&self, after: Timestamp, count: usize) -> Result<Vec<ZonedDateTime>, FireTimeError> {
        let from = self.start.map_or(after, |start| after.max(start - SignedDuration::from_secs(1)));
        let mut found = match self.expression.strip_prefix("at(").and_then(|rest| rest.strip_suffix(')')) {
            Some(at) => self.once(at, after)?,
            None => next(&self.expression, &self.zone, from, count)?,
        };
        found.retain(|moment| self.end.is_none_or(|end| moment.timestamp() <= end));
        Ok(found)
    }

    /// Whether it fires in the minute of that moment: Scheduler is exact to the minute. What cannot be computed is no.
    pub fn fires_at(&self, moment: Timestamp) -> bool {
        let minute = moment.as_second().div_euclid(60) * 60;
        let (Ok(begins), Ok(before)) = (Timestamp::from_second(minute), Timestamp::from_second(minute - 1)) else {
            return false;
        };
        self.next(before, 1).is_ok_and(|found| found.first().is_some_and(|next| next.timestamp() == begins))
    }

    /// The last moments at or before `now` at which it fired or should have, newest first: none before it was made.
    pub fn last(&self, now: Timestamp, count: usize) -> Result<Vec<Timestamp>, FireTimeError> {
        let made = self.made.unwrap_or(Timestamp::MIN);
        // An expression is walked forwards only: from ever further back, until enough was found.
        let mut found = Vec::new();
        for hours in [2, 50, 24 * 40, 24 * 420, 24 * 366 * 9] {
            let from = now.checked_sub(SignedDuration::from_hours(hours)).unwrap_or(Timestamp::MIN);
            found = self.between(from.max(made), now)?;
            if found.len() >= count || from <= made {
                break;
            }
        }
        Ok(found.into_iter().rev().take(count).collect())
    }

    /// Every moment after one and up to another.
    fn between(&self, from: Timestamp, to: Timestamp) -> Result<Vec<Timestamp>, FireTimeError> {
        const PAGE: usize = 256;
        let (mut found, mut after) = (Vec::new(), from);
        loop {
            let page = self.next(after, PAGE)?;
            let due: Vec<_> = page.iter().map(ZonedDateTime::timestamp).filter(|at| *at > after && *at <= to).collect();
            let Some(last) = due.last().copied() else { return Ok(found) };
            let whole = due.len() == PAGE;
            found.extend(due);
            after = last;
            if !whole {
                return Ok(found);
            }
        }
    }

    fn once(&self, at: &str, after: Timestamp) -> Result<Vec<ZonedDateTime>, FireTimeError> {
        let wrong = |why: String| FireTimeError::Cron { expression: self.expression.clone(), why };
        let wall: DateTime = at.parse().map_err(|error: jiff::Error| wrong(error.to_string()))?;
        let zone = TimeZone::get(&self.zone).map_err(|_| FireTimeError::Zone(self.zone.clone()))?;
        let moment = zone.to_zoned_datetime(wall).map_err(|error| wrong(error.to_string()))?;
        Ok((moment.timestamp() > after).then_some(moment).into_iter().collect())
    }

    /// What switching it on does at that moment.
    pub fn at_once(&self, now: Timestamp) -> AtOnce {
        if self.expression.starts_with("rate(") && self.start.is_none_or(|start| start <= now) {
            return AtOnce::Runs;
        }
        let last = self.last(now, 1).ok().and_then(|last| last.first().copied());
        match last {
            Some(last) if now.duration_since(last) < SignedDuration::from_secs(60) => AtOnce::Perhaps,
            _ => AtOnce::Nothing,
        }
    }
}

/// A date as AWS writes it: seconds since the epoch, with a fraction.
fn moment(value: &Value) -> Option<Timestamp> {
    match value {
        Value::Number(seconds) => Timestamp::from_millisecond((seconds.as_f64()? * 1000.0).floor() as i64).ok(),
        Value::String(text) => text.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
