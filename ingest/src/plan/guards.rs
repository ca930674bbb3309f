//! What is not believed.

use geuneul::{Withheld, WithheldReason};

use super::{Held, Stale};
use crate::identity::{Resolution, Seat};

/// More places than this that stop being active in one run, gone or merged, are not believed: five in a hundred of what is active, and never fewer than ten.
pub fn deactivation_cap(active: usize) -> usize {
    (active / 20).max(10)
}

/// More than one bad row in a hundred means that the rows are not what we think they are.
pub fn too_many_rejects(rejected: usize, fetched: usize) -> bool {
    rejected * 100 > fetched
}

/// Many places are born and many stop being active in one run: the publisher has probably changed what rows are recognised by.
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

/// What a run asks for, and what limits it.
#[derive(Clone, Copy)]
pub(super) struct Guards<'a> {
    pub(super) stale: Stale<'a>,
    /// A row is there of which nobody knows which place it is.
    pub(super) unnamed: bool,
    /// How many places a person lets go.
    ceiling: Option<u64>,
    active: usize,
}

impl<'a> Guards<'a> {
    pub(super) fn new(stale: Stale<'a>, unnamed: bool, held: &[Held]) -> Self {
        let (Stale::Keep { ceiling } | Stale::Withhold { ceiling } | Stale::Deactivate { ceiling, .. }) = stale;
        Guards { stale, unnamed, ceiling, active: held.iter().filter(|held| held.is_place()).count() }
    }

    /// So many places may stop being active in this run.
    pub(super) fn allow(&self, leaving: usize) -> bool {
        leaving as u64 <= self.ceiling.unwrap_or(deactivation_cap(self.active) as u64)
    }

    /// What is not listed is not there: ids may move, rows may be marked as no longer listed, and places may be retired.
    pub(super) fn believe(&self, seen: &Resolution) -> bool {
        matches!(self.stale, Stale::Deactivate { .. }) && !self.unnamed && self.allow(seen.leaving())
    }

    /// The proof is there, and so many would go that it is not believed.
    pub(super) fn is_over(&self, seen: &Resolution) -> bool {
        matches!(self.stale, Stale::Deactivate { .. }) && !self.allow(seen.leaving())
    }

    /// What `seen` lets go and `done` does not.
    pub(super) fn withheld(&self, seen: &Resolution, done: &Resolution, unmerged: usize) -> Option<Withheld> {
        let (wanted, reason) = match self.stale {
            // What is gone was not asked for.
            Stale::Keep { .. } => (done.leaving() + unmerged, WithheldReason::OverCap),
            Stale::Withhold { .. } => (seen.leaving(), WithheldReason::UnprovenSnapshot),
            Stale::Deactivate { .. } if self.unnamed => (seen.leaving(), WithheldReason::UnnamedRow),
            Stale::Deactivate { .. } => (seen.leaving(), WithheldReason::OverCap),
        };
        let deactivations = wanted.saturating_sub(done.leaving()) as u64;
        let says_so = deactivations > 0 || matches!(self.stale, Stale::Withhold { .. });
        says_so.then_some(Withheld { deactivations, reason })
    }

    /// Counted after ids have moved. Whoever allows for so many has looked.
    pub(super) fn churn(&self, seen: &Resolution) -> Option<KeyChurn> {
        let born = seen.seats.iter().filter(|seat| matches!(seat, Seat::Face(None))).count();
        let (leaving, active, cap) = (seen.leaving(), self.active, deactivation_cap(self.active));
        let allowed = self.ceiling.is_some() && self.allow(leaving);
        let (gone, merged) = (seen.retired.len(), seen.merged.len());
        (born > cap && leaving > cap && !allowed).then_some(KeyChurn { born, gone, merged, active })
    }
}
