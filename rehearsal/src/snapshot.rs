//! Months of the library data set: real ones from a file, invented ones from a seed.
//!
//! An invented month has what the real ones have: districts that end in a full-width space, libraries that two institutions
//! publish, a name that an institution uses twice, missing coordinates, closed days written `00:00`.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use serde_json::{Map, Value};

use crate::dice::Dice;

/// One item of the API: 28 keys, every value a string, a missing value `""`.
pub type Row = Map<String, Value>;
/// A month.
pub type Rows = Vec<Row>;

/// What a month brings, for whoever checks a run against it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Change {
    /// Rows whose key was not there in the month before.
    pub inserted: usize,
    /// Rows with another value than in the month before.
    pub updated: usize,
    /// Rows of the month before that are gone.
    pub retired: usize,
}

/// Reads a file with one API item a line.
pub fn read_jsonl(path: &Path) -> Result<Rows> {
    let file = File::open(path).with_context(|| format!("open the snapshot {}", path.display()))?;
    let place = |at: usize| format!("{}, line {}", path.display(), at + 1);
    let mut rows = Rows::new();
    for (at, line) in BufReader::new(file).lines().enumerate() {
        let line = line.with_context(|| place(at))?;
        let row: Row = serde_json::from_str(&line).with_context(|| format!("{}: not a JSON object", place(at)))?;
        // Other oddities are the job's business; without these two it is no month of this data set at all.
        if let Some(key) = ["lbrryNm", "insttCode"].into_iter().find(|key| !row.contains_key(*key)) {
            bail!("{}: no {key}; a line is one item of the library API", place(at));
        }
        rows.push(row);
    }
    ensure!(!rows.is_empty(), "the snapshot {} has no rows", path.display());
    Ok(rows)
}

/// The keys of an API item in the API's order (three of them are the portal's own misspellings) and an example of each.
const TEMPLATE: [(&str, &str); 28] = [
    ("lbrryNm", ""),
    ("ctprvnNm", ""),
    ("signguNm", ""),
    ("lbrrySe", "작은도서관"),
    ("closeDay", "매주 월요일+법정공휴일"),
    ("weekdayOperOpenHhmm", "09:00"),
    ("weekdayOperColseHhmm", "18:00"),
    ("satOperOperOpenHhmm", "09:00"),
    ("satOperCloseHhmm", "17:00"),
    ("holidayOperOpenHhmm", "00:00"),
    ("holidayCloseOpenHhmm", "00:00"),
    ("seatCo", ""),
    ("bookCo", ""),
    ("pblictnCo", "12"),
    ("noneBookCo", "340"),
    ("lonCo", "5"),
    ("lonDaycnt", "14"),
    ("rdnmadr", ""),
    ("operInstitutionNm", ""),
    ("phoneNumber", ""),
    ("plotAr", "990"),
    ("buldAr", "1187.5"),
    ("homepageUrl", ""),
    ("latitude", ""),
    ("longitude", ""),
    ("referenceDate", "2026-06-16"),
    ("insttCode", ""),
    ("insttNm", ""),
];

/// Province, district, institution code.
const DISTRICTS: [(&str, &str, &str); 12] = [
    ("서울특별시", "노원구\u{3000}", "3110000"),
    ("서울특별시", "서울특별시 도봉구", "3090000"),
    ("부산광역시", "해운대구", "3330000"),
    ("대구광역시", "수성구", "3460000"),
    ("인천광역시", "연수구", "6280000"),
    ("광주광역시", "북구", "3630000"),
    ("경기도", "성남시", "3780000"),
    ("강원특별자치도", "춘천시", "4181000"),
    ("충청남도", "당진시", "5680000"),
    ("전북특별자치도", "전주시", "4641000"),
    ("경상북도", "영천시", "5100000"),
    ("제주특별자치도", "제주시", "B551938"),
];

const STEMS: [&str; 16] = [
    "금호",
    "햇살",
    "푸른",
    "중앙",
    "한마음",
    "늘품",
    "새싹",
    "책사랑",
    "은하수",
    "바람개비",
    "꿈나무",
    "느티나무",
    "한빛",
    "가온",
    "다솜",
    "그늘",
];

/// An invented month of `n` rows. The same seed gives the same month.
pub fn generate(seed: u64, n: usize) -> Rows {
    let mut dice = Dice::new(seed);
    let mut rows: Rows = (0..n).map(|number| library(number, &mut dice)).collect();
    for at in 1..n {
        match at {
            // Another institution publishes the same library, a few metres off.
            _ if at % 64 == 63 => {
                let (code, institution) = (format!("7{:06}", at % 1000), "교육청");
                let mut twin = rows[at - 1].clone();
                set(&mut twin, "insttCode", code);
                set(&mut twin, "insttNm", institution);
                rows[at] = twin;
            }
            // An institution uses a name twice.
            _ if at % 500 == 250 => {
                for key in ["lbrryNm", "insttCode", "insttNm", "ctprvnNm", "signguNm"] {
                    let value = rows[at - 1][key].clone();
                    rows[at].insert(key.to_owned(), value);
                }
            }
            _ => {}
        }
    }
    rows
}

/// The month after: some libraries changed, some vanished, some are new; every kind at least once when there are 12 rows or more.
pub fn a_month_later(rows: &Rows, seed: u64) -> (Rows, Change) {
    let mut dice = Dice::new(seed ^ 0x5eed);
    let offset = dice.below(7);
    let mut next = Vec::with_capacity(rows.len() + 8);
    let mut change = Change { inserted: 0, updated: 0, retired: 0 };
    for (at, row) in rows.iter().enumerate() {
        // A twin or a repeated name changes the keys of its sibling when it goes: those stay.
        let plain = at % 64 < 62 && !(248..=251).contains(&(at % 500));
        match (at + offset) % 211 {
            10 if plain => change.retired += 1,
            11 | 40 | 90 if plain => {
                let mut row = row.clone();
                let books: u64 = row["bookCo"].as_str().and_then(|text| text.parse().ok()).unwrap_or(0);
                set(&mut row, "bookCo", (books + 17).to_string());
                set(&mut row, "referenceDate", "2026-08-01");
                next.push(row);
                change.updated += 1;
            }
            _ => next.push(row.clone()),
        }
    }
    for number in 0..=rows.len() / 400 {
        next.insert(dice.below(next.len() + 1), library(1_000_000 + dice.below(100_000) * 10 + number, &mut dice));
        change.inserted += 1;
    }
    (next, change)
}

fn library(number: usize, dice: &mut Dice) -> Row {
    let (province, district, code) = DISTRICTS[dice.below(DISTRICTS.len())];
    let stem = STEMS[dice.below(STEMS.len())];
    let kind = if dice.below(3) == 0 { "공공도서관" } else { "작은도서관" };
    let mut row: Row = TEMPLATE.iter().map(|&(key, value)| (key.to_owned(), value.into())).collect();
    set(&mut row, "lbrryNm", format!("{stem}{number}{kind}"));
    set(&mut row, "lbrrySe", kind);
    set(&mut row, "ctprvnNm", province);
    set(&mut row, "signguNm", district);
    set(&mut row, "insttCode", code);
    set(&mut row, "insttNm", format!("{province} {}", district.trim()));
    set(&mut row, "rdnmadr", format!("{province} {} {stem}로{}길 {}", district.trim(), dice.below(300), 1 + number));
    set(&mut row, "seatCo", dice.below(400).to_string());
    set(&mut row, "bookCo", (1000 + dice.below(90_000)).to_string());
    if dice.below(18) > 0 {
        set(&mut row, "phoneNumber", format!("0{}-{:03}-{:04}", 31 + dice.below(30), dice.below(900), number % 10_000));
    }
    if dice.below(24) > 0 {
        set(&mut row, "latitude", format!("{:.6}", 33.2 + dice.below(5_000_000) as f64 / 1e6));
        set(&mut row, "longitude", format!("{:.6}", 126.0 + dice.below(3_500_000) as f64 / 1e6));
    }
    row
}

fn set(row: &mut Row, key: &str, value: impl Into<Value>) {
    row.insert(key.to_owned(), value.into());
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn key(row: &Row) -> (String, String) {
        (row["insttCode"].to_string(), row["lbrryNm"].to_string())
    }

    #[test]
    fn a_month_has_what_real_months_have() {
        let rows = generate(7, 1200);
        assert_eq!(rows.len(), 1200);
        assert_eq!(rows, generate(7, 1200));
        assert!(rows.iter().all(|row| row.len() == 28 && row.values().all(Value::is_string)));
        let keys: HashSet<_> = rows.iter().map(key).collect();
        assert_eq!(keys.len(), 1198, "two names are used twice by one institution");
        assert!(rows.iter().any(|row| row["latitude"] == ""));
        let places: HashSet<_> =
            rows.iter().map(|row| (row["lbrryNm"].to_string(), row["rdnmadr"].to_string())).collect();
        assert_eq!(rows.len() - places.len(), 18, "libraries that two institutions publish");
    }

    #[test]
    fn the_next_month_brings_what_it_says() {
        let rows = generate(7, 1200);
        let (next, change) = a_month_later(&rows, 1);
        assert_eq!(next.len(), rows.len() + change.inserted - change.retired);
        let before: HashSet<_> = rows.iter().map(key).collect();
        let after: HashSet<_> = next.iter().map(key).collect();
        assert_eq!(before.difference(&after).count(), change.retired);
        assert_eq!(after.difference(&before).count(), change.inserted);
        let same: HashSet<_> = rows.iter().map(|row| Value::from(row.clone()).to_string()).collect();
        let moved = next.iter().filter(|row| !same.contains(&Value::from((*row).clone()).to_string())).count();
        assert_eq!(moved, change.updated + change.inserted);
        assert!(change.inserted > 0 && change.updated > 0 && change.retired > 0, "{change:?}");
    }
}
