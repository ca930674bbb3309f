use super::*;

fn run(status: &str) -> Run {
    Run {
        run_id: "7b0b1f3e-1111-4222-8333-944445555666".parse().unwrap(),
        trigger: "scheduled".to_owned(),
        occurrence: None,
        status: status.to_owned(),
        started_at: "2026-11-29T03:00:00Z".to_owned(),
        duration_ms: Some(812),
        fetched: None,
        upserted: None,
        deactivated: None,
        withheld: None,
        withheld_reason: None,
        skip_reason: ["skipped", "busy"].contains(&status).then(|| "locked".to_owned()),
        error_code: Some("code".to_owned()),
    }
}

fn after(status: &str) -> Seen {
    let unsettled = (status == "withheld").then(|| run(status));
    Seen {
        last_success_age_s: Some(60),
        runs: vec![run(status)],
        worked: Some(run(status)),
        unsettled,
        ..Seen::default()
    }
}

fn holder(live: bool) -> Option<LockHolder> {
    Some(LockHolder { run_id: Some(run("running").run_id), live, ..LockHolder::default() })
}

fn codes(seen: &Seen) -> Vec<&'static str> {
    needs(seen, Interval::days(35)).into_iter().map(|need| need.code).collect()
}

#[test]
fn absence_counts() {
    assert_eq!(codes(&Seen::default()), ["never_succeeded"]);
    assert_eq!(codes(&Seen { holder: holder(true), ..Seen::default() }), [""; 0], "the first run is at work");
    let month = 35 * 86_400;
    assert_eq!(codes(&Seen { last_success_age_s: Some(month), ..after("succeeded") }), [""; 0]);
    assert_eq!(codes(&Seen { last_success_age_s: Some(month + 1), ..after("succeeded") }), ["stale"]);
}

#[test]
fn every_end_but_a_success_needs_a_person() {
    assert_eq!(codes(&after("succeeded")), [""; 0]);
    for status in
        ["upstream_failed", "internal", "misconfigured", "interrupted", "abandoned", "what a later version says"]
    {
        assert_eq!(codes(&after(status)), ["last_run_failed"], "{status}");
    }
    assert_eq!(codes(&after("withheld")), ["withheld"]);
    assert_eq!(codes(&after("running")), ["died"]);
    assert_eq!(codes(&Seen { holder: holder(true), ..after("running") }), [""; 0]);
    assert_eq!(codes(&Seen { holder: holder(false), ..after("running") }), ["lock_held"]);
}

#[test]
fn one_polite_skip_is_no_matter() {
    let skipped = |skips, status: &str| Seen {
        consecutive_skips: skips,
        busy: u64::from(status == "busy"),
        runs: vec![run(status)],
        ..after("succeeded")
    };
    assert_eq!(codes(&skipped(1, "skipped")), [""; 0]);
    assert_eq!(codes(&skipped(2, "skipped")), ["starving"]);
    assert_eq!(codes(&skipped(1, "busy")), ["starving"]);
    // A run that worked since is the end of it.
    let over = Seen { runs: vec![run("busy"), run("succeeded")], ..after("succeeded") };
    assert_eq!(codes(&over), [""; 0]);
}
