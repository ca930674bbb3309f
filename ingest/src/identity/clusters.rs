//! Which rows are one library.

use std::collections::HashMap;

use super::succession::Successions;
use super::{Rule, Scene};

/// A row's part in its cluster.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The others are compared with it.
    Face,
    /// The same library as the face at this index, by this rule.
    Member(usize, Rule),
    /// Not read: it is a face when it is stored as one, and else it takes no part.
    Aside,
}

/// Deals out the parts: rows that have a claim come first, the eldest claim before the others; each is a member of a face before it, or
/// becomes a face.
pub fn of(scene: &Scene<'_>, successions: &Successions) -> Vec<Part> {
    let mut parts = vec![Part::Aside; scene.listed.len()];
    let mut faces: HashMap<&str, Vec<usize>> = HashMap::new();
    let mut order: Vec<usize> = (0..scene.listed.len()).collect();
    order.sort_by_key(|&row| (claim(scene, successions, row), scene.rank(row)));
    for row in order {
        let likeness = &scene.listed[row].likeness;
        let before = faces.entry(likeness.name()).or_default();
        if scene.listed[row].fresh {
            parts[row] = match join(scene, successions, row, before) {
                Some((face, rule)) => Part::Member(face, rule),
                None => Part::Face,
            };
        }
        let stays = || scene.stored(row).is_some_and(|held| held.is_place());
        if parts[row] == Part::Face || (!scene.listed[row].fresh && stays()) {
            before.push(row);
        }
    }
    parts
}

/// In this order: what cannot move; faces and what is called by a place, by the eldest id; what has been stored before; what is new.
pub fn claim(scene: &Scene<'_>, successions: &Successions, row: usize) -> (u8, i64) {
    let stored = scene.stored(row);
    let own = stored.filter(|held| held.is_place()).map(|held| held.id);
    let called = successions.calls.get(&row).and_then(|calls| calls.first()).copied();
    match (own, called, stored) {
        (Some(own), _, _) if !scene.listed[row].fresh => (0, own),
        (Some(own), Some(called), _) => (1, own.min(called)),
        (Some(id), None, _) | (None, Some(id), _) => (1, id),
        (None, None, Some(held)) => (2, held.duplicate_of.unwrap_or(held.id)),
        (None, None, None) => (3, 0),
    }
}

/// The face that a row belongs to: the one of the place that it belonged to, or else the first.
fn join(scene: &Scene<'_>, successions: &Successions, row: usize, faces: &[usize]) -> Option<(usize, Rule)> {
    let own = scene.stored(row).filter(|held| held.is_place()).map(|held| held.id);
    let same = |&face: &usize| {
        // One that was not read cannot go behind another: an elder place waits until it is.
        let waits = !scene.listed[face].fresh && own.is_some_and(|own| (0, own) < claim(scene, successions, face));
        let rule = scene.listed[face].likeness.same(&scene.listed[row].likeness)?;
        (!waits).then_some((face, rule))
    };
    let mut found = faces.iter().filter_map(same);
    let first = found.next()?;
    let Some(place) = scene.stored(row).and_then(|held| held.duplicate_of) else { return Some(first) };
    let is_mine = |face: usize| matches!(claim(scene, successions, face), (0 | 1, id) if id == place);
    if is_mine(first.0) { Some(first) } else { found.find(|&(face, _)| is_mine(face)).or(Some(first)) }
}
