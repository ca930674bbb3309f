//! What answers in place of a PostgreSQL that a run can use.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use crate::world::{MONTHLY, World};
use geuneul::Outcome;
use rehearsal::postgres::Cluster;
use rehearsal::snapshot::generate;

/// A server that reads the startup packet and answers with this error.
fn refusing(code: &str, message: &str) -> u16 {
    let mut fields = Vec::new();
    for (kind, text) in [('S', "FATAL"), ('V', "FATAL"), ('C', code), ('M', message)] {
        fields.push(kind as u8);
        fields.extend(text.bytes().chain([0]));
    }
    fields.push(0);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        let (mut client, _) = listener.accept().unwrap();
        let mut length = [0; 4];
        client.read_exact(&mut length).unwrap();
        let mut rest = vec![0; u32::from_be_bytes(length) as usize - 4];
        client.read_exact(&mut rest).unwrap();
        client.write_all(b"E").unwrap();
        client.write_all(&(fields.len() as u32 + 4).to_be_bytes()).unwrap();
        client.write_all(&fields).unwrap();
    });
    port
}

#[test]
fn a_hot_standby_is_refused_although_it_would_grant_the_lock() {
    let primary = Cluster::start().unwrap();
    let database = primary.database();
    let standby = primary.standby().unwrap();
    let mut world = World::new(generate(2, 5));
    let replica = standby.existing_database(database.name());
    assert_eq!(replica.number("SELECT CASE WHEN pg_try_advisory_lock(1) THEN 1::int8 END"), 1);
    for args in [&MONTHLY[..], &["migrate"], &["status"]] {
        world.set("DATABASE_URL", &replica.url());
        let finished = world.invoke(args);
        assert_eq!(finished.code, Some(78), "{finished:?}");
        assert!(finished.stderr.contains("read replica: locks taken there exclude nobody"), "{finished:?}");
        assert!(finished.stderr.contains("use the writer's endpoint"), "{finished:?}");
    }
    assert!(world.upstream.requests().is_empty());
}

#[test]
fn what_a_run_cannot_use_is_told_apart() {
    let mut world = World::new(generate(1, 5));
    let pooler = (Outcome::Misconfigured, "database_pooler");
    for (code, message, (outcome, name)) in [
        ("08P01", "unsupported startup parameter: options", pooler),
        ("08P01", "unsupported startup parameter in options: ingest.session", pooler),
        ("0A000", "Feature not supported: RDS Proxy currently doesn't support command-line options.", pooler),
        (
            "42704",
            "unrecognized configuration parameter \"idle_session_timeout\"",
            (Outcome::Misconfigured, "database_too_old"),
        ),
        ("42704", "unrecognized configuration parameter \"work_memm\"", (Outcome::Misconfigured, "database_options")),
        ("22023", "invalid value for parameter \"work_mem\": \"x\"", (Outcome::Misconfigured, "database_options")),
        (
            "55P02",
            "parameter \"shared_buffers\" cannot be changed without restarting the server",
            (Outcome::Misconfigured, "database_options"),
        ),
        ("28P01", "password authentication failed for user \"u\"", (Outcome::Misconfigured, "database_refused")),
        ("3D000", "database \"d\" does not exist", (Outcome::Misconfigured, "database_refused")),
        ("57P03", "the database system is starting up", (Outcome::DatabaseLost, "database_unreachable")),
        ("53300", "sorry, too many clients already", (Outcome::DatabaseLost, "database_unreachable")),
    ] {
        let port = refusing(code, message);
        world.set("DATABASE_URL", &format!("postgres://u:p@127.0.0.1:{port}/d"));
        let finished = world.month();
        let error = finished.expect(outcome).error.unwrap();
        assert_eq!(error.code, name, "{message}");
        assert!(error.message.contains(message) && finished.stderr.contains("\"hint\":"), "{finished:?}");
    }
    assert!(world.upstream.requests().is_empty());
}

#[test]
fn a_port_that_accepts_and_never_answers_is_no_database() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut world = World::new(generate(3, 5));
    world.set("DATABASE_URL", &format!("postgres://u:p@{}/d", silent.local_addr().unwrap()));
    world.set("INGEST_LEASE", "1s");
    thread::scope(|scope| {
        let asked = [&MONTHLY[..], &["migrate"], &["status"]].map(|args| scope.spawn(|| world.invoke(args)));
        for finished in asked.map(|asked| asked.join().unwrap()) {
            assert_eq!(finished.code, Some(74), "{finished:?}");
            assert!(finished.stderr.contains("no session within 1 s"), "{finished:?}");
        }
    });
}

#[test]
fn a_process_that_may_open_nothing_says_so() {
    let mut world = World::new(generate(4, 5));
    // Whoever may not open a socket tries again for half a lease.
    world.set("INGEST_LEASE", "1s");
    for files in 3..12 {
        let mut limited = std::process::Command::new("sh");
        let script = format!("ulimit -n {files}; exec \"$0\" \"$@\"");
        limited.env_clear().envs(world.program().get_envs().filter_map(|(name, value)| Some((name, value?))));
        let finished: crate::world::Finished =
            limited.args(["-c", &script, env!("CARGO_BIN_EXE_ingest")]).args(MONTHLY).output().unwrap().into();
        // Too few to load the program at all is the loader's word.
        if finished.code != Some(127) {
            assert_ne!(finished.report().outcome, Outcome::Usage, "{files}");
        }
    }
}
