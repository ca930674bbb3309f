//! The one-off schedule of `trigger-now --via-scheduler`: it fires once, under the schedule's own role, with the schedule's own Input.
//!
//! Schedules cannot be tagged. This one is ours by its name, in a group that is: the full stop in it is in no job's name. The name is
//! always the same, so that what a crash left behind is found without a search, and two operators meet each other.
//!
//! Architecture invariant: no I/O, no clock; the moment is brought along.

use std::time::Duration;

use jiff::Timestamp;
use serde_json::json;
use sha2::{Digest, Sha256};

use crate::model::{Schedule, State};

/// How far ahead it is due: CreateSchedule has to arrive before.
const AHEAD: Duration = Duration::from_secs(20);

/// Within this time after it was made the receipt must be void: before it is due, with time to delete it.
pub const VOID_WITHIN: Duration = Duration::from_secs(12);

/// How long after it was due an invocation may be seen: Scheduler is exact to the minute, and ECS and its lists need a while.
pub const PATIENCE: Duration = Duration::from_secs(150);

/// The longest name of a schedule.
const MAX_NAME: usize = 64;

/// Its name, recognisable as ours; a longer job's name is cut and told apart by a digest.
pub fn name(job: &str) -> String {
    let whole = format!("once.{job}");
    if whole.len() <= MAX_NAME {
        return whole;
    }
    let digest = hex::encode(&Sha256::digest(job)[..6]);
    format!("once.{}.{digest}", job.chars().take(MAX_NAME - "once..".len() - digest.len()).collect::<String>())
}

/// When it is due, at this moment of AWS's clock. A schedule knows whole seconds.
pub fn due(now: Timestamp) -> Timestamp {
    let due = now.checked_add(AHEAD).unwrap_or(now);
    Timestamp::from_second(due.as_second()).unwrap_or(due)
}

/// The one-off schedule: the job's own in everything that decides whether a task starts, tried once, and gone afterwards.
pub fn schedule(of: &Schedule, job: &str, input: String, due: Timestamp) -> Schedule {
    let mut target = of.0.get("Target").cloned().unwrap_or_else(|| json!({}));
    target["Input"] = input.into();
    // A second try would start a task after we have stopped waiting for one.
    target["RetryPolicy"] = json!({ "MaximumRetryAttempts": 0, "MaximumEventAgeInSeconds": 60 });
    let at = due.strftime("at(%Y-%m-%dT%H:%M:%S)").to_string();
    let mut members = json!({
        "Name": name(job),
        "Description": format!("One run of {job}, made by deploy trigger-now --via-scheduler; it goes when it has fired"),
        "ScheduleExpression": at,
        "ScheduleExpressionTimezone": "UTC",
        "FlexibleTimeWindow": { "Mode": "OFF" },
        "State": State::Enabled.as_str(),
        "ActionAfterCompletion": "DELETE",
        "Target": target,
    });
    for kept in ["GroupName", "KmsKeyArn"] {
        if let Some(value) = of.0.get(kept) {
            members[kept] = value.clone();
        }
    }
    Schedule(members.as_object().cloned().unwrap_or_default())
}

/// What a one-off schedule that is there already means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    /// Somebody waits for it to fire.
    Awaited,
    /// It is over, or will never fire: what an earlier run left behind.
    LeftOver,
}

/// Which of both it is, at this moment of AWS's clock. AWS deletes it when it has fired; what is still there long after did not.
pub fn found(one_off: &Schedule, now: Timestamp) -> Found {
    let due = due_of(one_off).and_then(|due| due.checked_add(PATIENCE).ok());
    match due {
        Some(over) if now <= over && one_off.state() == State::Enabled => Found::Awaited,
        _ => Found::LeftOver,
    }
}

/// When a one-off schedule is due.
fn due_of(one_off: &Schedule) -> Option<Timestamp> {
    let at = one_off.text("ScheduleExpression")?.strip_prefix("at(")?.strip_suffix(')')?;
    format!("{at}Z").parse().ok()
}

/// What Scheduler wrote for the time of the occurrence, when it is that of this due time; else the due time, so that whatever was
/// written in its place (such as the placeholder itself) shows as a difference.
pub fn occurrence(written: Option<&str>, due: Timestamp) -> String {
    let about = |text: &&str| {
        text.parse::<Timestamp>().is_ok_and(|at| at.duration_since(due).unsigned_abs() <= Duration::from_secs(60))
    };
    written.filter(about).map_or_else(|| format!("{due:.0}"), str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn moment(text: &str) -> Timestamp {
        text.parse().unwrap()
    }

    fn job() -> Schedule {
        let schedule = json!({
            "Name": "library-sync", "GroupName": "library-sync", "Arn": "arn:...", "State": "DISABLED",
            "ScheduleExpression": "cron(0 4 1 * ? *)", "ScheduleExpressionTimezone": "Asia/Seoul",
            "StartDate": 1.0, "FlexibleTimeWindow": { "Mode": "FLEXIBLE", "MaximumWindowInMinutes": 15 },
            "Target": {
                "Arn": "arn:aws:scheduler:::aws-sdk:ecs:runTask", "RoleArn": "arn:role", "Input": "{\"of\":\"the schedule\"}",
                "RetryPolicy": { "MaximumRetryAttempts": 3, "MaximumEventAgeInSeconds": 3600 },
                "DeadLetterConfig": { "Arn": "arn:aws:sqs:::dead" },
            },
        });
        Schedule(schedule.as_object().cloned().unwrap())
    }

    #[test]
    fn it_is_the_jobs_own_schedule_once() {
        let due = due(moment("2026-11-29T03:00:00.9Z"));
        let one_off = schedule(&job(), "library-sync", "{\"of\":\"this run\"}".to_owned(), due);
        insta::assert_snapshot!(serde_json::to_string_pretty(&one_off.0).unwrap());
        assert_eq!(due_of(&one_off), Some(due));
    }

    #[test]
    fn its_name_fits_and_is_no_jobs_name() {
        assert_eq!(name("library-sync"), "once.library-sync");
        let long = "a".repeat(60);
        let [one, other] = [format!("{long}b"), format!("{long}c")].map(|job| name(&job));
        assert!(one.len() == MAX_NAME && other.len() == MAX_NAME && one != other, "{one} {other}");
        assert_eq!(name(&"a".repeat(59)).len(), MAX_NAME);
        let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        assert!(one.chars().all(allowed) && one.starts_with("once.aaa"), "{one}");
    }

    #[test]
    fn what_will_not_fire_any_more_is_left_over() {
        let one_off = schedule(&job(), "library-sync", String::new(), moment("2026-11-29T03:00:00Z"));
        assert_eq!(found(&one_off, moment("2026-11-29T02:59:40Z")), Found::Awaited);
        assert_eq!(found(&one_off, moment("2026-11-29T03:02:30Z")), Found::Awaited);
        assert_eq!(found(&one_off, moment("2026-11-29T03:02:31Z")), Found::LeftOver);
        let off = one_off.with_state(State::Disabled);
        assert_eq!(found(&off, moment("2026-11-29T02:59:40Z")), Found::LeftOver);
        assert_eq!(found(&job(), moment("2026-11-29T02:59:40Z")), Found::LeftOver);
    }

    #[test]
    fn an_occurrence_is_of_the_due_minute_or_a_difference() {
        let due = moment("2026-11-29T03:00:20Z");
        assert_eq!(occurrence(Some("2026-11-29T03:00:00Z"), due), "2026-11-29T03:00:00Z");
        for other in [None, Some("<aws.scheduler.scheduled-time>"), Some("2026-11-29T04:00:00Z"), Some("")] {
            assert_eq!(occurrence(other, due), "2026-11-29T03:00:20Z");
        }
    }
}
