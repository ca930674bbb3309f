//! What a person reads.

use insta_cmd::assert_cmd_snapshot;
use std::process::Command;

fn ingest(args: &[&str], environment: &[(&str, &str)]) -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_ingest"));
    program.env_clear().envs(environment.iter().copied()).args(args);
    program
}

#[test]
fn help() {
    assert_cmd_snapshot!(ingest(&["--help"], &[]));
}

#[test]
fn version() {
    assert_cmd_snapshot!(ingest(&["--version"], &[]));
}

#[test]
fn usage_errors() {
    assert_cmd_snapshot!("no_source", ingest(&[], &[]));
    assert_cmd_snapshot!("unknown_flag", ingest(&["--ingest.source=library", "--ingest.dry-run"], &[]));
    assert_cmd_snapshot!("unknown_source", ingest(&["--ingest.source=parks"], &[]));
    assert_cmd_snapshot!("bad_value", ingest(&["--ingest.source=library", "--ingest.deactivate-stale=yes"], &[]));
    assert_cmd_snapshot!("stay", ingest(&["--ingest.source=library", "--ingest.exit-after=false"], &[]));
}

#[test]
fn a_setting_that_is_missing() {
    let filters = vec![
        (r#""timestamp":"[^"]+""#, r#""timestamp":"[time]""#),
        (r#""started_at":"[^"]+","duration_ms":\d+"#, r#""started_at":"[time]","duration_ms":[ms]"#),
        (r#""run_id":"[^"]+""#, r#""run_id":"[run]""#),
    ];
    insta::with_settings!({ filters => filters }, {
        let library = ["--ingest.source=library"];
        assert_cmd_snapshot!("no_settings", ingest(&library, &[]));
        assert_cmd_snapshot!("bad_trigger", ingest(&library, &[
            ("DATABASE_URL", "postgres://u:p@localhost/d"),
            ("DATA_GO_KR_SERVICE_KEY", "a-key-of-sixteen-or-more"),
            ("INGEST_TRIGGER", "monthly"),
        ]));
        // Who started it is known whatever else is missing.
        assert_cmd_snapshot!("no_key", ingest(&library, &[
            ("DATABASE_URL", "postgres://u:p@localhost/d"),
            ("INGEST_TRIGGER", "scheduled"),
        ]));
        assert_cmd_snapshot!("migrate_without_tls", ingest(&["migrate"], &[("DATABASE_URL", "postgres://u:p@db.example/d?sslmode=prefer")]));
    });
}
