//! From seats to rows to write, and to what the ledger says about them.

use std::collections::{HashMap, HashSet};

use super::{Change, Held, Plan, Read, SetAside, Write};
use crate::identity::{Listed, Mend, Resolution, Seat};
use crate::record::{Record, Row};

/// What a run did to a place that was there before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum What {
    /// It has other values.
    Updated,
    /// It had been deactivated and is published again.
    Reactivated,
    /// The snapshot lacks it.
    Deactivated,
    /// Its row vanished, and another row is the same library.
    CarriedOver,
    /// It is the same library as another place, and now a part of it.
    Merged,
    /// It was a part of another place, and is a place of its own.
    Separated,
    /// A row behind a place that is no longer listed.
    Delisted,
}

impl What {
    /// Every kind.
    pub const ALL: [What; 7] = [
        What::Updated,
        What::Reactivated,
        What::Deactivated,
        What::CarriedOver,
        What::Merged,
        What::Separated,
        What::Delisted,
    ];

    /// The word for the ledger.
    pub const fn as_str(self) -> &'static str {
        match self {
            What::Updated => "updated",
            What::Reactivated => "reactivated",
            What::Deactivated => "deactivated",
            What::CarriedOver => "carried_over",
            What::Merged => "merged",
            What::Separated => "separated",
            What::Delisted => "delisted",
        }
    }
}

/// One entry of the ledger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Noted {
    /// The place.
    pub place: i64,
    /// What was done to it.
    pub what: What,
    /// The key that it had, when it has another one now.
    pub key_before: Option<String>,
    /// The place that it was merged into.
    pub into: Option<i64>,
}

/// Fills in writes, changes and rejects. `at` is where each row is among the listed ones.
pub(super) fn of(
    plan: &mut Plan,
    resolution: &Resolution,
    listed: &[Listed],
    rows: Vec<Read>,
    at: &[Option<usize>],
    held: &[Held],
) {
    let held: HashMap<i64, &Held> = held.iter().map(|held| (held.id, held)).collect();
    let merged: HashMap<i64, i64> = resolution.merged.iter().copied().collect();
    for (number, ((row, _), at)) in (1..).zip(rows.into_iter().zip(at)) {
        let key = at.map(|at| listed[at].key.clone());
        let record = match row {
            Row::Bad(reject) => {
                plan.rejects.push(SetAside { row: number, key, reject });
                continue;
            }
            Row::Good(record) => record,
        };
        let (at, key) = at.zip(key).expect("a good row has a handle");
        let (id, face, root) = match resolution.seats[at] {
            Seat::Untouched => unreachable!("a good row has a seat"),
            Seat::Face(id) => (id, None, None),
            Seat::Member(id, face, _) => {
                (id, Some(listed[face].key.clone()), Some(place_of(resolution, listed, &held, face)))
            }
        };
        let before = id.map(|id| held[&id]);
        let key_before = before.filter(|held| held.key != key).map(|held| held.key.clone());
        let is_the_same = |held: &Held, record: &Record| {
            held.digest == Some(record.digest)
                && key_before.is_none()
                && root.map_or(held.duplicate_of.is_none(), |root| root.is_some() && root == held.duplicate_of)
        };
        let change = match before {
            None => Change::Insert,
            Some(held) if !held.active => Change::Reactivate(held.id),
            Some(held) if is_the_same(held, &record) => {
                plan.unchanged += 1;
                continue;
            }
            Some(held) => Change::Update(held.id),
        };
        if let Some(held) = before {
            plan.put_right += usize::from(held.digest.is_none());
            let into = merged.get(&held.id).copied();
            let what = match change {
                Change::Reactivate(_) => What::Reactivated,
                _ if key_before.is_some() => What::CarriedOver,
                _ if into.is_some() => What::Merged,
                _ if held.duplicate_of.is_some() && face.is_none() => What::Separated,
                _ => What::Updated,
            };
            plan.changes.push(Noted { place: held.id, what, key_before: key_before.clone(), into });
        }
        plan.writes.push(Write { key, key_before, face, record, change });
    }
    plan.writes.sort_by(|a, b| a.key.cmp(&b.key));
    note_the_unlisted(plan, &merged, &held);
}

/// The id of the place whose face is at this index; `None` when it is new.
fn place_of(resolution: &Resolution, listed: &[Listed], held: &HashMap<i64, &Held>, face: usize) -> Option<i64> {
    match resolution.seats[face] {
        Seat::Face(id) => id,
        // A face that was not read is stored, and stays.
        _ => held.values().find(|held| held.key == listed[face].key).map(|held| held.id),
    }
}

/// Places and rows that change without a row of the snapshot.
fn note_the_unlisted(plan: &mut Plan, merged: &HashMap<i64, i64>, held: &HashMap<i64, &Held>) {
    let note = |place: i64, what| {
        let into = merged.get(&place).copied();
        Noted { place, what: if into.is_some() { What::Merged } else { what }, key_before: None, into }
    };
    let retired = plan.deactivate.iter().map(|&id| note(id, What::Deactivated));
    let delisted = plan.delist.iter().map(|&id| note(id, What::Delisted));
    // A row that was already gone is only shuffled.
    let swapped = plan.swaps.iter().filter(|(_, id)| held[id].active).map(|&(place, id)| Noted {
        key_before: Some(held[&id].key.clone()).filter(|key| *key != held[&place].key),
        ..note(id, What::Delisted)
    });
    let noted: Vec<Noted> = retired.chain(delisted).chain(swapped).collect();
    plan.changes.extend(noted);
    let known: HashSet<i64> = plan.changes.iter().map(|noted| noted.place).collect();
    let mended = plan.mends.iter().filter(|mend| !known.contains(&mend.id)).map(|mend| match mend {
        Mend { id, revived: true, .. } => note(*id, What::Reactivated),
        Mend { id, place: None, .. } => note(*id, What::Separated),
        Mend { id, .. } => note(*id, What::Updated),
    });
    let mended: Vec<Noted> = mended.collect();
    plan.changes.extend(mended);
    plan.changes.sort_by_key(|noted| noted.place);
}
