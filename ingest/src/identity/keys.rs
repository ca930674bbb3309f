//! Which key a row has.
//!
//! A key is institution code + name; where an institution publishes a name more than once, the second and later ones in the order of
//! their addresses get `#2`, `#3`. A key that was given stays with its row: when one of several is gone, the others are not renumbered.

use std::collections::HashMap;

use super::{Held, Likeness};
use crate::record::{Digest, Handle};

/// A row that needs a key.
#[derive(Debug, Clone, Copy)]
pub struct Unnamed<'a> {
    /// What it is recognised by.
    pub handle: &'a Handle,
    /// What it is compared by.
    pub likeness: &'a Likeness,
    /// Its content, when it can be stored.
    pub digest: Option<&'a Digest>,
    /// Orders rows whose handles are equal; rows that are equal in that too are equal altogether, and either may be the second.
    pub fingerprint: [u8; 32],
}

/// What [`keys`] finds out.
#[derive(Debug, Default)]
pub struct Keys {
    /// The key of each row, in the order given.
    pub keys: Vec<String>,
    /// Rows that can be read, each with one of its name that cannot: which of them is stored under a key, nobody can tell.
    pub unclear: Vec<(usize, usize)>,
    /// Keys of active rows that a row which cannot be read may be, besides the one that it got.
    pub presumed: Vec<String>,
    /// Rows with a new key that is not the first of its name.
    pub further: Vec<usize>,
}

/// The key of each row. All keys differ, and the order of the rows is no matter.
pub fn keys(rows: &[Unnamed<'_>], held: &[Held]) -> Keys {
    let mut stored: HashMap<&str, Vec<&Held>> = HashMap::new();
    for held in held {
        stored.entry(base_of(&held.key)).or_default().push(held);
    }
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_key(|&at| (rows[at].handle, rows[at].fingerprint));
    let mut found = Keys { keys: vec![String::new(); rows.len()], ..Keys::default() };
    for group in order.chunk_by(|&a, &b| base(rows[a].handle) == base(rows[b].handle)) {
        let base = base(rows[group[0]].handle);
        let mut known = stored.get(base.as_str()).cloned().unwrap_or_default();
        known.sort_by_key(|held| (!held.active, held.id));
        for (&at, key) in group.iter().zip(named(&base, group, rows, known, &mut found)) {
            found.keys[at] = key;
        }
    }
    found
}

type Test = fn(&Unnamed<'_>, &Held) -> bool;

/// What makes a row the stored one with the same institution and name, surest first.
const TESTS: [Test; 4] = [
    |row, held| row.digest.is_some() && row.digest == held.digest.as_ref(),
    |row, held| row.likeness.same(&held.likeness) == Some(super::Rule::Address),
    |row, held| row.likeness.same(&held.likeness).is_some(),
    |row, held| row.likeness.again(&held.likeness).is_some(),
];

/// Nothing else is left for it.
const GUESSES: [Test; 2] = [|_, held| held.active, |_, _| true];

/// The keys of one institution's rows of one name.
fn named(base: &str, group: &[usize], rows: &[Unnamed<'_>], mut known: Vec<&Held>, found: &mut Keys) -> Vec<String> {
    let mut keys: Vec<Option<String>> = vec![None; group.len()];
    let mut taken: Vec<String> = known.iter().map(|held| held.key.clone()).collect();
    let seat = |keys: &mut Vec<Option<String>>, known: &mut Vec<&Held>, test: Test| {
        for (key, &at) in keys.iter_mut().zip(group).filter(|(key, _)| key.is_none()) {
            if let Some(found) = known.iter().position(|held| test(&rows[at], held)) {
                *key = Some(known.remove(found).key.clone());
            }
        }
    };
    TESTS.into_iter().for_each(|test| seat(&mut keys, &mut known, test));
    let open: Vec<usize> = group.iter().zip(&keys).filter(|(_, key)| key.is_none()).map(|(&at, _)| at).collect();
    let active = known.iter().filter(|held| held.active).count();
    // A guess is good when there is one row for one place. A row that cannot be read hides which place it is: one guess too many.
    let unread = open.iter().copied().find(|&at| rows[at].digest.is_none());
    let unclear = unread.filter(|_| active > 0 && (active > 1 || open.len() > 1));
    GUESSES.into_iter().for_each(|test| seat(&mut keys, &mut known, test));
    if let Some(unread) = unclear {
        found.unclear.extend(open.iter().filter(|&&at| rows[at].digest.is_some()).map(|&at| (at, unread)));
        found.presumed.extend(known.iter().filter(|held| held.active).map(|held| held.key.clone()));
    }
    let mut ordinal = 1;
    let mut next = || loop {
        let key = key(base, ordinal);
        ordinal += 1;
        if !taken.contains(&key) {
            taken.push(key.clone());
            return (key, ordinal > 2);
        }
    };
    let mut fresh = |at: usize| {
        let (key, is_further) = next();
        found.further.extend(is_further.then_some(at));
        key
    };
    keys.into_iter().zip(group).map(|(key, &at)| key.unwrap_or_else(|| fresh(at))).collect()
}

/// The code that a key begins with. It has only letters and digits, so the first `/` ends it.
pub fn institution(key: &str) -> &str {
    key.split_once('/').map_or(key, |(institution, _)| institution)
}

fn base(handle: &Handle) -> String {
    let Handle { institution, name, address: _ } = handle;
    format!("{institution}/{name}")
}

/// A name that itself ends like an ordinal always gets one, so that no two places share a key.
fn key(base: &str, ordinal: usize) -> String {
    if ordinal == 1 && base_of(base) == base { base.to_owned() } else { format!("{base}#{ordinal}") }
}

/// The key without its ordinal.
pub fn base_of(key: &str) -> &str {
    match key.rsplit_once('#') {
        Some((base, end)) if !end.is_empty() && end.bytes().all(|byte| byte.is_ascii_digit()) => base,
        _ => key,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn handle(institution: &str, name: &str, address: &str) -> Handle {
        let address = Some(address.to_owned()).filter(|address| !address.is_empty());
        Handle { institution: institution.to_owned(), name: name.to_owned(), address }
    }

    fn of(handles: &[(Handle, u8)], held: &[Held]) -> Vec<String> {
        let likenesses: Vec<Likeness> =
            handles.iter().map(|(h, _)| Likeness::new(&h.name, h.address.as_deref(), None, None)).collect();
        let rows: Vec<_> = handles
            .iter()
            .zip(&likenesses)
            .map(|((handle, tie), likeness)| Unnamed { handle, likeness, digest: None, fingerprint: [*tie; 32] })
            .collect();
        keys(&rows, held).keys
    }

    fn stored(id: i64, key: &str, address: &str) -> Held {
        let name = base_of(key).split_once('/').unwrap().1;
        let likeness = Likeness::new(name, Some(address), None, None);
        Held { id, key: key.to_owned(), likeness, digest: Some([id as u8; 32]), active: true, duplicate_of: None }
    }

    #[test]
    fn repeated_names_are_numbered_by_address() {
        let rows = [
            (handle("1", "중앙도서관", "나길 2"), 0),
            (handle("2", "중앙도서관", "가길 1"), 0),
            (handle("1", "중앙도서관", "가길 1"), 0),
            (handle("1", "중앙도서관", ""), 0),
        ];
        assert_eq!(of(&rows, &[]), ["1/중앙도서관#3", "2/중앙도서관", "1/중앙도서관#2", "1/중앙도서관"]);
    }

    #[test]
    fn a_name_that_looks_like_an_ordinal_is_no_other_place() {
        let rows = [(handle("1", "관", "b"), 0), (handle("1", "관", "a"), 0), (handle("1", "관#2", "c"), 0)];
        assert_eq!(of(&rows, &[]), ["1/관#2", "1/관", "1/관#2#1"]);
    }

    #[test]
    fn when_one_of_several_goes_the_others_keep_their_keys() {
        let world = [stored(1, "1/관", "가길 1"), stored(2, "1/관#2", "나길 2")];
        assert_eq!(of(&[(handle("1", "관", "나길 2"), 0)], &world), ["1/관#2"]);
        assert_eq!(
            of(&[(handle("1", "관", "나길2"), 0), (handle("1", "관", "가가길 1"), 0)], &world),
            ["1/관#2", "1/관"]
        );
        // Whatever its address is now, the only one that is left of a name is the one that was there.
        assert_eq!(of(&[(handle("1", "관", "다길 3"), 0)], &world[1..]), ["1/관#2"]);
    }

    proptest! {
        #[test]
        fn order_is_no_matter_and_keys_differ(
            rows in proptest::collection::vec(("[12]", "[ab](#[12]?)?(#[12])?", "[xy]?", 0u8..3), 0..20),
            world in proptest::collection::btree_map("[12]/[ab](#[12]){0,2}", "[xy]", 0..6),
            seed in any::<u64>(),
        ) {
            let handles: Vec<(Handle, u8)> = rows.iter().map(|(i, n, a, t)| (handle(i, n, a), *t)).collect();
            let world: Vec<Held> = world.iter().zip(1..).map(|((key, address), id)| stored(id, key, address)).collect();
            let paired = |handles: &[(Handle, u8)]| {
                let keys = of(handles, &world);
                let mut pairs: Vec<_> = keys.iter().cloned().zip(handles.iter().cloned()).collect();
                pairs.sort();
                (keys, pairs)
            };
            let (keys, pairs) = paired(&handles);
            prop_assert_eq!(keys.iter().collect::<HashSet<_>>().len(), handles.len());
            let mut shuffled = handles.clone();
            shuffled.sort_by_key(|(h, t)| {
                use std::hash::{DefaultHasher, Hash, Hasher};
                let mut hasher = DefaultHasher::new();
                (seed, h, t).hash(&mut hasher);
                hasher.finish()
            });
            prop_assert_eq!(paired(&shuffled).1, pairs);
        }
    }
}
