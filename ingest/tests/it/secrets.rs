//! The key and the password never leave, however loud the logs and whatever goes wrong.

use std::io::{Read, Write};
use std::net::TcpListener;

use crate::world::World;
use geuneul::Outcome;
use rehearsal::snapshot::generate;
use rehearsal::upstream::{Answer, ErrorForm, Fault};

/// A server that answers every request with a redirect.
fn redirecting(location: String) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut client in listener.incoming().map_while(Result::ok) {
            let _ = client.read(&mut [0; 4096]);
            let answer = format!("HTTP/1.1 302 Found\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n");
            let _ = client.write_all(answer.as_bytes());
        }
    });
    port
}

#[test]
fn an_echo_in_another_spelling_is_not_shown() {
    let mut world = World::new(generate(2, 30));
    let (key, encoded) = (world.upstream.key().to_owned(), world.upstream.encoded_key());
    let mut said = Vec::new();
    for text in [
        key.replace('+', "&#43;").replace('/', "&#x2F;").replace('=', "&equals;"),
        key.replace('+', "\\u002b").replace('/', "\\/"),
        key.replace('+', " "),
        encoded.replace('%', "%25"),
        key[..key.len() / 2].to_owned(),
        key[4..].to_owned(),
    ] {
        for answer in [
            Answer::plain(400, &format!("no such page: {text}")),
            Answer::error(ErrorForm::Flat, "10", &format!("INVALID_REQUEST_PARAMETER_ERROR {text}")),
            Answer::error(ErrorForm::Xml, "12", &text),
        ] {
            world.upstream.fault(Fault { page: None, times: 1, answer });
            said.push(world.month());
        }
    }
    let bare = key.trim_end_matches('=');
    for location in [format!("/login/{key}"), format!("/login/{encoded}?again"), format!("/{bare}/x")] {
        world.set("DATA_GO_KR_BASE_URL", &format!("http://127.0.0.1:{}", redirecting(location)));
        said.push(world.month());
    }
    for finished in said {
        let message = finished.expect(Outcome::UpstreamFailed).error.unwrap().message;
        let code = ["HTTP 400", "HTTP 302", "code 10", "code 12"].iter().any(|code| message.contains(code));
        let hidden = message.contains("is not shown: it repeats a part of the service key");
        // The exact spellings are taken out earlier, and leave the rest readable.
        assert!(code && (hidden || message.contains("[service key]")), "{message}");
        let everything = format!("{}{}", finished.stdout, finished.stderr);
        for piece in [&key[..8], "canary0Ring", "9canary"] {
            assert!(!everything.contains(piece), "{everything}");
        }
    }
}

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
