//! A plan that is shown instead of carried out: its numbers, and samples of each kind of change.
//!
//! Architecture invariant: a pure rendering. The numbers are those of the report, and the run that carries the plan out shows the same.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use geuneul::{DryRun, SourceName, Withheld};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::plan::{Change, KeyChurn, Noted, Plan, What, Write};
use crate::report::Counts;

/// How many of each kind are shown.
const SAMPLES: usize = 5;

/// What is stored of a place: its key and its attributes.
pub type Stored = BTreeMap<i64, (String, Value)>;

/// What is shown.
#[derive(Debug, Serialize)]
pub struct Preview {
    geuneul: &'static str,
    source: SourceName,
    counts: BTreeMap<&'static str, u64>,
    complete: bool,
    withheld: Option<Withheld>,
    refused: Option<String>,
    samples: BTreeMap<&'static str, Vec<Sample>>,
}

/// One change.
#[derive(Debug, Default, Serialize)]
struct Sample {
    #[serde(skip_serializing_if = "Option::is_none")]
    place: Option<i64>,
    key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_before: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    merged_into: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duplicate_of: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rejected: Option<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    fields: BTreeMap<String, (Value, Value)>,
}

/// The places of which what is stored is needed.
pub fn sampled(plan: &Plan) -> Vec<i64> {
    let of = |what| plan.changes.iter().filter(move |noted| noted.what == what).take(SAMPLES).map(|noted| noted.place);
    What::ALL.into_iter().flat_map(of).collect()
}

impl Preview {
    /// Of a plan. `stored` has the places that [`sampled`] names.
    pub fn of(source: SourceName, plan: &Plan, counts: &Counts, stored: &Stored) -> Preview {
        let written: BTreeMap<i64, &Write> = plan
            .writes
            .iter()
            .filter_map(|write| match write.change {
                Change::Insert => None,
                Change::Update(id) | Change::Reactivate(id) => Some((id, write)),
            })
            .collect();
        let mut samples = BTreeMap::new();
        let inserts = plan.writes.iter().filter(|write| write.change == Change::Insert);
        samples.insert("inserted", inserts.take(SAMPLES).map(inserted).collect());
        for what in What::ALL {
            let of_kind = plan.changes.iter().filter(|noted| noted.what == what).take(SAMPLES);
            samples.insert(what.as_str(), of_kind.map(|noted| changed(noted, &written, stored)).collect());
        }
        let rejects = plan.rejects.iter().take(SAMPLES).map(|aside| {
            let rejected = format!("row {}: {} {}", aside.row, aside.reject.column, aside.reject.reason);
            Sample { key: aside.key.clone(), rejected: Some(rejected), ..Sample::default() }
        });
        samples.insert("rejected", rejects.collect());
        samples.retain(|_, samples: &mut Vec<Sample>| !samples.is_empty());
        Preview {
            geuneul: "run-plan/1",
            source,
            counts: counts.numbers().into(),
            complete: counts.complete,
            withheld: plan.withheld.clone(),
            refused: plan.churn.map(|KeyChurn { born, gone, merged, active }| {
                format!("key churn: {born} places would be new, {gone} gone and {merged} a part of another, of {active} that are active")
            }),
            samples,
        }
    }

    /// The text to print.
    pub fn render(&self, form: DryRun) -> String {
        match form {
            DryRun::Json => serde_json::to_string(self).expect("a preview has only strings, numbers and JSON"),
            DryRun::Text => self.text(),
        }
    }

    fn text(&self) -> String {
        let proven = if self.complete { "proven complete" } else { "not proven complete" };
        let number = |name: &str| self.counts.get(name).copied().unwrap_or_default();
        let mut text =
            format!("{}: {} rows published, {proven}; nothing is written\n\n", self.source, number("fetched"));
        for (sign, name) in [
            ('+', "inserted"),
            ('~', "updated"),
            ('^', "reactivated"),
            ('>', "carried_over"),
            ('&', "merged"),
            ('-', "deactivated"),
            ('!', "rejected"),
        ] {
            let included = if name == "updated" { " (carried over and merged ones included)" } else { "" };
            let _ = writeln!(text, "  {sign} {:>5} {}{included}", number(name), name.replace('_', " "));
            for sample in self.samples.get(name).into_iter().flatten() {
                let _ = writeln!(text, "            {sample}");
            }
        }
        for name in ["separated", "delisted"] {
            for sample in self.samples.get(name).into_iter().flatten() {
                let _ = writeln!(text, "            {name}: {sample}");
            }
        }
        let _ = writeln!(text, "  = {:>5} unchanged", number("unchanged"));
        let _ = write!(text, "\n{} active places afterwards, {} duplicates", number("active"), number("duplicates"));
        if let Some(Withheld { deactivations, reason }) = &self.withheld {
            let reason = serde_json::to_value(reason).unwrap_or_default();
            let _ = write!(text, "\nwithheld: {deactivations} deactivations, {}", reason.as_str().unwrap_or_default());
        }
        if let Some(refused) = &self.refused {
            let _ = write!(text, "\nwould be refused: {refused}");
        }
        text
    }
}

fn inserted(write: &Write) -> Sample {
    Sample { key: Some(write.key.clone()), duplicate_of: write.face.clone(), ..Sample::default() }
}

fn changed(noted: &Noted, written: &BTreeMap<i64, &Write>, stored: &Stored) -> Sample {
    let write = written.get(&noted.place);
    let before = stored.get(&noted.place);
    let fields = write.zip(before).map(|(write, (_, before))| differences(before, &write.record.attributes));
    Sample {
        place: Some(noted.place),
        key: write.map(|write| write.key.clone()).or_else(|| before.map(|(key, _)| key.clone())),
        key_before: noted.key_before.clone(),
        merged_into: noted.into,
        duplicate_of: write.and_then(|write| write.face.clone()),
        rejected: None,
        fields: fields.unwrap_or_default(),
    }
}

/// The fields that differ, each with its old and its new value.
fn differences(before: &Value, after: &str) -> BTreeMap<String, (Value, Value)> {
    let after: Map<String, Value> = serde_json::from_str(after).unwrap_or_default();
    let differing = after.into_iter().filter_map(|(name, new)| {
        let old = before.get(&name).cloned().unwrap_or_default();
        let same = old == new || old.as_f64().zip(new.as_f64()).is_some_and(|(old, new)| old == new);
        (!same).then_some((name, (old, new)))
    });
    differing.collect()
}

impl std::fmt::Display for Sample {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(place) = self.place {
            write!(f, "{place} ")?;
        }
        match (&self.key_before, &self.key) {
            (Some(before), Some(key)) => write!(f, "{before} -> {key}")?,
            (None, Some(key)) => f.write_str(key)?,
            _ => f.write_str("(no key)")?,
        }
        if let Some(into) = self.merged_into {
            write!(f, " into {into}")?;
        }
        if let Some(face) = &self.duplicate_of {
            write!(f, ", behind {face}")?;
        }
        if let Some(rejected) = &self.rejected {
            write!(f, ", {rejected}")?;
        }
        for (at, (name, (old, new))) in self.fields.iter().enumerate() {
            let colon = if at == 0 { ": " } else { ", " };
            write!(f, "{colon}{name} {old} -> {new}")?;
        }
        Ok(())
    }
}
