//! What is not believed.

use geuneul::{Withheld, WithheldReason};

use super::{Held, Stale};
use crate::identity::{Resolution, Seat};

/// More deactivations than this in one run are not believed: five in a hundred of what is active, and never fewer than ten.
pub fn deactivation_cap(active: usize) -> usize {
    (active / 20).max(10)
}

/// More than one bad row in a hundred means that the rows are not what we think they are.
pub fn too_many_rejects(rejected: usize, fetched: usize) -> bool {
    rejected * 100 > fetched
}

/// Many places are born and many are gone in one run, or many turn out to be one: the publisher has probably changed what rows are
/// recognised by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyChurn {
    /// Places that would be born.
    pub born: usize,
    /// Places that would be gone.
    pub gone: usize,
    /// Places that would be a part of another one.
    pub merged: usize,
    /// Places that are active now.
    pub active: usize,
}

/// What the guards say about absence.
pub(super) struct Verdict {
    /// What is not listed is not there: ids may move, and rows may be marked as no longer listed.
    pub(super) believes_absence: bool,
    pub(super) withheld: Option<Withheld>,
    pub(super) churn: Option<KeyChurn>,
}

/// Judges what the snapshot seems to lack, counted after ids have moved.
pub(super) fn judge(seen: &Resolution, held: &[Held], stale: Stale<'_>, unnamed: bool) -> Verdict {
    let gone = seen.retired.len();
    let active = held.iter().filter(|held| held.is_place()).count();
    let cap = deactivation_cap(active);
    let withhold = |reason| Some(Withheld { deactivations: gone as u64, reason });
    let (ceiling, withheld) = match stale {
        Stale::Keep { ceiling } => (ceiling, None),
        Stale::Withhold { ceiling } => (ceiling, withhold(WithheldReason::UnprovenSnapshot)),
        Stale::Deactivate { ceiling, .. } if unnamed => {
            (ceiling, withhold(WithheldReason::UnnamedRow).filter(|_| gone > 0))
        }
        Stale::Deactivate { ceiling, .. } => {
            let over = gone as u64 > ceiling.unwrap_or(cap as u64);
            (ceiling, withhold(WithheldReason::OverCap).filter(|_| over))
        }
    };
    let born = seen.seats.iter().filter(|seat| matches!(seat, Seat::Face(None))).count();
    let merged = seen.merged.len();
    // Whoever allows for so many has looked.
    let allowed = ceiling.is_some_and(|ceiling| (gone + merged) as u64 <= ceiling);
    let moved = born > cap && gone > cap || merged > cap;
    let churn = (moved && !allowed).then_some(KeyChurn { born, gone, merged, active });
    Verdict { believes_absence: matches!(stale, Stale::Deactivate { .. }) && !unnamed, withheld, churn }
}
