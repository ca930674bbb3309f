//! A skip is seen: by whom it was caused, how often in a row, and when it stops being polite.

use crate::world::{Finished, LOCK_KEY, MONTHLY, World};
use geuneul::{Outcome, Skip, SkipReason};
use rehearsal::postgres;
use rehearsal::snapshot::generate;

fn skip(finished: &Finished, outcome: Outcome) -> Skip {
    finished.expect(outcome).skip.unwrap()
}

#[test]
fn the_second_skip_behind_the_same_run_is_no_longer_polite() {
    let world = World::new(generate(1, 30));
    world.mirror();
    let gate = world.upstream.hold_after(1);
    let worker = world.start();
    gate.wait_for_request();
    let first = skip(&world.month(), Outcome::Skipped);
    let second = skip(&world.month(), Outcome::Busy);
    let third = skip(&world.month(), Outcome::Busy);
    gate.release();
    let worked = worker.end().expect(Outcome::Succeeded);

    for (nth, skip) in (1..).zip([&first, &second, &third]) {
        assert_eq!((skip.reason, skip.consecutive_skips), (SkipReason::Locked, nth));
        assert_eq!(skip.holder_run_id.as_ref(), Some(&worked.run_id));
        assert!(skip.holder_pid.is_some() && skip.holder_heartbeat_age_s.is_some());
        assert!(skip.last_success_age_s.is_some_and(|age| age < 60));
    }
    let rows = "SELECT concat_ws(' ', status, skip_reason, consecutive_skips, holder_run_id IS NOT NULL, last_success_age_s IS NOT NULL, lock_key)
        FROM ingest.ingest_runs ORDER BY id";
    let expected =
        ["succeeded", "succeeded", "skipped locked 1", "busy locked 2", "busy locked 3"].map(|row| match row {
            "succeeded" => format!("succeeded f f {LOCK_KEY}"),
            skip => format!("{skip} t t {LOCK_KEY}"),
        });
    assert_eq!(world.texts(rows), expected);

    // Another run in the way is another matter, and a run that worked ends the count.
    let gate = world.upstream.hold_after(1);
    let worker = world.start();
    gate.wait_for_request();
    assert_eq!(skip(&world.month(), Outcome::Skipped).consecutive_skips, 1);
    gate.release();
    worker.end().expect(Outcome::Succeeded);
}

#[test]
fn before_the_first_success_there_is_no_age() {
    let world = World::new(generate(2, 30));
    let gate = world.upstream.hold_after(0);
    let worker = world.start();
    gate.wait_for_request();
    assert_eq!(skip(&world.month(), Outcome::Skipped).last_success_age_s, None);
    gate.release();
    worker.end().expect(Outcome::Succeeded);
}

#[test]
fn a_role_that_may_see_nothing_of_others_still_knows_the_run() {
    postgres::shared().role("skips_runner", "");
    let world = World::new(generate(3, 30));
    world.invoke(&["migrate"]);
    world.database.execute(
        "GRANT USAGE ON SCHEMA ingest TO skips_runner; GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA ingest TO skips_runner",
    );
    let gate = world.upstream.hold_after(1);
    let worker = world.start();
    gate.wait_for_request();
    let skip = skip(&world.as_role("skips_runner").args(MONTHLY).output().unwrap().into(), Outcome::Skipped);
    assert!(skip.holder_run_id.is_some() && skip.holder_pid.is_some() && skip.holder_heartbeat_age_s.is_some());
    gate.release();
    worker.end().expect(Outcome::Succeeded);
}

#[test]
fn a_schedule_that_fires_again_finds_its_work_done() {
    let world = World::new(generate(4, 30));
    let scheduled = [&MONTHLY[..], &["--ingest.trigger=scheduled", "--ingest.min-interval=20d"]].concat();
    assert_eq!(world.invoke(&scheduled).expect(Outcome::Succeeded).inserted, 30);
    let requests = world.upstream.requests().len();
    let again = skip(&world.invoke(&scheduled), Outcome::Skipped);
    assert_eq!((again.reason, again.consecutive_skips), (SkipReason::RecentSuccess, 0));
    assert!(again.last_success_age_s.is_some_and(|age| age < 60));
    assert_eq!(world.upstream.requests().len(), requests, "nobody was asked");

    // A person means it.
    let manual = [&MONTHLY[..], &["--ingest.trigger=manual", "--ingest.min-interval=20d"]].concat();
    world.invoke(&manual).expect(Outcome::Succeeded);
    // A month later it is due.
    world.database.execute("UPDATE ingest.ingest_runs SET finished_at = finished_at - interval '21 days'");
    world.invoke(&scheduled).expect(Outcome::Succeeded);
    // What was withheld was no success.
    world.database.execute("UPDATE ingest.ingest_runs SET status = 'withheld' WHERE status = 'succeeded'");
    world.invoke(&scheduled).expect(Outcome::Succeeded);
    assert_eq!(world.ledger(), ["withheld", "skipped", "withheld", "withheld", "succeeded"]);
    assert!(world.lock_is_free());
}

#[test]
fn the_key_of_the_job_that_is_replaced_excludes_both() {
    let world = World::new(generate(5, 30));
    world.mirror();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let old_job = runtime.block_on(world.database.client());
    let lock = "SET application_name = 'the old job'; SELECT pg_advisory_lock(-42)";
    runtime.block_on(old_job.batch_execute(lock)).unwrap();
    let shared = [&MONTHLY[..], &["--ingest.lock-key=-42"]].concat();
    let busy = skip(&world.invoke(&shared), Outcome::Busy);
    assert_eq!(busy.holder_application.as_deref(), Some("the old job"));
    world.mirror();

    runtime.block_on(old_job.batch_execute("SELECT pg_advisory_unlock(-42)")).unwrap();
    let gate = world.upstream.hold_after(1);
    let worker = world.program().args(&shared).stdout(std::process::Stdio::piped()).spawn().unwrap();
    gate.wait_for_request();
    let taken = runtime.block_on(old_job.query_one("SELECT pg_try_advisory_lock(-42)", &[])).unwrap();
    assert!(!taken.get::<_, bool>(0), "the old job is kept out");
    gate.release();
    assert!(worker.wait_with_output().unwrap().status.success());
}

/// It holds the lock and does not do the work.
#[test]
fn behind_a_dry_run_nobody_is_polite() {
    let world = World::new(generate(6, 30));
    world.mirror();
    let gate = world.upstream.hold_after(0);
    let looker = world
        .program()
        .args(MONTHLY)
        .arg("--ingest.dry-run=true")
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    gate.wait_for_request();
    let busy = skip(&world.month(), Outcome::Busy);
    assert!(busy.holder_run_id.is_some() && busy.holder_heartbeat_age_s.is_some());
    // A second look is none of the job's business.
    skip(&world.month_with("--ingest.dry-run=true"), Outcome::Busy);
    gate.release();
    assert!(looker.wait_with_output().unwrap().status.success());
    assert_eq!(world.invoke(&["status"]).code, Some(5), "the month is not mirrored");
    world.mirror();
    assert_eq!(world.invoke(&["status"]).code, Some(0));
}

#[test]
fn a_success_that_did_less_is_not_the_work() {
    let rows = generate(7, 30);
    let world = World::new(rows.clone());
    world.mirror();
    world.database.execute("UPDATE ingest.ingest_runs SET finished_at = finished_at - interval '30 days'");
    world.upstream.set_rows(rows[3..].to_vec());
    world.invoke(&MONTHLY[..1]).expect(Outcome::Succeeded);
    let scheduled = [&MONTHLY[..], &["--ingest.trigger=scheduled", "--ingest.min-interval=20d"]].concat();
    assert_eq!(world.invoke(&scheduled).expect(Outcome::Succeeded).deactivated, 3);
    let less = ["--ingest.source=library", "--ingest.trigger=scheduled", "--ingest.min-interval=20d"];
    assert_eq!(skip(&world.invoke(&less), Outcome::Skipped).reason, SkipReason::RecentSuccess);
    // A success of the future is none: a clock was wrong.
    for at in ["now() + interval '1 year'", "'infinity'"] {
        world.database.execute(&format!("UPDATE ingest.ingest_runs SET finished_at = {at}, started_at = '-infinity'"));
        world.invoke(&scheduled).expect(Outcome::Succeeded);
        assert_eq!(world.invoke(&["status"]).code, Some(0));
    }
}
