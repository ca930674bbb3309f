//! A place that is listed keeps its id, whatever becomes of another one.

use std::collections::{BTreeMap, BTreeSet};

use super::tests::{Table, row};

#[test]
fn a_telephone_takes_no_id_from_a_listed_library() {
    let telephone = "031-555-1234";
    let town = |code: &str| row(code, "마을도서관", &format!("{code}시 중앙로 {code}"), None, telephone);
    let branch = |code: &str| row(code, "마을도서관", "2시 중앙로 2", None, telephone);
    let all = [town("1"), town("2"), town("3")];
    let mut table = Table::default();
    table.month(&all);
    let before = table.places();
    // One closes: nobody inherits its id, not even by way of a row behind another, or of a new one.
    let closed = table.month(&all[1..]);
    assert_eq!((closed.retired, closed.merged, closed.swapped), (vec![1], vec![], vec![]));
    assert_eq!(table.places(), before.iter().skip(1).map(|(id, key)| (*id, key.clone())).collect());
    // It returns, and is what it was; so are the others.
    table.month(&all);
    assert_eq!(table.places(), before);
    let closed = table.month(&[town("2"), branch("4"), town("3")]);
    assert_eq!((closed.retired, closed.swapped, table.ids()), (vec![1], vec![], BTreeSet::from([2, 3])));
    // What is nobody's is recognised by it, but by one place only.
    table.month(&all);
    let moved = table.month(&[town("3"), town("7")]);
    assert_eq!((moved.retired, table.ids()), (vec![2], BTreeSet::from([1, 3])));
    assert_eq!(table.places()[&1], "7/마을도서관");
}

/// Two of one name behind one telephone in one town, both listed for months: the one that is left takes the other in, and gives it back.
#[test]
fn of_one_town_and_telephone_each_has_its_own_id_again() {
    let row = |code, address, metres| row(code, "관", address, Some(metres), "053-123-4567");
    let (east, west) = (row("1", "대구광역시 중구 동길 1", 0), row("2", "대구광역시 중구 서길 1", 475));
    let mut table = Table::default();
    table.month(&[east.clone(), west.clone()]);
    let born = table.places();
    for (left, gone) in [(&west, 1), (&east, 2)] {
        let month = table.month(std::slice::from_ref(left));
        assert_eq!((month.retired, month.swapped, month.merged), (vec![], vec![], vec![(gone, 3 - gone)]));
        assert_eq!(table.ids(), BTreeSet::from([3 - gone]), "the one that is listed is what it was");
        table.month(&[east.clone(), west.clone()]);
        assert_eq!(table.places(), born, "each has its own id again");
    }
}

#[test]
fn a_listed_place_keeps_its_id_whoever_vanishes_into_it() {
    let (north, south) = (row("1", "관", "가길 1", Some(0), ""), row("2", "관", "나길 1", Some(1000), ""));
    let mut table = Table::default();
    table.month(&[north.clone(), south.clone()]);
    let before = table.places();
    // The second one is now where the first one was, and that is no longer listed: the elder id leads to the younger.
    let moved = row("2", "관", "가길 1", Some(0), "");
    let month = table.month(&[moved]);
    assert_eq!((month.merged, month.retired, month.swapped), (vec![(1, 2)], vec![], vec![]));
    assert_eq!(table.places(), BTreeMap::from([(2, "2/관".to_owned())]));
    table.month(&[north, south]);
    assert_eq!(table.places(), before, "and nobody has the other's id");
}

#[test]
fn one_institution_does_not_lose_a_library_by_spelling_it_anew() {
    let mut table = Table::default();
    table.month(&[row("1", "별빛 관", "가길 1", None, ""), row("2", "별빛관", "나길 2", None, "")]);
    let month = table.month(&[row("1", "별빛관", "다길 3", None, ""), row("2", "별빛관", "나길 2", None, "")]);
    assert_eq!((month.retired, month.merged), (vec![], vec![]));
    assert_eq!(table.places(), BTreeMap::from([(1, "1/별빛관".to_owned()), (2, "2/별빛관".to_owned())]));
}
