//! What the portal does instead of sending a page.

use std::time::Duration;

use crate::world::{IMPATIENT, PATIENT, Patience, World};
use geuneul::Outcome;
use rehearsal::snapshot::generate;
use rehearsal::upstream::{Answer, Envelope, ErrorForm, Fault};

const FOR_EVER: usize = 1_000_000;

fn fault(page: Option<usize>, times: usize, answer: Answer) -> Fault {
    Fault { page, times, answer }
}

#[test]
fn what_passes_is_waited_for() {
    let world = World::new(generate(1, 30));
    // A body that says nothing is asked for again, a few times.
    world.upstream.fault(fault(Some(1), 2, Answer::plain(200, "")));
    for answer in [
        Answer::plain(502, "Error forwarding request to backend server"),
        Answer::html(504, "<html>504 Gateway Time-out</html>"),
        Answer::error(ErrorForm::Xml, "05", "SERVICETIMEOUT_ERROR"),
        Answer::error(ErrorForm::Json, "23", "LIMITED_NUMBER_OF_SERVICE_REQUESTS_PER_SECOND_EXCEEDS_ERROR"),
        Answer::error(ErrorForm::Flat, "01", "APPLICATION_ERROR"),
        Answer::plain(429, "API rate limit exceeded"),
        Answer::CutShort { body: b"{\"header\":".to_vec() },
    ] {
        world.upstream.fault(fault(Some(1), 1, answer));
    }
    let report = world.run_here(PATIENT);
    assert_eq!((report.outcome, report.inserted), (Outcome::Succeeded, 30));
    assert_eq!(world.upstream.requests().len(), 2 + 9);
}

/// Longer than it takes to answer; whoever does not answer at all is asked again.
const HASTY: Patience = Patience { request: Duration::from_millis(800), delay: Duration::from_millis(1) };

#[test]
fn silence_is_no_answer_and_passes() {
    let world = World::new(generate(1, 30));
    world.upstream.fault(fault(Some(1), 1, Answer::Silence));
    let report = world.run_here(HASTY);
    assert_eq!((report.outcome, report.inserted), (Outcome::Succeeded, 30));
    assert!(world.upstream.requests().len() >= 3);
}

#[test]
fn what_does_not_pass_ends_the_run_with_nothing_written() {
    let cases = [
        (
            Answer::plain(502, "Error receiving response from backend server"),
            Outcome::UpstreamFailed,
            "upstream_unavailable",
        ),
        (
            Answer::error(ErrorForm::Envelope(Envelope::New), "99", "UNKNOWN_ERROR"),
            Outcome::UpstreamFailed,
            "upstream_unavailable",
        ),
        (Answer::plain(200, "{\"header\":{\"resultCode\":\"00\"},}"), Outcome::UpstreamFailed, "upstream_unavailable"),
        (
            Answer::error(ErrorForm::Flat, "10", "INVALID_REQUEST_PARAMETER_ERROR"),
            Outcome::UpstreamFailed,
            "upstream_refused",
        ),
        (Answer::html(400, "<html>Request Blocked</html>"), Outcome::UpstreamFailed, "upstream_refused"),
        (Answer::plain(301, ""), Outcome::UpstreamFailed, "upstream_refused"),
        (Answer::plain(429, "API token quota exceeded"), Outcome::UpstreamFailed, "upstream_quota"),
        (
            Answer::error(ErrorForm::Xml, "31", "DEADLINE_HAS_EXPIRED_ERROR"),
            Outcome::Misconfigured,
            "service_key_refused",
        ),
        (Answer::plain(401, "Unauthorized"), Outcome::Misconfigured, "service_key_refused"),
    ];
    let world = World::new(generate(2, 30));
    world.mirror();
    let versions = world.row_versions();
    for (answer, outcome, code) in cases {
        let world = world.with_upstream(generate(3, 30));
        world.upstream.fault(fault(None, FOR_EVER, answer.clone()));
        let report = world.run_here(IMPATIENT);
        assert_eq!((report.outcome, report.error.unwrap().code.as_str()), (outcome, code), "{answer:?}");
        assert_eq!(world.row_versions(), versions);
        assert!(world.lock_is_free());
    }
}

#[test]
fn pages_that_end_before_the_total_are_no_snapshot() {
    let world = World::new(generate(4, 1100));
    world.upstream.envelope(Envelope::Old);
    let no_data = Answer::error(ErrorForm::Envelope(Envelope::Old), "03", "NODATA_ERROR");
    world.upstream.fault(fault(Some(2), FOR_EVER, no_data.clone()));
    let report = world.run_here(PATIENT);
    assert_eq!((report.outcome, report.error.unwrap().code.as_str()), (Outcome::UpstreamFailed, "upstream_short"));
    assert_eq!(world.places(), 0);

    // Once is no harm: the next two crawls agree.
    let world = World::new(generate(4, 1100));
    world.upstream.fault(fault(Some(2), 1, no_data));
    let report = world.run_here(PATIENT);
    assert_eq!((report.outcome, report.inserted, report.complete), (Outcome::Succeeded, 1100, true), "{report:?}");
}

#[test]
fn a_wrong_key_is_a_matter_for_a_person() {
    let mut world = World::new(generate(5, 30));
    world.set("DATA_GO_KR_SERVICE_KEY", "not+the+right/key==");
    let finished = world.month();
    let report = finished.expect(Outcome::Misconfigured);
    assert_eq!(report.error.unwrap().code, "service_key_refused");
    assert!(finished.stderr.contains("\"hint\":\"check on data.go.kr"), "{}", finished.stderr);
    assert_eq!(world.ledger(), ["misconfigured"]);
}
