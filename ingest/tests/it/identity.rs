//! A library keeps its id, whoever publishes it; and what is shown beforehand is what happens.

use crate::world::World;
use geuneul::{Outcome, RunReport, WithheldReason};
use rehearsal::dice::Dice;
use rehearsal::snapshot::{Row, Rows, generate};

pub fn with(row: &Row, changes: &[(&str, &str)]) -> Row {
    let mut row = row.clone();
    for (key, value) in changes {
        row.insert((*key).to_owned(), (*value).into());
    }
    row
}

/// Forty libraries of one institution each, far apart.
pub fn libraries() -> Rows {
    let rows = generate(9, 40);
    let apart =
        |(at, row)| with(row, &[("latitude", &format!("{}", 34.0 + f64::from(at) / 10.0)), ("longitude", "127.5")]);
    (0..).zip(&rows).map(apart).collect()
}

/// The same rows, published by another institution under another address.
pub fn again(rows: &[Row], code: &str) -> Rows {
    let moved = |row: &Row| {
        let address = format!("새 {}", row["rdnmadr"].as_str().unwrap());
        with(row, &[("insttCode", code), ("rdnmadr", &address), ("referenceDate", "2026-09-01")])
    };
    rows.iter().map(moved).collect()
}

pub fn faces(world: &World) -> Vec<String> {
    world.texts("SELECT concat_ws(' ', id, key) FROM ingest.places WHERE deleted_at IS NULL AND duplicate_of IS NULL ORDER BY id")
}

fn ids(world: &World) -> Vec<String> {
    faces(world).iter().map(|face| face.split(' ').next().unwrap().to_owned()).collect()
}

/// What must hold of the table after every run.
pub fn check(world: &World) {
    let broken = world.database.number(
        "SELECT count(*) FROM ingest.places d JOIN ingest.places f ON f.id = d.duplicate_of
         WHERE f.duplicate_of IS NOT NULL OR (d.deleted_at IS NULL AND f.deleted_at IS NOT NULL)",
    );
    assert_eq!(broken, 0, "a duplicate points to a face, an active one to an active one");
}

fn changes(world: &World) -> Vec<String> {
    world.texts("SELECT concat_ws(' ', change, count(*)) FROM ingest.ingest_changes WHERE run = (SELECT max(run) FROM ingest.ingest_changes) GROUP BY change ORDER BY change")
}

#[test]
fn a_reform_keeps_every_id() {
    let old = libraries();
    let new = again(&old, "4999000");
    let world = World::new(old.clone());
    world.mirror();
    let born = faces(&world);
    assert_eq!(born.len(), 40);

    world.upstream.set_rows([new.clone(), old.clone()].concat());
    let both = world.mirror();
    assert_eq!((both.inserted, both.active, both.duplicates, both.deactivated), (40, 40, 40, 0));
    assert_eq!(faces(&world), born, "the incumbents stay");
    check(&world);

    world.upstream.set_rows(new.clone());
    let after = world.mirror();
    assert_eq!((after.carried_over, after.deactivated, after.merged), (40, 0, 0));
    assert_eq!((after.updated, after.active, after.duplicates), (40, 40, 0));
    let before: Vec<&str> = born.iter().map(|face| face.split(' ').next().unwrap()).collect();
    assert_eq!(ids(&world), before);
    assert!(faces(&world).iter().all(|face| face.contains(" 4999000/")));
    assert_eq!(changes(&world), ["carried_over 40", "delisted 40"]);
    check(&world);

    // What was displaced is remembered: when the old rows return, they stand behind their places and nothing flips.
    let kept = faces(&world);
    world.upstream.set_rows([old.clone(), new].concat());
    let returned = world.mirror();
    assert_eq!((returned.reactivated, returned.inserted, returned.duplicates), (40, 0, 40));
    assert_eq!(faces(&world), kept);
    check(&world);
    world.upstream.set_rows(old);
    assert_eq!(world.mirror().carried_over, 40);
    assert_eq!(faces(&world), born, "back where it began");
    check(&world);
}

/// Months in which anything may be listed by anybody, in any order: the statements do what the plan says (the program compares every
/// count), the table has exactly what is listed, and once more is nothing.
#[test]
fn whatever_is_listed_the_table_has_it() {
    let libraries = libraries();
    let world = World::new(libraries.clone());
    let mut dice = Dice::new(7);
    for month in 0..8 {
        let mut rows = Rows::new();
        for library in &libraries {
            for code in ["", "4990001", "4990002", "4990003"] {
                let mut row = if code.is_empty() {
                    library.clone()
                } else {
                    again(std::slice::from_ref(library), code).remove(0)
                };
                if dice.below(4) == 0 {
                    row.extend([("latitude".to_owned(), "".into()), ("longitude".to_owned(), "".into())]);
                }
                if dice.below(2) == 0 {
                    rows.insert(dice.below(rows.len() + 1), row);
                }
            }
        }
        let mut listed: Vec<String> = rows
            .iter()
            .map(|row| format!("{}/{}", row["insttCode"].as_str().unwrap(), row["lbrryNm"].as_str().unwrap()))
            .collect();
        listed.sort();
        world.upstream.set_rows(rows);
        let report = world.month_with("--ingest.confirm-deactivations=1000").expect(Outcome::Succeeded);
        assert_eq!(report.active + report.duplicates, listed.len() as u64);
        let active = "SELECT key FROM ingest.places WHERE deleted_at IS NULL ORDER BY key COLLATE \"C\"";
        assert_eq!(world.texts(active), listed, "month {month}");
        check(&world);
        let versions = world.row_versions();
        assert_eq!((world.mirror().upserted, world.row_versions()), (0, versions), "month {month}");
    }
    let kinds = world.texts("SELECT DISTINCT change FROM ingest.ingest_changes ORDER BY change");
    let every = ["carried_over", "deactivated", "delisted", "merged", "reactivated", "separated", "updated"];
    assert_eq!(kinds, every, "months in which everything happens");
}

#[test]
fn two_places_that_turn_out_to_be_one_are_merged_and_part_again() {
    let rows = libraries();
    let twin = with(&rows[7], &[("insttCode", "7001234"), ("rdnmadr", "다른 길 1"), ("latitude", "38.5")]);
    let world = World::new(rows.clone());
    let nothing = world.invoke(&["explain-merges"]);
    assert_eq!((nothing.code, nothing.stdout.as_str()), (Some(0), "0 rows stand behind 0 active places\n"));
    world.mirror();
    let apart = [rows.clone(), vec![twin.clone()]].concat();
    world.upstream.set_rows(apart.clone());
    assert_eq!(world.mirror().active, 41);
    let before = faces(&world);

    let near = with(&twin, &[("latitude", rows[7]["latitude"].as_str().unwrap())]);
    world.upstream.set_rows([rows, vec![near]].concat());
    let merged = world.mirror();
    assert_eq!((merged.merged, merged.active, merged.duplicates, merged.deactivated), (1, 40, 1, 0));
    assert_eq!(changes(&world), ["merged 1"]);
    check(&world);
    let explained = world.invoke(&["explain-merges"]);
    assert!(
        explained.stdout.contains(&format!("= 7001234/{}: same name within 150 m", twin["lbrryNm"].as_str().unwrap())),
        "{explained:?}"
    );

    world.upstream.set_rows(apart);
    assert_eq!(world.mirror().active, 41);
    assert_eq!(faces(&world), before);
    assert_eq!(changes(&world), ["separated 1"]);
    check(&world);
}

#[test]
fn without_proof_or_flag_a_new_row_waits_behind_the_old_one() {
    let old = libraries();
    let world = World::new(old.clone());
    world.mirror();
    let born = faces(&world);
    world.upstream.set_rows(again(&old, "4999000"));
    let kept = world.invoke(&["--ingest.source=library"]).expect(Outcome::Succeeded);
    assert_eq!((kept.inserted, kept.active, kept.duplicates), (40, 40, 40));
    assert_eq!(faces(&world), born);
    check(&world);
    let moved = world.mirror();
    assert_eq!((moved.carried_over, moved.deactivated, moved.active), (40, 0, 40));
    check(&world);
}

#[test]
fn a_successor_that_cannot_be_read_keeps_the_place_waiting() {
    let rows = generate(3, 130);
    let world = World::new(rows.clone());
    world.mirror();
    let mut next = rows.clone();
    next[5] = with(&rows[5], &[("insttCode", "7001234"), ("seatCo", "many")]);
    world.upstream.set_rows(next.clone());
    let waiting = world.mirror();
    assert_eq!((waiting.rejected, waiting.deactivated, waiting.withheld), (1, 0, None));
    next[5].insert("seatCo".to_owned(), "7".into());
    world.upstream.set_rows(next);
    let found = world.mirror();
    assert_eq!((found.carried_over, found.deactivated, found.inserted), (1, 0, 0));
    check(&world);
}

#[test]
fn when_one_of_two_of_a_name_goes_the_other_keeps_its_id() {
    let mut rows = libraries();
    rows[1] = with(&rows[2], &[("rdnmadr", "가길 1"), ("latitude", "33.5"), ("phoneNumber", "02-111-2222")]);
    rows[2].insert("phoneNumber".to_owned(), "02-333-4444".into());
    let world = World::new(rows.clone());
    world.mirror();
    let place = |address: &str| {
        world.texts(&format!("SELECT id::text FROM ingest.places WHERE address = '{address}' AND deleted_at IS NULL"))
    };
    let kept = place(rows[2]["rdnmadr"].as_str().unwrap());
    rows.remove(1);
    world.upstream.set_rows(rows.clone());
    let report = world.mirror();
    assert_eq!((report.deactivated, report.updated, report.unchanged), (1, 0, 39));
    assert_eq!(place(rows[1]["rdnmadr"].as_str().unwrap()), kept);
}

#[test]
fn much_born_and_much_gone_is_refused() {
    let rows = generate(5, 120);
    let world = World::new(rows.clone());
    world.mirror();
    let versions = world.row_versions();
    let mut next = rows[12..].to_vec();
    next.extend(generate(6, 20)[..12].iter().map(|row| with(row, &[("insttCode", "9990000")])));
    world.upstream.set_rows(next);
    for flags in [&["--ingest.source=library"][..], &crate::world::MONTHLY] {
        let finished = world.invoke(flags);
        let report = finished.expect(Outcome::SnapshotRefused);
        assert_eq!(report.error.unwrap().code, "key_churn");
        assert!(finished.stderr.contains("--ingest.confirm-deactivations=N"), "{}", finished.stderr);
        assert_eq!(world.row_versions(), versions);
    }
    let shown = world.month_with("--ingest.dry-run=true");
    assert!(
        shown.stdout.contains("would be refused: key churn: 12 places would be new, 12 gone and 0 a part of another"),
        "{}",
        shown.stdout
    );
    // Whoever has looked says so. A ceiling that is too low changes nothing.
    world.month_with("--ingest.confirm-deactivations=11").expect(Outcome::SnapshotRefused);
    let confirmed = world.month_with("--ingest.confirm-deactivations=12").expect(Outcome::Succeeded);
    assert_eq!((confirmed.inserted, confirmed.deactivated), (12, 12));
    assert_eq!(
        world.texts("SELECT ceiling::text FROM ingest.ingest_runs WHERE ceiling IS NOT NULL ORDER BY id"),
        ["11", "12"]
    );
}

#[test]
fn a_confirmed_number_is_a_ceiling_on_a_fresh_run() {
    let rows = generate(1, 120);
    let world = World::new(rows.clone());
    world.mirror();
    world.upstream.set_rows(rows[30..].to_vec());
    let over = world.month().expect(Outcome::Withheld).withheld.unwrap();
    assert_eq!((over.deactivations, over.reason), (30, WithheldReason::OverCap));
    world.month_with("--ingest.confirm-deactivations=29").expect(Outcome::Withheld);
    // Meanwhile ten are back: no list of thirty is replayed.
    world.upstream.set_rows(rows[20..].to_vec());
    let report = world.month_with("--ingest.confirm-deactivations=30").expect(Outcome::Succeeded);
    assert_eq!((report.deactivated, report.withheld), (20, None));
}

#[test]
fn a_dry_run_shows_what_the_run_then_does() {
    let old = libraries();
    let world = World::new(old.clone());
    world.mirror();
    let mut next = again(&old[..3], "4999000");
    next.extend_from_slice(&old[4..38]);
    next[5].insert("bookCo".to_owned(), "17".into());
    next.extend(generate(77, 45)[43..].iter().map(|row| with(row, &[("insttCode", "9990000"), ("phoneNumber", "")])));
    world.upstream.set_rows(next);

    let everything = || {
        let tables = ["ingest_sources", "ingest_changes", "ingest_rejects"];
        let rows = tables
            .map(|table| world.texts(&format!("SELECT concat_ws(' ', t.*, xmin) FROM ingest.{table} t ORDER BY 1")));
        (world.row_versions(), rows)
    };
    let before = everything();
    let text = world.month_with("--ingest.dry-run=true");
    let shown = text.expect(Outcome::DryRun);
    let json = world.month_with("--ingest.dry-run=json");
    json.expect(Outcome::DryRun);
    assert_eq!(everything(), before, "nothing but its own row in the ledger");
    assert_eq!(world.ledger(), ["succeeded", "dry_run", "dry_run"]);

    let report = world.mirror();
    let numbers = |report: &RunReport| {
        let mut value = serde_json::to_value(report).unwrap();
        for differs in ["run_id", "outcome", "started_at", "duration_ms"] {
            value.as_object_mut().unwrap().remove(differs);
        }
        value
    };
    assert_eq!(numbers(&shown), numbers(&report));
    assert_eq!((report.inserted, report.carried_over, report.deactivated, report.updated), (2, 3, 3, 4));

    let preview = text.stdout.rsplit_once("\n{").unwrap().0;
    insta::assert_snapshot!("dry_run_text", preview);
    let plan: serde_json::Value = serde_json::from_str(json.stdout.lines().next().unwrap()).unwrap();
    assert_eq!(plan["geuneul"], "run-plan/1");
    assert_eq!(plan["counts"]["carried_over"], 3);
    assert_eq!(plan["samples"]["updated"][0]["fields"]["bookCo"][1], 17);
    assert_eq!(plan["samples"]["carried_over"].as_array().unwrap().len(), 3);
}
