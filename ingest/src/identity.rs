//! Which place a row is.
//!
//! The upstream has no id. A row has a key ([`keys`]); a library is a *cluster* of rows, and **the place id belongs to the cluster**.
//! One row of a cluster, its face, is stored under the place's id; the others are stored under ids of their own and point to it. The face
//! stays while its row is listed. When the row vanishes, the id moves to a row that is the same library, wherever that is listed; only a
//! place for which there is none is retired.
//!
//! **A place that is listed keeps its id.** Nothing that another place does moves one: an id moves only to a row that no place has. And
//! where a telephone or an institution is all that speaks for it, it moves only to a row that is no part of a listed place either.
//!
//! A cluster is a star: every member is the same library as the *face*, by one rule that can be named. So A~B~C without A~C is one
//! library around B, or A with B and C alone, as the order of the faces has it; never a chain of neighbours.
//!
//! Architecture invariant: pure; the result does not depend on the order of the rows.

mod address;
mod clusters;
mod keys;
mod likeness;
mod mend;
mod outcome;
mod succession;

use std::cell::OnceCell;
use std::collections::HashMap;

pub use keys::{Keys, Unnamed, base_of, keys};
pub use likeness::{Likeness, Rule};
pub use mend::{Mend, mend};

use crate::record::Digest;

/// A row that the places table has.
#[derive(Debug, Clone, PartialEq)]
pub struct Held {
    /// Its id.
    pub id: i64,
    /// Its key.
    pub key: String,
    /// What it is compared by.
    pub likeness: Likeness,
    /// The digest of what is stored of it; none when that is not what a run has written, but a hand, or an older set of rules.
    pub digest: Option<Digest>,
    /// Not soft-deleted.
    pub active: bool,
    /// The place whose member it is.
    pub duplicate_of: Option<i64>,
}

impl Held {
    /// An active place: a face, and listed when last seen.
    pub fn is_place(&self) -> bool {
        self.active && self.duplicate_of.is_none()
    }
}

/// How much of a row has been seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// It was read in full.
    Whole,
    /// It was set aside. It neither moves nor lends its content to a place, and others see in it what is stored of it.
    Unread,
    /// It is stored, not listed, and not proven to be gone: the row that would take its place waits behind it.
    Presumed,
}

/// A row that counts as present.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// Its key.
    pub key: String,
    /// What it is compared by.
    pub likeness: Likeness,
    /// How much of it has been seen.
    pub seen: Seen,
}

/// Whether a place may become a part of another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merging {
    /// When they turn out to be one library.
    Allowed,
    /// Not in this run: so many would that it is not believed.
    Withheld,
}

/// Where a listed row is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seat {
    /// It is the face of a place: of this one, or of a new one.
    Face(Option<i64>),
    /// It is stored under this id, or a new one, and points to the face of the row at this index.
    Member(Option<i64>, usize, Rule),
    /// It was not read, and what is stored of it stays.
    Untouched,
}

/// Who is who, and what becomes of stored rows that are not listed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Resolution {
    /// One a listed row, in their order.
    pub seats: Vec<Seat>,
    /// Places that nothing in the snapshot is: the only ones to be retired. By id, like all that follow.
    pub retired: Vec<i64>,
    /// Rows that are no longer listed, of members and of places that were merged.
    pub delisted: Vec<i64>,
    /// A place takes over the row of another id, which gets its old row in exchange, as a member that is no longer listed.
    pub swapped: Vec<(i64, i64)>,
    /// Rows without a seat that point to another place than before: what is left of a merged place, and what pointed to one.
    pub forwarded: Vec<(i64, i64)>,
    /// Places that are now part of another one.
    pub merged: Vec<(i64, i64)>,
}

impl Resolution {
    /// How many places stop being active.
    pub fn leaving(&self) -> usize {
        self.retired.len() + self.merged.len()
    }
}

/// What all steps look at.
struct Scene<'a> {
    listed: &'a [Listed],
    held: &'a [Held],
    merging: Merging,
    /// Stored row of a key, as an index.
    by_key: HashMap<&'a str, usize>,
    /// Stored row of an id, as an index.
    by_id: HashMap<i64, usize>,
    /// Listed rows of a normalised name.
    by_name: HashMap<&'a str, Vec<usize>>,
    /// The listed row of a stored one.
    row_of: Vec<Option<usize>>,
    /// The active place whose row a listed row is.
    own: Vec<Option<i64>>,
    /// Whether a listed row is the library of a place that is listed; asked of few.
    at_home: Vec<OnceCell<bool>>,
}

impl<'a> Scene<'a> {
    fn new(listed: &'a [Listed], held: &'a [Held], merging: Merging) -> Self {
        let by_key: HashMap<&str, usize> = held.iter().enumerate().map(|(at, held)| (held.key.as_str(), at)).collect();
        let by_id = held.iter().enumerate().map(|(at, held)| (held.id, at)).collect();
        let mut by_name: HashMap<&str, Vec<usize>> = HashMap::new();
        let mut row_of = vec![None; held.len()];
        let mut own = vec![None; listed.len()];
        for (at, row) in listed.iter().enumerate() {
            by_name.entry(row.likeness.name()).or_default().push(at);
            if let Some(&stored) = by_key.get(row.key.as_str()) {
                row_of[stored] = Some(at);
                own[at] = Some(held[stored].id).filter(|_| held[stored].is_place());
            }
        }
        Scene {
            listed,
            held,
            merging,
            by_key,
            by_id,
            by_name,
            row_of,
            own,
            at_home: vec![OnceCell::new(); listed.len()],
        }
    }

    fn is_whole(&self, row: usize) -> bool {
        self.listed[row].seen == Seen::Whole
    }

    /// What others see in a row: of one that was not read, what is stored.
    fn face(&self, row: usize) -> &'a Likeness {
        let stored = self.stored(row).filter(|_| !self.is_whole(row));
        stored.map_or(&self.listed[row].likeness, |held| &held.likeness)
    }

    /// A row that is the library of a place that is listed.
    fn has_a_home(&self, row: usize) -> bool {
        let is_home = |&&at: &&usize| self.own[at].is_some() && self.listed[at].seen != Seen::Presumed;
        let likeness = &self.listed[row].likeness;
        let mut others = self.namesakes(likeness).iter().filter(is_home);
        *self.at_home[row].get_or_init(|| is_home(&&row) || others.any(|&at| self.face(at).same(likeness).is_some()))
    }

    /// What is stored under a listed row's key.
    fn stored(&self, row: usize) -> Option<&'a Held> {
        self.by_key.get(self.listed[row].key.as_str()).map(|&at| &self.held[at])
    }

    fn held(&self, id: i64) -> Option<&'a Held> {
        self.by_id.get(&id).map(|&at| &self.held[at])
    }

    fn is_listed(&self, held: &Held) -> bool {
        self.by_id.get(&held.id).is_some_and(|&at| self.row_of[at].is_some())
    }

    /// Listed rows with the same normalised name.
    fn namesakes(&self, likeness: &Likeness) -> &[usize] {
        self.by_name.get(likeness.name()).map_or(&[], Vec::as_slice)
    }

    /// The order of rows that have no history: with coordinates first, then by institution code, which a key begins with.
    fn rank(&self, row: usize) -> (bool, &'a str) {
        (!self.listed[row].likeness.is_located(), self.listed[row].key.as_str())
    }
}

/// Resolves. `listed` is everything that counts as present, `held` every row of the source that the table has.
pub fn resolve(listed: &[Listed], held: &[Held], merging: Merging) -> Resolution {
    let scene = Scene::new(listed, held, merging);
    let successions = succession::of(&scene);
    let clusters = clusters::of(&scene, &successions);
    outcome::of(&scene, &successions, &clusters)
}

#[cfg(test)]
mod tests;
