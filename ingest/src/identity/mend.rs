//! What no run has ever written, and a hand may have: rows that point to nothing, in a circle or to a part of another place, and a place
//! that is gone with rows behind it. Everything else here relies on their absence, so they are put right first.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};

use super::Held;

/// How a stored row is put right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mend {
    /// The row.
    pub id: i64,
    /// The place that it stands behind from now on; none when it is one.
    pub place: Option<i64>,
    /// It was soft-deleted, and active rows stand behind it: it is active again, and what becomes of it is decided as ever.
    pub revived: bool,
}

/// What is held once it is put right, and how, by id.
pub fn mend(held: &[Held]) -> (Cow<'_, [Held]>, Vec<Mend>) {
    let pointers: HashMap<i64, Option<i64>> = held.iter().map(|held| (held.id, held.duplicate_of)).collect();
    let by_id: HashMap<i64, &Held> = held.iter().map(|held| (held.id, held)).collect();
    let place = |held: &Held| {
        held.duplicate_of?;
        let root = by_id[&root(&pointers, held.id)];
        // A row that is there says something about a place that is gone only when it is the same library.
        let belongs = !held.active || root.active || root.likeness.again(&held.likeness).is_some();
        Some(root.id).filter(|&root| root != held.id && belongs)
    };
    let needed: HashSet<i64> = held.iter().filter(|held| held.active).filter_map(place).collect();
    let mends: Vec<Mend> = held
        .iter()
        .map(|held| Mend { id: held.id, place: place(held), revived: !held.active && needed.contains(&held.id) })
        .zip(held)
        .filter(|(mend, held)| mend.revived || mend.place != held.duplicate_of)
        .map(|(mend, _)| mend)
        .collect();
    if mends.is_empty() {
        return (Cow::Borrowed(held), mends);
    }
    let mended: HashMap<i64, Mend> = mends.iter().map(|mend| (mend.id, *mend)).collect();
    let mut held = held.to_vec();
    for held in &mut held {
        if let Some(Mend { id: _, place, revived }) = mended.get(&held.id) {
            held.duplicate_of = *place;
            held.active |= revived;
        }
    }
    (Cow::Owned(held), mends)
}

/// Where the pointers lead; of a circle, the eldest.
fn root(pointers: &HashMap<i64, Option<i64>>, id: i64) -> i64 {
    let mut path = vec![id];
    loop {
        let last = path[path.len() - 1];
        match pointers[&last].filter(|next| pointers.contains_key(next)) {
            None => return last,
            Some(next) => match path.iter().position(|&seen| seen == next) {
                Some(circle) => return path[circle..].iter().copied().min().unwrap_or(last),
                None => path.push(next),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::Likeness;
    use proptest::prelude::*;

    fn held(id: i64, active: bool, duplicate_of: Option<i64>) -> Held {
        let likeness = Likeness::new("관", Some("가길 1"), None, None);
        Held { id, key: format!("1/관#{id}"), likeness, digest: None, active, duplicate_of }
    }

    #[test]
    fn what_a_run_writes_is_left_alone() {
        let (held, mends) = (vec![held(1, true, None), held(2, true, Some(1)), held(3, false, Some(1))], vec![]);
        assert_eq!(mend(&held), (Cow::Borrowed(&held[..]), mends));
    }

    #[test]
    fn chains_circles_and_pointers_into_the_void() {
        let world = [
            held(1, true, None),
            held(2, true, Some(1)),
            held(3, true, Some(2)),
            held(4, true, Some(5)),
            held(5, true, Some(6)),
            held(6, false, Some(4)),
            held(7, true, Some(99)),
            held(8, false, None),
            held(9, true, Some(8)),
            Held { likeness: Likeness::new("다른 관", Some("가길 1"), None, None), ..held(10, true, Some(8)) },
        ];
        let mend = |id, place| Mend { id, place, revived: false };
        let expected = [
            mend(3, Some(1)),
            mend(4, None),
            mend(5, Some(4)),
            mend(7, None),
            Mend { revived: true, ..mend(8, None) },
            mend(10, None),
        ];
        assert_eq!(super::mend(&world).1, expected);
    }

    proptest! {
        #[test]
        fn whatever_it_was_it_is_sound_and_needs_nothing_more(
            rows in proptest::collection::vec((any::<bool>(), proptest::option::of(0i64..10)), 0..10),
        ) {
            let world: Vec<Held> = (0..).zip(rows).map(|(id, (active, to))| held(id, active, to.filter(|to| *to != id))).collect();
            let (mended, mends) = mend(&world);
            for held in mended.iter() {
                let Some(root) = held.duplicate_of else { continue };
                let root = mended.iter().find(|other| other.id == root).unwrap();
                prop_assert!(root.duplicate_of.is_none() && (root.active || !held.active));
            }
            prop_assert_eq!(mend(&mended).1, []);
            prop_assert_eq!(mends.iter().map(|mend| mend.id).collect::<HashSet<_>>().len(), mends.len());
        }
    }
}
