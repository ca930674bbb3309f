//! Which place a row is.
//!
//! The upstream has no id. A place's key is institution code + name; where an institution publishes a name more than once, the second
//! and later ones in the order of their addresses get `#2`, `#3`.
//!
//! Architecture invariant: pure; the result does not depend on the order of the rows.

use crate::record::Handle;

/// The key of each row, in the order given. All keys differ. `tiebreak` orders rows whose handles are equal; rows that are equal in that
/// too are equal altogether, and either may be the second.
pub fn keys<T: Ord>(rows: &[(&Handle, T)]) -> Vec<String> {
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by(|&a, &b| rows[a].cmp(&rows[b]));
    let mut keys = vec![String::new(); rows.len()];
    let mut ordinal = 0;
    for (at, &index) in order.iter().enumerate() {
        let same = |other: usize| {
            let (a, b) = (rows[index].0, rows[other].0);
            a.institution == b.institution && a.name == b.name
        };
        ordinal = if at > 0 && same(order[at - 1]) { ordinal + 1 } else { 1 };
        keys[index] = key(rows[index].0, ordinal);
    }
    keys
}

/// A code has only letters and digits, so the first `/` ends it. A name that itself ends like an ordinal always gets one, so that no
/// two places share a key.
fn key(handle: &Handle, ordinal: usize) -> String {
    let Handle { institution, name, address: _ } = handle;
    let ambiguous = name.rsplit_once('#').is_some_and(|(_, end)| end.bytes().all(|byte| byte.is_ascii_digit()));
    if ordinal == 1 && !ambiguous { format!("{institution}/{name}") } else { format!("{institution}/{name}#{ordinal}") }
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

    #[test]
    fn repeated_names_are_numbered_by_address() {
        let rows = [
            handle("1", "중앙도서관", "나길 2"),
            handle("2", "중앙도서관", "가길 1"),
            handle("1", "중앙도서관", "가길 1"),
            handle("1", "중앙도서관", ""),
        ];
        let rows: Vec<_> = rows.iter().map(|row| (row, 0)).collect();
        assert_eq!(keys(&rows), ["1/중앙도서관#3", "2/중앙도서관", "1/중앙도서관#2", "1/중앙도서관"]);
    }

    #[test]
    fn a_name_that_looks_like_an_ordinal_is_no_other_place() {
        let rows = [handle("1", "관", "b"), handle("1", "관", "a"), handle("1", "관#2", "c")];
        let rows: Vec<_> = rows.iter().map(|row| (row, 0)).collect();
        assert_eq!(keys(&rows), ["1/관#2", "1/관", "1/관#2#1"]);
    }

    proptest! {
        #[test]
        fn order_is_no_matter_and_keys_differ(
            rows in proptest::collection::vec(("[12]", "[ab](#[12]?)?(#[12])?", "[xy]?", 0u8..3), 0..20),
            seed in any::<u64>(),
        ) {
            let handles: Vec<(Handle, u8)> = rows.iter().map(|(i, n, a, t)| (handle(i, n, a), *t)).collect();
            let of = |handles: &[(Handle, u8)]| {
                let keys = keys(&handles.iter().map(|(h, t)| (h, *t)).collect::<Vec<_>>());
                let mut pairs: Vec<_> = keys.iter().cloned().zip(handles.iter().cloned()).collect();
                pairs.sort();
                (keys, pairs)
            };
            let (keys, pairs) = of(&handles);
            prop_assert_eq!(keys.iter().collect::<HashSet<_>>().len(), handles.len());
            let mut shuffled = handles.clone();
            shuffled.sort_by_key(|(h, t)| {
                use std::hash::{DefaultHasher, Hash, Hasher};
                let mut hasher = DefaultHasher::new();
                (seed, h, t).hash(&mut hasher);
                hasher.finish()
            });
            prop_assert_eq!(of(&shuffled).1, pairs);
        }
    }
}
