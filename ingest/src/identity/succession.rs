//! Where the places go whose face is no longer listed.

use std::collections::HashMap;

use super::{Held, Rule, Scene};

/// What becomes of the places whose face vanished.
#[derive(Debug, Default)]
pub struct Successions {
    /// The ids that move to a row, eldest first.
    pub calls: HashMap<usize, Vec<i64>>,
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
            Some(row) if scene.listed[row].fresh => found.calls.entry(row).or_default().push(place.id),
            Some(_) => found.waiting.push(place.id),
        }
    }
    found
}

/// The best row for a place: one that is no other place's face, then by how sure it is that it is the same library, then the one that
/// has the least to do with another place, then as a first face is chosen.
fn successor(scene: &Scene<'_>, place: &Held) -> Option<usize> {
    let candidates = scene.namesakes(&place.likeness).iter().filter_map(|&row| {
        let rule = place.likeness.again(&scene.listed[row].likeness)?;
        let ties = ties(scene, place, row);
        Some((ties > 2, rule == Rule::Telephone, !scene.listed[row].fresh, ties, scene.rank(row), row))
    });
    if let Some((.., row)) = candidates.min() {
        return Some(row);
    }
    // A member was the same library when both were last seen, whatever is published of it now.
    let mine = |held: &&Held| held.active && held.duplicate_of == Some(place.id);
    let members = scene.held.iter().filter(mine).filter_map(|held| scene.row_of[scene.by_id[&held.id]]);
    members.min_by_key(|&row| (!scene.listed[row].fresh, scene.rank(row)))
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
