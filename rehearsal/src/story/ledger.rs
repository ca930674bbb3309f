//! What the database says about the runs, read past the programs.

use anyhow::{Context, Result};

use super::scene::Scene;

/// One row of the ledger.
#[derive(Debug)]
pub struct Run {
    pub trigger: String,
    pub outcome: String,
    pub reactivated: u64,
    pub active: u64,
    counts: Vec<(&'static str, u64)>,
}

const COUNTS: [&str; 7] = ["fetched", "inserted", "updated", "unchanged", "reactivated", "deactivated", "rejected"];

impl Run {
    /// The counts that are not zero.
    pub fn counts(&self) -> String {
        let shown = self.counts.iter().filter(|(_, count)| *count > 0);
        shown.map(|(name, count)| format!("{name}={count}")).collect::<Vec<_>>().join(" ")
    }
}

/// The newest run.
pub fn last(scene: &Scene) -> Result<Run> {
    let columns = format!(
        "concat_ws(' ', trigger, status, coalesce(active, 0), {})",
        COUNTS.map(|c| format!("coalesce({c}, 0)")).join(", ")
    );
    let rows = scene.database.texts(&format!("SELECT {columns} FROM ingest.ingest_runs ORDER BY id DESC LIMIT 1"));
    let row = rows.into_iter().next().flatten().context("the ledger is empty")?;
    let mut words = row.split(' ');
    let mut word = || words.next().context("a column is missing").map(str::to_owned);
    let (trigger, outcome) = (word()?, word()?);
    let active = word()?.parse()?;
    let counts = COUNTS.iter().map(|&name| Ok((name, word()?.parse()?))).collect::<Result<Vec<_>>>()?;
    let count = |wanted: &str| counts.iter().find(|(name, _)| *name == wanted).map_or(0, |(_, count)| *count);
    Ok(Run { reactivated: count("reactivated"), trigger, outcome, active, counts })
}

/// How many runs there are.
pub fn count(scene: &Scene) -> Result<i64> {
    Ok(scene.database.number("SELECT count(*) FROM ingest.ingest_runs"))
}

/// How many places are neither deleted nor duplicates.
pub fn active_places(scene: &Scene) -> Result<i64> {
    Ok(scene.database.number("SELECT count(*) FROM ingest.places WHERE deleted_at IS NULL AND duplicate_of IS NULL"))
}

/// Every row of every table, as text.
pub fn dump(scene: &Scene) -> Result<String> {
    let tables = scene
        .database
        .texts("SELECT format('%I.%I', schemaname, tablename) FROM pg_tables WHERE schemaname = 'ingest'");
    let mut dump = String::new();
    for table in tables.into_iter().flatten() {
        let rows = scene.database.texts(&format!("SELECT t::text FROM {table} t"));
        rows.into_iter().flatten().for_each(|row| dump.push_str(&row));
    }
    Ok(dump)
}
