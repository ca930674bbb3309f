//! From clusters to ids: who sits where, and what becomes of the stored rows that are not listed.

use std::collections::{HashMap, HashSet};

use super::clusters::Part;
use super::succession::Successions;
use super::{Held, Resolution, Rule, Scene, Seat};

/// Deals out the ids.
pub fn of(scene: &Scene<'_>, successions: &Successions, parts: &[Part]) -> Resolution {
    let mut desk = Desk { scene, places: vec![None; parts.len()], taken: HashSet::new() };
    let faces = faces_in_order(scene, successions, parts);
    for &row in &faces {
        desk.places[row] = desk.place_of(successions, row);
        desk.taken.extend(desk.places[row]);
    }
    // What is left of the retired places may come back under another key; a place that is there goes first.
    for &row in faces.iter().filter(|&&row| scene.is_whole(row)) {
        if desk.places[row].is_none() {
            desk.places[row] = desk.returning(row);
            desk.taken.extend(desk.places[row]);
        }
    }
    desk.settle(successions, parts)
}

/// Faces, unread ones included, in the order in which they chose.
fn faces_in_order(scene: &Scene<'_>, successions: &Successions, parts: &[Part]) -> Vec<usize> {
    let mut faces: Vec<usize> = (0..parts.len())
        .filter(|&row| parts[row] == Part::Face || (parts[row] == Part::Aside && scene.own[row].is_some()))
        .collect();
    faces.sort_by_key(|&row| (super::clusters::claim(scene, successions, row), scene.rank(row)));
    faces
}

struct Desk<'a> {
    scene: &'a Scene<'a>,
    /// The place of each row that is a face, when it has one already.
    places: Vec<Option<i64>>,
    /// Places that have their face.
    taken: HashSet<i64>,
}

impl Desk<'_> {
    /// A face's own place; else the eldest one that calls it; else the one that its stored row was, or belonged to.
    fn place_of(&self, successions: &Successions, row: usize) -> Option<i64> {
        let called = || successions.calls.get(&row).and_then(|calls| calls.first()).copied();
        self.scene.own[row].or_else(called).or_else(|| {
            let stored = self.scene.stored(row)?;
            let root = stored.duplicate_of.and_then(|root| self.scene.held(root));
            let gone = |root: &&Held| !root.active && !self.scene.is_listed(root) && !self.taken.contains(&root.id);
            Some(root.filter(gone).map_or(stored.id, |root| root.id))
        })
    }

    /// The retired place that a new row is, if there is one.
    fn returning(&self, row: usize) -> Option<i64> {
        let likeness = &self.scene.listed[row].likeness;
        let retired = self.scene.held.iter().filter(|held| {
            !held.active && held.duplicate_of.is_none() && !self.scene.is_listed(held) && !self.taken.contains(&held.id)
        });
        let again = retired.filter_map(|held| Some((held.likeness.again(likeness)? == Rule::Telephone, held.id)));
        again.min().map(|(_, id)| id)
    }

    fn settle(self, successions: &Successions, parts: &[Part]) -> Resolution {
        let Desk { scene, places, taken: _ } = self;
        let mut resolution = Resolution { retired: successions.retired.clone(), ..Resolution::default() };
        // Where an id leads that is no face (any more).
        let mut leads: HashMap<i64, i64> = HashMap::new();
        for (row, part) in parts.iter().enumerate() {
            let stored = scene.stored(row).map(|held| held.id);
            resolution.seats.push(match *part {
                Part::Face => {
                    if let (Some(place), Some(stored)) = (places[row], stored)
                        && place != stored
                    {
                        resolution.swapped.push((place, stored));
                        leads.insert(stored, place);
                    }
                    Seat::Face(places[row])
                }
                Part::Member(face, rule) => {
                    leads.extend(stored.zip(places[face]));
                    Seat::Member(stored, face, rule)
                }
                Part::Aside => Seat::Untouched,
            });
        }
        for (&row, calls) in &successions.calls {
            let face = if let Part::Member(face, _) = parts[row] { face } else { row };
            let place = places[face].expect("a row that is called has a claim");
            for &call in calls.iter().filter(|&&call| call != place) {
                leads.insert(call, place);
                resolution.forwarded.push((call, place));
                resolution.delisted.push(call);
            }
        }
        follow(scene, &leads, &mut resolution);
        resolution.sort();
        resolution
    }
}

/// Stored rows that are not listed follow what they point to; those that were listed are no longer.
fn follow(scene: &Scene<'_>, leads: &HashMap<i64, i64>, resolution: &mut Resolution) {
    let swapped: HashSet<i64> = resolution.swapped.iter().map(|&(_, id)| id).collect();
    for held in scene.held {
        if held.is_place() {
            resolution.merged.extend(leads.get(&held.id).map(|&into| (held.id, into)));
        }
        let unread = || scene.row_of[scene.by_id[&held.id]].is_some_and(|row| !scene.is_whole(row));
        let Some(root) = held.duplicate_of else { continue };
        if swapped.contains(&held.id) || (scene.is_listed(held) && !unread()) {
            continue;
        }
        if held.active && !scene.is_listed(held) {
            resolution.delisted.push(held.id);
        }
        resolution.forwarded.extend(leads.get(&root).map(|&into| (held.id, into)));
    }
}

impl Resolution {
    fn sort(&mut self) {
        let Resolution { seats: _, retired, delisted, swapped, forwarded, merged } = self;
        retired.sort_unstable();
        delisted.sort_unstable();
        swapped.sort_unstable();
        forwarded.sort_unstable();
        merged.sort_unstable();
    }
}
