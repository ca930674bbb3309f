//! Which rows are one library.

use std::collections::HashMap;

use super::succession::Successions;
use super::{Merging, Rule, Scene};

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
        if scene.is_whole(row) {
            parts[row] = match join(scene, successions, row, before) {
                Some((face, rule)) => Part::Member(face, rule),
                None => Part::Face,
            };
        }
        if parts[row] == Part::Face || (!scene.is_whole(row) && scene.own[row].is_some()) {
            before.push(row);
        }
    }
    parts
}

/// In this order: what cannot move; faces; what is called by a place; what has been stored before; what is new. The eldest id first.
pub fn claim(scene: &Scene<'_>, successions: &Successions, row: usize) -> (u8, i64) {
    let called = successions.calls.get(&row).and_then(|calls| calls.first()).copied();
    match (scene.own[row], called, scene.stored(row)) {
        (Some(own), _, _) if !scene.is_whole(row) => (0, own),
        (Some(own), _, _) => (1, own),
        (None, Some(called), _) => (2, called),
        (None, None, Some(held)) => (3, held.duplicate_of.unwrap_or(held.id)),
        (None, None, None) => (4, 0),
    }
}

/// The face that a row belongs to: the one of the place that it belonged to, or else the first. A place does not go behind a row that was
/// not read: which of the two is the elder one is seen when it is.
fn join(scene: &Scene<'_>, successions: &Successions, row: usize, faces: &[usize]) -> Option<(usize, Rule)> {
    let is_place = scene.own[row].is_some();
    if is_place && scene.merging == Merging::Withheld {
        return None;
    }
    let same = |&face: &usize| Some((face, scene.face(face).same(&scene.listed[row].likeness)?));
    let mut found = faces.iter().filter(|&&face| !is_place || scene.is_whole(face)).filter_map(same);
    let Some(first) = found.next() else {
        return successions.queue.get(&row).copied().filter(|_| !is_place);
    };
    let Some(place) = scene.stored(row).and_then(|held| held.duplicate_of) else { return Some(first) };
    let is_mine = |face: usize| matches!(claim(scene, successions, face), (0..=2, id) if id == place);
    if is_mine(first.0) { Some(first) } else { found.find(|&(face, _)| is_mine(face)).or(Some(first)) }
}
