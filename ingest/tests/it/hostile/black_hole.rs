//! The connection disappears without a word: no FIN, no RST. The server frees the lock by itself, with the options that the program
//! asked for, in little more than a minute; without them it takes more than two hours.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::world::{LOCK_KEY, MONTHLY};
use rehearsal::namespace::Namespace;
use rehearsal::postgres::{Cluster, Database, Setup};

const LIMIT: Duration = Duration::from_secs(70);

fn start(namespace: &Namespace, database: &Database, args: &[&str]) -> std::process::Child {
    let mut program = Command::new(env!("CARGO_BIN_EXE_ingest"));
    program
        .args(args)
        .env("DATABASE_URL", database.url())
        .env("DATA_GO_KR_SERVICE_KEY", "a-key-of-sixteen-or-more")
        // Nobody is there: the run holds its lock and asks again.
        .env("DATA_GO_KR_BASE_URL", "http://127.0.0.1:1");
    namespace.command(&program).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

fn held(database: &Database) -> bool {
    let sql = format!(
        "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND (classid::int8 << 32 | objid::int8) = {LOCK_KEY}
         AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    );
    database.number(&sql) > 0
}

fn wait_for(what: &str, limit: Duration, mut condition: impl FnMut() -> bool) -> Duration {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < limit, "{what}: not within {limit:?}");
        std::thread::sleep(Duration::from_millis(50));
    }
    started.elapsed()
}

#[test]
#[ignore = "needs root and iproute2"]
fn a_connection_that_vanishes_is_let_go_within_70_seconds() {
    let namespace = Namespace::new().unwrap();
    let cluster = Cluster::start_as(&Setup { namespace: Some(namespace.share()), ..Setup::default() }).unwrap();
    let (idle, waiting) = (cluster.database(), cluster.database());
    let runtime = tokio::runtime::Runtime::new().unwrap();

    // One session is idle, between two attempts at a page.
    let mut first = start(&namespace, &idle, &MONTHLY);
    wait_for("the first run takes its lock", Duration::from_secs(20), || held(&idle));
    // The other one is owed a reply: its statement waits for a table that somebody locks, and is answered when nobody can hear.
    assert!(start(&namespace, &waiting, &["migrate"]).wait().unwrap().success());
    let blocker = runtime.block_on(waiting.client());
    runtime.block_on(blocker.batch_execute("BEGIN; LOCK TABLE ingest.ingest_runs IN SHARE MODE")).unwrap();
    let mut second = start(&namespace, &waiting, &MONTHLY);
    let blocked =
        "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    wait_for("the second run waits", Duration::from_secs(8), || waiting.number(blocked) == 1);
    assert!(held(&waiting));

    namespace.cut().unwrap();
    runtime.block_on(blocker.batch_execute("ROLLBACK")).unwrap();
    let mut freed = [None, None];
    let cut = Instant::now();
    wait_for("both locks are free", LIMIT, || {
        for (freed, database) in freed.iter_mut().zip([&idle, &waiting]) {
            if freed.is_none() && !held(database) {
                *freed = Some(cut.elapsed());
            }
        }
        freed.iter().all(Option::is_some)
    });
    let [idle, waiting] = freed.map(|freed| freed.unwrap().as_secs_f32());
    println!("freed after {idle:.1} s (idle) and {waiting:.1} s (a reply on its way)");
    assert!(idle > 20.0 && waiting > 20.0, "the connections were really cut, not closed: {idle} {waiting}");
    for child in [&mut first, &mut second] {
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
