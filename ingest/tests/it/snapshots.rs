//! Nothing is deactivated on doubt, and nothing is lost to a bad row.

use crate::world::{MONTHLY, PATIENT, World};
use geuneul::{Outcome, Withheld, WithheldReason};
use rehearsal::snapshot::{Rows, generate};
use rehearsal::upstream::{Answer, Envelope, Fault};

fn set(rows: &mut Rows, at: usize, key: &str, value: impl Into<serde_json::Value>) {
    rows[at].insert(key.to_owned(), value.into());
}

#[test]
fn more_than_the_cap_is_withheld() {
    let rows = generate(1, 120);
    let world = World::new(rows.clone());
    world.mirror();
    let mut fewer = rows[11..].to_vec();
    set(&mut fewer, 0, "seatCo", "4137");
    world.upstream.set_rows(fewer.clone());
    let report = world.month().expect(Outcome::Withheld);
    assert_eq!(report.withheld, Some(Withheld { deactivations: 11, reason: WithheldReason::OverCap }));
    assert_eq!((report.deactivated, report.updated, report.active, report.duplicates), (0, 1, 119, 1));
    assert_eq!(world.ledger(), ["succeeded", "withheld"]);

    fewer.push(rows[0].clone());
    world.upstream.set_rows(fewer);
    assert_eq!(world.mirror().deactivated, 10);
}

#[test]
fn a_listing_that_moves_under_its_reader_deactivates_nothing() {
    let rows = generate(2, 1100);
    let world = World::new(rows.clone());
    world.mirror();
    let fresh = generate(3, 60);
    // Before each request the first row goes and another comes: the total never changes.
    world.upstream.before_each(move |number, rows| {
        rows.remove(0);
        rows.push(fresh[number].clone());
    });
    let report = world.month().expect(Outcome::Withheld);
    let withheld = report.withheld.unwrap();
    assert_eq!(withheld.reason, WithheldReason::UnprovenSnapshot);
    assert!(withheld.deactivations > 0 && report.inserted > 0);
    assert_eq!((report.complete, report.deactivated), (false, 0));
    assert_eq!(world.upstream.requests().len(), 4 + 8, "four crawls of two pages, and no more");
}

/// Nothing is written of what a server sends that cannot page.
#[test]
fn a_page_that_comes_again_or_has_more_rows_than_were_asked_for_is_refused() {
    let rows = generate(7, 1500);
    let world = World::new(rows[..30].to_vec());
    world.mirror();
    let versions = world.row_versions();
    world.upstream.set_rows(rows);
    // It ignores which page is asked for, and then how many rows.
    for (more, code, requests) in [(0, "upstream_inconsistent", 4 * 2), (1, "upstream_unavailable", 3)] {
        let before = world.upstream.requests().len();
        world.upstream.cut_pages(move |_, size, _| (0..size + more).collect());
        let report = world.run_here(PATIENT);
        assert_eq!((report.outcome, report.error.unwrap().code.as_str()), (Outcome::UpstreamFailed, code));
        assert_eq!(world.upstream.requests().len() - before, requests);
        assert_eq!(world.row_versions(), versions);
    }
}

/// The totals agree, and every crawl finds the same rows: five of them twice, and the last five never.
#[test]
fn pages_that_overlap_in_the_same_way_every_time_retire_nothing_and_bear_nothing() {
    let rows = generate(8, 1100);
    let world = World::new(rows);
    world.mirror();
    let versions = world.row_versions();
    world.upstream.cut_pages(|page, size, all| {
        let first = (page - 1) * (size - 5);
        (first..(first + size).min(all - 5)).collect()
    });
    let with_flag = world.month().expect(Outcome::Withheld);
    // The same without the flag: a success could not be relied on.
    let without = world.invoke(&MONTHLY[..1]).expect(Outcome::Withheld);
    for report in [with_flag, without] {
        let withheld = Withheld { deactivations: 5, reason: WithheldReason::UnprovenSnapshot };
        assert_eq!((report.complete, report.withheld), (false, Some(withheld)));
        assert_eq!((report.fetched, report.unchanged, report.inserted, report.deactivated), (1095, 1095, 0, 0));
    }
    assert_eq!(world.row_versions(), versions);
    let sizes = world.upstream.requests().into_iter().map(|request| request.get("numOfRows").unwrap().to_owned());
    let mut sizes: Vec<String> = sizes.skip(4).step_by(2).take(4).collect();
    sizes.dedup();
    assert_eq!(sizes, ["1000", "900", "1000", "900"]);
}

/// The same, of a server that numbers its rows anew in each answer: no two readings of a row are equal but in what is stored.
#[test]
fn a_number_in_each_row_hides_no_overlap() {
    let rows = generate(15, 1100);
    let world = World::new(rows.clone());
    world.mirror();
    let versions = world.row_versions();
    let mut number = 0;
    for page in 1..=2 {
        let cut = |size: usize| {
            let first = (page - 1) * (size - 5);
            rows[first..(first + size).min(1095)].to_vec()
        };
        for size in [1000, 900, 1000, 900] {
            let mut items = cut(size);
            for row in &mut items {
                number += 1;
                row.insert("rnum".to_owned(), format!("{number}").into());
            }
            let answer = Answer::items(Envelope::New, &serde_json::to_value(items).unwrap(), 1100);
            world.upstream.fault(Fault { page: Some(page), times: 1, answer });
        }
    }
    let report = world.month().expect(Outcome::Withheld);
    assert_eq!((report.complete, report.inserted, report.unchanged, report.deactivated), (false, 0, 1095, 0));
    assert_eq!(world.row_versions(), versions);
}

/// It gives a thousand rows a page, whatever is asked for, and one row is on two pages: nothing proves it, and it is mirrored.
#[test]
fn a_server_with_pages_of_its_own_is_mirrored_without_a_proof() {
    let mut rows = generate(16, 1100);
    rows[1050] = rows[3].clone();
    let world = World::new(rows);
    world.upstream.cut_pages(|page, _, all| ((page - 1) * 1000..(page * 1000).min(all)).collect());
    let report = world.month().expect(Outcome::Withheld);
    // The second of a name that an institution uses twice waits for a proof.
    assert_eq!((report.complete, report.inserted, report.rejected, report.fetched), (false, 1097, 2, 1099));
    assert_eq!(report.withheld.unwrap().reason, WithheldReason::UnprovenSnapshot);
}

#[test]
fn rows_that_are_published_twice_are_proven_at_no_further_cost() {
    let mut rows = generate(9, 1100);
    rows[1050] = rows[3].clone();
    let world = World::new(rows);
    let report = world.mirror();
    assert_eq!((report.complete, report.inserted, world.upstream.requests().len()), (true, 1100, 4));
    assert_eq!(world.mirror().unchanged, 1100);
}

/// A row at the front during each walk: the last row of each page is the first one of the next, too.
#[test]
fn a_row_that_is_read_twice_bears_no_second_place() {
    let rows = generate(10, 1100);
    let world = World::new(rows);
    world.mirror();
    let ordinals = || world.texts("SELECT key FROM ingest.places WHERE key ~ '#' ORDER BY key");
    let before = ordinals();
    let fresh = generate(11, 40);
    world.upstream.before_each(move |number, rows| {
        if number % 2 == 0 {
            rows.insert(0, fresh[number].clone());
        }
    });
    let report = world.month().expect(Outcome::Withheld);
    assert_eq!(report.inserted, 3, "the rows that came in the walks before the last one");
    assert_eq!(ordinals(), before);
}

/// The institution edits a row, and the walk meets it again on the next page: two readings that differ, of one library.
#[test]
fn a_row_that_is_edited_between_two_readings_bears_no_second_place() {
    let rows = generate(13, 1100);
    let world = World::new(rows);
    world.mirror();
    let ordinals = || world.texts("SELECT key FROM ingest.places WHERE key ~ '#' ORDER BY key");
    let (before, places) = (ordinals(), world.places());
    let fresh = generate(14, 40);
    world.upstream.before_each(move |number, rows| {
        if number % 2 == 0 {
            rows.insert(0, fresh[number].clone());
            set(rows, 1000, "bookCo", format!("{}", 100_000 + number));
        }
    });
    let report = world.month().expect(Outcome::Withheld);
    assert_eq!((report.rejected, report.inserted), (1, 3), "{report:?}");
    let aside = world.texts("SELECT concat_ws(' ', column_name, reason) FROM ingest.ingest_rejects");
    assert_eq!(
        aside,
        ["key is that of another row too, in a listing that is not proven: it may be one row, read twice"]
    );
    assert_eq!(ordinals(), before);
    // At rest there is no doubt, and nothing to make good but the values.
    world.upstream.before_each(|_, _| {});
    let proven = world.mirror();
    assert_eq!((proven.inserted, proven.rejected, proven.deactivated), (1, 0, 0), "{proven:?}");
    assert_eq!((ordinals(), world.places()), (before, places + 4));
}

#[test]
fn a_listing_that_comes_to_rest_is_proven() {
    let rows = generate(2, 60);
    let world = World::new(rows.clone());
    world.upstream.before_each(|number, rows| {
        if number == 2 {
            rows.pop();
        }
    });
    let report = world.mirror();
    assert_eq!((report.fetched, report.complete), (59, true));
    assert_eq!(world.upstream.requests().len(), 3);
}

#[test]
fn an_empty_snapshot_is_refused() {
    let world = World::new(generate(4, 30));
    world.mirror();
    let versions = world.row_versions();
    world.upstream.set_rows(Vec::new());
    for envelope in [Envelope::Old, Envelope::New] {
        world.upstream.envelope(envelope);
        let report = world.month().expect(Outcome::SnapshotRefused);
        assert_eq!(report.error.unwrap().code, "empty_snapshot");
    }
    assert_eq!(world.row_versions(), versions);
}

#[test]
fn a_bad_row_is_set_aside_and_counts_as_present() {
    let mut rows = generate(5, 300);
    let world = World::new(rows.clone());
    world.mirror();
    set(&mut rows, 7, "bookCo", "47148+559");
    set(&mut rows, 8, "closeDay", "a\0b");
    set(&mut rows, 9, "referenceDate", serde_json::json!({"year": 2026}));
    world.upstream.set_rows(rows.clone());
    let report = world.mirror();
    assert_eq!((report.fetched, report.rejected, report.unchanged, report.deactivated), (300, 3, 297, 0));
    let rejects = world
        .texts("SELECT concat_ws(' ', row_number, column_name, reason) FROM ingest.ingest_rejects ORDER BY row_number");
    let expected = ["8 bookCo is no count", "9 closeDay contains a control character", "10 referenceDate is no text"];
    assert_eq!(rejects, expected);

    set(&mut rows, 10, "seatCo", "many");
    world.upstream.set_rows(rows);
    let refused = world.month().expect(Outcome::SnapshotRefused);
    assert_eq!(refused.error.unwrap().code, "too_many_rejects");
}

#[test]
fn a_row_that_cannot_be_named_withholds_deactivation() {
    let mut rows = generate(6, 200);
    let world = World::new(rows.clone());
    world.mirror();
    // Empty; or random and so long that no index of the database has room for a key with it.
    let long: String = (0..900u32).filter_map(|at| char::from_u32(0xac00 + at * 7919 % 11_000)).collect();
    for name in ["", &long] {
        set(&mut rows, 7, "lbrryNm", name);
        world.upstream.set_rows(rows.clone());
        let report = world.month().expect(Outcome::Withheld);
        let expected = Withheld { deactivations: 1, reason: WithheldReason::UnnamedRow };
        assert_eq!((report.rejected, report.withheld, report.active + report.duplicates), (1, Some(expected), 200));
        assert!(report.complete);
    }
}

#[test]
fn a_listing_that_moves_now_and_then_retires_nothing_that_is_listed() {
    for seed in 0..3 {
        let rows = generate(seed, 1100);
        let world = World::new(rows.clone());
        world.mirror();
        let fresh = generate(seed + 100, 90);
        // In the first crawls a row goes and another comes; then the listing rests, or does not.
        let restless = 2 + seed as usize * 2;
        world.upstream.before_each(move |number, rows| {
            if number <= restless {
                rows.remove(number * 331 % 1000);
                rows.insert(0, fresh[number].clone());
            }
        });
        let report = world.month().report();
        let here: std::collections::HashSet<String> = world.upstream.rows().iter().map(key).collect();
        let retired =
            world.texts("SELECT key FROM ingest.places WHERE deleted_at IS NOT NULL AND duplicate_of IS NULL");
        assert!(retired.iter().all(|key| !here.contains(key)), "seed {seed}: {retired:?}");
        assert_eq!(report.outcome, if report.complete { Outcome::Succeeded } else { Outcome::Withheld }, "{report:?}");
        assert_eq!(report.complete, restless <= 4, "four crawls of two pages, two of them at rest: {restless}");
    }
}

fn key(row: &rehearsal::snapshot::Row) -> String {
    format!("{}/{}", row["insttCode"].as_str().unwrap(), row["lbrryNm"].as_str().unwrap())
}

#[test]
fn a_page_without_rows_before_the_total_is_no_snapshot() {
    let world = World::new(generate(7, 1100));
    let empty = Answer::items(Envelope::New, &serde_json::json!([]), 1100);
    world.upstream.fault(Fault { page: Some(2), times: 1_000_000, answer: empty });
    let report = world.month().expect(Outcome::UpstreamFailed);
    assert_eq!(report.error.unwrap().code, "upstream_short");
    assert_eq!(world.places(), 0);
}

#[test]
fn rows_of_one_institution_and_name_are_one_library_only_at_one_place() {
    let mut rows = generate(8, 6);
    // Published twice word for word; twice with other values; twice at different addresses.
    for at in [0, 2, 4] {
        rows[at + 1] = rows[at].clone();
        for key in ["latitude", "longitude"] {
            set(&mut rows, at, key, "");
            set(&mut rows, at + 1, key, "");
        }
    }
    set(&mut rows, 3, "seatCo", "4137");
    set(&mut rows, 5, "rdnmadr", "다른 길 1");
    let world = World::new(rows);
    let report = world.mirror();
    assert_eq!((report.fetched, report.inserted, report.active, report.duplicates), (6, 6, 4, 2));
    assert_eq!(world.mirror().unchanged, 6);
}

#[test]
fn a_row_that_returns_is_the_place_that_it_was() {
    let rows = generate(9, 40);
    let world = World::new(rows.clone());
    world.mirror();
    let born = world.texts("SELECT concat_ws(' ', id, key, first_seen_at) FROM ingest.places ORDER BY id");
    world.upstream.set_rows(rows[2..].to_vec());
    assert_eq!(world.mirror().deactivated, 2);
    let mut back = rows;
    set(&mut back, 1, "seatCo", "4137");
    world.upstream.set_rows(back);
    let report = world.mirror();
    assert_eq!((report.reactivated, report.updated, report.inserted, report.active), (2, 0, 0, 40));
    assert_eq!(world.texts("SELECT concat_ws(' ', id, key, first_seen_at) FROM ingest.places ORDER BY id"), born);
    assert_eq!(world.database.number("SELECT count(*) FROM ingest.places WHERE attributes->>'seatCo' = '4137'"), 1);
}

#[test]
fn an_older_snapshot_cannot_overwrite_a_newer_one() {
    let world = World::new(generate(10, 40));
    world.mirror();
    let versions = world.row_versions();
    world.upstream.set_rows(generate(10, 45));
    let gate = world.upstream.hold_after(0);
    let run = world.start();
    gate.wait_for_request();
    // What a later run does first.
    world.database.execute("UPDATE ingest.ingest_sources SET fence = fence + 1");
    gate.release();
    let report = run.end().expect(Outcome::DatabaseLost);
    assert_eq!(report.error.unwrap().code, "fenced");
    assert_eq!(world.row_versions(), versions);
}

#[test]
fn what_does_not_change_is_not_locked() {
    let mut rows = generate(12, 40);
    let world = World::new(rows.clone());
    world.mirror();
    set(&mut rows, 0, "seatCo", "4137");
    world.upstream.set_rows(rows.clone());
    let place = |at: usize| format!("WHERE name = '{}'", rows[at]["lbrryNm"].as_str().unwrap());
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let application = runtime.block_on(world.database.client());
    let execute = |sql: String| runtime.block_on(application.batch_execute(&sql)).unwrap();
    // The run waits in its transaction for a row that it has to write; all others can be written meanwhile.
    execute(format!("BEGIN; UPDATE ingest.places SET category = category {}", place(0)));
    let run = world.start();
    world.wait_until(
        "EXISTS (SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock')",
    );
    let others = format!("SET lock_timeout = '2s'; UPDATE ingest.places SET changed_at = now() {}", place(1));
    world.database.execute(&others);
    execute("ROLLBACK".to_owned());
    assert_eq!(run.end().expect(Outcome::Succeeded).updated, 1);
}
