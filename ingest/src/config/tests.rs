use super::*;

const KEY: &str = "canary+key/0123456789==";

fn read(pairs: &[(&str, &str)]) -> Result<Settings, ConfigError> {
    let find = |name: &str| pairs.iter().rev().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
    Settings::read(&find)
}

fn with(more: &[(&'static str, &'static str)]) -> Result<Settings, ConfigError> {
    let base = [("DATABASE_URL", "postgres://u:canary@localhost/d"), ("DATA_GO_KR_SERVICE_KEY", KEY)];
    read(&[&base[..], more].concat())
}

#[test]
fn a_url_or_its_parts() {
    let settings = with(&[]).unwrap();
    assert_eq!(settings.endpoint.base.as_str(), "https://api.data.go.kr/");
    assert_eq!(settings.database.schema.as_str(), "ingest");
    assert_eq!((settings.trigger, settings.occurrence), (None, None));
    let parts = read(&[
        ("DB_HOST", "db.example"),
        ("DB_PORT", "6432"),
        ("DB_NAME", "d"),
        ("DB_USERNAME", "u"),
        ("DB_PASSWORD", " p@:/ "),
        ("DATA_GO_KR_SERVICE_KEY", KEY),
        ("DATABASE_URL", ""),
    ])
    .unwrap();
    assert_eq!(parts.database.driver.get_password(), Some(&b" p@:/ "[..]));
    assert_eq!(parts.database.driver.get_ports(), [6432]);
    assert!(parts.database.tls.is_some());
}

#[test]
fn tls_is_off_only_where_nobody_listens() {
    let tls = |url: &'static str| with(&[("DATABASE_URL", url)]).map(|settings| settings.database.tls.is_some());
    for (url, on) in [
        ("postgres://u@localhost/d", false),
        ("postgres://u@127.0.0.2/d?sslmode=prefer", false),
        ("postgres://u@[::1]/d", false),
        ("postgres://u@%2Frun%2Fpostgresql/d", false),
        ("postgres://u@localhost/d?sslmode=verify-full", true),
        ("postgres://u@db.example/d", true),
        ("postgres://u@db.example/d?connect_timeout=3&sslmode=require", true),
        ("postgresql://u@db.example/d?sslmode=verify-ca", true),
    ] {
        assert_eq!(tls(url), Ok(on), "{url}");
    }
    for url in [
        "postgres://u@db.example/d?sslmode=prefer",
        "postgres://u@10.0.0.1/d?sslmode=disable",
        "postgres://u@db.example/d?sslmode=yes",
    ] {
        assert!(tls(url).is_err(), "{url}");
    }
}

#[test]
fn every_refusal_is_a_sentence_with_a_way_out_and_no_secret() {
    let cases: &[&[(&'static str, &'static str)]] = &[
        &[("DATABASE_URL", ""), ("DB_HOST", "")],
        &[("DATABASE_URL", ""), ("DB_HOST", "h"), ("DB_PORT", "canary")],
        &[("DATABASE_URL", ""), ("DB_HOST", "h"), ("DB_NAME", "d")],
        &[("DATABASE_URL", "host=localhost password=canary")],
        &[("DATABASE_URL", "postgres://u:canary@h/canary@x:y/d?canary=1")],
        &[("DATABASE_URL", "postgres://u:canary@h,i/d")],
        &[("DATABASE_URL", "postgres://u:canary@/d")],
        &[("DATABASE_URL", "postgres://u:canary@h/")],
        &[("DATABASE_URL", "postgres://u:canary@h/d?hostaddr=10.0.0.1")],
        &[("DATABASE_URL", "postgres://u:canary@h/d?sslmode=prefer")],
        &[("INGEST_DB_SCHEMA", "public")],
        &[("INGEST_DB_SCHEMA", "a\"; DROP")],
        &[("INGEST_DB_SCHEMA", "pg_temp")],
        &[("INGEST_DB_CA", "/nonexistent/ca.pem")],
        &[("INGEST_DB_CA", "-----BEGIN CERTIFICATE-----\ncanary")],
        &[("INGEST_TRIGGER", "monthly")],
        &[("INGEST_OCCURRENCE", "a\nb")],
        &[("DATA_GO_KR_SERVICE_KEY", " ")],
        &[("DATA_GO_KR_SERVICE_KEY", "canary")],
        &[("DATA_GO_KR_SERVICE_KEY", "canary%2")],
        &[("DATA_GO_KR_SERVICE_KEY", "canary key")],
        &[("DATA_GO_KR_BASE_URL", "canary")],
        &[("DATA_GO_KR_BASE_URL", "http://api.data.go.kr")],
        &[("DATA_GO_KR_BASE_URL", "https://u:canary@api.data.go.kr")],
        &[("DATA_GO_KR_BASE_URL", "https://api.data.go.kr/?serviceKey=canary")],
    ];
    let mut sentences = String::new();
    for case in cases {
        let Err(error) = with(case) else { panic!("accepted: {case:?}") };
        assert!(!error.hint().is_empty());
        sentences.push_str(&format!("{error}\n  hint: {}\n", error.hint()));
    }
    assert!(!sentences.contains("canary"), "{sentences}");
    insta::assert_snapshot!(sentences);
}
