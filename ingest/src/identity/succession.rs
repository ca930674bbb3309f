//! Where the places go whose face is no longer listed.

use std::collections::{HashMap, HashSet};

use super::{Held, Rule, Scene, Seen};

/// What becomes of the places whose face vanished.
#[derive(Debug, Default)]
pub struct Successions {
    /// The ids that move to a row, eldest first.
    pub calls: HashMap<usize, Vec<i64>>,
    /// Rows that a place would move to, if it were proven that its own is gone: its row, and by which rule.
    pub queue: HashMap<usize, (usize, Rule)>,
    /// Places that nothing in the snapshot is.
    pub retired: Vec<i64>,
}

/// Looks among all rows, in the order of the places' ids: first for what is sure, and then, for what is left, for a telephone or an
/// institution among the rows that nobody has called. One number speaks for one library.
pub fn of(scene: &Scene<'_>) -> Successions {
    let mut found = Successions::default();
    let presumed = |row: usize| scene.listed[row].seen == Seen::Presumed;
    let row_of = |held: &Held| scene.row_of[scene.by_id[&held.id]];
    let mut vanished: Vec<&Held> =
        scene.held.iter().filter(|held| held.is_place() && row_of(held).is_none_or(presumed)).collect();
    vanished.sort_by_key(|held| held.id);
    let mut called: HashSet<usize> = HashSet::new();
    for sure in [true, false] {
        vanished.retain(|place| {
            let Some((row, rule)) = successor(scene, place, sure, &called) else { return true };
            // A place whose successor was not read stays as it is.
            if scene.is_whole(row) {
                called.insert(row);
                match row_of(place) {
                    None => found.calls.entry(row).or_default().push(place.id),
                    Some(own) => drop(found.queue.entry(row).or_insert((own, rule))),
                }
            }
            false
        });
    }
    for calls in found.calls.values_mut() {
        calls.sort_unstable();
    }
    found.retired = vanished.into_iter().filter(|place| row_of(place).is_none()).map(|place| place.id).collect();
    found
}

/// The best row for a place: by how much it has to do with another place, and how sure it is that it is the same library; then as a first
/// face is chosen. A telephone alone moves an id only to a row that is nobody's; a place that is listed in the same town takes such a
/// one in, and keeps its own.
fn successor(scene: &Scene<'_>, place: &Held, sure: bool, called: &HashSet<usize>) -> Option<(usize, Rule)> {
    let namesakes = scene.namesakes(&place.likeness).iter().copied();
    let candidates = namesakes.filter(|&row| scene.listed[row].seen != Seen::Presumed).filter_map(|row| {
        let rule = again(scene, place, row).filter(|rule| rule.is_sure() == sure)?;
        let (ties, unread) = (ties(scene, place, row), !scene.is_whole(row));
        let is_taken = !sure && scene.has_a_home(row);
        let is_open = match rule {
            Rule::Address | Rule::Near => true,
            Rule::Telephone if is_taken => place.likeness.in_one_town(&scene.listed[row].likeness),
            Rule::Telephone | Rule::Institution => !is_taken && (unread || !called.contains(&row)),
        };
        let rank = (is_taken || ties > 2, rule == Rule::Institution, unread, ties, scene.rank(row), row);
        is_open.then_some((rank, rule))
    });
    if let Some(((.., row), rule)) = candidates.min() {
        return Some((row, rule));
    }
    // A member was the same library when both were last seen, whatever is published of it now.
    let mine = |held: &&Held| sure && held.active && held.duplicate_of == Some(place.id);
    let members = scene.held.iter().filter(mine).filter_map(|held| scene.row_of[scene.by_id[&held.id]]);
    let members = members.filter(|&row| scene.listed[row].seen != Seen::Presumed);
    members.min_by_key(|&row| (!scene.is_whole(row), scene.rank(row))).map(|row| (row, Rule::Institution))
}

/// Why a listed row may be a place whose own row vanished.
fn again(scene: &Scene<'_>, place: &Held, row: usize) -> Option<Rule> {
    let row = &scene.listed[row];
    let of_one = || super::keys::institution(&place.key) == super::keys::institution(&row.key);
    place.likeness.again(&row.likeness).or_else(|| of_one().then_some(Rule::Institution))
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
