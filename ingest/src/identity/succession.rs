//! Where the places go whose face is no longer listed.

use std::collections::HashMap;

use super::{Held, Rule, Scene};

/// What becomes of the places whose face vanished.
#[derive(Debug, Default)]
pub struct Successions {
    /// The ids that move to a row, eldest first.
    pub calls: HashMap<usize, Vec<i64>>,
    /// Places that go behind the place of a row which keeps its own id: nothing but a telephone says that they are one library.
    pub absorbed: Vec<(i64, usize)>,
    /// Places that stay as they are: the row that they would move to is there, and was not read.
    pub waiting: Vec<i64>,
    /// Places that nothing in the snapshot is.
    pub retired: Vec<i64>,
}

/// Looks among all rows, in the order of the places' ids.
pub fn of(scene: &Scene<'_>) -> Successions {
    let mut found = Successions::default();
    let mut vanished: Vec<&Held> = scene.held.iter().filter(|held| held.is_place() && !scene.is_listed(held)).collect();
    vanished.sort_by_key(|held| held.id);
    for place in vanished {
        match successor(scene, place) {
            None => found.retired.push(place.id),
            Some(row) if scene.listed[row].fresh && is_another_place(scene, place, row) => {
                found.absorbed.push((place.id, row));
            }
            Some(row) if scene.listed[row].fresh => found.calls.entry(row).or_default().push(place.id),
            Some(_) => found.waiting.push(place.id),
        }
    }
    found
}

/// The row is the face of a place that was listed all along, and is the same library by its telephone only.
fn is_another_place(scene: &Scene<'_>, place: &Held, row: usize) -> bool {
    ties(scene, place, row) > 2 && place.likeness.same(&scene.listed[row].likeness).is_none()
}

/// The best row for a place: one that is no other place's face, then by how sure it is that it is the same library, then the one that
/// has the least to do with another place, then as a first face is chosen.
fn successor(scene: &Scene<'_>, place: &Held) -> Option<usize> {
    let candidates = scene.namesakes(&place.likeness).iter().filter_map(|&row| {
        let listed = &scene.listed[row];
        let rule = place.likeness.again(&listed.likeness);
        // Of a row that was not read nobody knows what else it says: it may be what the same institution published under that name.
        let unread =
            || !listed.fresh && scene.stored(row).is_none() && institution(&place.key) == institution(&listed.key);
        let is_sure = match rule {
            Some(rule) => rule != Rule::Telephone,
            None if unread() => false,
            None => return None,
        };
        let ties = ties(scene, place, row);
        Some((ties > 2, !is_sure, !listed.fresh, ties, scene.rank(row), row))
    });
    if let Some((.., row)) = candidates.min() {
        return Some(row);
    }
    // A member was the same library when both were last seen, whatever is published of it now.
    let mine = |held: &&Held| held.active && held.duplicate_of == Some(place.id);
    let members = scene.held.iter().filter(mine).filter_map(|held| scene.row_of[scene.by_id[&held.id]]);
    members.min_by_key(|&row| (!scene.listed[row].fresh, scene.rank(row)))
}

fn institution(key: &str) -> &str {
    key.split('/').next().unwrap_or_default()
}

/// How much a row has to do with another place than this one.
fn ties(scene: &Scene<'_>, place: &Held, row: usize) -> u8 {
    match scene.stored(row) {
        None => 0,
        Some(held) if held.duplicate_of == Some(place.id) => 1,
        Some(held) if held.duplicate_of.is_some() || !held.active => 2,
        Some(_) => 3,
    }
}
