use super::*;
use crate::blocking;
use crate::snapshot::generate;
use serde_json::Value;

fn get(upstream: &Upstream, query: &str) -> (u16, String) {
    let url = format!("{}{PATH}?{query}", upstream.base_url());
    blocking(async {
        let client = reqwest::Client::builder().tls_backend_preconfigured(tls()).user_agent("test").build().unwrap();
        let response = client.get(url).send().await.unwrap();
        (response.status().as_u16(), response.text().await.unwrap())
    })
}

fn page(upstream: &Upstream, page: usize) -> Value {
    let query = format!("serviceKey={}&pageNo={page}&numOfRows=10&type=json", upstream.encoded_key());
    serde_json::from_str(&get(upstream, &query).1).unwrap()
}

#[test]
fn pages_come_in_both_envelopes_and_end_as_the_service_ends_them() {
    let upstream = Upstream::start(generate(1, 25)).unwrap();
    assert_eq!(page(&upstream, 3)["body"]["items"]["item"].as_array().unwrap().len(), 5);
    assert_eq!(page(&upstream, 4)["body"]["items"], "");
    upstream.envelope(Envelope::Old);
    let last = page(&upstream, 3);
    assert_eq!(last["response"]["body"]["items"].as_array().unwrap().len(), 5);
    assert_eq!(last["response"]["body"]["totalCount"], "25");
    assert_eq!(page(&upstream, 4)["response"]["header"]["resultCode"], "03");
    assert!(page(&upstream, 4)["response"].get("body").is_none());
}

#[test]
fn a_key_encoded_twice_is_unknown() {
    let upstream = Upstream::start(generate(1, 2)).unwrap();
    let twice = upstream.encoded_key().replace('%', "%25");
    let (status, body) = get(&upstream, &format!("serviceKey={twice}&pageNo=1&numOfRows=10&type=json"));
    assert_eq!(status, 200);
    assert!(body.contains("<returnReasonCode>30<"), "{body}");
}

#[test]
fn faults_are_used_up_in_order_and_the_rows_can_shift() {
    let upstream = Upstream::start(generate(1, 25)).unwrap();
    upstream.fault(Fault {
        page: Some(2),
        times: 1,
        answer: Answer::plain(502, "Error forwarding request to backend server"),
    });
    upstream.before_each(|number, rows| {
        if number == 3 {
            rows.pop();
        }
    });
    assert_eq!(page(&upstream, 1)["body"]["totalCount"], 25);
    let query = format!("serviceKey={}&pageNo=2&numOfRows=10&type=json", upstream.encoded_key());
    assert_eq!(get(&upstream, &query).0, 502);
    assert_eq!(page(&upstream, 2)["body"]["totalCount"], 24);
    assert_eq!(upstream.requests().len(), 3);
    assert_eq!(upstream.requests()[1].user_agent.as_deref(), Some("test"));
}

#[test]
fn a_gate_holds_a_request() {
    let upstream = Upstream::start(generate(1, 5)).unwrap();
    let gate = upstream.hold_after(1);
    assert_eq!(page(&upstream, 1)["body"]["totalCount"], 5);
    std::thread::scope(|scope| {
        let held = scope.spawn(|| page(&upstream, 1));
        gate.wait_for_request();
        upstream.set_rows(generate(1, 4));
        gate.release();
        assert_eq!(held.join().unwrap()["body"]["totalCount"], 4);
    });
}

/// ring, named explicitly: the client is built even where nobody installed a default provider.
fn tls() -> rustls::ClientConfig {
    let roots = rustls::RootCertStore::from_iter(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    rustls::ClientConfig::builder_with_provider(rustls::crypto::ring::default_provider().into())
        .with_safe_default_protocol_versions()
        .expect("ring supports the default protocol versions")
        .with_root_certificates(roots)
        .with_no_client_auth()
}
