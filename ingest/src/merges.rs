//! Which published rows are one library, and by which rule: what a person reads who doubts a merge.
//!
//! Architecture invariant: takes no lock and writes nothing.

use std::collections::BTreeMap;

use crate::identity::Held;

/// One line a merged row, each place under its face, and a total; sorted by key.
pub fn explain(held: &[Held]) -> String {
    let by_id: BTreeMap<i64, &Held> = held.iter().map(|held| (held.id, held)).collect();
    let mut lines = Vec::new();
    for member in held.iter().filter(|held| held.active) {
        let Some(face) = member.duplicate_of.and_then(|place| by_id.get(&place)) else { continue };
        // A row that was not read since (set aside, or unproven to be gone) may have been merged for what it was; one that waits for a proof
        // that the face is gone, for its telephone.
        let rule = face.likeness.again(&member.likeness).map_or("merged when last read in full", |rule| rule.as_str());
        lines.push(format!("{} {} = {}: {rule}", face.id, face.key, member.key));
    }
    lines.sort_by(|a, b| a.split_once(' ').map(|(_, rest)| rest).cmp(&b.split_once(' ').map(|(_, rest)| rest)));
    let active = held.iter().filter(|held| held.is_place()).count();
    lines.push(format!("{} rows stand behind {active} active places", lines.len()));
    lines.join("\n")
}
