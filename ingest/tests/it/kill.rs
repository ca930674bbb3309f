//! A run ends at each named point: its session is terminated, its process is killed, its process is stopped for longer than the lease.
//! The table holds nothing or everything, the lock is free, and the next run makes it whole.

use crate::proxy::{Point, Proxy};
use crate::world::{Finished, LOCK_KEY, MONTHLY, PATIENT, Running, World};
use geuneul::Outcome;
use rehearsal::snapshot::generate;
use rehearsal::upstream::{Answer, Fault};

const ROWS: i64 = 60;
const COMMIT: &[u8] = b"Q\0\0\0\x0bCOMMIT\0";

const fn before(name: &'static str, bytes: &'static [u8], nth: u32) -> Point {
    Point { name, bytes, nth, hold_reply: false }
}

const AFTER_LOCK: Point = before("after the lock, before it is confirmed", b"FROM pg_locks", 1);
const BEFORE_LEDGER: Point = before("before the run has a row", b"INSERT INTO ingest_runs", 1);
pub const FETCHING: Point = before("while fetching", b"SET heartbeat_at = clock_timestamp(), pages", 1);
const PLANNED: Point = before("after the plan, before the transaction", b"FROM pg_locks", 2);
pub const COPYING: Point = before("within COPY", b"c\0\0\0\x04S\0\0\0\x04", 1);
pub const WRITTEN: Point = before("between the writes and COMMIT", COMMIT, 2);
const COMMITTED: Point = Point { hold_reply: true, ..before("after COMMIT, before its reply", COMMIT, 2) };
const UNLOCKING: Point = before("before the unlock", b"pg_advisory_unlock", 1);

const POINTS: [Point; 8] = [AFTER_LOCK, BEFORE_LEDGER, FETCHING, PLANNED, COPYING, WRITTEN, COMMITTED, UNLOCKING];

impl Point {
    fn is_after_commit(&self) -> bool {
        [COMMITTED.name, UNLOCKING.name].contains(&self.name)
    }

    fn has_a_row(&self) -> bool {
        ![AFTER_LOCK.name, BEFORE_LEDGER.name].contains(&self.name)
    }
}

/// Brings a run to the point, lets `end` happen to it, and looks at what is left.
fn at(world: &mut World, point: Point, end: impl FnOnce(&World, Running, &Proxy)) {
    let proxy = Proxy::before(world.database.port(), point);
    world.through(proxy.port());
    let before = world.ledger().len();
    let run = world.start();
    proxy.wait();
    end(world, run, &proxy);
    drop(proxy);
    world.through(world.database.port());
    world.wait_for_free_lock();

    let written = if point.is_after_commit() { ROWS } else { 0 };
    assert_eq!(world.places(), written, "{}", point.name);
    let row = match (point.has_a_row(), point.is_after_commit()) {
        (false, _) => vec![],
        (true, false) => vec!["running".to_owned()],
        (true, true) => vec!["succeeded".to_owned()],
    };
    assert_eq!(world.ledger()[before..], row, "{}", point.name);
    let next = world.mirror();
    assert_eq!((next.inserted, next.unchanged), ((ROWS - written) as u64, written as u64), "{}", point.name);
    assert!(!world.ledger().contains(&"running".to_owned()), "{}", point.name);
    world.database.execute("TRUNCATE ingest.places, ingest.ingest_changes, ingest.ingest_rejects");
}

/// A stage on which somebody else holds a lock of their own all along.
fn with_a_decoy(test: impl FnOnce(&mut World)) {
    let mut world = World::new(generate(1, ROWS as usize));
    world.invoke(&["migrate"]);
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let decoy = runtime.block_on(world.database.client());
    runtime.block_on(decoy.batch_execute("SELECT pg_advisory_lock(7), pg_advisory_lock(0, 7)")).unwrap();
    test(&mut world);
    let kept = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()";
    assert_eq!(runtime.block_on(decoy.query_one(kept, &[])).unwrap().get::<_, i64>(0), 2);
}

#[test]
fn terminated_by_an_operator_at_every_point() {
    with_a_decoy(|world| {
        for point in POINTS {
            at(world, point, |world, run, proxy| {
                world.database.execute(
                    "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
                     WHERE application_name LIKE 'ingest library run=%' AND datname = current_database()",
                );
                if point.hold_reply {
                    proxy.sever()
                } else {
                    proxy.release()
                }
                let finished = run.end();
                // What was committed was committed, whether its reply or the unlock got through or not.
                let (outcome, inserted) =
                    if point.is_after_commit() { (Outcome::Succeeded, ROWS) } else { (Outcome::DatabaseLost, 0) };
                assert_eq!(finished.expect(outcome).inserted, inserted as u64, "{}", point.name);
            });
        }
    });
}

#[test]
fn killed_at_every_point() {
    with_a_decoy(|world| {
        for point in POINTS {
            at(world, point, |_, run, proxy| {
                run.kill();
                proxy.sever();
            });
        }
    });
}

#[test]
fn stopped_for_longer_than_the_lease() {
    // The one that was about to commit asks the ledger what became of it.
    for (point, code) in [(FETCHING, "database_lost"), (WRITTEN, "not_committed")] {
        let mut world = World::new(generate(2, ROWS as usize));
        world.invoke(&["migrate"]);
        world.set("INGEST_LEASE", "4s");
        let proxy = Proxy::before(world.database.port(), point);
        world.through(proxy.port());
        let run = world.start();
        proxy.wait();
        run.signal("STOP");
        world.through(world.database.port());
        // Nobody ends the session but the server.
        world.wait_for_free_lock();
        let successor = world.invoke(&MONTHLY).expect(Outcome::Succeeded);
        assert_eq!(successor.inserted, ROWS as u64, "{}", point.name);
        let versions = world.row_versions();

        proxy.release();
        run.signal("CONT");
        let report = run.end().expect(Outcome::DatabaseLost);
        assert_eq!(report.error.unwrap().code, code, "{}", point.name);
        assert_eq!(world.row_versions(), versions, "{}", point.name);
        assert_eq!(world.ledger(), ["abandoned", "succeeded"], "{}", point.name);
    }
}

/// One page is given half of the lease, so that it is the upstream that fails, with the lock still held.
#[test]
fn a_silent_upstream_does_not_cost_the_session() {
    let mut world = World::new(generate(6, ROWS as usize));
    world.set("INGEST_LEASE", "4s");
    world.upstream.fault(Fault { page: None, times: 1_000, answer: Answer::Silence });
    let report = world.month().expect(Outcome::UpstreamFailed);
    assert_eq!(report.error.unwrap().code, "upstream_unavailable");
    assert!(report.duration_ms >= 1900, "{}", report.duration_ms);
    assert!(world.lock_is_free());
    assert_eq!(world.ledger(), ["upstream_failed"]);
}

/// The lock is granted to somebody who no longer waits for the answer: it goes with the session.
#[test]
fn interrupted_while_the_lock_is_being_granted() {
    let mut world = World::new(generate(4, ROWS as usize));
    world.invoke(&["migrate"]);
    let key: &'static [u8] = Box::leak(Box::new(LOCK_KEY.to_be_bytes()));
    let granted = Point { name: "granted", bytes: key, nth: 1, hold_reply: true };
    let proxy = Proxy::before(world.database.port(), granted);
    world.through(proxy.port());
    let run = world.start();
    proxy.wait();
    assert!(!world.lock_is_free(), "granted, and nobody was told");
    run.signal("TERM");
    run.end().expect(Outcome::Interrupted);
    proxy.sever();
    world.wait_for_free_lock();
    assert_eq!((world.places(), world.ledger()), (0, vec![]));
}

#[test]
fn interrupted_within_copy_while_the_server_is_silent() {
    let mut world = World::new(generate(5, ROWS as usize));
    world.invoke(&["migrate"]);
    let proxy = Proxy::before(world.database.port(), COPYING);
    world.through(proxy.port());
    let run = world.start();
    proxy.wait();
    let asked = std::time::Instant::now();
    run.signal("TERM");
    run.end().expect(Outcome::Interrupted);
    assert!(asked.elapsed() < std::time::Duration::from_secs(4), "{:?}", asked.elapsed());
    proxy.sever();
    world.wait_for_free_lock();
    assert_eq!((world.places(), world.ledger()), (0, vec!["running".to_owned()]));
}

/// Brings a run to the point, sends SIGTERM, and gives back how it ended and what it left before anything more got through.
fn interrupted_at(world: &mut World, point: Point, then: impl FnOnce(&Proxy)) -> Finished {
    world.invoke(&["migrate"]);
    let proxy = Proxy::before(world.database.port(), point);
    world.through(proxy.port());
    let run = world.start();
    proxy.wait();
    let asked = std::time::Instant::now();
    run.signal("TERM");
    then(&proxy);
    let finished = run.end();
    assert!(asked.elapsed() < std::time::Duration::from_secs(5), "{}: {:?}", point.name, asked.elapsed());
    proxy.sever();
    world.wait_for_free_lock();
    finished
}

#[test]
fn interrupted_while_commit_hangs() {
    let mut world = World::new(generate(6, ROWS as usize));
    let finished = interrupted_at(&mut world, WRITTEN, |_| {});
    assert_eq!(finished.expect(Outcome::Interrupted).error.unwrap().code, "interrupted_commit");
    assert_eq!((world.places(), world.ledger()), (0, vec!["running".to_owned()]));
}

#[test]
fn interrupted_while_the_unlock_hangs() {
    let mut world = World::new(generate(7, ROWS as usize));
    let finished = interrupted_at(&mut world, UNLOCKING, |_| {});
    assert_eq!(finished.expect(Outcome::Succeeded).inserted, ROWS as u64);
    assert!(finished.stderr.contains("the unlock was not confirmed"), "{finished:?}");
    assert_eq!((world.places(), world.ledger()), (ROWS, vec!["succeeded".to_owned()]));
}

/// The entry is committed and nobody was told: it is closed all the same.
#[test]
fn interrupted_while_the_ledger_entry_is_written() {
    let mut world = World::new(generate(8, ROWS as usize));
    let entered = Point { name: "the entry's COMMIT", hold_reply: true, ..before("", COMMIT, 1) };
    interrupted_at(&mut world, entered, Proxy::release).expect(Outcome::Interrupted);
    assert_eq!(world.ledger(), ["interrupted"]);
}

/// The cancellation of a signal reaches the server when the run is already writing how it ended: the server itself sends one then, and
/// once more for an operator.
#[test]
fn a_cancellation_that_arrives_late_costs_nothing() {
    let world = World::new(generate(9, ROWS as usize));
    world.invoke(&["migrate"]);
    // A sequence counts what is rolled back, too.
    world.database.execute(
        "CREATE SEQUENCE ingest.cancelled;
         CREATE FUNCTION ingest.cancel() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
             IF nextval('ingest.cancelled') <= 2 THEN
                 PERFORM pg_cancel_backend(pg_backend_pid());
                 PERFORM pg_sleep(60);
             END IF;
             RETURN NEW;
         END $$;
         CREATE TRIGGER cancel BEFORE UPDATE ON ingest.ingest_runs FOR EACH ROW WHEN (NEW.status = 'interrupted')
             EXECUTE FUNCTION ingest.cancel()",
    );
    let gate = world.upstream.hold_after(1);
    let run = world.start();
    gate.wait_for_request();
    run.signal("TERM");
    let finished = run.end();
    finished.expect(Outcome::Interrupted);
    assert_eq!(world.ledger(), ["interrupted"], "{}", finished.stderr);
    assert_eq!(world.database.number("SELECT last_value FROM ingest.cancelled"), 3, "{}", finished.stderr);
}

#[test]
fn a_run_has_an_end_although_the_database_is_silent() {
    let mut world = World::new(generate(10, ROWS as usize));
    world.invoke(&["migrate"]);
    let proxy = Proxy::before(world.database.port(), FETCHING);
    world.through(proxy.port());
    let report = world.run_here_for(PATIENT, std::time::Duration::from_millis(700));
    assert_eq!((report.outcome, report.error.unwrap().code.as_str()), (Outcome::DatabaseLost, "run_deadline"));
    proxy.sever();
    world.wait_for_free_lock();
    assert_eq!(world.places(), 0);
}

#[test]
fn a_pile_of_starters_takes_turns() {
    let world = World::new(generate(3, ROWS as usize));
    world.invoke(&["migrate"]);
    let outcomes: Vec<Outcome> = std::thread::scope(|scope| {
        let starters: Vec<_> = (0..4)
            .map(|_| scope.spawn(|| (0..6).map(|_| world.month().report().outcome).collect::<Vec<_>>()))
            .collect();
        starters.into_iter().flat_map(|starter| starter.join().unwrap()).collect()
    });
    assert_eq!(outcomes.len(), 24);
    for outcome in &outcomes {
        assert!([Outcome::Succeeded, Outcome::Skipped, Outcome::Busy].contains(outcome), "{outcome}");
    }
    // Nobody worked beside somebody else, and everybody left a row.
    let overlaps = "SELECT count(*) FROM ingest.ingest_runs a JOIN ingest.ingest_runs b ON a.id < b.id
        WHERE a.status = 'succeeded' AND b.status = 'succeeded' AND b.started_at < a.finished_at AND a.started_at < b.finished_at";
    assert_eq!(world.database.number(overlaps), 0);
    let rows = world.ledger();
    assert_eq!(rows.len(), 24);
    for status in [Outcome::Succeeded, Outcome::Skipped, Outcome::Busy] {
        let ended = outcomes.iter().filter(|outcome| **outcome == status).count();
        assert_eq!(rows.iter().filter(|row| *row == status.as_str()).count(), ended, "{status}");
    }
    assert!(outcomes.contains(&Outcome::Succeeded));
    assert_eq!(world.places(), ROWS);
}
