use serde_json::json;

use super::*;

fn table(expression: &str, more: serde_json::Value) -> Timetable {
    let mut schedule = json!({ "ScheduleExpression": expression, "ScheduleExpressionTimezone": "Asia/Seoul" });
    schedule.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    Timetable::of(&Schedule(schedule.as_object().unwrap().clone()))
}

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

fn next(table: &Timetable, after: &str) -> Vec<String> {
    table.next(at(after), 3).unwrap().iter().map(super::super::show).map(|text| text[..20].to_owned()).collect()
}

#[test]
fn a_start_and_an_end_are_its_own() {
    let monthly = "cron(0 4 1 * ? *)";
    let from = |text: &str| at(text).as_second();
    let bounded =
        table(monthly, json!({ "StartDate": from("2026-12-31T19:00:00Z"), "EndDate": from("2027-02-01T00:00:00Z") }));
    assert_eq!(next(&bounded, "2026-11-29T00:00:00Z"), ["Fri 2027-01-01 04:00", "Mon 2027-02-01 04:00"]);
    assert_eq!(next(&bounded, "2027-02-01T00:00:00Z"), Vec::<String>::new());
    let once = table("at(2026-12-24T18:00:00)", json!({}));
    assert_eq!(next(&once, "2026-11-29T00:00:00Z"), ["Thu 2026-12-24 18:00"]);
    assert_eq!(next(&once, "2026-12-24T09:00:00Z"), Vec::<String>::new());
    assert!(table("at(tomorrow)", json!({})).next(at("2026-11-29T00:00:00Z"), 1).is_err());
    // The five next of a day that not every month has.
    let day_31 = table("cron(0 4 31 * ? *)", json!({}));
    let five = day_31.next(at("2026-11-29T00:00:00Z"), 5).unwrap();
    let months: Vec<_> = five.iter().map(|moment| (moment.month(), moment.day())).collect();
    assert_eq!(months, [(12, 31), (1, 31), (3, 31), (5, 31), (7, 31)]);
}

#[test]
fn what_has_been_due_is_found_backwards_and_never_before_it_was_made() {
    let last = |table: &Timetable, count| table.last(at("2026-11-29T00:00:30Z"), count).unwrap();
    let made = json!({ "CreationDate": at("2026-09-15T00:00:00Z").as_second() });
    let monthly = table("cron(0 4 1 * ? *)", made.clone());
    assert_eq!(last(&monthly, 5), [at("2026-10-31T19:00:00Z"), at("2026-09-30T19:00:00Z")]);
    assert_eq!(last(&monthly, 1), [at("2026-10-31T19:00:00Z")]);
    let minutely = table("cron(* * * * ? *)", made);
    assert_eq!(last(&minutely, 2), [at("2026-11-29T00:00:00Z"), at("2026-11-28T23:59:00Z")]);
    let yearly = table("cron(0 4 1 1 ? *)", json!({}));
    assert_eq!(last(&yearly, 2), [at("2025-12-31T19:00:00Z"), at("2024-12-31T19:00:00Z")]);
    assert_eq!(last(&table("cron(0 4 1 1 ? 2030)", json!({})), 2), Vec::<Timestamp>::new());
}

#[test]
fn switching_on_runs_a_rate_at_once_and_a_cron_later() {
    let now = at("2026-11-29T00:00:30Z");
    let start = |text: &str| json!({ "StartDate": at(text).as_second() });
    assert_eq!(table("rate(30 days)", json!({})).at_once(now), AtOnce::Runs);
    assert_eq!(table("rate(30 days)", start("2026-11-28T00:00:00Z")).at_once(now), AtOnce::Runs);
    assert_eq!(table("rate(30 days)", start("2026-11-30T00:00:00Z")).at_once(now), AtOnce::Nothing);
    assert_eq!(table("cron(0 4 1 * ? *)", json!({})).at_once(now), AtOnce::Nothing);
    assert_eq!(table("cron(0 9 29 * ? *)", json!({})).at_once(now), AtOnce::Perhaps, "09:00 was thirty seconds ago");
    assert_eq!(table("cron(59 8 29 * ? *)", json!({})).at_once(now), AtOnce::Nothing);
}
