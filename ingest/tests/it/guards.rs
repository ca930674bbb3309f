//! What is not believed although it is proven: that a hundred libraries are one, or that a row which cannot be read says that others are gone.

use crate::identity::{check, faces, with};
use crate::world::{MONTHLY, World};
use geuneul::{Outcome, Withheld, WithheldReason};
use rehearsal::snapshot::{Row, Rows, generate};

/// Libraries of one name, each of an institution of its own, with nothing but an address to tell them by.
fn namesakes(n: usize) -> Rows {
    let only = |(at, row): (usize, &Row)| {
        with(
            row,
            &[
                ("lbrryNm", "중앙도서관"),
                ("insttCode", &format!("{}", 5_000_000 + at)),
                ("rdnmadr", &format!("경기도 수원시 길{at} 7")),
                ("phoneNumber", ""),
                ("latitude", ""),
                ("longitude", ""),
            ],
        )
    };
    generate(1, n).iter().enumerate().map(only).collect()
}

fn all_with(rows: &Rows, column: &str, value: &str) -> Rows {
    rows.iter().map(|row| with(row, &[(column, value)])).collect()
}

fn churn(world: &World, args: &[&str], says: &str) {
    let versions = world.row_versions();
    let finished = world.invoke(args);
    let error = finished.expect(Outcome::SnapshotRefused).error.unwrap();
    assert!(error.code == "key_churn" && error.message.contains(says), "{error:?}");
    assert_eq!(world.row_versions(), versions);
}

#[test]
fn a_hundred_libraries_do_not_become_one() {
    let rows = namesakes(60);
    let world = World::new(rows.clone());
    assert_eq!(world.mirror().active, 60);
    world.upstream.set_rows(all_with(&rows, "rdnmadr", "경기도 수원시 팔달로 1"));
    let too_low = [&MONTHLY[..], &["--ingest.confirm-deactivations=58"]].concat();
    for args in [&MONTHLY[..], &["--ingest.source=library"], &too_low] {
        let report = world.invoke(args).expect(Outcome::Withheld);
        assert_eq!(
            (report.active, report.merged, report.rejected),
            (60, 0, 0),
            "the values are mirrored, and the places stay"
        );
        assert_eq!(report.withheld, Some(Withheld { deactivations: 59, reason: WithheldReason::OverCap }));
    }
    assert_eq!(world.texts("SELECT DISTINCT address FROM ingest.places"), ["경기도 수원시 팔달로 1"]);
    let report = world.month_with("--ingest.confirm-deactivations=59").expect(Outcome::Succeeded);
    assert_eq!((report.merged, report.active), (59, 1));
    check(&world);
}

#[test]
fn a_town_with_one_telephone_loses_nothing_unseen() {
    let rows = all_with(&namesakes(60), "phoneNumber", "031-228-1234");
    let world = World::new(rows.clone());
    world.mirror();
    world.upstream.set_rows(rows[40..].to_vec());
    let over = world.month().expect(Outcome::Withheld).withheld.unwrap();
    assert_eq!((over.deactivations, over.reason), (40, WithheldReason::OverCap));
    assert_eq!(faces(&world).len(), 60);
    world.upstream.set_rows(rows[5..].to_vec());
    let report = world.mirror();
    assert_eq!((report.merged, report.deactivated, report.active), (5, 0, 55));
    let kept = faces(&world);
    world.upstream.set_rows(rows);
    assert_eq!(world.mirror().active, 60);
    assert!(kept.iter().all(|face| faces(&world).contains(face)), "whoever was listed is who it was");
}

#[test]
fn no_address_makes_nobody_the_same() {
    let rows = namesakes(30);
    let world = World::new(rows.clone());
    world.mirror();
    let born = faces(&world);
    for nothing in ["-", "없음", ""] {
        world.upstream.set_rows(all_with(&rows, "rdnmadr", nothing));
        let report = world.mirror();
        assert_eq!((report.active, report.merged, report.deactivated), (30, 0, 0), "{nothing}");
        assert_eq!(faces(&world), born);
    }
}

#[test]
fn a_ceiling_counts_without_the_flag() {
    let rows = namesakes(60);
    let world = World::new(rows.clone());
    world.mirror();
    let moved = |row: &Row| with(row, &[("insttCode", "6999999"), ("lbrryNm", row["rdnmadr"].as_str().unwrap())]);
    let next: Rows = rows[12..].iter().cloned().chain(rows[..12].iter().map(moved)).collect();
    world.upstream.set_rows(next);
    churn(&world, &["--ingest.source=library"], "12 places would be new, 12 gone");
    let confirmed = world.invoke(&["--ingest.source=library", "--ingest.confirm-deactivations=12"]);
    let report = confirmed.expect(Outcome::Succeeded);
    assert_eq!((report.inserted, report.deactivated, report.active), (12, 0, 72));
}

/// A reform gives a row a new key in the month in which a value of it cannot be read.
#[test]
fn a_rejected_row_counts_as_present_whatever_its_key_is() {
    let rows = generate(4, 500);
    let world = World::new(rows.clone());
    world.mirror();
    let mut next = rows.clone();
    // By its telephone and its point; by its address but for the province; by its institution and nothing else.
    next[10] = with(&rows[10], &[("insttCode", "9990001"), ("rdnmadr", "다른 길 1"), ("bookCo", "many")]);
    let province = |row: &Row| row["rdnmadr"].as_str().unwrap().replacen("서울특별시", "서울특별자치도", 1);
    let seoul = (20..60).find(|&at| rows[at]["ctprvnNm"] == "서울특별시").unwrap();
    next[seoul] = with(
        &rows[seoul],
        &[("insttCode", "9990002"), ("rdnmadr", &province(&rows[seoul])), ("phoneNumber", ""), ("seatCo", "many")],
    );
    let spaced = rows[70]["lbrryNm"].as_str().unwrap().replacen("도서관", " 도서관", 1);
    next[70] = with(
        &rows[70],
        &[("lbrryNm", &spaced), ("rdnmadr", "a\u{1}b"), ("phoneNumber", ""), ("latitude", ""), ("longitude", "")],
    );
    world.upstream.set_rows(next.clone());
    let report = world.mirror();
    assert_eq!((report.rejected, report.deactivated, report.inserted), (3, 0, 0), "{report:?}");
    next[10].insert("bookCo".to_owned(), "7".into());
    next[seoul].insert("seatCo".to_owned(), "7".into());
    next[70].insert("rdnmadr".to_owned(), rows[70]["rdnmadr"].clone());
    world.upstream.set_rows(next);
    let found = world.mirror();
    assert_eq!((found.carried_over, found.deactivated, found.inserted), (3, 0, 0), "{found:?}");
    check(&world);
}

/// One row cannot be read, and what can be of it looks like another library.
#[test]
fn a_row_that_was_not_read_pulls_nobody_behind_it() {
    let mut rows = generate(5, 200);
    let twin = |row: &Row, code: &str, address: &str| {
        let alone =
            [("insttCode", code), ("rdnmadr", address), ("phoneNumber", ""), ("latitude", ""), ("longitude", "")];
        with(&with(row, &[("lbrryNm", "새싹도서관")]), &alone)
    };
    (rows[1], rows[2]) =
        (twin(&rows[1], "1000000", "부산광역시 남구 가로 1"), twin(&rows[2], "2000000", "서울특별시 중구 나로 2"));
    let world = World::new(rows.clone());
    world.mirror();
    let born = faces(&world);
    rows[1] = with(&rows[1], &[("rdnmadr", "서울특별시 중구 나로 2"), ("bookCo", "many")]);
    world.upstream.set_rows(rows);
    let report = world.mirror();
    assert_eq!((report.rejected, report.merged, report.updated), (1, 0, 0));
    assert_eq!(faces(&world), born);
}
