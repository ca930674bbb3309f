//! Somebody is told, and it never matters whether they listen.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::world::{MONTHLY, World};
use geuneul::{Outcome, RunReport};
use rehearsal::snapshot::generate;

/// Path and body of each ping.
type Told = Arc<Mutex<Vec<(String, String)>>>;

/// A service of the healthchecks.io shape: remembers what it was told, and answers with this status (0: never).
fn service(status: u16) -> (String, Told) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/canary-ping-5d1c", listener.local_addr().unwrap());
    let told = Arc::new(Mutex::new(Vec::new()));
    let heard = told.clone();
    thread::spawn(move || {
        for client in listener.incoming().map_while(Result::ok) {
            let heard = heard.clone();
            thread::spawn(move || {
                let mut reader = BufReader::new(client.try_clone().unwrap());
                let (mut first, mut length) = (String::new(), 0);
                reader.read_line(&mut first).unwrap();
                loop {
                    let mut line = String::new();
                    reader.read_line(&mut line).unwrap();
                    if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                        length = value.trim().parse().unwrap();
                    }
                    if line.trim().is_empty() {
                        break;
                    }
                }
                let mut body = vec![0; length];
                reader.read_exact(&mut body).unwrap();
                let target = first.trim().strip_prefix("POST ").unwrap().strip_suffix(" HTTP/1.1").unwrap().to_owned();
                heard.lock().unwrap().push((target, String::from_utf8(body).unwrap()));
                if status == 0 {
                    let _ = reader.read_to_end(&mut Vec::new());
                    return;
                }
                let answer = format!("HTTP/1.1 {status} x\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                (&client).write_all(answer.as_bytes()).unwrap();
            });
        }
    });
    (url, told)
}

#[test]
fn a_start_and_an_end_and_nothing_for_a_skip() {
    let mut world = World::new(generate(1, 30));
    let (url, told) = service(200);
    world.set("INGEST_PING_URL", &url);
    let take = || std::mem::take(&mut *told.lock().unwrap());

    let report = world.mirror();
    let path = |word: &str| format!("/canary-ping-5d1c{word}?rid={}", report.run_id);
    let said = take();
    assert_eq!(said.iter().map(|(path, _)| path.clone()).collect::<Vec<_>>(), [path("/start"), path("")]);
    assert_eq!(RunReport::from_line(&said[1].1).unwrap().unwrap(), report);

    // Behind another run: it speaks for itself. A second time, somebody should know.
    let gate = world.upstream.hold_after(0);
    let worker = world.start();
    gate.wait_for_request();
    let started = take().len();
    world.month().expect(Outcome::Skipped);
    assert!(take().len() + started <= 1, "a skip says nothing");
    let busy = world.month().expect(Outcome::Busy);
    assert!(take().iter().any(|(path, _)| *path == format!("/canary-ping-5d1c/fail?rid={}", busy.run_id)));
    worker.signal("TERM");
    let stopped = worker.end().expect(Outcome::Interrupted);
    let said = take();
    assert_eq!(said.last().unwrap().0, format!("/canary-ping-5d1c/fail?rid={}", stopped.run_id));
    gate.release();

    // What fails before the lock fails all the same.
    world.set("DATABASE_URL", "postgres://u@127.0.0.1:1/d");
    world.month().expect(Outcome::DatabaseLost);
    assert!(take().iter().all(|(path, _)| path.starts_with("/canary-ping-5d1c/fail")));
    let recent = world.database.url();
    world.set("DATABASE_URL", &recent);
    world.mirror();
    take();
    let again = [&MONTHLY[..], &["--ingest.trigger=scheduled", "--ingest.min-interval=1d"]].concat();
    world.invoke(&again).expect(Outcome::Skipped);
    assert_eq!(take(), []);
}

#[test]
fn whoever_does_not_listen_changes_nothing() {
    for (status, limit) in [(500, 5), (0, 12)] {
        let mut world = World::new(generate(2, 30));
        let (url, told) = service(status);
        world.set("INGEST_PING_URL", &url);
        world.set("RUST_LOG", "trace");
        let started = Instant::now();
        let finished = world.month();
        finished.expect(Outcome::Succeeded);
        assert!(started.elapsed() < Duration::from_secs(limit), "{:?}", started.elapsed());
        assert!(!told.lock().unwrap().is_empty());
        assert!(finished.stderr.contains("the ping"), "{}", finished.stderr);
        for text in [&finished.stdout, &finished.stderr] {
            assert!(!text.contains("canary-ping"), "{text}");
        }
    }
    // Nobody there at all, and an address that would be sent in the clear.
    let mut world = World::new(generate(3, 30));
    world.set("INGEST_PING_URL", "http://127.0.0.1:1/canary-ping");
    world.month().expect(Outcome::Succeeded);
    world.set("INGEST_PING_URL", "http://ping.example/canary-ping");
    let refused = world.month();
    refused.expect(Outcome::Misconfigured);
    assert!(!refused.stderr.contains("canary-ping") && !refused.stdout.contains("canary-ping"));
}

#[test]
fn a_configuration_that_stops_the_run_is_told() {
    for (name, value) in [
        ("DATA_GO_KR_SERVICE_KEY", ""),
        ("INGEST_LEASE", "90m"),
        ("INGEST_TRIGGER", "monthly"),
        ("INGEST_DB_CA", "/nowhere"),
        ("DATABASE_URL", ""),
    ] {
        let mut world = World::new(generate(4, 5));
        let (url, told) = service(200);
        world.set("INGEST_PING_URL", &url);
        world.set(name, value);
        let report = world.month().expect(Outcome::Misconfigured);
        let said: Vec<String> = told.lock().unwrap().iter().map(|(path, _)| path.clone()).collect();
        assert_eq!(said, [format!("/canary-ping-5d1c/fail?rid={}", report.run_id)], "{name}");
    }
}

#[test]
fn a_start_that_hangs_does_not_swallow_the_end() {
    let mut world = World::new(generate(5, 5));
    let (url, told) = service(0);
    world.set("INGEST_PING_URL", &url);
    let gate = world.upstream.hold_after(0);
    let run = world.start();
    gate.wait_for_request();
    run.signal("TERM");
    let report = run.end().expect(Outcome::Interrupted);
    let said = told.lock().unwrap().iter().map(|(path, _)| path.clone()).collect::<Vec<_>>();
    assert_eq!(said.last(), Some(&format!("/canary-ping-5d1c/fail?rid={}", report.run_id)), "{said:?}");
}
