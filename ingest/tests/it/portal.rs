//! Every form in which the portal has failed or surprised, one test each: the exit code is the documented one, and nothing is wrongly written.

use crate::world::{IMPATIENT, PATIENT, World};
use geuneul::{Outcome, RunReport};
use rehearsal::snapshot::{Row, generate};
use rehearsal::upstream::{Answer, Envelope, ErrorForm, Fault};
use serde_json::{Value, json};

const FOR_EVER: usize = 1_000_000;

/// A table with the month before in it.
struct Before(World, Vec<String>);

fn before() -> Before {
    let world = World::new(generate(1, 30));
    world.mirror();
    let versions = world.row_versions();
    Before(world, versions)
}

impl Before {
    /// Runs against an upstream that only answers this; the places stay untouched, byte for byte.
    fn refused(&self, answer: Answer, outcome: Outcome, code: &str) -> RunReport {
        let Before(world, versions) = self;
        let world = world.with_upstream(generate(2, 30));
        world.upstream.fault(Fault { page: None, times: FOR_EVER, answer });
        let report = world.run_here(IMPATIENT);
        let error = report.error.clone().unwrap_or_else(|| panic!("{report:?}"));
        assert_eq!((report.outcome, error.code.as_str()), (outcome, code), "{error:?}");
        assert_eq!(world.row_versions(), *versions);
        assert_eq!(world.ledger().last().map(String::as_str), Some(outcome.as_str()));
        assert!(world.lock_is_free());
        report
    }
}

/// Runs against an upstream that answers this a few times, then well.
fn passes(page: usize, times: usize, answer: Answer) {
    let world = World::new(generate(1, 1100));
    world.upstream.fault(Fault { page: Some(page), times, answer });
    let report = world.run_here(PATIENT);
    assert_eq!(
        (report.outcome, report.inserted, report.complete),
        (Outcome::Succeeded, 1100, true),
        "{:?}",
        report.error
    );
}

const TIMEOUT: (&str, &str) = ("05", "SERVICETIMEOUT_ERROR");

#[test]
fn form_a_xml_with_status_200_401_and_403() {
    let before = before();
    for status in [200, 401, 403] {
        let Answer::Whole { content_type, body, .. } =
            Answer::error(ErrorForm::Xml, "30", "SERVICE_KEY_IS_NOT_REGISTERED_ERROR")
        else {
            unreachable!()
        };
        before.refused(Answer::Whole { status, content_type, body }, Outcome::Misconfigured, "service_key_refused");
    }
    passes(2, 2, Answer::error(ErrorForm::Xml, TIMEOUT.0, TIMEOUT.1));
}

#[test]
fn form_b_the_tree_as_json_with_the_name_in_err_msg() {
    let before = before();
    before.refused(
        Answer::error(ErrorForm::Json, "12", "NO_OPENAPI_SERVICE_ERROR"),
        Outcome::UpstreamFailed,
        "upstream_refused",
    );
    let korean = json!({"cmmMsgHeader": {"errMsg": "DEADLINE_HAS_EXPIRED_ERROR", "returnAuthMsg": "활용기간 만료"}});
    before.refused(Answer::json(&korean), Outcome::Misconfigured, "service_key_refused");
    passes(1, 3, Answer::error(ErrorForm::Json, TIMEOUT.0, TIMEOUT.1));
}

#[test]
fn form_c_flat_json() {
    let before = before();
    before.refused(
        Answer::error(ErrorForm::Flat, "10", "INVALID_REQUEST_PARAMETER_ERROR"),
        Outcome::UpstreamFailed,
        "upstream_refused",
    );
    passes(2, 1, Answer::error(ErrorForm::Flat, "01", "APPLICATION_ERROR"));
}

#[test]
fn form_d_plain_text() {
    let before = before();
    before.refused(Answer::plain(401, "Unauthorized"), Outcome::Misconfigured, "service_key_refused");
    before.refused(Answer::plain(404, "API not found"), Outcome::UpstreamFailed, "upstream_refused");
    passes(1, 2, Answer::plain(500, "Unexpected error(s)"));
}

#[test]
fn form_e_html() {
    let before = before();
    before.refused(Answer::html(400, "<html>Request Blocked</html>"), Outcome::UpstreamFailed, "upstream_refused");
    // A firewall knows nothing of keys: nobody is sent to renew one.
    before.refused(Answer::html(403, "<html>Access Denied</html>"), Outcome::UpstreamFailed, "upstream_refused");
    before.refused(Answer::html(502, "<html>502 Bad Gateway</html>"), Outcome::UpstreamFailed, "upstream_unavailable");
    passes(2, 2, Answer::html(504, "<html>504 Gateway Time-out</html>"));
}

#[test]
fn form_f_an_empty_body() {
    let before = before();
    before.refused(Answer::plain(200, ""), Outcome::UpstreamFailed, "upstream_unavailable");
    passes(1, 2, Answer::plain(200, ""));
}

#[test]
fn the_quota_is_used_up_in_any_status() {
    let before = before();
    for status in [200, 429] {
        let report = before.refused(
            Answer::plain(status, "API token quota exceeded"),
            Outcome::UpstreamFailed,
            "upstream_quota",
        );
        assert_eq!(report.fetched, 0);
    }
    let code =
        Answer::error(ErrorForm::Envelope(Envelope::New), "22", "LIMITED_NUMBER_OF_SERVICE_REQUESTS_EXCEEDS_ERROR");
    before.refused(code, Outcome::UpstreamFailed, "upstream_quota");
}

#[test]
fn flapping_502() {
    let world = World::new(generate(1, 1100));
    let flap = |page| Fault {
        page: Some(page),
        times: 4,
        answer: Answer::plain(502, "Error forwarding request to backend server"),
    };
    world.upstream.fault(flap(1));
    world.upstream.fault(flap(2));
    let report = world.run_here(PATIENT);
    assert_eq!((report.outcome, report.inserted), (Outcome::Succeeded, 1100));
    assert_eq!(world.upstream.requests().len(), 4 + 8);
}

#[test]
fn a_single_504_on_a_late_page() {
    passes(2, 1, Answer::plain(504, ""));
}

#[test]
fn moved_to_https() {
    let before = before();
    let location = "https://api.data.go.kr/openapi/tn_pubr_public_lbrry_api?serviceKey=SECRET".to_owned();
    let report = before.refused(Answer::Moved { status: 301, location }, Outcome::UpstreamFailed, "upstream_refused");
    let message = report.error.unwrap().message;
    assert!(message.contains("https://api.data.go.kr") && !message.contains("SECRET"), "{message}");
}

#[test]
fn json_that_is_cut_in_half() {
    let before = before();
    before.refused(
        Answer::plain(200, "{\"header\":{\"resultCode\":\"00\"},\"body\":{\"items\":[{"),
        Outcome::UpstreamFailed,
        "upstream_unavailable",
    );
}

fn page_of(rows: &[Row]) -> String {
    json!({"header": {"resultCode": "00"}, "body": {"items": rows, "totalCount": rows.len()}}).to_string()
}

#[test]
fn json_with_a_comma_after_the_last_member_of_every_row() {
    let rows = generate(3, 30);
    let world = World::new(Vec::new());
    let loose = page_of(&rows).replace("\"}", "\",}");
    world.upstream.fault(Fault { page: Some(1), times: FOR_EVER, answer: Answer::plain(200, &loose) });
    let report = world.run_here(PATIENT);
    assert_eq!((report.outcome, report.inserted, report.rejected), (Outcome::Succeeded, 30, 0));
}

#[test]
fn items_without_rows_are_an_empty_snapshot() {
    let before = before();
    for items in [json!(""), json!({}), json!([]), Value::Null, json!({"item": ""})] {
        for envelope in [Envelope::Old, Envelope::New] {
            before.refused(Answer::items(envelope, &items, 0), Outcome::SnapshotRefused, "empty_snapshot");
        }
    }
    // The total says otherwise: still nothing that could be right.
    before.refused(Answer::items(Envelope::New, &json!(""), 3555), Outcome::SnapshotRefused, "empty_snapshot");
}

#[test]
fn items_that_are_one_object() {
    let row = Value::from(generate(4, 1).remove(0));
    for items in [row.clone(), json!({ "item": row })] {
        let world = World::new(Vec::new());
        world.upstream.fault(Fault { page: None, times: FOR_EVER, answer: Answer::items(Envelope::New, &items, 1) });
        let report = world.run_here(PATIENT);
        assert_eq!((report.outcome, report.inserted), (Outcome::Succeeded, 1));
    }
}

#[test]
fn no_data_before_the_total_is_a_failed_run() {
    let before = before();
    let none = Answer::error(ErrorForm::Envelope(Envelope::Old), "03", "NODATA_ERROR");
    before.refused(none, Outcome::SnapshotRefused, "empty_snapshot");
}

/// Every bad value that was seen, or that breaks programs of this kind: the row is set aside with column and reason, or the value is
/// stored with a note. The row counts as present either way: no place of the month before is retired.
#[test]
fn bad_values_are_set_aside_or_noted_and_their_rows_are_present() {
    let long = "가".repeat(350_000);
    let lone = "\u{1}lone\u{1}";
    let rows = generate(5, 1200);
    let position =
        |row: &Row| (row["latitude"].as_str().unwrap().to_owned(), row["longitude"].as_str().unwrap().to_owned());
    let world = World::new(rows.clone());
    let before = world.mirror();
    let mut next = rows.clone();
    let bad: [(usize, &str, &str, &str); 9] = [
        (3, "closeDay", "a\0b", "contains a control character"),
        (4, "operInstitutionNm", lone, "is no text"),
        (5, "latitude", "NaN", "is no decimal degree"),
        (6, "bookCo", "47148+559", "is no count"),
        (7, "referenceDate", "2024-02-30", "is no calendar date"),
        (8, "weekdayOperColseHhmm", "24:01", "is no time of day"),
        (9, "seatCo", "9223372036854775808", "is no count"),
        (10, "homepageUrl", &long, "is longer than any real value"),
        (11, "closeDay", "\u{fffd}", "contains bytes that are no UTF-8"),
    ];
    for (at, column, value, _) in bad {
        next[at].insert(column.to_owned(), value.into());
    }
    next[12].insert("satOperCloseHhmm".to_owned(), "24:00".into());
    let swapped = (13..).find(|&at| !position(&rows[at]).0.is_empty() && at % 64 < 62).unwrap();
    let (latitude, longitude) = position(&rows[swapped]);
    next[swapped].insert("latitude".to_owned(), longitude.into());
    next[swapped].insert("longitude".to_owned(), latitude.into());

    // A lone surrogate cannot be written by a JSON library: it is put into the text.
    for (number, page) in (1..).zip(next.chunks(1000)) {
        let page =
            json!({"header": {"resultCode": "00"}, "body": {"items": page, "totalCount": next.len()}}).to_string();
        let page = page.replace("\\u0001lone\\u0001", "\\ud800");
        world.upstream.fault(Fault { page: Some(number), times: FOR_EVER, answer: Answer::plain(200, &page) });
    }
    let report = world.run_here(PATIENT);
    assert_eq!((report.outcome, report.rejected, report.noted), (Outcome::Succeeded, 9, 2), "{report:?}");
    assert_eq!((report.deactivated, report.active, report.inserted), (0, before.active, 0));
    // The exchanged degrees are stored the right way round, so that nothing changed; of the other there is one new value.
    assert_eq!((report.updated, report.unchanged), (1, 1200 - 9 - 1));
    let rejects = world
        .texts("SELECT concat_ws(' ', row_number, column_name, reason) FROM ingest.ingest_rejects ORDER BY row_number");
    let expected: Vec<_> = bad.iter().map(|(at, column, _, reason)| format!("{} {column} {reason}", at + 1)).collect();
    assert_eq!(rejects, expected);
    assert_eq!(world.texts("SELECT noted::text FROM ingest.ingest_runs ORDER BY id"), ["0", "2"]);
}
