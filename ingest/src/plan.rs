//! What a run will do to the places table: a pure function of the snapshot's rows and of what is held.
//!
//! Architecture invariant: no I/O, no clock, no async, no driver. Whoever carries a plan out has nothing left to decide.

mod changes;
mod guards;

use std::collections::{HashMap, HashSet};

use geuneul::Withheld;

pub use crate::identity::Held;
use crate::identity::{self, Keys, Likeness, Listed, Mend, Merging, Resolution, Seat, Seen, Unnamed};
use crate::record::{BadValue, Record, Reject, Row};
use crate::snapshot::CompleteSnapshot;
pub use changes::{Noted, What};
use guards::Guards;
pub use guards::{KeyChurn, too_many_rejects};

/// What is to happen to the places that the snapshot lacks.
#[derive(Debug, Clone, Copy)]
pub enum Stale<'a> {
    /// They stay: the run was not asked to deactivate.
    Keep {
        /// How many a person allows for.
        ceiling: Option<u64>,
    },
    /// They are deactivated, as many as are believed.
    Deactivate {
        /// The proof that they are gone.
        proof: &'a CompleteSnapshot,
        /// How many a person allows for, instead of the cap.
        ceiling: Option<u64>,
    },
    /// There is no proof. The run says so even when it was not asked to deactivate: rows may be missing from what it mirrored.
    Withhold {
        /// How many a person allows for.
        ceiling: Option<u64>,
    },
}

/// One row to write.
#[derive(Debug, Clone, PartialEq)]
pub struct Write {
    /// The place's key.
    pub key: String,
    /// The key that it has until now, when the row moves to it.
    pub key_before: Option<String>,
    /// The key of the face that it stands behind, when it is a duplicate.
    pub face: Option<String>,
    /// What to store.
    pub record: Record,
    /// What is done to the place.
    pub change: Change,
}

/// What a write does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// A place that was never held.
    Insert,
    /// The place with this id is another now: its values, its key, or whom it stands behind.
    Update(i64),
    /// The place with this id was deactivated and is published again.
    Reactivate(i64),
}

/// A row that was set aside, with the key that it would have.
#[derive(Debug, Clone, PartialEq)]
pub struct SetAside {
    /// Its position in the snapshot, from 1.
    pub row: usize,
    /// The place that counts as present for it.
    pub key: Option<String>,
    /// What is wrong with it.
    pub reject: Reject,
}

/// Everything that one run will write.
#[derive(Debug, Default, PartialEq)]
pub struct Plan {
    /// Stored rows that a hand left in a state that no run leaves, put right before anything else.
    pub mends: Vec<Mend>,
    /// Rows to insert, update or reactivate, by key.
    pub writes: Vec<Write>,
    /// Ids of places to deactivate, in ascending order.
    pub deactivate: Vec<i64>,
    /// Ids of rows behind a place that are no longer listed.
    pub delist: Vec<i64>,
    /// A place takes over the row of another id, which gets its old row in exchange.
    pub swaps: Vec<(i64, i64)>,
    /// Rows that are not written otherwise and point to another place from now on.
    pub forwards: Vec<(i64, i64)>,
    /// What the ledger says about places that were there before, by id.
    pub changes: Vec<Noted>,
    /// Rows set aside.
    pub rejects: Vec<SetAside>,
    /// Rows that are as they were.
    pub unchanged: usize,
    /// Rows that are written although they were published so before: what was stored of them was changed by hand.
    pub put_right: usize,
    /// Places that should stop being active and do not, and why.
    pub withheld: Option<Withheld>,
    /// The plan is not to be carried out: so much comes and goes that the keys themselves have probably changed.
    pub churn: Option<KeyChurn>,
    /// Active places once the plan is carried out.
    pub active_after: usize,
    /// Rows that stand behind an active place then.
    pub duplicates_after: usize,
}

impl Plan {
    /// What a hand had changed and this run makes as it was.
    pub fn repairs(&self) -> usize {
        self.mends.len() + self.put_right
    }

    /// Writes that insert.
    pub fn inserts(&self) -> usize {
        self.count(|change| matches!(change, Change::Insert))
    }

    /// Writes that update.
    pub fn updates(&self) -> usize {
        self.count(|change| matches!(change, Change::Update(_)))
    }

    /// Writes that reactivate.
    pub fn reactivations(&self) -> usize {
        self.count(|change| matches!(change, Change::Reactivate(_)))
    }

    /// Changes of one kind.
    pub fn changed(&self, what: What) -> usize {
        self.changes.iter().filter(|noted| noted.what == what).count()
    }

    fn count(&self, is: impl Fn(Change) -> bool) -> usize {
        self.writes.iter().filter(|write| is(write.change)).count()
    }
}

/// A row with SHA-256 of how it was published.
pub type Read = (Row, [u8; 32]);

/// Plans. `rows` are all rows of the snapshot; `held` is every place of the source.
pub fn plan(mut rows: Vec<Read>, held: &[Held], stale: Stale<'_>) -> Plan {
    if let Stale::Deactivate { proof, .. } = stale {
        assert_eq!(proof.len(), rows.len(), "the proof is about these rows");
    }
    let (held, mends) = identity::mend(held);
    let held = &*held;
    let (mut listed, at) = list(&mut rows, held, stale);
    // A row whose key cannot be read is the present row of a place that we cannot name: then nobody knows which place is gone.
    let guards = Guards::new(stale, at.iter().any(Option::is_none), held);
    let seen = identity::resolve(&listed, held, Merging::Allowed);
    let (mut presuming, mut unmerged) = (None, 0);
    if !guards.believe(&seen) {
        presume(&mut listed, held);
        let merging = identity::resolve(&listed, held, Merging::Allowed);
        // Over the cap no place stops being active, for whatever reason.
        presuming = Some(if guards.is_over(&seen) || !guards.allow(merging.leaving()) {
            unmerged = merging.leaving();
            identity::resolve(&listed, held, Merging::Withheld)
        } else {
            merging
        });
    }
    let resolution = presuming.as_ref().unwrap_or(&seen);
    let withheld = guards.withheld(&seen, resolution, unmerged);
    let mut plan = Plan { withheld, churn: guards.churn(&seen), mends, ..Plan::default() };
    let Resolution { seats: _, retired, delisted, swapped, forwarded, merged: _ } = resolution;
    plan.deactivate.clone_from(retired);
    plan.delist.clone_from(delisted);
    plan.swaps.clone_from(swapped);
    plan.forwards.clone_from(forwarded);
    changes::of(&mut plan, resolution, &listed, rows, &at, held);
    count_after(&mut plan, resolution, held);
    plan
}

/// The rows that have a handle, and for each row its place among them. Rows that cannot be told from one that was set aside are set
/// aside as well, and what that one may be counts as present: nothing that is stored is touched on a guess. Nor is a second place of a
/// name born without a proof: it may be the first one, read twice.
fn list(rows: &mut [Read], held: &[Held], stale: Stale<'_>) -> (Vec<Listed>, Vec<Option<usize>>) {
    let likenesses: Vec<Option<Likeness>> = rows.iter().map(|(row, _)| likeness(row)).collect();
    let unnamed: Vec<Unnamed<'_>> = rows
        .iter()
        .zip(&likenesses)
        .filter_map(|((row, fingerprint), likeness)| {
            let digest = if let Row::Good(record) = row { Some(&record.digest) } else { None };
            let (handle, likeness) = (row.handle()?, likeness.as_ref()?);
            Some(Unnamed { handle, likeness, digest, fingerprint: *fingerprint })
        })
        .collect();
    let Keys { keys, unclear, presumed, further } = identity::keys(&unnamed, held);
    let named: Vec<usize> = (0..rows.len()).filter(|&row| rows[row].0.handle().is_some()).collect();
    for (row, unread) in unclear {
        if let Row::Bad(Reject { column, .. }) = rows[named[unread]].0 {
            set_aside(&mut rows[named[row]].0, column, BadValue::Indistinct);
        }
    }
    for row in if matches!(stale, Stale::Withhold { .. }) { further } else { Vec::new() } {
        set_aside(&mut rows[named[row]].0, "key", BadValue::Unproven);
    }
    let mut keys = keys.into_iter();
    let (mut listed, mut at) = (Vec::new(), Vec::new());
    let stored: HashMap<&str, &Held> = held.iter().map(|held| (held.key.as_str(), held)).collect();
    for ((row, _), likeness) in rows.iter().zip(likenesses) {
        let named = likeness.zip(row.handle().and_then(|_| keys.next()));
        at.push(named.is_some().then_some(listed.len()));
        listed.extend(named.map(|(likeness, key)| match row {
            Row::Good(_) => Listed { key, likeness, seen: Seen::Whole },
            // What of it cannot be read is presumed to be what it was.
            Row::Bad(_) => {
                let likeness = stored.get(key.as_str()).map_or(likeness.clone(), |held| likeness.or(&held.likeness));
                Listed { key, likeness, seen: Seen::Unread }
            }
        }));
    }
    listed.extend(presumed.iter().filter_map(|key| stored.get(key.as_str())).map(|held| as_it_was(held, Seen::Unread)));
    (listed, at)
}

/// Nothing that is wrong with the row itself.
fn set_aside(row: &mut Row, column: &'static str, reason: BadValue) {
    if let Row::Good(Record { handle, position, telephone, .. }) = row {
        let (handle, position, telephone) = (Some(handle.clone()), *position, telephone.clone());
        *row = Row::Bad(Reject { column, reason, handle, position, telephone });
    }
}

/// Stored, and presumed to be there still.
fn as_it_was(held: &Held, seen: Seen) -> Listed {
    Listed { key: held.key.clone(), likeness: held.likeness.clone(), seen }
}

fn likeness(row: &Row) -> Option<Likeness> {
    let (handle, (position, telephone)) = (row.handle()?, row.marks());
    Some(Likeness::new(&handle.name, handle.address.as_deref(), position, telephone))
}

/// Without proof, what is stored and not listed is presumed to be there still.
fn presume(listed: &mut Vec<Listed>, held: &[Held]) {
    let here: HashSet<String> = listed.iter().map(|row| row.key.clone()).collect();
    let absent = held.iter().filter(|held| held.active && !here.contains(&held.key));
    listed.extend(absent.map(|held| as_it_was(held, Seen::Presumed)));
}

fn count_after(plan: &mut Plan, resolution: &Resolution, held: &[Held]) {
    let seats = || resolution.seats.iter();
    let seated: HashSet<i64> =
        seats().filter_map(|seat| if let Seat::Face(id) | Seat::Member(id, ..) = seat { *id } else { None }).collect();
    let swapped: HashSet<i64> = plan.swaps.iter().map(|&(_, id)| id).collect();
    let gone: HashSet<i64> = plan.deactivate.iter().chain(&plan.delist).copied().collect();
    let left = || held.iter().filter(|h| h.active && ![&seated, &swapped, &gone].iter().any(|set| set.contains(&h.id)));
    plan.active_after = seats().filter(|seat| matches!(seat, Seat::Face(_))).count()
        + left().filter(|held| held.duplicate_of.is_none()).count();
    plan.duplicates_after = seats().filter(|seat| matches!(seat, Seat::Member(..))).count()
        + left().filter(|held| held.duplicate_of.is_some()).count();
}

#[cfg(test)]
mod shifting_tests;
#[cfg(test)]
mod tests;
