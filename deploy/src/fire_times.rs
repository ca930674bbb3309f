//! When a schedule fires next.
//!
//! Scheduler's rules: a local time that daylight saving skips does not fire, one that it repeats fires once, the first time. So
//! the expression is walked on the wall clock, and the zone is asked afterwards.
//!
//! What a schedule as it was read says of itself is in [`timetable`].
//!
//! Architecture invariant: pure; whoever asks brings the time.

pub mod timetable;

use std::cmp::Ordering;

use croner::errors::CronError;
use croner::parser::{CronParser, Seconds, Year};
use croner::{CivilDateTime, Cron, CronDateTime, Resolution, Weekday};
use jiff::civil::DateTime;
use jiff::tz::{AmbiguousOffset, TimeZone};
use jiff::{SignedDuration, Timestamp, ZonedDateTime};

/// An expression or a zone that does not say when.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FireTimeError {
    /// Only `cron(...)` is understood here.
    #[error("{0:?} is no cron(minute hour day month weekday year) expression")]
    NotCron(String),
    /// The six fields are wrong.
    #[error("{expression:?}: {why}")]
    Cron {
        /// The expression.
        expression: String,
        /// What is wrong with it.
        why: String,
    },
    /// Not an IANA name.
    #[error("{0:?} is no time zone")]
    Zone(String),
}

/// The next `count` moments after `after` at which the schedule fires, in its zone; fewer when there are no more.
pub fn next(expression: &str, zone: &str, after: Timestamp, count: usize) -> Result<Vec<ZonedDateTime>, FireTimeError> {
    let fields = expression.strip_prefix("cron(").and_then(|rest| rest.strip_suffix(')'));
    let fields = fields.ok_or_else(|| FireTimeError::NotCron(expression.to_owned()))?;
    let wrong = |why: String| FireTimeError::Cron { expression: expression.to_owned(), why };
    let cron = parse(fields).map_err(wrong)?;
    let zone = TimeZone::get(zone).map_err(|_| FireTimeError::Zone(zone.to_owned()))?;
    let mut wall = Wall(after.to_zoned_datetime(zone.clone()).datetime());
    let mut found = Vec::new();
    while found.len() < count {
        // An error is the end of what the expression's years allow.
        let Ok(due) = cron.find_next_occurrence(&wall, false) else { break };
        let moment = zone.to_ambiguous_zoned_datetime(due.0);
        if !matches!(moment.offset(), AmbiguousOffset::Gap { .. }) {
            match moment.earlier() {
                Ok(moment) if moment.timestamp() > after => found.push(moment),
                _ => {}
            }
        }
        wall = due;
    }
    Ok(found)
}

/// The first local time that the expression names and daylight saving skips, in the dozen years after a moment; it does not fire.
pub fn skipped(expression: &str, zone: &str, after: Timestamp) -> Option<DateTime> {
    const YEARS: i16 = 12;
    let fields = expression.strip_prefix("cron(")?.strip_suffix(')')?;
    let cron = parse(fields).ok()?;
    let zone = TimeZone::get(zone).ok()?;
    let last = after.to_zoned_datetime(zone.clone()).year() + YEARS;
    // Only where the clocks move is anything skipped, which most zones do twice a year and many never.
    for moved in zone.following(after) {
        let at = moved.timestamp();
        let before = zone.to_offset(at.checked_sub(SignedDuration::from_nanos(1)).ok()?);
        let (begins, ends) = (before.to_datetime(at), moved.offset().to_datetime(at));
        if begins.year() > last {
            return None;
        }
        if begins < ends {
            let Wall(due) = cron.find_next_occurrence(&Wall(begins), true).ok()?;
            if due < ends {
                return Some(due);
            }
        }
    }
    None
}

/// The six fields as AWS reads them.
fn parse(fields: &str) -> Result<Cron, String> {
    let fields: Vec<_> = fields.split_whitespace().collect();
    if fields.len() != 6 {
        return Err("six fields are expected".to_owned());
    }
    let mut fields: Vec<_> = fields.into_iter().zip(LAST).map(|(field, last)| open_ended(field, last)).collect();
    // A weekday of L alone is the week's last day, Saturday; the parser here knows only 6L, the month's last Friday.
    fields[4] = fields[4].split(',').map(|part| if part == "L" { "7" } else { part }).collect::<Vec<_>>().join(",");
    // Sunday is 1 for AWS; a year needs seconds beside it here.
    let parser = CronParser::builder().seconds(Seconds::Required).year(Year::Required).alternative_weekdays(true);
    parser.build().parse(&format!("0 {}", fields.join(" "))).map_err(|error| error.to_string())
}

/// The last value of each field.
const LAST: [&str; 6] = ["59", "23", "31", "12", "7", "2199"];

/// AWS's `5/15` begins at 5 and goes to the end, which the parser here writes `5-59/15`.
fn open_ended(field: &str, last: &str) -> String {
    let part = |part: &str| match part.split_once('/') {
        Some((first, step)) if first.bytes().all(|b| b.is_ascii_digit()) => format!("{first}-{last}/{step}"),
        _ => part.to_owned(),
    };
    field.split(',').map(part).collect::<Vec<_>>().join(",")
}

/// A fire time for a person: in the schedule's zone and in UTC.
pub fn show(moment: &ZonedDateTime) -> String {
    let zone = moment.time_zone().iana_name().unwrap_or("local");
    let utc = moment.timestamp().strftime("%Y-%m-%d %H:%M");
    format!("{} {zone} ({utc} UTC)", moment.strftime("%a %Y-%m-%d %H:%M"))
}

/// The time on a wall clock, which knows no zone.
#[derive(Clone)]
struct Wall(DateTime);

impl CronDateTime for Wall {
    fn to_civil(&self) -> CivilDateTime {
        let [month, day, hour, minute, second] =
            [self.0.month(), self.0.day(), self.0.hour(), self.0.minute(), self.0.second()].map(|part| part as u32);
        CivilDateTime::from_ymd_hms_opt(self.0.year().into(), month, day, hour, minute, second)
            .expect("a date is a date")
    }

    fn civil_weekday(&self) -> Weekday {
        Weekday::from_days_from_sunday(self.0.weekday().to_sunday_zero_offset() as u32)
    }

    fn resolve_civil(&self, civil: CivilDateTime) -> Result<Resolution<Self>, CronError> {
        let year = i16::try_from(civil.year()).map_err(|_| CronError::InvalidDate)?;
        let [month, day, hour, minute, second] =
            [civil.month(), civil.day(), civil.hour(), civil.minute(), civil.second()].map(|part| part as i8);
        let wall = DateTime::new(year, month, day, hour, minute, second, 0).map_err(|_| CronError::InvalidDate)?;
        Ok(Resolution::Single(Wall(wall)))
    }

    fn checked_add_seconds(&self, seconds: i64) -> Option<Self> {
        self.0.checked_add(SignedDuration::from_secs(seconds)).ok().map(Wall)
    }

    fn cmp_instant(&self, other: &Self) -> Ordering {
        self.0.cmp(&other.0)
    }
}

#[cfg(test)]
mod tests;
