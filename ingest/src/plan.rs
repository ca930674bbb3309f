//! What a run will do to the places table: a pure function of the snapshot's rows and of what is held.
//!
//! Architecture invariant: no I/O, no clock, no async, no driver. Whoever carries a plan out has nothing left to decide.

use std::collections::{HashMap, HashSet};

use geuneul::{Withheld, WithheldReason};

use crate::identity;
use crate::record::{Digest, Handle, Record, Reject, Row};
use crate::snapshot::CompleteSnapshot;

/// A place that the table has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Its id.
    pub id: i64,
    /// Its key.
    pub key: String,
    /// The digest of what is stored of it.
    pub digest: Digest,
    /// Not soft-deleted.
    pub active: bool,
}

/// What is to happen to the places that the snapshot lacks.
#[derive(Debug, Clone, Copy)]
pub enum Stale<'a> {
    /// They stay: the run was not asked to deactivate.
    Keep,
    /// They are deactivated; this is the proof that they are gone.
    Deactivate(&'a CompleteSnapshot),
    /// The run was asked to, and there is no proof.
    Withhold,
}

/// One row to write.
#[derive(Debug, Clone, PartialEq)]
pub struct Write {
    /// The place's key.
    pub key: String,
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
    /// The place with this id has other values now.
    Update(i64),
    /// The place with this id was deactivated and is published again.
    Reactivate(i64),
}

/// A row that was set aside, with the key that it would have.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// Rows to insert, update or reactivate, by key.
    pub writes: Vec<Write>,
    /// Ids of places to deactivate, in ascending order.
    pub deactivate: Vec<i64>,
    /// Rows set aside.
    pub rejects: Vec<SetAside>,
    /// Places that are as they were.
    pub unchanged: usize,
    /// Places that should be deactivated and are not, and why.
    pub withheld: Option<Withheld>,
    /// Active places once the plan is carried out.
    pub active_after: usize,
}

impl Plan {
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

    fn count(&self, is: impl Fn(Change) -> bool) -> usize {
        self.writes.iter().filter(|write| is(write.change)).count()
    }
}

/// More deactivations than this in one run are not believed: five in a hundred of what is active, and never fewer than ten.
pub fn deactivation_cap(active: usize) -> usize {
    (active / 20).max(10)
}

/// More than one bad row in a hundred means that the rows are not what we think they are.
pub fn too_many_rejects(rejected: usize, fetched: usize) -> bool {
    rejected * 100 > fetched
}

/// Plans. `rows` are all rows of the snapshot, each with a value that orders rows of equal handles; `held` is every place of the source.
pub fn plan<T: Ord + Copy>(rows: Vec<(Row, T)>, held: &[Held], stale: Stale<'_>) -> Plan {
    if let Stale::Deactivate(proof) = stale {
        assert_eq!(proof.len(), rows.len(), "the proof is about these rows");
    }
    let mut keys = keys_of(&rows).into_iter();
    let by_key: HashMap<&str, &Held> = held.iter().map(|held| (held.key.as_str(), held)).collect();
    let mut present: HashSet<i64> = HashSet::new();
    let mut plan = Plan::default();
    for (at, (row, _)) in rows.into_iter().enumerate() {
        let key = row.handle().is_some().then(|| keys.next().expect("one key for each handle"));
        let held = key.as_deref().and_then(|key| by_key.get(key));
        present.extend(held.map(|held| held.id));
        match (row, key) {
            (Row::Bad(reject), key) => plan.rejects.push(SetAside { row: at + 1, key, reject }),
            (Row::Good(record), key) => {
                let key = key.expect("a good row has a handle");
                let change = match held {
                    None => Change::Insert,
                    Some(held) if !held.active => Change::Reactivate(held.id),
                    Some(held) if held.digest != record.digest => Change::Update(held.id),
                    Some(_) => {
                        plan.unchanged += 1;
                        continue;
                    }
                };
                plan.writes.push(Write { key, record, change });
            }
        }
    }
    plan.writes.sort_by(|a, b| a.key.cmp(&b.key));
    retire(&mut plan, held, &present, stale);
    let active = held.iter().filter(|held| held.active).count();
    plan.active_after = active + plan.inserts() + plan.reactivations() - plan.deactivate.len();
    plan
}

/// The keys of the rows that have a handle, in the order of the rows.
fn keys_of<T: Ord + Copy>(rows: &[(Row, T)]) -> Vec<String> {
    let handles: Vec<(&Handle, T)> = rows.iter().filter_map(|(row, tie)| Some((row.handle()?, *tie))).collect();
    identity::keys(&handles)
}

/// Deactivates what is active and not present, or says why not.
fn retire(plan: &mut Plan, held: &[Held], present: &HashSet<i64>, stale: Stale<'_>) {
    let active: Vec<&Held> = held.iter().filter(|held| held.active).collect();
    let mut gone: Vec<i64> = active.iter().map(|held| held.id).filter(|id| !present.contains(id)).collect();
    gone.sort_unstable();
    // A row whose key cannot be read is the present row of a place that we cannot name: then nobody knows which place is gone.
    let unnamed = plan.rejects.iter().any(|reject| reject.key.is_none());
    let withheld = |reason| Some(Withheld { deactivations: gone.len() as u64, reason });
    match stale {
        Stale::Keep => {}
        Stale::Withhold => plan.withheld = withheld(WithheldReason::UnprovenSnapshot),
        Stale::Deactivate(_) if unnamed && !gone.is_empty() => {
            plan.withheld = withheld(WithheldReason::UnprovenSnapshot);
        }
        Stale::Deactivate(_) if gone.len() > deactivation_cap(active.len()) => {
            plan.withheld = withheld(WithheldReason::OverCap);
        }
        Stale::Deactivate(_) => plan.deactivate = gone,
    }
}

#[cfg(test)]
mod tests;
