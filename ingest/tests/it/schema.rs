//! A guest in somebody's database.

use crate::world::World;
use geuneul::Outcome;
use rehearsal::postgres;
use rehearsal::snapshot::generate;

/// Each file is one version.
fn migrations() -> i64 {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    std::fs::read_dir(folder).unwrap().count() as i64
}

fn refused(world: &World, says: &str) {
    let finished = world.month();
    let report = finished.expect(Outcome::Misconfigured);
    let error = report.error.unwrap();
    assert!(error.message.contains(says), "{error:?}");
    assert!(finished.stderr.contains("\"hint\":"), "{}", finished.stderr);
}

#[test]
fn many_starters_migrate_once() {
    let world = World::new(generate(1, 10));
    let starters: Vec<_> =
        (0..4).map(|_| world.program().arg("migrate").stdout(std::process::Stdio::piped()).spawn().unwrap()).collect();
    let said: Vec<_> = starters.into_iter().map(|starter| starter.wait_with_output().unwrap()).collect();
    assert!(said.iter().all(|output| output.status.success()));
    let version = migrations();
    assert_eq!(world.database.number("SELECT count(*) FROM ingest.ingest_schema"), version);
    let said = format!("schema ingest is at version {version}; nothing to do\n");
    assert_eq!(world.invoke(&["migrate"]).stdout, said);
    assert_eq!(world.database.number("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"), 0);
}

#[test]
fn another_schema_is_another_world() {
    let mut world = World::new(generate(2, 10));
    world.mirror();
    world.set("INGEST_DB_SCHEMA", "geuneul_test");
    assert_eq!(world.mirror().inserted, 10);
    assert_eq!(world.database.number("SELECT count(*) FROM geuneul_test.places"), 10);
}

#[test]
fn a_role_that_may_only_write_rows_runs_after_somebody_else_migrated() {
    postgres::shared().role("runner_only", "");
    let mut world = World::new(generate(3, 10));
    let (admin, runner) = (world.database.url(), world.database.url_as("runner_only"));
    world.set("DATABASE_URL", &runner);
    refused(&world, "this role may not migrate it");

    world.set("DATABASE_URL", &admin);
    assert_eq!(world.invoke(&["migrate"]).code, Some(0));
    world.set("DATABASE_URL", &runner);
    refused(&world, "permission denied");

    world.database.execute(
        "GRANT USAGE ON SCHEMA ingest TO runner_only; GRANT SELECT, INSERT, UPDATE ON ALL TABLES IN SCHEMA ingest TO runner_only",
    );
    assert_eq!(world.mirror().inserted, 10);
}

#[test]
fn what_is_not_ours_is_left_alone() {
    let world = World::new(generate(4, 10));
    world.database.execute("CREATE SCHEMA ingest; CREATE TABLE ingest.places (id int)");
    refused(&world, "somebody else under our names: places");
    assert_eq!(world.database.number("SELECT count(*) FROM pg_tables WHERE schemaname = 'ingest'"), 1);
}

#[test]
fn a_schema_of_another_version_is_left_alone() {
    let world = World::new(generate(5, 10));
    world.mirror();
    let (ours, later) = (migrations(), migrations() + 1);
    let insert =
        format!("INSERT INTO ingest.ingest_schema (version, checksum, program) VALUES ({later}, 'x', 'later')");
    world.database.execute(&insert);
    let says = format!("schema ingest is at version {later}, and this program knows versions up to {ours}");
    refused(&world, &says);
    world.database.execute(&format!(
        "DELETE FROM ingest.ingest_schema WHERE version = {later}; UPDATE ingest.ingest_schema SET checksum = 'x'"
    ));
    refused(&world, "the checksums differ");
}

#[test]
fn a_server_that_does_not_let_us_in_is_explained() {
    let mut world = World::new(generate(6, 10));
    let url = world.database.url();
    world.set("DATABASE_URL", &url.replace(world.database.name(), "nosuchdb"));
    refused(&world, "database \"nosuchdb\" does not exist");
    world.set("DATABASE_URL", &url.replace("sslmode=disable", "sslmode=require"));
    refused(&world, "TLS");
}
