//! The main job: month after month.

use crate::world::World;
use rehearsal::snapshot::{a_month_later, generate};
use rehearsal::upstream::Envelope;

#[test]
fn months_follow_each_other() {
    let january = generate(1, 500);
    let world = World::new(january.clone());
    let first = world.mirror();
    assert_eq!((first.fetched, first.inserted, first.active, first.duplicates), (500, 500, 493, 7));
    assert!(first.complete && first.snapshot_sha256.is_some());

    let versions = world.row_versions();
    let second = world.mirror();
    assert_eq!((second.upserted, second.unchanged, second.deactivated), (0, 500, 0));
    assert_eq!(world.row_versions(), versions, "an unchanged world writes no place");
    assert_eq!(second.snapshot_sha256, first.snapshot_sha256);

    let (february, change) = a_month_later(&january, 2);
    world.upstream.set_rows(february);
    let keys = || world.texts("SELECT concat_ws(' ', id, key) FROM ingest.places WHERE deleted_at IS NULL ORDER BY id");
    let before = keys();
    let third = world.mirror();
    let seen = (third.inserted as usize, third.updated as usize, third.deactivated as usize, third.reactivated);
    assert_eq!(seen, (change.inserted, change.updated, change.retired, 0));
    assert!(change.retired > 0);

    // What had gone returns under its old id, what had come goes.
    world.upstream.set_rows(january);
    let fourth = world.mirror();
    let seen = (fourth.inserted, fourth.updated as usize, fourth.deactivated as usize, fourth.reactivated as usize);
    assert_eq!(seen, (0, change.updated, change.inserted, change.retired));
    assert_eq!(keys(), before);

    assert_eq!(world.ledger(), ["succeeded"; 4]);
    let changes = world.texts("SELECT concat_ws(' ', run, change, count(*)) FROM ingest.ingest_changes GROUP BY run, change ORDER BY run, change");
    let expected = [
        format!("3 deactivated {}", change.retired),
        format!("3 updated {}", change.updated),
        format!("4 deactivated {}", change.inserted),
        format!("4 reactivated {}", change.retired),
        format!("4 updated {}", change.updated),
    ];
    assert_eq!(changes, expected);
    assert!(world.lock_is_free());
}

#[test]
fn the_ledger_says_what_the_report_says() {
    let mut world = World::new(generate(3, 40));
    world.set("INGEST_TRIGGER", "scheduled");
    world.set("INGEST_OCCURRENCE", "library-sync@2026-11-05T03:00:00Z");
    let retried = "7b0b1f3e-1111-4222-8333-944445555666";
    let finished = world.invoke(&["--ingest.source=library", &format!("--ingest.retry-of={retried}")]);
    let report = finished.report();
    let row = world.texts(
        "SELECT concat_ws(' ', run_id, source, trigger, occurrence, retry_of, deactivate_stale, status, fetched, inserted, updated,
            unchanged, reactivated, rejected, deactivated, active, duplicates, complete, snapshot_sha256, error_code,
            duration_ms >= 0, finished_at >= started_at, committed_xid IS NOT NULL)
         FROM ingest.ingest_runs",
    );
    let (run_id, sha256) = (&report.run_id, report.snapshot_sha256.as_ref().unwrap());
    let expected = format!(
        "{run_id} library scheduled library-sync@2026-11-05T03:00:00Z {retried} f succeeded 40 40 0 0 0 0 0 40 0 t {sha256} t t t"
    );
    assert_eq!(row, [expected]);
    assert_eq!(report.occurrence.as_deref(), Some("library-sync@2026-11-05T03:00:00Z"));
}

#[test]
fn without_the_flag_nothing_is_deactivated() {
    let rows = generate(4, 40);
    let world = World::new(rows.clone());
    world.mirror();
    world.upstream.set_rows(rows[5..].to_vec());
    let report = world.invoke(&["--ingest.source=library"]).report();
    assert_eq!((report.deactivated, report.withheld, report.active), (0, None, 40));
}

#[test]
fn a_place_is_stored_as_it_was_published() {
    let rows = generate(5, 1);
    let world = World::new(rows.clone());
    world.mirror();
    let stored = world.texts("SELECT concat_ws('|', name, category, address, province, key) FROM ingest.places");
    let text = |key: &str| rows[0][key].as_str().unwrap();
    let key = format!("{}/{}", text("insttCode"), text("lbrryNm"));
    let expected = [text("lbrryNm"), text("lbrrySe"), text("rdnmadr"), text("ctprvnNm"), &key].join("|");
    assert_eq!(stored, [expected]);
    let kept = "SELECT count(*) FROM ingest.places, jsonb_object_keys(attributes)";
    assert_eq!(world.database.number(kept), 28);
}

#[test]
fn both_envelopes_and_both_forms_of_the_key_are_the_same_snapshot() {
    let mut world = World::new(generate(6, 1100));
    let first = world.mirror();
    world.upstream.envelope(Envelope::Old);
    let encoded = world.upstream.encoded_key();
    world.set("DATA_GO_KR_SERVICE_KEY", &encoded);
    let second = world.mirror();
    assert_eq!((second.upserted, second.unchanged), (0, 1100));
    assert_eq!(second.snapshot_sha256, first.snapshot_sha256);
    let requests = world.upstream.requests();
    assert_eq!(requests.len(), 8, "two crawls of two pages a run");
    assert!(
        requests
            .iter()
            .all(|request| request.user_agent.as_deref().is_some_and(|agent| agent.starts_with("geuneul-ingest/")))
    );
}
