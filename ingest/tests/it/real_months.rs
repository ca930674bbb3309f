//! Months as they were published, when they are at hand.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use crate::world::World;
use rehearsal::snapshot::{Row, Rows, read_jsonl};

fn month(name: &str) -> Rows {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/snapshots").join(name);
    read_jsonl(&path).unwrap_or_else(|error| panic!("this test needs a real month: {error:#}"))
}

#[test]
#[ignore = "needs ../shared/snapshots"]
fn july_twice() {
    let world = World::new(month("library-2026-07.jsonl"));
    let first = world.mirror();
    assert_eq!((first.fetched, first.rejected, first.inserted, first.active), (3555, 0, 3555, 3555));
    let versions = world.row_versions();
    let second = world.mirror();
    assert_eq!((second.inserted, second.updated, second.deactivated, second.unchanged), (0, 0, 0, 3555));
    assert_eq!(world.row_versions(), versions);
}

/// The names that an institution publishes, each with the rows that have it, as plain text.
fn by_name(rows: &Rows) -> HashMap<(String, String), Vec<Vec<String>>> {
    let text = |row: &Row, key: &str| row[key].as_str().unwrap().trim().to_owned();
    let mut map: HashMap<_, Vec<Vec<String>>> = HashMap::new();
    for row in rows {
        let mut keys: Vec<&String> = row.keys().collect();
        keys.sort();
        let values = keys.into_iter().map(|key| spelt(key, &text(row, key))).collect();
        map.entry((text(row, "insttCode"), text(row, "lbrryNm"))).or_default().push(values);
    }
    map
}

/// Numbers by value: 0.50 is no change of 0.5.
fn spelt(key: &str, value: &str) -> String {
    let number =
        ["latitude", "longitude", "plotAr", "buldAr"].contains(&key) || key.ends_with("Co") || key == "lonDaycnt";
    match value.parse::<f64>() {
        Ok(value) if number => value.to_string(),
        _ => value.to_owned(),
    }
}

#[test]
#[ignore = "needs ../shared/snapshots"]
fn may_then_july() {
    let (may, july) = (month("library-2026-05.jsonl"), month("library-2026-07.jsonl"));
    let world = World::new(may.clone());
    assert_eq!(world.mirror().inserted, 3556);
    world.upstream.set_rows(july.clone());
    let report = world.mirror();

    // Counted without keys, digests or a plan: names by set operations, values as multisets of rows.
    let (before, after) = (by_name(&may), by_name(&july));
    let names: HashSet<_> = before.keys().chain(after.keys()).collect();
    let (mut inserted, mut retired, mut unchanged, mut updated) = (0, 0, 0, 0);
    for name in names {
        let none = Vec::new();
        let (old, new) = (before.get(name).unwrap_or(&none), after.get(name).unwrap_or(&none));
        let mut left = old.clone();
        let same = new
            .iter()
            .filter(|row| left.iter().position(|other| other == *row).map(|at| left.remove(at)).is_some())
            .count();
        inserted += new.len().saturating_sub(old.len());
        retired += old.len().saturating_sub(new.len());
        unchanged += same;
        updated += old.len().min(new.len()) - same;
    }
    let counted = [inserted, updated, unchanged, retired].map(|number| number as u64);
    assert_eq!([report.inserted, report.updated, report.unchanged, report.deactivated], counted);
    assert_eq!((report.fetched, report.reactivated, report.rejected), (3555, 0, 0));
    println!("May then July: inserted, updated, unchanged, deactivated = {counted:?}, active {}", report.active);
}
