//! One works, the others step aside; whoever dies leaves nothing behind.

use crate::world::{LOCK_KEY, World};
use geuneul::Outcome;
use rehearsal::snapshot::generate;

#[test]
fn of_two_at_once_one_works_and_one_is_skipped() {
    let world = World::new(generate(1, 60));
    let gate = world.upstream.hold_after(1);
    let worker = world.start();
    gate.wait_for_request();
    let skipped = world.month().expect(Outcome::Skipped);
    gate.release();
    let worked = worker.end().expect(Outcome::Succeeded);

    let skip = skipped.skip.unwrap();
    assert_eq!(skip.holder_run_id.as_ref(), Some(&worked.run_id));
    assert!(skip.holder_pid.is_some() && skip.holder_age_s.is_some() && skip.holder_heartbeat_age_s.is_some());
    assert_eq!(skip.holder_application, Some(format!("ingest library run={}", worked.run_id)));
    assert_eq!(worked.inserted, 60);
    let ledger = world.texts("SELECT concat_ws(' ', status, holder_run_id) FROM ingest.ingest_runs ORDER BY id");
    assert_eq!(ledger, ["succeeded".to_owned(), format!("skipped {}", worked.run_id)]);
    assert!(world.lock_is_free());
}

#[test]
fn two_schemas_of_one_database_do_not_wait_for_each_other() {
    let mut world = World::new(generate(9, 20));
    world.mirror();
    let gate = world.upstream.hold_after(1);
    let worker = world.start();
    gate.wait_for_request();
    world.set("INGEST_DB_SCHEMA", "another");
    let elsewhere = world.with_upstream(generate(9, 20));
    assert_eq!(elsewhere.mirror().inserted, 20);
    gate.release();
    worker.end().expect(Outcome::Succeeded);
}

#[test]
fn a_lock_held_by_somebody_else_is_busy() {
    let world = World::new(generate(2, 20));
    world.mirror();
    let versions = world.row_versions();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let decoy = runtime.block_on(async {
        let decoy = world.database.client().await;
        // Somebody's lock under another key is nobody's concern.
        let sql = format!("SET application_name = 'psql'; SELECT pg_advisory_lock({LOCK_KEY}), pg_advisory_lock(7)");
        decoy.batch_execute(&sql).await.unwrap();
        decoy
    });
    let busy = world.month().expect(Outcome::Busy);
    let skip = busy.skip.unwrap();
    assert_eq!((skip.holder_application.as_deref(), skip.holder_run_id), (Some("psql"), None));
    assert_eq!(world.row_versions(), versions);

    runtime.block_on(decoy.batch_execute(&format!("SELECT pg_advisory_unlock({LOCK_KEY})"))).unwrap();
    world.mirror();
    assert_eq!(world.ledger(), ["succeeded", "busy", "succeeded"]);
}

#[test]
fn a_holder_without_progress_is_no_live_run() {
    let world = World::new(generate(2, 20));
    let gate = world.upstream.hold_after(1);
    let worker = world.start();
    gate.wait_for_request();
    world.database.execute("UPDATE ingest.ingest_runs SET heartbeat_at = now() - interval '11 minutes'");
    let busy = world.month().expect(Outcome::Busy);
    assert!(busy.skip.unwrap().holder_heartbeat_age_s.unwrap() >= 660);
    gate.release();
    worker.end().expect(Outcome::Succeeded);
}

#[test]
fn killed_while_fetching() {
    let world = World::new(generate(3, 60));
    world.mirror();
    let versions = world.row_versions();
    world.upstream.set_rows(generate(4, 60));
    let gate = world.upstream.hold_after(0);
    let victim = world.start();
    gate.wait_for_request();
    victim.kill();
    gate.release();
    assert_eq!(world.row_versions(), versions);
    world.wait_for_free_lock();
    world.upstream.set_rows(generate(3, 60));
    let next = world.mirror();
    assert_eq!((next.unchanged, next.upserted), (60, 0));
    assert_eq!(world.ledger(), ["succeeded", "abandoned", "succeeded"]);
}

/// Stops a run inside its write transaction: the table is locked by somebody else, and the run waits for it.
fn stopped_while_writing(end: impl FnOnce(&World, crate::world::Running)) -> World {
    let world = World::new(generate(5, 60));
    world.invoke(&["migrate"]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let blocker = runtime.block_on(world.database.client());
    runtime.block_on(blocker.batch_execute("BEGIN; LOCK TABLE ingest.places IN SHARE MODE")).unwrap();
    let run = world.start();
    world.wait_until(
        "EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')",
    );
    end(&world, run);
    runtime.block_on(blocker.batch_execute("ROLLBACK")).unwrap();
    world
}

#[test]
fn killed_while_writing() {
    let world = stopped_while_writing(|_, run| run.kill());
    world.wait_for_free_lock();
    assert_eq!(world.places(), 0);
    assert_eq!(world.mirror().inserted, 60);
    assert_eq!(world.ledger(), ["abandoned", "succeeded"]);
}

#[test]
fn terminated_while_writing() {
    let world = stopped_while_writing(|_, run| {
        run.signal("TERM");
        run.end().expect(Outcome::Interrupted);
    });
    assert!(world.lock_is_free(), "an interrupted run unlocks by itself");
    assert_eq!(world.places(), 0);
    assert_eq!(world.ledger(), ["interrupted"]);
}

#[test]
fn terminated_while_fetching() {
    for signal in ["TERM", "INT"] {
        let world = World::new(generate(6, 60));
        let gate = world.upstream.hold_after(1);
        let run = world.start();
        gate.wait_for_request();
        run.signal(signal);
        let finished = run.end();
        assert_eq!(finished.code, Some(143));
        assert_eq!(finished.expect(Outcome::Interrupted).error.unwrap().code, "interrupted");
        assert!(world.lock_is_free(), "an interrupted run unlocks by itself");
        assert_eq!((world.places(), world.ledger()), (0, vec!["interrupted".to_owned()]));
    }
}

#[test]
fn a_session_that_ends_ends_the_run() {
    let world = World::new(generate(7, 60));
    let gate = world.upstream.hold_after(1);
    let run = world.start();
    gate.wait_for_request();
    world.database.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name LIKE 'ingest library run=%' AND datname = current_database()",
    );
    gate.release();
    let report = run.end().expect(Outcome::DatabaseLost);
    assert_eq!(report.error.unwrap().code, "database_lost");
    assert_eq!(world.places(), 0);
    world.wait_for_free_lock();
    world.mirror();
    assert_eq!(world.ledger(), ["abandoned", "succeeded"]);
}

#[test]
fn a_run_that_was_overtaken_writes_nothing() {
    let world = World::new(generate(8, 60));
    let gate = world.upstream.hold_after(1);
    let run = world.start();
    gate.wait_for_request();
    world.database.execute("UPDATE ingest.ingest_sources SET fence = fence + 1");
    gate.release();
    assert_eq!(run.end().expect(Outcome::DatabaseLost).error.unwrap().code, "fenced");
    assert_eq!(world.places(), 0);
}
