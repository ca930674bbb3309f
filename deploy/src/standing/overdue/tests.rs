use serde_json::json;

use super::*;
use crate::model::Schedule;

/// 04:00 in Seoul is 19:00 UTC of the day before.
fn timetable(change: impl FnOnce(&mut serde_json::Value)) -> Timetable {
    let mut schedule = json!({
        "ScheduleExpression": "cron(0 4 1 * ? *)", "ScheduleExpressionTimezone": "Asia/Seoul",
        "FlexibleTimeWindow": { "Mode": "OFF" }, "Target": { "RetryPolicy": { "MaximumEventAgeInSeconds": 3600 } },
        "CreationDate": at("2026-01-01T00:00:00Z").as_second(), "LastModificationDate": at("2026-11-29T00:00:00Z").as_second(),
    });
    change(&mut schedule);
    Timetable::of(&Schedule(schedule.as_object().unwrap().clone()))
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

const DUE: &str = "2026-11-30T19:00:00Z";
const DAY: u64 = 86_400;

fn days(days: u64) -> Log {
    Log::Read { keeps: Some(Duration::from_secs(days * DAY)) }
}

struct Case<'a> {
    timetable: Timetable,
    state: State,
    scheduled: &'a [(Timestamp, Timestamp)],
    unreported: &'a [Timestamp],
    nobodys: &'a [Timestamp],
    by_hand: &'a [Timestamp],
    running: Option<bool>,
    log: Log,
    now: &'a str,
}

impl Case<'_> {
    fn monthly(now: &str) -> Case<'_> {
        let log = Log::Read { keeps: None };
        let (timetable, running) = (timetable(|_| ()), Some(false));
        Case {
            timetable,
            state: State::Enabled,
            scheduled: &[],
            unreported: &[],
            nobodys: &[],
            by_hand: &[],
            running,
            log,
            now,
        }
    }

    fn verdict(self) -> Overdue {
        let Case { timetable, state, scheduled, unreported, nobodys, by_hand, running, log, now } = self;
        overdue(
            &Evidence { state, timetable: &timetable, scheduled, unreported, nobodys, by_hand, running, log },
            at(now),
        )
    }
}

#[test]
fn a_run_is_missed_when_its_time_has_passed_and_not_before() {
    let due = at(DUE);
    let verdict = |now| Case::monthly(now).verdict();
    assert_eq!(verdict("2026-11-30T18:59:59Z"), Overdue::NotYet, "the month before was before it was switched on");
    let until = at("2026-11-30T20:20:00Z");
    assert_eq!(verdict("2026-11-30T19:00:00Z"), Overdue::Waiting { due, until });
    assert_eq!(verdict("2026-11-30T20:19:59Z"), Overdue::Waiting { due, until }, "an hour of retries, and a run");
    assert_eq!(verdict("2026-11-30T20:20:00Z"), Overdue::Overdue { due });
    assert_eq!(verdict("2026-12-31T18:59:59Z"), Overdue::Overdue { due });
    // The next one takes its place.
    let next = at("2026-12-31T19:00:00Z");
    assert!(matches!(verdict("2026-12-31T19:00:01Z"), Overdue::Waiting { due, .. } if due == next));

    let late = timetable(|schedule| {
        schedule["FlexibleTimeWindow"] = json!({ "Mode": "FLEXIBLE", "MaximumWindowInMinutes": 90 });
    });
    let case = Case { timetable: late, ..Case::monthly("2026-11-30T21:49:59Z") };
    assert!(matches!(case.verdict(), Overdue::Waiting { .. }), "a flexible window may be used to its end");
    assert_eq!(Case { state: State::Disabled, ..Case::monthly("2026-12-05T00:00:00Z") }.verdict(), Overdue::Off);
}

#[test]
fn a_run_that_is_there_is_seen() {
    let due = at(DUE);
    let began = at("2026-11-30T19:00:21Z");
    let october = at("2026-10-31T19:00:00Z");
    let scheduled = [(due, began), (october, at("2026-10-31T19:00:20Z"))];
    let case = Case { scheduled: &scheduled, ..Case::monthly("2026-12-05T00:00:00Z") };
    assert_eq!(case.verdict(), Overdue::Ran { due, began });
    // Whatever the container's clock says.
    for clock in ["2026-11-30T18:50:00Z", "2030-01-01T00:00:00Z"] {
        let ran = Case { scheduled: &[(due, at(clock))], ..Case::monthly("2026-12-05T00:00:00Z") };
        assert_eq!(ran.verdict(), Overdue::Ran { due, began: at(clock) });
        let older = Case { scheduled: &[(october, at(clock))], ..Case::monthly("2026-12-05T00:00:00Z") };
        assert_eq!(older.verdict(), Overdue::Overdue { due }, "last month's run is none of this month's");
    }
    // Whoever is told of it runs it by hand, and is not told for a month.
    let (before, after) = ([at("2026-11-30T18:59:30Z")], [at("2026-12-04T00:00:00Z")]);
    let by_hand = |by_hand| Case { by_hand, ..Case::monthly("2026-12-05T00:00:00Z") }.verdict();
    assert_eq!(by_hand(&before), Overdue::Overdue { due });
    assert_eq!(by_hand(&after), Overdue::MadeUp { due, began: after[0] });
    let case = Case { unreported: &[began], ..Case::monthly("2026-11-30T19:05:00Z") };
    assert_eq!(
        case.verdict(),
        Overdue::Unreported { due, began },
        "it came, and nobody has to wait for the rest of the hour"
    );
    let case = Case { running: Some(true), ..Case::monthly("2026-12-05T00:00:00Z") };
    assert_eq!(case.verdict(), Overdue::Running { due });
}

#[test]
fn what_nobody_can_see_is_unknown_and_never_overdue() {
    let late = "2026-12-05T00:00:00Z";
    let why = |case: Case<'_>| match case.verdict() {
        Overdue::Unknown { why, .. } => why,
        other => format!("{other:?}"),
    };
    assert_eq!(
        why(Case { log: days(14), ..Case::monthly(late) }),
        "the log group forgets after 14 d, and the schedule fires every 31 d: keep it longer"
    );
    assert!(why(Case { log: days(30), ..Case::monthly(late) }).contains("forgets after 30 d"));
    assert_eq!(Case { log: days(60), ..Case::monthly(late) }.verdict(), Overdue::Overdue { due: at(DUE) });
    assert_eq!(
        why(Case { log: Log::Dark("logs:FilterLogEvents denied".into()), ..Case::monthly(late) }),
        "logs:FilterLogEvents denied"
    );
    assert_eq!(why(Case { running: None, ..Case::monthly(late) }), "whether a task is running was not seen");
    let nobodys = [at("2026-11-30T19:00:21Z")];
    assert!(why(Case { nobodys: &nobodys, ..Case::monthly(late) }).contains("does not say of which job"));
    let rate = timetable(|schedule| schedule["ScheduleExpression"] = json!("rate(1 days)"));
    assert!(why(Case { timetable: rate, ..Case::monthly(late) }).contains("rate(1 days)"));
    // A run that was found is known, however short the memory.
    let scheduled = [(at(DUE), at("2026-11-30T19:00:21Z"))];
    assert!(matches!(
        Case { log: days(1), scheduled: &scheduled, ..Case::monthly(late) }.verdict(),
        Overdue::Ran { .. }
    ));
}

#[test]
fn days_that_a_month_lacks_and_hours_that_a_night_lacks_are_not_missed() {
    let written = |schedule: &mut serde_json::Value, text: &str| {
        schedule["LastModificationDate"] = json!(at(text).as_second());
    };
    // No February 31: the last fire time is that of January, and it has run.
    let day_31 = timetable(|schedule| {
        schedule["ScheduleExpression"] = json!("cron(0 4 31 * ? *)");
        written(schedule, "2026-12-15T00:00:00Z");
    });
    let january = [(at("2027-01-30T19:00:00Z"), at("2027-01-30T19:00:10Z"))];
    let case = Case { timetable: day_31.clone(), scheduled: &january, ..Case::monthly("2027-03-29T00:00:00Z") };
    assert!(matches!(case.verdict(), Overdue::Ran { due, .. } if due == at("2027-01-30T19:00:00Z")));
    // Two months lie between two of its fire times: 45 days of memory are too few.
    let case = Case { timetable: day_31, log: days(45), ..Case::monthly("2027-03-29T00:00:00Z") };
    assert!(matches!(case.verdict(), Overdue::Unknown { .. }));
    // On 2027-03-14 New York has no 02:30: what is due is the day before.
    let night = timetable(|schedule| {
        schedule["ScheduleExpression"] = json!("cron(30 2 * * ? *)");
        schedule["ScheduleExpressionTimezone"] = json!("America/New_York");
        written(schedule, "2027-03-01T00:00:00Z");
    });
    let before = [(at("2027-03-13T07:30:00Z"), at("2027-03-13T07:30:05Z"))];
    let case = Case { timetable: night, scheduled: &before, ..Case::monthly("2027-03-14T20:00:00Z") };
    assert!(matches!(case.verdict(), Overdue::Ran { due, .. } if due == at("2027-03-13T07:30:00Z")));
}
