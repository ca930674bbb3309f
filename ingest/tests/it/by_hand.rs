//! Somebody edited the table. The next run puts it right and says so, or says in a sentence what is wrong; it never stumbles.

use crate::identity::{again, check, faces, libraries};
use crate::world::World;
use geuneul::Outcome;
use rehearsal::dice::Dice;

/// Forty places; behind each of the first five stands a second publication. One place has been retired, and what stood behind it.
fn stage() -> World {
    let mut rows = libraries();
    let twins = again(&rows[..6], "4999000");
    rows.extend(twins);
    let world = World::new(rows.clone());
    world.mirror();
    rows.remove(45);
    rows.remove(5);
    world.upstream.set_rows(rows);
    let report = world.mirror();
    assert_eq!((report.active, report.duplicates, report.deactivated), (39, 5, 1));
    world
}

/// Everything that a run writes, but for its times.
fn contents(world: &World) -> Vec<String> {
    world.texts(
        "SELECT concat_ws('|', id, source, key, name, category, address, province, district, latitude, longitude, attributes, digest,
             duplicate_of, deleted_at IS NULL) FROM ingest.places ORDER BY id",
    )
}

/// What is said of rows by what they are: the first places, in the order of their ids.
fn edit(world: &World, sql: &str) {
    let numbered = "CREATE TEMP TABLE n AS SELECT id, duplicate_of, deleted_at, row_number() OVER (ORDER BY id) AS at FROM ingest.places;
        CREATE FUNCTION pg_temp.face(nth int) RETURNS bigint LANGUAGE sql AS
            $$ SELECT id FROM n WHERE deleted_at IS NULL AND id IN (SELECT duplicate_of FROM n) ORDER BY id LIMIT 1 OFFSET nth $$;
        CREATE FUNCTION pg_temp.member(nth int) RETURNS bigint LANGUAGE sql AS
            $$ SELECT id FROM n WHERE deleted_at IS NULL AND duplicate_of IS NOT NULL ORDER BY id LIMIT 1 OFFSET nth $$;
        CREATE FUNCTION pg_temp.lone(nth int) RETURNS bigint LANGUAGE sql AS
            $$ SELECT id FROM n WHERE deleted_at IS NULL AND duplicate_of IS NULL AND id NOT IN (SELECT duplicate_of FROM n WHERE duplicate_of IS NOT NULL)
               ORDER BY id LIMIT 1 OFFSET nth $$;
        CREATE FUNCTION pg_temp.gone() RETURNS bigint LANGUAGE sql AS
            $$ SELECT id FROM n WHERE deleted_at IS NOT NULL ORDER BY duplicate_of IS NULL, id LIMIT 1 $$;";
    world.database.execute(&format!("{numbered} {sql}"));
}

const COLUMNS: [&str; 13] = [
    "name = 'x'",
    "category = NULL",
    "address = NULL",
    "address = 'x'",
    "province = NULL",
    "district = 'x'",
    "latitude = NULL, longitude = NULL",
    "latitude = latitude + 0.000001",
    "attributes = attributes - 'phoneNumber'",
    "attributes = '[]'",
    "attributes = jsonb_set(attributes, '{seatCo}', '\"many\"')",
    "attributes = jsonb_set(attributes, '{bookCo}', '1')",
    "digest = decode(repeat('00', 32), 'hex')",
];

#[test]
fn a_column_is_put_right_and_counted() {
    let world = stage();
    let before = contents(&world);
    for (nth, column) in COLUMNS.iter().enumerate() {
        edit(&world, &format!("UPDATE ingest.places SET {column} WHERE id = pg_temp.lone({nth})"));
    }
    edit(&world, "UPDATE ingest.places SET name = '다른' WHERE id IN (pg_temp.member(0), pg_temp.face(1))");
    // Nobody reads these.
    edit(
        &world,
        "UPDATE ingest.places SET changed_at = now() + interval '1 year', first_seen_at = 'epoch' WHERE id = pg_temp.lone(20)",
    );
    let report = world.mirror();
    let edited = COLUMNS.len() as u64 + 2;
    assert_eq!((report.updated, report.noted, report.inserted, report.deactivated), (edited, edited, 0, 0));
    assert_eq!(contents(&world), before);
    let again = world.mirror();
    assert_eq!((again.upserted, again.noted), (0, 0));
}

/// Each edit, and whether a note counts it: what a run itself might have written is an ordinary change.
const POINTERS: [(&str, &str, bool); 11] = [
    ("a place behind a stranger", "duplicate_of = pg_temp.face(0) WHERE id = pg_temp.lone(0)", false),
    ("a part that is none", "duplicate_of = NULL WHERE id = pg_temp.member(0)", false),
    ("a part of another place", "duplicate_of = pg_temp.lone(3) WHERE id = pg_temp.member(1)", false),
    ("a part of a part", "duplicate_of = pg_temp.member(1) WHERE id = pg_temp.member(0)", true),
    ("a face behind its part", "duplicate_of = pg_temp.member(0) WHERE id = pg_temp.face(0)", true),
    ("a place behind what is gone", "duplicate_of = pg_temp.gone() WHERE id = pg_temp.lone(1)", true),
    ("what is gone behind a part", "duplicate_of = pg_temp.member(0) WHERE id = pg_temp.gone()", true),
    ("a face that is gone", "deleted_at = now() WHERE id = pg_temp.face(2)", true),
    ("a part that is gone", "deleted_at = now() WHERE id = pg_temp.member(2)", false),
    ("a place that is gone", "deleted_at = 'infinity' WHERE id = pg_temp.lone(2)", false),
    ("another key", "key = '1/다른' WHERE id = pg_temp.lone(4)", true),
];

#[test]
fn a_pointer_is_put_right_and_no_library_loses_its_id() {
    let world = stage();
    let (born, before) = (faces(&world), contents(&world));
    for (what, sql, noted) in POINTERS {
        edit(&world, &format!("UPDATE ingest.places SET {sql}"));
        assert_ne!(contents(&world), before, "{what}");
        let report = world.mirror();
        assert_eq!((report.deactivated, report.active, report.duplicates), (0, 39, 5), "{what}: {report:?}");
        assert_eq!(report.noted > 0, noted, "{what}: {report:?}");
        assert_eq!(faces(&world), born, "{what}");
        check(&world);
        let again = world.mirror();
        assert_eq!((again.upserted, again.noted), (0, 0), "{what}");
    }
}

#[test]
fn rows_of_nobody_go_and_rows_that_are_missing_come() {
    let world = stage();
    world.database.execute(
        "INSERT INTO ingest.places (source, key, name, attributes, digest) SELECT 'library', key || 'x', 'x', '{}', digest FROM ingest.places LIMIT 3;
         INSERT INTO ingest.places (source, key, name, attributes, digest) SELECT 'elsewhere', key, name, attributes, digest FROM ingest.places LIMIT 2",
    );
    edit(
        &world,
        "UPDATE ingest.places SET duplicate_of = (SELECT max(id) FROM ingest.places) WHERE id = pg_temp.lone(0)",
    );
    edit(&world, "DELETE FROM ingest.places WHERE id = pg_temp.lone(1)");
    let report = world.mirror();
    assert_eq!((report.deactivated, report.inserted, report.active, report.duplicates), (3, 1, 39, 5));
    check(&world);
    assert_eq!(world.mirror().upserted, 0);
    assert_eq!(
        world.database.number("SELECT count(*) FROM ingest.places WHERE source = 'elsewhere' AND deleted_at IS NULL"),
        2
    );
}

#[test]
fn what_the_constraints_forbid_is_said_in_a_sentence() {
    for (sql, says) in [
        (
            "ALTER TABLE ingest.places DROP CONSTRAINT places_source_key_key;
             INSERT INTO ingest.places (source, key, name, attributes, digest) SELECT source, key, name, attributes, digest FROM ingest.places LIMIT 1",
            "two places have the key",
        ),
        ("ALTER TABLE ingest.places ALTER name DROP NOT NULL; UPDATE ingest.places SET name = NULL WHERE id = 1", "NULL"),
        ("ALTER TABLE ingest.places ALTER latitude TYPE numeric", "numeric"),
        ("ALTER TABLE ingest.places DROP COLUMN district", "district"),
    ] {
        let world = stage();
        world.database.execute(sql);
        let versions = world.row_versions();
        let finished = world.month();
        let error = finished.expect(Outcome::Misconfigured).error.unwrap();
        assert_eq!(error.code, "schema_altered", "{error:?}");
        assert!(error.message.contains(says) && finished.stderr.contains("\"hint\":"), "{finished:?}");
        assert_eq!((world.row_versions(), world.lock_is_free()), (versions, true));
    }
}

/// Several at once, wherever they fall.
#[test]
fn whatever_a_hand_did_the_table_is_the_listing_again() {
    let world = stage();
    let mut dice = Dice::new(11);
    let key = |row: &rehearsal::snapshot::Row| {
        format!("{}/{}", row["insttCode"].as_str().unwrap(), row["lbrryNm"].as_str().unwrap())
    };
    let mut listed: Vec<String> = world.upstream.rows().iter().map(key).collect();
    listed.sort();
    for round in 0..10 {
        for _ in 0..4 {
            let column = COLUMNS[dice.below(COLUMNS.len())];
            let kinds = [
                format!("{column} WHERE id = {{}}"),
                "duplicate_of = nullif({}, id) WHERE id = {}".to_owned(),
                "duplicate_of = nullif({}, id) WHERE id = {}".to_owned(),
                "deleted_at = now() WHERE id = {}".to_owned(),
                "deleted_at = NULL WHERE id = {}".to_owned(),
                "key = key || 'x' WHERE id = {}".to_owned(),
            ];
            let mut sql = kinds[dice.below(kinds.len())].clone();
            while sql.contains("{}") {
                let id = format!("(SELECT id FROM ingest.places ORDER BY id LIMIT 1 OFFSET {})", dice.below(46));
                sql = sql.replacen("{}", &id, 1);
            }
            world.database.execute(&format!("UPDATE ingest.places SET {sql}"));
        }
        let report = world.mirror();
        assert_eq!(report.active + report.duplicates, listed.len() as u64, "round {round}");
        let active = "SELECT key FROM ingest.places WHERE deleted_at IS NULL ORDER BY key COLLATE \"C\"";
        assert_eq!(world.texts(active), listed, "round {round}");
        check(&world);
        assert_eq!(world.mirror().upserted, 0, "round {round}");
    }
}
