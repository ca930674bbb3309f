//! The primary is replaced while a run is at work: what it had not committed is nowhere, and it says so.

use std::time::{Duration, Instant};

use crate::kill::{COPYING, FETCHING, WRITTEN};
use crate::proxy::{Point, Proxy};
use crate::world::{Running, World};
use geuneul::Outcome;
use rehearsal::postgres::{Cluster, Database};
use rehearsal::snapshot::{a_month_later, generate};

/// A primary with last month in it, its standby, and a run of this month that is held at a point. The proxy is the writer's endpoint.
struct Stage {
    primary: Cluster,
    standby: Cluster,
    promoted: Database,
    world: World,
    endpoint: Proxy,
    run: Running,
    /// Last month's table.
    before: Vec<String>,
}

fn table(database: &Database) -> Vec<String> {
    let sql = "SELECT concat_ws(' ', id, key, encode(digest, 'hex'), deleted_at, duplicate_of) FROM ingest.places ORDER BY id";
    database.texts(sql).into_iter().map(Option::unwrap_or_default).collect()
}

fn wait_for(database: &Database, condition: &str) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while database.number(&format!("SELECT count(*) WHERE {condition}")) == 0 {
        assert!(Instant::now() < deadline, "never: {condition}");
    }
}

fn held_at(point: Point) -> Stage {
    let primary = Cluster::start().unwrap();
    let month = generate(1, 300);
    let mut world = World::new(month.clone());
    world.database = primary.database();
    world.set("DATABASE_URL", &world.database.url());
    world.mirror();
    let before = table(&world.database);
    let standby = primary.standby().unwrap();
    let promoted = standby.existing_database(world.database.name());
    world.upstream.set_rows(a_month_later(&month, 2).0);
    let endpoint = Proxy::before(primary.port(), point);
    world.through(endpoint.port());
    let run = world.start();
    endpoint.wait();
    // The standby has what was committed so far: the entry of the run.
    wait_for(&promoted, "EXISTS (SELECT FROM ingest.ingest_runs WHERE status = 'running')");
    Stage { primary, standby, promoted, world, endpoint, run, before }
}

#[test]
fn a_run_whose_primary_dies_left_nothing_on_the_one_that_takes_over() {
    for (point, code) in [(FETCHING, "database_lost"), (COPYING, "database_lost"), (WRITTEN, "not_committed")] {
        let Stage { primary, standby, promoted, mut world, endpoint, run, before } = held_at(point);
        standby.promote().unwrap();
        endpoint.lead_to(standby.port());
        drop(primary);
        endpoint.release();
        let report = run.end().expect(Outcome::DatabaseLost);
        assert_eq!((report.error.unwrap().code.as_str(), report.upserted), (code, 0), "{}", point.name);
        assert_eq!(table(&promoted), before, "{}", point.name);

        // The same endpoint, another server: the next run finds the dead one and makes the month whole.
        world.database = promoted.clone();
        let next = world.mirror();
        assert!(next.inserted > 0 && next.updated > 0 && next.deactivated > 0, "{}: {next:?}", point.name);
        assert_eq!(world.ledger(), ["succeeded", "abandoned", "succeeded"], "{}", point.name);
    }
}

/// The old primary lives on, fenced: neither the run that is at work there nor a later one writes anything.
#[test]
fn a_primary_that_was_replaced_and_fenced_is_refused() {
    let Stage { primary: _primary, standby, promoted, mut world, endpoint, run, before } = held_at(FETCHING);
    standby.promote().unwrap();
    let old = world.database.clone();
    old.execute("ALTER SYSTEM SET default_transaction_read_only = on");
    old.execute("SELECT pg_reload_conf()");
    wait_for(&old, "current_setting('default_transaction_read_only') = 'on'");
    endpoint.release();
    assert_eq!(run.end().expect(Outcome::Misconfigured).error.unwrap().code, "database_read_only");
    let later = world.month();
    assert_eq!(later.expect(Outcome::Misconfigured).error.unwrap().code, "database_read_only");
    assert!(later.stderr.contains("after a failover, this is the old server"), "{}", later.stderr);
    assert_eq!((table(&old), table(&promoted)), (before.clone(), before));

    endpoint.lead_to(standby.port());
    world.database = promoted;
    assert!(world.mirror().upserted > 0);
    assert_eq!(world.ledger(), ["succeeded", "abandoned", "succeeded"]);
}
