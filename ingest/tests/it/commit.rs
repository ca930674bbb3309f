//! The reply to COMMIT is lost: the ledger knows what happened.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;

use crate::world::{LOCK_KEY, PATIENT, World};
use geuneul::Outcome;
use rehearsal::snapshot::generate;

/// Forwards everything, but breaks the connection at the `nth` COMMIT: when `deliver`, after the server has carried it out; else before it
/// has seen it. Later connections are left alone.
fn breaking_at_commit(port: u16, nth: u32, deliver: bool) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = listener.local_addr().unwrap().port();
    let is_commit = |bytes: &[u8]| bytes.ends_with(b"Q\0\0\0\x0bCOMMIT\0");
    thread::spawn(move || {
        let commits = &AtomicU32::new(0);
        thread::scope(|scope| {
            for client in listener.incoming().map_while(Result::ok) {
                let server = TcpStream::connect(("127.0.0.1", port)).unwrap();
                let (from_server, to_client) = (server.try_clone().unwrap(), client.try_clone().unwrap());
                let last = move |bytes: &[u8]| is_commit(bytes) && commits.fetch_add(1, Ordering::SeqCst) + 1 == nth;
                scope.spawn(move || forward(client, server, last, deliver));
                scope.spawn(move || forward(from_server, to_client, |_| false, true));
            }
        });
    });
    own
}

fn forward(mut from: TcpStream, mut to: TcpStream, last: impl Fn(&[u8]) -> bool, deliver: bool) {
    let mut buffer = [0; 1 << 16];
    while let Ok(read @ 1..) = from.read(&mut buffer) {
        if last(&buffer[..read]) {
            // The client hears nothing more; the server hears COMMIT and then the end, or only the end.
            let _ = from.shutdown(Shutdown::Both);
            if deliver {
                let _ = to.write_all(&buffer[..read]);
            }
            let _ = to.shutdown(Shutdown::Write);
            return;
        }
        if to.write_all(&buffer[..read]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Both);
}

/// The ledger entry is the first COMMIT of a run, the places are the second.
fn run_through_a_broken_commit(deliver: bool) -> (World, geuneul::RunReport) {
    let mut world = World::new(generate(1, 30));
    world.invoke(&["migrate"]);
    let port = breaking_at_commit(world.database.port(), 2, deliver);
    let direct = world.database.url();
    world.through(port);
    let report = world.run_here(PATIENT);
    world.set("DATABASE_URL", &direct);
    (world, report)
}

#[test]
fn a_commit_that_happened_is_a_success() {
    let (world, report) = run_through_a_broken_commit(true);
    assert_eq!((report.outcome, report.inserted), (Outcome::Succeeded, 30));
    assert_eq!((world.places(), world.ledger()), (30, vec!["succeeded".to_owned()]));
}

#[test]
fn a_commit_that_did_not_happen_is_a_failure() {
    let (world, report) = run_through_a_broken_commit(false);
    assert_eq!((report.outcome, report.error.unwrap().code.as_str()), (Outcome::DatabaseLost, "not_committed"));
    assert_eq!(world.places(), 0);
    world.wait_for_free_lock();
    assert_eq!(world.mirror().inserted, 30);
    assert_eq!(world.ledger(), ["abandoned", "succeeded"]);
}

/// Whatever became of the lock, what was committed under the fence was committed.
#[test]
fn a_lock_that_is_gone_at_the_end_is_said_beside_what_was_committed() {
    let world = World::new(generate(2, 30));
    world.invoke(&["migrate"]);
    world.database.execute(&format!(
        "CREATE FUNCTION ingest.unlock() RETURNS trigger LANGUAGE plpgsql AS
             $$ BEGIN PERFORM pg_advisory_unlock({LOCK_KEY}); RETURN NEW; END $$;
         CREATE TRIGGER unlock BEFORE UPDATE ON ingest.ingest_runs FOR EACH ROW WHEN (NEW.status = 'succeeded')
             EXECUTE FUNCTION ingest.unlock()"
    ));
    let finished = world.month();
    let report = finished.expect(Outcome::Succeeded);
    assert_eq!((report.fetched, report.inserted, report.active), (30, 30, 30));
    assert_eq!(report.error.unwrap().code, "lock_lost");
    assert!(finished.stderr.contains("Look for what releases the locks of this session"), "{}", finished.stderr);
    assert_eq!((world.places(), world.ledger()), (30, vec!["succeeded".to_owned()]));
}
