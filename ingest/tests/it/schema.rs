//! A guest in somebody's database.

use crate::world::{Finished, MONTHLY, World};
use geuneul::Outcome;
use rehearsal::postgres;
use rehearsal::snapshot::generate;

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
    // Whoever waited for the lock must see what its holder committed, even where a snapshot is the default.
    let name = world.database.name();
    world.database.execute(&format!("ALTER DATABASE {name} SET default_transaction_isolation = 'serializable'"));
    let starters: Vec<_> =
        (0..4).map(|_| world.program().arg("migrate").stdout(std::process::Stdio::piped()).spawn().unwrap()).collect();
    let said: Vec<_> = starters.into_iter().map(|starter| starter.wait_with_output().unwrap()).collect();
    assert!(said.iter().all(|output| output.status.success()), "{said:?}");
    let migrated = said.iter().filter(|output| output.stdout.starts_with(b"schema ingest migrated from version 0"));
    assert_eq!(migrated.count(), 1, "{said:?}");
    let latest = world.database.number("SELECT count(*) FROM ingest.ingest_schema");
    assert_eq!(latest, world.database.number("SELECT max(version)::int8 FROM ingest.ingest_schema"));
    assert_eq!(world.invoke(&["migrate"]).stdout, format!("schema ingest is at version {latest}; nothing to do\n"));
    assert_eq!(world.database.number("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"), 0);
}

#[test]
fn another_schema_is_another_world() {
    let mut world = World::new(generate(2, 10));
    world.mirror();
    world.set("INGEST_DB_SCHEMA", "geuneul_test");
    assert_eq!(world.mirror().inserted, 10);
    assert_eq!(world.database.number("SELECT count(*) FROM geuneul_test.places"), 10);
    for word_of_sql in ["user", "table", "order", "all"] {
        world.set("INGEST_DB_SCHEMA", word_of_sql);
        assert_eq!(world.mirror().inserted, 10, "{word_of_sql}");
    }
}

/// A schema that the role may not use is passed over in a search path without a word.
#[test]
fn a_schema_that_the_role_may_not_fill_is_refused() {
    postgres::shared().role("stranger", "");
    let mut world = World::new(generate(8, 10));
    world.database.execute("CREATE SCHEMA ingest");
    world.set("DATABASE_URL", &world.database.url_as("stranger"));
    for grant in ["", "GRANT USAGE ON SCHEMA ingest TO stranger", "GRANT CREATE ON DATABASE :db TO stranger"] {
        world.database.execute(&grant.replace(":db", world.database.name()));
        refused(&world, "this role may not migrate it");
        assert_eq!(world.invoke(&["migrate"]).code, Some(78), "{grant}");
    }
    world.database.execute("GRANT CREATE ON SCHEMA ingest TO stranger");
    assert_eq!(world.mirror().inserted, 10);
    assert_eq!(world.places(), 10);
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

/// The README's own statements.
#[test]
fn the_roles_of_the_readme_may_what_they_need_and_no_more() {
    let readme = include_str!("../../../README.md");
    let (_, block) = readme.split_once("<!-- roles -->\n```sql\n").unwrap();
    let (statements, _) = block.split_once("```").unwrap();
    let world = World::new(generate(7, 10));
    world.database.execute(statements);
    let run = |role: &str, args: &[&str]| Finished::from(world.as_role(role).args(args).output().unwrap());
    assert_eq!(run("ingest_watcher", &["status"]).code, Some(5), "nothing has succeeded yet");
    assert_eq!(run("ingest_migrator", &["migrate"]).code, Some(0));
    assert_eq!(run("ingest_runner", &MONTHLY).expect(Outcome::Succeeded).inserted, 10);
    assert_eq!(run("ingest_watcher", &["status"]).code, Some(0));
    for (role, statement, may) in [
        ("ingest_runner", "UPDATE ingest.places SET name = name", true),
        ("ingest_runner", "DROP TABLE ingest.places", false),
        ("ingest_runner", "DELETE FROM ingest.places", false),
        ("ingest_runner", "CREATE TABLE ingest.t ()", false),
        ("ingest_runner", "CREATE SCHEMA s", false),
        ("ingest_watcher", "UPDATE ingest.places SET name = name", false),
        ("ingest_migrator", "CREATE SCHEMA s", false),
    ] {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let said = runtime.block_on(async {
            let client = world.database.client().await;
            client.batch_execute(&format!("BEGIN; SET ROLE {role}; {statement}; ROLLBACK")).await
        });
        assert_eq!(said.is_ok(), may, "{role}: {statement}: {said:?}");
    }
}

#[test]
fn what_is_not_ours_is_left_alone() {
    let world = World::new(generate(4, 10));
    world.database.execute("CREATE SCHEMA ingest; CREATE TABLE ingest.places (id int)");
    refused(&world, "somebody else under our names: places");
    assert_eq!(world.database.number("SELECT count(*) FROM pg_tables WHERE schemaname = 'ingest'"), 1);
    for ingest_schema in [
        "TABLE ingest.ingest_schema (version text, checksum text)",
        "TABLE ingest.ingest_schema AS SELECT NULL::integer AS version, 'x'::text AS checksum",
        "TABLE ingest.ingest_schema (other integer)",
        "VIEW ingest.ingest_schema AS SELECT 1 AS version, 'x'::text AS checksum",
    ] {
        let kind = ingest_schema.split(' ').next().unwrap();
        world.database.execute(&format!("CREATE {ingest_schema}"));
        if ingest_schema.contains("version text") {
            world.database.execute("INSERT INTO ingest.ingest_schema VALUES ('1', 'x')");
        }
        refused(&world, "somebody else under our names: ingest_schema");
        assert_eq!(world.invoke(&["migrate"]).code, Some(78), "{ingest_schema}");
        world.database.execute(&format!("DROP {kind} ingest.ingest_schema"));
    }
}

/// A table of ours that is called like our staging table is nobody's staging table.
#[test]
fn the_staging_table_is_a_temporary_one() {
    let world = World::new(generate(9, 10));
    world.invoke(&["migrate"]);
    world.database.execute("CREATE TABLE ingest.incoming (note text)");
    assert_eq!(world.mirror().inserted, 10);
    assert_eq!(world.database.number("SELECT count(*) FROM ingest.incoming"), 0);
}

#[test]
fn what_was_changed_by_hand_is_said_so() {
    let world = World::new(generate(10, 10));
    world.mirror();
    let name = world.database.name();
    // What the server says about it is not what happened to it.
    for (state, outcome, code, hint) in [
        ("55P03", Outcome::DatabaseLost, "database_locked", "another session locks our tables"),
        ("57014", Outcome::DatabaseLost, "database_cancelled", "cancelled the statement"),
    ] {
        world.database.execute(&format!(
            "CREATE OR REPLACE FUNCTION ingest.f() RETURNS trigger LANGUAGE plpgsql AS
                 $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '{state}'; END $$;
             CREATE OR REPLACE TRIGGER t BEFORE INSERT ON ingest.places FOR EACH STATEMENT EXECUTE FUNCTION ingest.f()"
        ));
        world.upstream.set_rows(generate(11, 10));
        let finished = world.month();
        assert_eq!(finished.expect(outcome).error.unwrap().code, code);
        assert!(finished.stderr.contains(hint), "{}", finished.stderr);
    }
    world.database.execute(&format!("ALTER DATABASE {name} SET default_transaction_read_only = on"));
    let finished = world.month();
    assert_eq!(finished.expect(Outcome::Misconfigured).error.unwrap().code, "database_read_only");
    assert!(finished.stderr.contains("default_transaction_read_only is on"), "{}", finished.stderr);
    world
        .database
        .execute(&format!("BEGIN READ WRITE; ALTER DATABASE {name} RESET default_transaction_read_only; COMMIT"));

    world.database.execute("DROP TABLE ingest.places CASCADE");
    let finished = world.month();
    assert_eq!(finished.expect(Outcome::Misconfigured).error.unwrap().code, "schema_altered");
    assert!(finished.stderr.contains("changed the tables by hand"), "{}", finished.stderr);
    world.database.execute("DELETE FROM ingest.ingest_schema");
    refused(&world, "its record of migrations, ingest_schema, is empty");
    assert!(!world.ledger().contains(&"running".to_owned()));
}

#[test]
fn a_ledger_that_was_emptied_begins_again() {
    let world = World::new(generate(12, 10));
    (0..3).for_each(|_| drop(world.mirror()));
    world.database.execute("TRUNCATE ingest.ingest_runs RESTART IDENTITY CASCADE");
    assert_eq!(world.mirror().unchanged, 10);
    assert_eq!(world.mirror().unchanged, 10);
    assert_eq!(world.ledger(), ["succeeded", "succeeded"]);
}

#[test]
fn text_needs_a_database_that_can_hold_it() {
    let mut world = World::new(generate(13, 10));
    world.database.execute("CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0");
    world.set("DATABASE_URL", &world.database.url().replace(world.database.name(), "latin"));
    refused(&world, "the database stores text as LATIN1");
}

#[test]
fn a_schema_of_another_version_is_left_alone() {
    let world = World::new(generate(5, 10));
    world.mirror();
    let latest = world.database.number("SELECT count(*) FROM ingest.ingest_schema");
    let insert = "INSERT INTO ingest.ingest_schema (version, checksum, program) SELECT max(version) + 1, 'x', 'later' FROM ingest.ingest_schema";
    world.database.execute(insert);
    let next = latest + 1;
    refused(&world, &format!("schema ingest is at version {next}, and this program knows versions up to {latest}"));
    world.database.execute(&format!("DELETE FROM ingest.ingest_schema WHERE version = {next}"));
    world.database.execute("UPDATE ingest.ingest_schema SET checksum = 'x' WHERE version = 1");
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
