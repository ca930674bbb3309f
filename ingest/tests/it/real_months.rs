//! Months as they were published, when they are at hand. What is checked here is counted without the program's own rules.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

use unicode_normalization::UnicodeNormalization;

use crate::world::World;
use rehearsal::snapshot::{Row, Rows, read_jsonl};

fn month(name: &str) -> Rows {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/snapshots").join(name);
    read_jsonl(&path).unwrap_or_else(|error| panic!("this test needs a real month: {error:#}"))
}

fn may() -> Rows {
    month("library-2026-05.jsonl")
}

fn july() -> Rows {
    month("library-2026-07.jsonl")
}

fn text<'a>(row: &'a Row, key: &str) -> &'a str {
    row[key].as_str().unwrap().trim()
}

fn bare(text: &str) -> String {
    text.nfkc().filter(|c| !c.is_whitespace()).collect()
}

/// Without "(…)" and commas.
fn bare_address(text: &str) -> String {
    let mut rest = bare(text).replace(',', "");
    while let Some((before, after)) = rest.split_once('(') {
        rest = format!("{before}{}", after.split_once(')').map_or("", |(_, after)| after));
    }
    rest
}

fn near(a: &Row, b: &Row) -> bool {
    let degree = |row: &Row, key: &str| text(row, key).parse::<f64>().ok();
    let pair = |key: &str| degree(a, key).zip(degree(b, key));
    let (Some((n1, n2)), Some((e1, e2))) = (pair("latitude"), pair("longitude")) else { return false };
    let (north, east) = ((n1 - n2) * 111_195.0, (e1 - e2) * 111_195.0 * n1.to_radians().cos());
    north.hypot(east) <= 150.0
}

/// The one library by name and place.
fn same_place(a: &Row, b: &Row) -> bool {
    let same_address = bare_address(text(a, "rdnmadr")) == bare_address(text(b, "rdnmadr"));
    bare(text(a, "lbrryNm")) == bare(text(b, "lbrryNm")) && (same_address || near(a, b))
}

/// A library that was retired although this row is it: the definition of a false retirement.
fn still_there(gone: &Row, row: &Row) -> bool {
    let digits = |row: &Row| text(row, "phoneNumber").chars().filter(char::is_ascii_digit).collect::<String>();
    let telephone = digits(gone);
    let same_telephone = telephone.len() > 7 && !telephone.ends_with("0000000") && telephone == digits(row);
    let same_name = bare(text(gone, "lbrryNm")) == bare(text(row, "lbrryNm"));
    let same_key = ["insttCode", "lbrryNm"].iter().all(|key| text(gone, key) == text(row, key));
    same_key || same_place(gone, row) || (same_name && same_telephone)
}

/// The row of each active place, by id, found again by what is stored of it.
fn places(world: &World) -> BTreeMap<i64, Row> {
    world
        .texts("SELECT jsonb_build_array(id, attributes)::text FROM ingest.places WHERE deleted_at IS NULL AND duplicate_of IS NULL")
        .iter()
        .map(|json| serde_json::from_str::<(i64, Row)>(json).unwrap())
        .map(|(id, mut row)| {
            for value in row.values_mut().filter(|value| !value.is_string()) {
                let number = if value.is_null() { String::new() } else { value.to_string() };
                *value = number.into();
            }
            (id, row)
        })
        .collect()
}

#[test]
#[ignore = "needs ../shared/snapshots"]
fn july_twice() {
    let world = World::new(july());
    let first = world.mirror();
    assert_eq!((first.fetched, first.rejected, first.inserted, first.noted), (3555, 0, 3555, 0));
    assert_eq!((first.active, first.duplicates), (3466, 89));
    let versions = world.row_versions();
    let second = world.mirror();
    assert_eq!((second.inserted, second.updated, second.deactivated, second.unchanged), (0, 0, 0, 3555));
    assert_eq!(world.row_versions(), versions);
}

#[test]
#[ignore = "needs ../shared/snapshots"]
fn no_library_of_may_is_retired_while_july_has_it() {
    let world = World::new(may());
    let first = world.mirror();
    let before = places(&world);
    assert_eq!((first.inserted, first.active as usize, first.duplicates), (3556, before.len(), 87));
    let july = july();
    world.upstream.set_rows(july.clone());
    let report = world.mirror();
    let after = places(&world);
    assert_eq!((report.fetched, report.active as usize, report.duplicates), (3555, after.len(), 89));

    let retired: Vec<&Row> = before.iter().filter(|(id, _)| !after.contains_key(id)).map(|(_, row)| row).collect();
    let falsely: Vec<_> = retired.iter().filter(|gone| july.iter().any(|row| still_there(gone, row))).collect();
    for row in &retired {
        println!(
            "retired: {} {} | {} | {}",
            text(row, "insttCode"),
            text(row, "lbrryNm"),
            text(row, "rdnmadr"),
            text(row, "phoneNumber")
        );
    }
    println!(
        "May then July: inserted {} updated {} unchanged {} carried over {} merged {} deactivated {} active {}; {} places are gone, {} of them falsely",
        report.inserted,
        report.updated,
        report.unchanged,
        report.carried_over,
        report.merged,
        report.deactivated,
        report.active,
        retired.len(),
        falsely.len()
    );
    assert!(falsely.is_empty(), "{falsely:?}");
    // The key that this one replaces would have retired 135.
    let name_and_address = |row: &Row| (text(row, "lbrryNm").to_owned(), text(row, "rdnmadr").to_owned());
    let naive: BTreeSet<_> = july.iter().map(name_and_address).collect();
    assert!(retired.iter().all(|row| !naive.contains(&name_and_address(row))));
    assert_eq!(retired.len() as u64, report.deactivated + report.merged);
    let stored =
        world.texts("SELECT change || ' ' || count(*) FROM ingest.ingest_changes GROUP BY change ORDER BY change");
    println!("in the ledger: {}", stored.join(", "));
}

#[test]
#[ignore = "needs ../shared/snapshots"]
fn every_merge_of_july_has_a_reason() {
    let world = World::new(july());
    world.mirror();
    let finished = world.invoke(&["explain-merges"]);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    print!("{}", finished.stdout);
    assert_eq!(finished.stdout.lines().filter(|line| line.contains(" = ")).count(), 89);

    // Checked against the rows themselves, by key: institution code + name, and #2 for the second.
    let mut rows: HashMap<String, Row> = HashMap::new();
    for row in july() {
        let key = format!("{}/{}", text(&row, "insttCode"), text(&row, "lbrryNm"));
        let key = if rows.contains_key(&key) { format!("{key}#2") } else { key };
        rows.insert(key, row);
    }
    let merges = world.texts(
        "SELECT d.key || '|' || f.key FROM ingest.places d JOIN ingest.places f ON f.id = d.duplicate_of ORDER BY 1",
    );
    assert_eq!(merges.len(), 89);
    for merge in merges {
        let (member, face) = merge.split_once('|').unwrap();
        assert!(same_place(&rows[member], &rows[face]), "{merge}");
    }
}

#[test]
#[ignore = "needs ../shared/snapshots"]
fn may_and_july_in_turn_end_where_they_began() {
    let world = World::new(may());
    let faces = || {
        world.texts("SELECT concat_ws(' ', id, key) FROM ingest.places WHERE deleted_at IS NULL AND duplicate_of IS NULL ORDER BY id")
    };
    let mut seen = Vec::new();
    for rows in [may(), july(), may(), july(), may(), july()] {
        world.upstream.set_rows(rows);
        let report = world.mirror();
        seen.push((faces(), report));
    }
    let ids = |at: usize| seen[at].0.iter().map(|face| face.split(' ').next().unwrap().to_owned()).collect::<Vec<_>>();
    assert_eq!((ids(2), ids(3)), (ids(0), ids(1)), "the same places");
    assert_eq!((&seen[4].0, &seen[5].0), (&seen[2].0, &seen[3].0), "with the same faces");
    let born: Vec<u64> = seen.iter().map(|(_, report)| report.inserted).collect();
    assert!(world.places() as u64 == born.iter().sum::<u64>());
    println!("rows inserted in each of six months: {born:?}; table rows {}", world.places());
    let flipped = seen[2].0.iter().filter(|face| !seen[0].0.contains(face)).count();
    println!("faces of May that another row of the same library has when May returns: {flipped}");
}

/// Provinces get a new name and their institutions new codes: 광주 and 전남 become one, as they did; 인천, of whose libraries 64 have no
/// coordinates. Both listed side by side, then the old rows are gone; or all at once.
#[test]
#[ignore = "needs ../shared/snapshots"]
fn a_reform_of_real_provinces_keeps_every_id() {
    let old = july();
    for (provinces, name, side_by_side) in [
        (&["광주광역시", "전라남도"][..], "전남광주통합특별시", true),
        (&["인천광역시"], "인천특별자치시", true),
        (&["인천광역시"], "인천특별자치시", false),
    ] {
        let is_reformed = |row: &Row| provinces.contains(&text(row, "ctprvnNm"));
        let reformed = |row: &Row| {
            let (mut row, code) = (row.clone(), format!("9{}", &text(row, "insttCode")[1..]));
            let address = provinces.iter().fold(text(&row, "rdnmadr").to_owned(), |a, old| a.replacen(old, name, 1));
            row.extend([
                ("ctprvnNm".to_owned(), name.into()),
                ("insttCode".to_owned(), code.into()),
                ("rdnmadr".to_owned(), address.into()),
            ]);
            row
        };
        let new: Rows = old.iter().filter(|row| is_reformed(row)).map(reformed).collect();
        let rest: Rows = old.iter().filter(|row| !is_reformed(row)).cloned().collect();
        let after = [rest, new.clone()].concat();
        let mut months = vec![after];
        if side_by_side {
            months.insert(0, [new.clone(), old.clone()].concat());
        }
        let world = World::new(old.clone());
        world.mirror();
        let born: BTreeSet<i64> = places(&world).into_keys().collect();
        for (month, rows) in (1..).zip(months) {
            world.upstream.set_rows(rows);
            let report = world.mirror();
            let now: BTreeSet<i64> = places(&world).into_keys().collect();
            println!(
                "{name}, month {month}: {} rows with new codes; active {}, carried over {}, merged {}, deactivated {}; {} of {} ids kept",
                new.len(),
                report.active,
                report.carried_over,
                report.merged,
                report.deactivated,
                born.intersection(&now).count(),
                born.len()
            );
            assert_eq!((now, report.deactivated, report.merged), (born.clone(), 0, 0));
        }
    }
}

/// Two places of one name behind one telephone, 475 m apart: one vanishes and returns, and neither takes the other's id.
#[test]
#[ignore = "needs ../shared/snapshots"]
fn a_real_pair_behind_one_telephone_keeps_its_ids() {
    let rows = july();
    let world = World::new(rows.clone());
    world.mirror();
    let pair = || {
        world.texts("SELECT concat_ws(' ', id, key) FROM ingest.places WHERE name = '국채보상운동기념도서관' AND deleted_at IS NULL ORDER BY id")
    };
    let before = pair();
    assert_eq!(before.len(), 2);
    let gone = |row: &Row| text(row, "lbrryNm") == "국채보상운동기념도서관" && text(row, "insttCode") == "3410000";
    world.upstream.set_rows(rows.iter().filter(|row| !gone(row)).cloned().collect());
    assert_eq!(world.mirror().deactivated, 0);
    assert_eq!(pair(), before[1..]);
    world.upstream.set_rows(rows);
    world.mirror();
    assert_eq!(pair(), before);
}
