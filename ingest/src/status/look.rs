//! What the ledger and the lock show.

use geuneul::SourceName;
use tokio_postgres::Row;

use super::{LockHolder, Question, Run, Seen, Status};
use crate::config::Schema;
use crate::error::{Doing, Error};
use crate::lock::{Holder, LockKey};
use crate::migrate;
use crate::session::Session;
use crate::skip;

/// How many runs are shown.
const SHOWN: i64 = 5;

/// Looks at every source that is asked for.
pub async fn look(session: &Session, schema: &Schema, question: &Question) -> Result<Status, Error> {
    // A database that no run has ever used shows what it is: nothing has succeeded.
    let used = migrate::is_there(session, schema).await?;
    let mut seen = Vec::new();
    for source in SourceName::ALL.iter().copied().filter(|&known| question.source.is_none_or(|asked| asked == known)) {
        seen.push((source, if used { steadily(session, schema, source).await? } else { Seen::default() }));
    }
    Ok(Status::of(seen, question.max_age))
}

/// Ledger and lock are read one after the other: a run that began or ended in between would look dead, so it is looked at again.
async fn steadily(session: &Session, schema: &Schema, source: SourceName) -> Result<Seen, Error> {
    let seen = one(session, schema, source).await?;
    match &seen.worked {
        Some(run) if run.status == "running" && !seen.is_held_by(run) => one(session, schema, source).await,
        _ => Ok(seen),
    }
}

const RUNS: &str = "SELECT run_id::text, trigger, occurrence, CASE WHEN dry_run AND status <> 'dry_run' THEN status || ' (dry run)' ELSE status END,
        coalesce(to_char(started_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"'), started_at::text), duration_ms, fetched,
        inserted + updated + reactivated, deactivated, withheld, skip_reason, error_code, lock_key, withheld_reason
    FROM ingest_runs WHERE source = $1";

async fn one(session: &Session, schema: &Schema, source: SourceName) -> Result<Seen, Error> {
    let (client, name) = (session.client(), source.as_str());
    let doing = "looking at the ledger";
    let sql = format!("{RUNS} ORDER BY id DESC LIMIT $2");
    let runs = client.query(&sql, &[&name, &SHOWN]).await.doing(doing)?;
    // The newest run knows which lock is used: during a cut-over it is not the source's own.
    let own = LockKey::within(schema, source);
    let key = runs.first().and_then(|run| run.get::<_, Option<i64>>(12)).map_or(own, LockKey::given);
    // A run that only shows its plan says nothing about the job.
    let sql = format!("{RUNS} AND skip_reason IS NULL AND NOT dry_run ORDER BY id DESC LIMIT 1");
    let worked = client.query_opt(&sql, &[&name]).await.doing(doing)?;
    // What was withheld is settled by a run that was asked to deactivate; what was not proven, by any run that was.
    let sql = format!(
        "{RUNS} AND status = 'withheld' AND id IN (SELECT unnest(ARRAY[max(id), max(id) FILTER (WHERE deactivate_stale)]) FROM ingest_runs
            WHERE source = $1 AND NOT dry_run AND status IN ('succeeded', 'withheld')) ORDER BY id DESC LIMIT 1"
    );
    let withheld = client.query_opt(&sql, &[&name]).await.doing(doing)?;
    let memory = skip::remember(session, source, false).await?;
    let holder = match Holder::look(session, key).await? {
        Some(holder) => Some(identify(session, source, holder).await?),
        None => None,
    };
    Ok(Seen {
        last_success_age_s: memory.last_success_age_s,
        consecutive_skips: memory.skips,
        busy: memory.busy,
        withheld: withheld.as_ref().and_then(|row| row.get::<_, Option<i64>>(9)).unwrap_or(0) as u64,
        unsettled: withheld.as_ref().map(run),
        holder,
        runs: runs.iter().map(run).collect(),
        worked: worked.as_ref().map(run),
    })
}

async fn identify(session: &Session, source: SourceName, holder: Holder) -> Result<LockHolder, Error> {
    let known = skip::identify(session, source, Some(&holder)).await?;
    Ok(LockHolder {
        pid: holder.pid,
        application: holder.application,
        live: known.live(),
        heartbeat_age_s: known.heartbeat_age_s(),
        run_id: known.run,
        age_s: holder.age_s,
    })
}

fn run(row: &Row) -> Run {
    Run {
        run_id: row.get::<_, &str>(0).parse().expect("PostgreSQL writes UUIDs in their canonical form"),
        trigger: row.get(1),
        occurrence: row.get(2),
        status: row.get(3),
        started_at: row.get(4),
        duration_ms: row.get(5),
        fetched: row.get(6),
        upserted: row.get(7),
        deactivated: row.get(8),
        withheld: row.get(9),
        skip_reason: row.get(10),
        error_code: row.get(11),
        withheld_reason: row.get(13),
    }
}
