use super::*;

fn times(expression: &str, zone: &str, after: &str) -> Vec<String> {
    next(expression, zone, after.parse().unwrap(), 3).unwrap().iter().map(show).collect()
}

#[test]
fn a_month_in_seoul() {
    assert_eq!(
        times("cron(0 4 1 * ? *)", "Asia/Seoul", "2026-11-29T03:00:00Z"),
        [
            "Tue 2026-12-01 04:00 Asia/Seoul (2026-11-30 19:00 UTC)",
            "Fri 2027-01-01 04:00 Asia/Seoul (2026-12-31 19:00 UTC)",
            "Mon 2027-02-01 04:00 Asia/Seoul (2027-01-31 19:00 UTC)",
        ]
    );
    // The moment itself has passed.
    assert_eq!(
        times("cron(0 4 1-3 * ? *)", "Asia/Seoul", "2026-11-30T19:00:00Z")[0],
        "Wed 2026-12-02 04:00 Asia/Seoul (2026-12-01 19:00 UTC)"
    );
}

#[test]
fn the_words_of_aws() {
    let first = |expression: &str| times(expression, "UTC", "2026-11-29T03:00:00Z")[0][..20].to_owned();
    assert_eq!(first("cron(15 10 ? * 2 *)"), "Mon 2026-11-30 10:15");
    assert_eq!(first("cron(15 10 ? * MON-FRI *)"), "Mon 2026-11-30 10:15");
    assert_eq!(first("cron(0 0 L * ? *)"), "Mon 2026-11-30 00:00");
    assert_eq!(first("cron(0 8 ? * 2#1 *)"), "Mon 2026-12-07 08:00");
    assert_eq!(first("cron(0 8 ? * 6L *)"), "Fri 2026-12-25 08:00");
    assert_eq!(first("cron(0 8 ? * L *)"), "Sat 2026-12-05 08:00");
    assert_eq!(first("cron(0 8 ? * MON,L *)"), "Mon 2026-11-30 08:00");
    assert_eq!(first("cron(5/15 0/6 * * ? *)"), "Sun 2026-11-29 06:05");
    assert_eq!(first("cron(0 9 31 * ? 2027)"), "Sun 2027-01-31 09:00");
    assert_eq!(times("cron(0 4 1 * ? 2020)", "UTC", "2026-11-29T03:00:00Z"), Vec::<String>::new());
}

#[test]
fn a_skipped_hour_does_not_fire_and_a_repeated_one_fires_once() {
    assert_eq!(
        times("cron(30 2 * * ? *)", "America/New_York", "2026-03-07T12:00:00Z"),
        [
            "Mon 2026-03-09 02:30 America/New_York (2026-03-09 06:30 UTC)",
            "Tue 2026-03-10 02:30 America/New_York (2026-03-10 06:30 UTC)",
            "Wed 2026-03-11 02:30 America/New_York (2026-03-11 06:30 UTC)",
        ]
    );
    assert_eq!(
        times("cron(30 1 * * ? *)", "America/New_York", "2026-11-01T00:00:00Z")[..2],
        [
            "Sun 2026-11-01 01:30 America/New_York (2026-11-01 05:30 UTC)",
            "Mon 2026-11-02 01:30 America/New_York (2026-11-02 06:30 UTC)",
        ]
    );
}

#[test]
fn what_is_no_schedule_says_so() {
    let error =
        |expression: &str, zone: &str| next(expression, zone, Timestamp::UNIX_EPOCH, 1).unwrap_err().to_string();
    assert_eq!(
        error("rate(1 days)", "UTC"),
        "\"rate(1 days)\" is no cron(minute hour day month weekday year) expression"
    );
    assert!(error("cron(0 4 1 * ?)", "UTC").contains("cron(0 4 1 * ?)"));
    assert!(error("cron(0 25 1 * ? *)", "UTC").contains("25"), "{}", error("cron(0 25 1 * ? *)", "UTC"));
    assert_eq!(error("cron(0 4 1 * ? *)", "Asia/Soul"), "\"Asia/Soul\" is no time zone");
}
