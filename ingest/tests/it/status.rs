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
    world.database.execute("UPDATE ingest.ingest_runs SET finished_at = finished_at - interval '40 days', started_at = started_at - interval '40 days'");
    let filters = vec![
        (r"pid \d+", "pid [pid]"),
        (r"connected \d+ \w+ ago, progress \d+ \w+ ago", "connected [age] ago, progress [age] ago"),
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

/// Whoever was in the way has done the work since.
#[test]
fn skips_that_a_success_ended_are_over() {
    let world = World::new(generate(5, 60));
    let json = || needs(&world.invoke(&["status", "--json"]));
    let gate = world.upstream.hold_after(0);
    let worker = world.start();
    gate.wait_for_request();
    world.month().expect(Outcome::Skipped);
    world.month().expect(Outcome::Busy);
    assert_eq!(json(), ["starving"]);
    gate.release();
    worker.end().expect(Outcome::Succeeded);
    assert_eq!(json(), [""; 0]);
}

#[test]
fn a_dry_run_says_nothing_about_the_job() {
    let mut world = World::new(generate(6, 60));
    world.mirror();
    let key = world.upstream.key();
    world.set("DATA_GO_KR_SERVICE_KEY", "not+the+right/key==");
    world.month_with("--ingest.dry-run=true").expect(Outcome::Misconfigured);
    assert_eq!(needs(&world.invoke(&["status", "--json"])), [""; 0]);
    world.set("DATA_GO_KR_SERVICE_KEY", key);
    for signal in ["TERM", "KILL"] {
        let gate = world.upstream.hold_after(0);
        let look = world
            .program()
            .args(crate::world::MONTHLY)
            .arg("--ingest.dry-run=true")
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn();
        gate.wait_for_request();
        let look = crate::world::Running(look.unwrap());
        look.signal(signal);
        look.end();
        world.wait_for_free_lock();
        assert_eq!(needs(&world.invoke(&["status", "--json"])), [""; 0], "{signal}");
    }
    let readable = world.invoke(&["status"]).stdout;
    assert!(readable.contains("interrupted (dry run)") && readable.contains("running (dry run)"), "{readable}");
}

#[test]
fn what_was_withheld_stays_until_it_is_settled() {
    let rows = generate(7, 60);
    let world = World::new(rows.clone());
    world.mirror();
    world.upstream.set_rows(rows[..40].to_vec());
    world.month().expect(Outcome::Withheld);
    let json = || needs(&world.invoke(&["status", "--json"]));
    world.invoke(&["--ingest.source=library"]).expect(Outcome::Succeeded);
    assert_eq!(json(), ["withheld"], "nobody asked that run");
    let said = world.invoke(&["status"]).stdout;
    assert!(said.contains("20 deactivations were withheld by run") && said.contains("more than the cap"), "{said}");
    world.month_with("--ingest.confirm-deactivations=20").expect(Outcome::Succeeded);
    assert_eq!(json(), [""; 0]);

    // Not proven, and without the flag: any proof settles it.
    let fresh = generate(8, 40);
    world.upstream.before_each(move |number, rows| rows[number % 30].clone_from(&fresh[number]));
    world.invoke(&["--ingest.source=library"]).expect(Outcome::Withheld);
    let said = world.invoke(&["status"]).stdout;
    assert!(said.contains("could not prove its snapshot complete"), "{said}");
    world.upstream.before_each(|_, _| {});
    world.upstream.set_rows(rows[..40].to_vec());
    world.invoke(&["--ingest.source=library"]).expect(Outcome::Succeeded);
    assert_eq!(json(), [""; 0]);
}

/// It may not look, or is told another schema: it does not say that nothing is merged.
#[test]
fn explain_merges_says_when_it_sees_nothing() {
    rehearsal::postgres::shared().role("explain_stranger", "");
    let mut world = World::new(generate(9, 10));
    world.mirror();
    let denied: Finished = world.as_role("explain_stranger").arg("explain-merges").output().unwrap().into();
    assert_eq!((denied.code, denied.stdout.as_str()), (Some(78), ""), "{denied:?}");
    world.set("INGEST_DB_SCHEMA", "typo");
    let nowhere = world.invoke(&["explain-merges"]);
    assert!(nowhere.code == Some(0) && nowhere.stderr.contains("no run has ever been here"), "{nowhere:?}");
}

/// A dry run of a new version changes no table under the programs that use it.
#[test]
fn a_dry_run_migrates_nothing_that_is_there() {
    let world = World::new(generate(10, 10));
    world.mirror();
    world
        .database
        .execute("DELETE FROM ingest.ingest_schema WHERE version = (SELECT max(version) FROM ingest.ingest_schema)");
    let finished = world.month_with("--ingest.dry-run=true");
    assert_eq!(finished.expect(Outcome::Misconfigured).error.unwrap().code, "schema_refused");
    assert!(finished.stderr.contains("run `ingest migrate`"), "{}", finished.stderr);
}
