//! The table is always some complete snapshot, and a snapshot that is there already costs nothing.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use crate::world::World;
use rehearsal::postgres::Cluster;
use rehearsal::snapshot::{Rows, a_month_later, generate};

/// What is active: key and content.
fn table(world: &World) -> BTreeSet<String> {
    world
        .texts("SELECT concat_ws(' ', key, encode(digest, 'hex')) FROM ingest.places WHERE deleted_at IS NULL")
        .into_iter()
        .collect()
}

/// Two months between which much happens: libraries come, go and change, and a province gets new codes.
fn two_months() -> (Rows, Rows) {
    let january = generate(1, 600);
    let (mut february, _) = a_month_later(&january, 2);
    for row in february.iter_mut().filter(|row| row["insttCode"] == "4641000") {
        row.insert("insttCode".to_owned(), "4651000".into());
    }
    (january, february)
}

#[test]
fn killed_over_and_over_the_table_is_some_complete_snapshot() {
    let (january, february) = two_months();
    let months = [&january, &february];
    let complete = months.map(|rows| {
        let world = World::new(rows.clone());
        world.mirror();
        table(&world)
    });
    let world = World::new(january.clone());
    let began = Instant::now();
    world.mirror();
    let whole = began.elapsed();
    let (mut kills, mut moved) = (0, 0);
    for turn in 0..24_u32 {
        let before = table(&world);
        world.upstream.set_rows(months[turn as usize % 2].clone());
        let run = world.start();
        // Not to wait for anything: to strike somewhere else each time, from the start to the end of a run.
        std::thread::sleep(whole * (turn * 5 % 24 + 1) / 16);
        run.kill();
        world.wait_for_free_lock();
        let after = table(&world);
        assert!(complete.contains(&after), "turn {turn}: the table is no month");
        moved += usize::from(after != before);
        kills += 1;
    }
    world.upstream.set_rows(february);
    world.mirror();
    assert_eq!(table(&world), complete[1]);
    let broken = world.database.number(
        "SELECT count(*) FROM ingest.places d JOIN ingest.places f ON f.id = d.duplicate_of
         WHERE f.duplicate_of IS NOT NULL OR (d.deleted_at IS NULL AND f.deleted_at IS NOT NULL)",
    );
    assert_eq!(broken, 0);
    println!("{kills} kills over a run of {} ms; {moved} times the month had been committed before", whole.as_millis());
    assert!(whole > Duration::ZERO && world.lock_is_free());
}

#[test]
fn an_unchanged_month_writes_next_to_nothing() {
    // A server of its own: the log of writes is one for all databases.
    let cluster = Cluster::start().unwrap();
    let mut world = World::new(generate(1, 3600));
    world.database = cluster.database();
    let url = world.database.url();
    world.set("DATABASE_URL", &url);
    world.mirror();
    let written = || world.database.number("SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), '0/0')::int8");
    world.database.execute("CHECKPOINT");
    let (versions, before) = (world.row_versions(), written());
    let report = world.mirror();
    let bytes = written() - before;
    assert_eq!((report.upserted, report.unchanged), (0, 3600));
    assert_eq!(world.row_versions(), versions, "no xmin, no xmax, no other tuple");
    println!("3600 unchanged rows: {bytes} bytes of WAL");
    assert!(bytes < 1 << 20, "{bytes}");
}
