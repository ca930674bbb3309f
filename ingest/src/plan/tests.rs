use geuneul::WithheldReason;

use super::*;
use crate::identity::Likeness;
use crate::record::{BadValue, Handle};
use crate::snapshot::prove;
use crate::upstream::{Crawl, Item};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn proof(rows: usize) -> CompleteSnapshot {
    let crawl = || {
        let mut crawl = Crawl::new();
        crawl.add(1, rows as u64, &vec![Item::new().into(); rows]).unwrap();
        crawl
    };
    prove(&crawl(), crawl()).unwrap()
}

fn handle(name: &str) -> Handle {
    Handle { institution: "1".to_owned(), name: name.to_owned(), address: None }
}

pub(super) fn good(name: &str, content: u8) -> Read {
    let record = Record {
        handle: handle(name),
        category: None,
        province: None,
        district: None,
        telephone: None,
        position: None,
        attributes: "{}".to_owned(),
        digest: [content; 32],
        notes: Vec::new(),
    };
    (Row::Good(record), [content; 32])
}

fn bad(name: Option<&str>) -> Read {
    (
        Row::Bad(Reject {
            column: "bookCo",
            reason: BadValue::NoCount,
            handle: name.map(handle),
            position: None,
            telephone: None,
        }),
        [0; 32],
    )
}

pub(super) fn held(id: i64, name: &str, content: u8, active: bool) -> Held {
    let likeness = Likeness::new(name, None, None, None);
    Held { id, key: format!("1/{name}"), likeness, digest: Some([content; 32]), active, duplicate_of: None }
}

fn believe(proof: &CompleteSnapshot) -> Stale<'_> {
    Stale::Deactivate { proof, ceiling: None }
}

fn changes(plan: &Plan) -> Vec<(&str, Change)> {
    plan.writes.iter().map(|write| (write.key.as_str(), write.change)).collect()
}

#[test]
fn each_row_has_one_fate() {
    let rows = vec![good("new", 1), good("same", 1), good("other", 2), good("back", 1), bad(Some("spoilt"))];
    let world = [
        held(1, "same", 1, true),
        held(2, "other", 1, true),
        held(3, "back", 1, false),
        held(4, "spoilt", 1, true),
        held(5, "gone", 1, true),
        held(6, "long gone", 1, false),
    ];
    let plan = plan(rows, &world, believe(&proof(5)));
    let expected = [("1/back", Change::Reactivate(3)), ("1/new", Change::Insert), ("1/other", Change::Update(2))];
    assert_eq!(changes(&plan), expected);
    assert_eq!(plan.deactivate, [5]);
    assert_eq!((plan.unchanged, plan.rejects.len(), plan.active_after), (1, 1, 5));
    assert_eq!((plan.rejects[0].row, plan.rejects[0].key.as_deref()), (5, Some("1/spoilt")));
    assert_eq!(plan.withheld, None);
}

#[test]
fn without_the_flag_or_the_proof_everything_stays() {
    let world = [held(1, "gone", 1, true)];
    let kept = plan(vec![good("new", 1)], &world, Stale::Keep { ceiling: None });
    assert_eq!((kept.deactivate.len(), kept.withheld), (0, None));
    let withheld = plan(vec![good("new", 1)], &world, Stale::Withhold { ceiling: None });
    let expected = Withheld { deactivations: 1, reason: WithheldReason::UnprovenSnapshot };
    assert_eq!((withheld.deactivate.len(), withheld.withheld.clone()), (0, Some(expected)));
    assert_eq!(withheld.inserts(), 1);
}

#[test]
fn a_row_that_nobody_can_name_withholds_what_it_might_be() {
    let world = [held(1, "gone", 1, true), held(2, "here", 1, true)];
    let plan = plan(vec![good("here", 1), bad(None)], &world, believe(&proof(2)));
    assert!(plan.deactivate.is_empty());
    assert_eq!(plan.withheld.unwrap().reason, WithheldReason::UnnamedRow);
}

/// Two places of one name and institution; the row of one of them has an address that cannot be read.
#[test]
fn a_bad_row_holds_its_own_place_or_all_that_it_may_be() {
    let stored = |id: i64, key: &str, address: &str| {
        let likeness = Likeness::new("관", Some(address), None, None);
        Held { id, key: key.to_owned(), likeness, digest: Some([id as u8; 32]), active: true, duplicate_of: None }
    };
    let world = [stored(1, "1/관", "가길 1"), stored(2, "1/관#2", "나길 2")];
    let at = |address: &str, content| {
        let (Row::Good(mut record), fingerprint) = good("관", content) else { unreachable!() };
        record.handle.address = Some(address.to_owned());
        (Row::Good(record), fingerprint)
    };
    let unreadable = || bad(Some("관"));
    let run = |rows: Vec<Read>| {
        let proof = proof(rows.len());
        let plan = plan(rows, &world, believe(&proof));
        assert_eq!((plan.deactivate.len(), plan.withheld.is_some(), plan.active_after), (0, false, 2));
        let aside =
            plan.rejects.iter().map(|aside| (aside.key.clone().unwrap(), aside.reject.reason)).collect::<Vec<_>>();
        (changes(&plan).into_iter().map(|(key, change)| (key.to_owned(), change)).collect::<Vec<_>>(), aside)
    };
    let (first, second) = ("1/관".to_owned(), "1/관#2".to_owned());
    // The other one is where it was, so this is the one that is left.
    let (changed, aside) = run(vec![at("가길 1", 9), unreadable()]);
    assert_eq!((changed, aside), (vec![(first.clone(), Change::Update(1))], vec![(second.clone(), BadValue::NoCount)]));
    let (changed, aside) = run(vec![at("나길 2", 9), unreadable()]);
    assert_eq!((changed, aside), (vec![(second.clone(), Change::Update(2))], vec![(first.clone(), BadValue::NoCount)]));
    // The other one has moved: it may be either, and so may this.
    let (changed, aside) = run(vec![at("다길 3", 9), unreadable()]);
    assert_eq!((changed, aside.len()), (vec![], 2));
    assert_eq!(aside[0].1, BadValue::Indistinct);
    assert_ne!(aside[0].0, aside[1].0);
    // The other one is gone, or this one is: nobody knows, and neither is retired.
    assert_eq!(run(vec![unreadable()]).0, vec![]);
}

#[test]
fn the_cap_is_ten_or_five_percent() {
    for (active, gone, allowed) in [(5, 5, true), (20, 10, true), (20, 11, false), (400, 20, true), (400, 21, false)] {
        let world: Vec<Held> = (0..active).map(|id| held(id, &format!("n{id}"), 1, true)).collect();
        let rows: Vec<_> = (gone..active).map(|id| good(&format!("n{id}"), 1)).collect();
        let proof = proof(rows.len());
        let plan = plan(rows, &world, believe(&proof));
        assert_eq!(plan.deactivate.len(), if allowed { gone as usize } else { 0 }, "{gone} of {active}");
        let withheld = plan.withheld.map(|withheld| (withheld.deactivations, withheld.reason));
        assert_eq!(withheld, (!allowed).then_some((gone as u64, WithheldReason::OverCap)));
    }
}

/// Places that are one now count like places that are gone: five of each are eleven too many with one more.
#[test]
fn what_is_merged_counts_like_what_is_gone() {
    let at = |id: i64, address: &str| {
        let (Row::Good(mut record), fingerprint) = good("관", 1) else { unreachable!() };
        record.handle.institution = id.to_string();
        record.handle.address = Some(address.to_owned());
        (Row::Good(record), fingerprint)
    };
    let stored = |id: i64| {
        let likeness = Likeness::new("관", Some(&format!("{id}길 1")), None, None);
        Held { id, key: format!("{id}/관"), likeness, digest: Some([1; 32]), active: true, duplicate_of: None }
    };
    let world: Vec<Held> = (1..=100).map(stored).collect();
    for (gone, merged, ceiling, allowed) in
        [(5, 5, None, true), (5, 6, None, false), (0, 11, None, false), (5, 6, Some(11), true), (0, 1, Some(0), false)]
    {
        let list = || {
            (gone + 1..=100)
                .map(|id| at(id, &format!("{}길 1", if id > 100 - merged { 50 } else { id })))
                .collect::<Vec<_>>()
        };
        let proof = proof(100 - gone as usize);
        let plan = plan(list(), &world, Stale::Deactivate { proof: &proof, ceiling });
        let withheld = plan.withheld.as_ref().map(|withheld| (withheld.deactivations as i64, withheld.reason));
        assert_eq!(withheld, (!allowed).then_some((gone + merged, WithheldReason::OverCap)), "{gone} and {merged}");
        let left = if allowed { 100 - gone - merged } else { 100 };
        assert_eq!(
            (plan.active_after as i64, plan.changed(What::Merged) as i64),
            (left, if allowed { merged } else { 0 })
        );
        // Without the flag, and without a proof, it is merges that count; the values are written in any case.
        for stale in [Stale::Keep { ceiling }, Stale::Withhold { ceiling }] {
            let plan = super::plan(list(), &world, stale);
            let allowed = merged as u64 <= ceiling.unwrap_or(10);
            assert_eq!(plan.active_after as i64, if allowed { 100 - merged } else { 100 });
            assert_eq!((plan.deactivate.len(), plan.updates() + plan.unchanged), (0, list().len()));
        }
    }
}

#[test]
fn a_confirmed_number_is_a_ceiling() {
    let world: Vec<Held> = (0..100).map(|id| held(id, &format!("n{id}"), 1, true)).collect();
    let rows = |gone: i64| (gone..100).map(|id| good(&format!("n{id}"), 1)).collect::<Vec<_>>();
    for (gone, ceiling, allowed) in [(30, 30, true), (31, 30, false), (5, 3, false), (0, 0, true), (1, 0, false)] {
        let proof = proof(100 - gone as usize);
        let plan = plan(rows(gone), &world, Stale::Deactivate { proof: &proof, ceiling: Some(ceiling) });
        assert_eq!(plan.deactivate.len(), if allowed { gone as usize } else { 0 }, "{gone} with {ceiling}");
        assert_eq!(plan.withheld.is_some(), !allowed);
        assert_eq!(plan.active_after, if allowed { 100 - gone as usize } else { 100 });
    }
}

#[test]
fn when_much_comes_and_much_goes_the_keys_have_changed() {
    for (active, moved, refused) in [(100, 10, false), (100, 11, true), (400, 20, false), (400, 21, true)] {
        let world: Vec<Held> = (0..active).map(|id| held(id, &format!("n{id}"), 1, true)).collect();
        let rows = || (moved..active + moved).map(|id| good(&format!("n{id}"), 1)).collect::<Vec<_>>();
        let proof = proof(active as usize);
        let numbers = KeyChurn { born: moved as usize, gone: moved as usize, merged: 0, active: active as usize };
        for (ceiling, refused) in [(None, refused), (Some(moved as u64 - 1), refused), (Some(moved as u64), false)] {
            let deactivate = Stale::Deactivate { proof: &proof, ceiling };
            for stale in [deactivate, Stale::Keep { ceiling }, Stale::Withhold { ceiling }] {
                assert_eq!(plan(rows(), &world, stale).churn, refused.then_some(numbers), "{moved} of {active}");
            }
        }
        assert_eq!(plan(rows(), &[], believe(&proof)).churn, None, "the first run");
    }
}

#[test]
fn rejects_are_too_many_above_one_percent() {
    assert!(!too_many_rejects(35, 3500) && too_many_rejects(36, 3500) && too_many_rejects(1, 99));
    assert!(!too_many_rejects(0, 0));
}

proptest! {
    /// Against a plain comparison of two maps.
    #[test]
    fn the_numbers_are_those_of_a_plain_comparison(
        before in proptest::collection::btree_map("[a-i]", (0u8..3, any::<bool>()), 0..9),
        after in proptest::collection::btree_map("[a-k]", 0u8..3, 1..11),
    ) {
        let world: Vec<Held> =
            before.iter().zip(1..).map(|((name, (content, active)), id)| held(id, name, *content, *active)).collect();
        let proof = proof(after.len());
        let plan = plan(after.iter().map(|(name, content)| good(name, *content)).collect(), &world, believe(&proof));
        let pairs: Vec<(Option<&(u8, bool)>, u8)> = after.iter().map(|(name, new)| (before.get(name), *new)).collect();
        let both = |active: bool| pairs.iter().filter_map(move |(old, new)| old.filter(|old| old.1 == active).map(|old| old.0 == *new));
        let gone = before.iter().filter(|(name, (_, active))| *active && !after.contains_key(*name)).count();
        prop_assert_eq!(plan.inserts(), pairs.iter().filter(|(old, _)| old.is_none()).count());
        prop_assert_eq!(plan.reactivations(), both(false).count());
        prop_assert_eq!(plan.updates(), both(true).filter(|same| !same).count());
        prop_assert_eq!(plan.unchanged, both(true).filter(|same| *same).count());
        prop_assert_eq!((plan.deactivate.len(), plan.active_after, plan.duplicates_after), (gone, after.len(), 0));
    }

    /// Carrying a plan out on a model of the table ends where the snapshot is, and planning again finds nothing to do.
    #[test]
    fn carried_out_once_there_is_nothing_left(
        before in proptest::collection::btree_map("[a-f]", (0u8..3, any::<bool>()), 0..6),
        after in proptest::collection::btree_map("[a-h]", (0u8..3, any::<bool>()), 0..8),
    ) {
        let world: Vec<Held> =
            before.iter().zip(1..).map(|((name, (content, active)), id)| held(id, name, *content, *active)).collect();
        let rows = || {
            let row = |(name, (content, fine)): (&String, &(u8, bool))| if *fine { good(name, *content) } else { bad(Some(name)) };
            after.iter().map(row).collect::<Vec<_>>()
        };
        let proof = proof(after.len());
        let first = plan(rows(), &world, believe(&proof));
        let mut table: BTreeMap<String, Held> = world.iter().map(|held| (held.key.clone(), held.clone())).collect();
        for write in &first.writes {
            let id = match write.change { Change::Insert => 100 + table.len() as i64, Change::Update(id) | Change::Reactivate(id) => id };
            let name = write.key.strip_prefix("1/").unwrap();
            table.insert(write.key.clone(), held(id, name, write.record.digest[0], true));
        }
        for held in table.values_mut().filter(|held| first.deactivate.contains(&held.id)) {
            held.active = false;
        }
        for (name, (content, fine)) in &after {
            let held = table.get(&format!("1/{name}"));
            if *fine {
                prop_assert!(held.is_some_and(|held| held.active && held.digest == Some([*content; 32])));
            } else {
                prop_assert_eq!(held, world.iter().find(|held| held.key == format!("1/{name}")));
            }
        }
        let active = table.values().filter(|held| held.active).count();
        prop_assert_eq!(first.active_after, active);
        prop_assert_eq!(after.len(), first.unchanged + first.writes.len() + first.rejects.len());
        let table: Vec<Held> = table.into_values().collect();
        let second = plan(rows(), &table, believe(&proof));
        prop_assert!(second.writes.is_empty() && second.deactivate.is_empty());
    }
}
