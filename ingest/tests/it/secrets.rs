//! The key and the password never leave, however loud the logs and whatever goes wrong.

use crate::world::World;
use rehearsal::snapshot::generate;
use rehearsal::upstream::{Answer, Fault};

#[test]
fn a_canary_is_found_nowhere() {
    let password = "canary-password-9f3b";
    let mut world = World::new(generate(1, 30));
    world.set("RUST_LOG", "trace");
    // Nobody listens to the pings: that is said, and not where they go.
    world.set("INGEST_PING_URL", "http://127.0.0.1:1/canary-ping-77aa");
    let address = world.database.url().replace("postgres@", &format!("postgres:{password}@"));
    world.set("DATABASE_URL", &address);
    let key = world.upstream.key();
    let mut said = Vec::new();

    said.push(world.month());
    for answer in [
        Answer::plain(400, &format!("no such resource: /openapi?serviceKey={key}")),
        Answer::plain(400, &format!("no such resource: /openapi?serviceKey={}", world.upstream.encoded_key())),
        // What is shortened for a log must not end within the key.
        Answer::plain(400, &format!("{}?serviceKey={key}", "x".repeat(150))),
        Answer::html(301, key),
        Answer::CutShort { body: b"{".to_vec() },
    ] {
        world.upstream.fault(Fault { page: None, times: 1, answer });
        said.push(world.month());
    }
    // A key that the portal does not know, and one that is none.
    let wrong = format!("{key}+wrong");
    world.set("DATA_GO_KR_SERVICE_KEY", &wrong);
    said.push(world.month());
    world.set("DATA_GO_KR_SERVICE_KEY", &format!("{key}%2"));
    said.push(world.month());
    // Nobody listens: the connection is refused.
    world.set("DATA_GO_KR_SERVICE_KEY", key);
    world.set("DATA_GO_KR_BASE_URL", "http://127.0.0.1:1");
    let unreachable = world.start();
    world.wait_until("EXISTS (SELECT FROM ingest.ingest_runs WHERE status = 'running')");
    unreachable.signal("TERM");
    said.push(unreachable.end());
    world.set("DATABASE_URL", &format!("postgres://postgres:{password}@127.0.0.1:1/d"));
    said.push(world.month());
    world.set("DATABASE_URL", &format!("postgres://postgres:{password}@127.0.0.1:x/d"));
    said.push(world.month());

    let codes: Vec<_> = said.iter().map(|finished| finished.code.unwrap()).collect();
    assert_eq!(codes, [0, 69, 69, 69, 69, 0, 78, 78, 143, 74, 78]);
    let stored =
        world.texts("SELECT t::text FROM ingest.ingest_runs t UNION ALL SELECT t::text FROM ingest.ingest_sources t");
    let everything = said.iter().map(|finished| format!("{}{}", finished.stdout, finished.stderr)).chain(stored);
    let everything: String = everything.collect();
    // Long enough to have been loud at all, and yet the drivers were quiet.
    assert!(everything.len() > 10_000);
    for line in everything.lines().filter(|line| line.starts_with("{\"timestamp\"")) {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let ours = line["target"].as_str().unwrap().starts_with("ingest");
        assert!(ours || ["WARN", "ERROR"].contains(&line["level"].as_str().unwrap()), "{line}");
    }
    for secret in [key, &world.upstream.encoded_key(), password, "canary-ping", "Ze4/k", "Ze4%2Fk", "canary0Ring"] {
        assert!(!everything.contains(secret), "{secret} was found");
    }
}
