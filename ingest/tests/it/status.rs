//! `ingest status`: what a person reads, and when one is needed.

use crate::world::{Finished, LOCK_KEY, World};
use geuneul::Outcome;
use rehearsal::snapshot::generate;
use rehearsal::upstream::{Answer, Fault};

fn readable(finished: &Finished) -> String {
    format!("exit code: {}\n{}", finished.code.unwrap(), finished.stdout)
}

fn needs(finished: &Finished) -> Vec<String> {
    let status: serde_json::Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(finished.code, Some(if status["needs_person"].as_bool().unwrap() { 5 } else { 0 }), "{finished:?}");
    let needs = status["sources"][0]["needs"].as_array().unwrap();
    needs.iter().map(|need| need["code"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_life_in_statuses() {
    let world = World::new(generate(1, 60));
    let json = || needs(&world.invoke(&["status", "--json"]));
    assert_eq!(json(), ["never_succeeded"]);
    assert_eq!(world.database.number("SELECT count(*) FROM pg_namespace WHERE nspname = 'ingest'"), 0, "it only looks");

    let gate = world.upstream.hold_after(0);
    let worker = world.start();
    gate.wait_for_request();
    assert_eq!(json(), [""; 0], "the first run is at work");
    gate.release();
    worker.end().expect(Outcome::Succeeded);
    assert_eq!(json(), [""; 0]);

    let fault = Fault { page: None, times: 1_000_000, answer: Answer::plain(401, "Unauthorized") };
    let broken = world.with_upstream(generate(1, 60));
    broken.upstream.fault(fault);
    broken.month().expect(Outcome::Misconfigured);
    assert_eq!(json(), ["last_run_failed"]);

    world.upstream.set_rows(generate(1, 40));
    world.month().expect(Outcome::Withheld);
    let status: serde_json::Value = serde_json::from_str(&world.invoke(&["status", "--json"]).stdout).unwrap();
    assert_eq!(
        (&status["sources"][0]["withheld"], status["sources"][0]["needs"][0]["code"].as_str()),
        (&20.into(), Some("withheld"))
    );

    world.upstream.set_rows(generate(1, 60));
    world.mirror();
    assert_eq!(json(), [""; 0]);
    world.database.execute("UPDATE ingest.ingest_runs SET finished_at = finished_at - interval '36 days'");
    assert_eq!(json(), ["stale"]);
    assert_eq!(needs(&world.invoke(&["status", "--json", "--ingest.max-age=40d"])), [""; 0]);
}

#[test]
fn who_holds_the_lock_and_who_died() {
    let world = World::new(generate(2, 60));
    world.mirror();
    let json = || needs(&world.invoke(&["status", "--json"]));
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let stranger = runtime.block_on(world.database.client());
    let lock = format!("SET application_name = 'psql'; SELECT pg_advisory_lock({LOCK_KEY})");
    runtime.block_on(stranger.batch_execute(&lock)).unwrap();
    assert_eq!(json(), ["lock_held"]);
    world.month().expect(Outcome::Busy);
    assert_eq!(json(), ["lock_held", "starving"]);
    runtime.block_on(stranger.batch_execute(&format!("SELECT pg_advisory_unlock({LOCK_KEY})"))).unwrap();
    assert_eq!(json(), ["starving"]);
    world.mirror();
    assert_eq!(json(), [""; 0]);

    let gate = world.upstream.hold_after(0);
    let worker = world.start();
    gate.wait_for_request();
    world.month().expect(Outcome::Skipped);
    assert_eq!(json(), [""; 0]);
    world.month().expect(Outcome::Busy);
    assert_eq!(json(), ["starving"]);
    worker.kill();
    world.wait_for_free_lock();
    assert_eq!(json(), ["died", "starving"]);
    drop(gate);
    world.mirror();
    assert_eq!(json(), [""; 0]);
}

#[test]
fn what_a_person_reads() {
    let world = World::new(generate(3, 60));
    insta::assert_snapshot!("status_new", readable(&world.invoke(&["status"])));
    world.mirror();
    world.upstream.set_rows(generate(3, 40));
    world.month().expect(Outcome::Withheld);
    let gate = world.upstream.hold_after(0);
    let worker = world.start();
    gate.wait_for_request();
    world.month().expect(Outcome::Skipped);
    world.month().expect(Outcome::Busy);
    world.database.execute("UPDATE ingest.ingest_runs SET finished_at = finished_at - interval '40 days'");
    let filters = vec![
        (r"pid \d+", "pid [pid]"),
        (r"connected \d+s ago, progress \d+s ago", "connected [age] ago, progress [age] ago"),
        (r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", "[run]"),
        (r"\d{4}-\d\d-\d\dT[\d:]+Z", "[time]"),
    ];
    insta::with_settings!({ filters => filters }, {
        insta::assert_snapshot!("status_troubled", readable(&world.invoke(&["status"])));
    });
    gate.release();
    worker.end();
}

#[test]
fn an_older_schema_is_not_read() {
    let world = World::new(generate(4, 10));
    world.mirror();
    world
        .database
        .execute("DELETE FROM ingest.ingest_schema WHERE version = (SELECT max(version) FROM ingest.ingest_schema)");
    let status = world.invoke(&["status"]);
    assert_eq!((status.code, status.stdout.as_str()), (Some(78), ""));
    assert!(status.stderr.contains("run `ingest migrate`"), "{}", status.stderr);
}
