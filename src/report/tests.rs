use super::*;
use proptest::prelude::*;

fn report() -> RunReport {
    RunReport {
        run_id: "7b0b1f3e-1111-4222-8333-944445555666".parse().unwrap(),
        source: SourceName::Library,
        trigger: Trigger::Manual,
        outcome: Outcome::Succeeded,
        fetched: 3555,
        inserted: 0,
        updated: 12,
        unchanged: 3543,
        reactivated: 0,
        rejected: 0,
        deactivated: 3,
        upserted: 12,
        active: 3466,
        duplicates: 89,
        carried_over: 2,
        merged: 1,
        noted: 4,
        complete: true,
        snapshot_sha256: Some("ab".repeat(32)),
        occurrence: Some("library-sync@2026-11-29T03:00:00Z".to_owned()),
        started_at: "2026-11-29T03:00:00Z".to_owned(),
        duration_ms: 812,
        skip: None,
        withheld: None,
        error: None,
    }
}

#[test]
fn the_line_is_what_readers_of_version_1_expect() {
    let line = report().to_line();
    assert!(line.starts_with(
        r#"{"geuneul":"run-report/1","run_id":"7b0b1f3e-1111-4222-8333-944445555666","source":"library","trigger":"manual","outcome":"succeeded","fetched":3555,"#
    ), "{line}");
    assert!(line.ends_with(r#""duration_ms":812,"skip":null,"withheld":null,"error":null}"#), "{line}");
    assert_eq!(RunReport::from_line(&line).unwrap().unwrap(), report());
    assert!(report().adds_up());
}

#[test]
fn other_lines_are_no_reports_and_damaged_ones_say_so() {
    assert!(RunReport::from_line("{\"level\":\"info\"}").is_none());
    assert!(RunReport::from_line("").is_none());
    let line = report().to_line();
    let cut = RunReport::from_line(&line[..line.len() / 2]).unwrap();
    assert!(matches!(cut, Err(UnreadableReport::Shape(_))));
    let next = RunReport::from_line(&line.replace("report/1", "report/2")).unwrap();
    assert!(matches!(next, Err(UnreadableReport::Version(v)) if v == "run-report/2"));
    let before = line.replace("\"occurrence\":\"library-sync@2026-11-29T03:00:00Z\",", "");
    assert_eq!(RunReport::from_line(&before).unwrap().unwrap(), RunReport { occurrence: None, ..report() });
    let grown = line.replace("\"error\":null", "\"error\":null,\"later\":{\"field\":1}");
    assert_eq!(RunReport::from_line(&grown).unwrap().unwrap(), report());
}

#[test]
fn no_number_in_a_report_is_too_large_to_add_up() {
    let huge = RunReport { inserted: u64::MAX, updated: 1, fetched: 3543, upserted: 0, ..report() };
    assert!(!huge.adds_up());
    assert!(!RunReport { rejected: u64::MAX, ..report() }.adds_up());
}

#[test]
fn the_last_report_wins() {
    let second = RunReport { outcome: Outcome::Withheld, ..report() };
    let lines = [report().to_line(), second.to_line(), "bye".to_owned()];
    let found = RunReport::last_of(lines.iter().map(String::as_str)).unwrap().unwrap();
    assert_eq!(found, second);
}

#[test]
fn a_run_id_has_one_spelling() {
    for wrong in ["", "7B0B1F3E-1111-4222-8333-944445555666", "7b0b1f3e111142228333944445555666", "x"] {
        assert!(wrong.parse::<RunId>().is_err(), "{wrong}");
    }
}

proptest! {
    #[test]
    fn a_line_is_one_line_and_short(message in "\\PC{0,4000}|[\u{0}-\u{1f}]{0,4000}", application in "\\PC{0,300}") {
        let line = RunReport {
            outcome: Outcome::Internal,
            error: Some(RunError { code: "c".repeat(100), message }),
            occurrence: Some(application.clone()),
            skip: Some(Skip {
                reason: SkipReason::Locked,
                holder_pid: Some(i32::MIN),
                holder_application: Some(application),
                holder_run_id: Some(report().run_id),
                holder_age_s: Some(u64::MAX),
                holder_heartbeat_age_s: Some(u64::MAX),
                consecutive_skips: u64::MAX,
                last_success_age_s: Some(u64::MAX),
            }),
            ..report()
        }.to_line();
        prop_assert!(line.len() <= MAX_LINE_BYTES);
        prop_assert!(!line.contains('\n'));
        prop_assert!(RunReport::from_line(&line).unwrap().is_ok());
    }
}
