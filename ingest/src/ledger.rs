//! The ledger: one row a run in `ingest_runs`, skipped runs included.
//!
//! A run's row id is its fencing token. Only the holder of the lock can be running, so whoever takes the lock knows that every older
//! row still `running` is of a run that died.

use geuneul::{Outcome, RunId, Skip, SourceName, Trigger, Withheld};
use tokio_postgres::types::ToSql;
use tokio_postgres::{GenericClient, Transaction};

use crate::error::{Doing, Error};
use crate::lock::{LockKey, Locked};
use crate::report::Counts;
use crate::session::{Session, despite_cancel};

/// What the ledger knows of a run from its start.
pub struct Entry<'a> {
    /// What people see.
    pub run_id: &'a RunId,
    /// The data set.
    pub source: SourceName,
    /// Who started it.
    pub trigger: Trigger,
    /// The schedule's fire time.
    pub occurrence: Option<&'a str>,
    /// The run that it repeats.
    pub retry_of: Option<&'a RunId>,
    /// The flag.
    pub deactivate_stale: bool,
    /// The lock that it asks for.
    pub lock_key: LockKey,
    /// It writes nothing else, and takes the right to write from nobody.
    pub dry_run: bool,
    /// Deactivations that a person allows for.
    pub ceiling: Option<u64>,
}

/// The right to write places, until a later run takes it.
#[derive(Debug, Clone, Copy)]
pub struct Fence(i64);

impl Fence {
    /// The run's row.
    pub fn run(self) -> i64 {
        self.0
    }
}

const INSERT: &str =
    "INSERT INTO ingest_runs (run_id, source, trigger, occurrence, retry_of, deactivate_stale, program, status,
        lock_key, finished_at, duration_ms,
        holder_pid, holder_application, holder_run_id, skip_reason, consecutive_skips, last_success_age_s, dry_run)
    VALUES ($1::text::uuid, $2, $3, $4, $5::text::uuid, $6, $7, $8,
        $9, CASE WHEN $8 = 'running' THEN NULL ELSE clock_timestamp() END, CASE WHEN $8 = 'running' THEN NULL ELSE 0 END,
        $10, $11, $12::text::uuid, $13, $14, $15, $16)
    RETURNING id";

async fn insert(
    client: &impl GenericClient,
    entry: &Entry<'_>,
    status: &str,
    skip: Option<&Skip>,
) -> Result<i64, tokio_postgres::Error> {
    let program = concat!("ingest ", env!("CARGO_PKG_VERSION"));
    let retry_of = entry.retry_of.map(RunId::as_str);
    let holder_run = skip.and_then(|skip| skip.holder_run_id.as_ref()).map(RunId::as_str);
    let (pid, application) =
        (skip.and_then(|skip| skip.holder_pid), skip.and_then(|skip| skip.holder_application.as_deref()));
    let (run_id, source, trigger) = (entry.run_id.as_str(), entry.source.as_str(), entry.trigger.as_str());
    let reason = skip.map(|skip| skip.reason.as_str());
    let skips = skip.map(|skip| skip.consecutive_skips as i64);
    let last_success = skip.and_then(|skip| skip.last_success_age_s).map(|seconds| seconds as i64);
    let lock_key = entry.lock_key.get();
    let parameters: [&(dyn ToSql + Sync); 16] = [
        &run_id,
        &source,
        &trigger,
        &entry.occurrence,
        &retry_of,
        &entry.deactivate_stale,
        &program,
        &status,
        &lock_key,
        &pid,
        &application,
        &holder_run,
        &reason,
        &skips,
        &last_success,
        &entry.dry_run,
    ];
    Ok(client.query_one(INSERT, &parameters).await?.get(0))
}

/// Opens the run's row, moves the fence to it, and marks what older runs left behind. The fence only rises, unless it names a run that the
/// ledger has never seen: then somebody emptied the ledger and its numbers begin again, and whoever holds the lock begins with them.
pub async fn begin(locked: &mut Locked, entry: &Entry<'_>) -> Result<Fence, Error> {
    let source = entry.source.as_str();
    let transaction = locked.client_mut().transaction().await.doing("beginning the ledger entry")?;
    let run = insert(&transaction, entry, "running", None).await.doing("writing the ledger entry")?;
    if let Some(ceiling) = entry.ceiling {
        let ceiling = i64::try_from(ceiling).unwrap_or(i64::MAX);
        let sql = "UPDATE ingest_runs SET ceiling = $2 WHERE id = $1";
        transaction.execute(sql, &[&run, &ceiling]).await.doing("writing the ledger entry")?;
    }
    if entry.dry_run {
        transaction.commit().await.doing("committing the ledger entry")?;
        return Ok(Fence(run));
    }
    let sql = "INSERT INTO ingest_sources (source, fence) VALUES ($1, $2)
        ON CONFLICT (source) DO UPDATE SET fence = EXCLUDED.fence WHERE ingest_sources.fence < EXCLUDED.fence
            OR NOT EXISTS (SELECT FROM ingest_runs WHERE id = ingest_sources.fence)";
    if transaction.execute(sql, &[&source, &run]).await.doing("moving the fence")? != 1 {
        return Err(Error::Fenced);
    }
    let sql = "UPDATE ingest_runs SET status = 'abandoned', finished_at = clock_timestamp()
        WHERE source = $1 AND status = 'running' AND id <> $2 RETURNING run_id::text";
    for row in transaction.query(sql, &[&source, &run]).await.doing("marking abandoned runs")? {
        tracing::warn!(abandoned = row.get::<_, &str>(0), "an older run of this source died without a word");
    }
    transaction.commit().await.doing("committing the ledger entry")?;
    Ok(Fence(run))
}

/// Says that the run goes on; this also renews the lease and finds out whether the session is still there.
pub async fn progress(locked: &Locked, fence: Fence, pages: i64) -> Result<(), Error> {
    let sql =
        "UPDATE ingest_runs SET heartbeat_at = clock_timestamp(), pages = $2 WHERE id = $1 AND status = 'running'";
    match locked.client().execute(sql, &[&fence.0, &pages]).await.doing("recording progress")? {
        1 => Ok(()),
        _ => Err(Error::Fenced),
    }
}

/// Holds the fence until the transaction ends, or fails because it has moved on.
pub async fn hold_fence(transaction: &Transaction<'_>, source: SourceName, fence: Fence) -> Result<(), Error> {
    let sql = "SELECT 1 FROM ingest_sources WHERE source = $1 AND fence = $2 FOR UPDATE";
    match transaction.query_opt(sql, &[&source.as_str(), &fence.0]).await.doing("checking the fence")? {
        Some(_) => Ok(()),
        None => Err(Error::Fenced),
    }
}

const FINISH: &str =
    "UPDATE ingest_runs SET status = $2, finished_at = clock_timestamp(), heartbeat_at = clock_timestamp(),
        duration_ms = (extract(epoch FROM clock_timestamp() - started_at) * 1000)::int8";

/// Closes the run's row as part of the transaction that writes the places.
pub async fn succeed(
    transaction: &Transaction<'_>,
    fence: Fence,
    outcome: Outcome,
    counts: &Counts,
    withheld: Option<&Withheld>,
) -> Result<(), Error> {
    // The ledger's columns are called as the report's fields are.
    let (names, numbers): (Vec<&str>, Vec<i64>) =
        counts.numbers().into_iter().map(|(name, number)| (name, number as i64)).unzip();
    let columns: String = (1..).zip(names).map(|(at, name)| format!(", {name} = n[{at}]")).collect();
    let reason = withheld.map(|withheld| report_word(&withheld.reason));
    let number = withheld.map(|withheld| withheld.deactivations as i64);
    let sql = format!(
        "{FINISH}{columns}, complete = $4, snapshot_sha256 = $5, withheld = $6, withheld_reason = $7, committed_xid = pg_current_xact_id()
         FROM (SELECT $3::int8[] AS n) AS numbers WHERE id = $1 AND status = 'running'"
    );
    let status = outcome.as_str();
    let done = transaction
        .execute(&sql, &[&fence.0, &status, &numbers, &counts.complete, &counts.snapshot_sha256, &number, &reason])
        .await;
    match done.doing("closing the ledger entry")? {
        1 => Ok(()),
        _ => Err(Error::Fenced),
    }
}

/// The word that a report uses for the value.
fn report_word(value: &impl serde::Serialize) -> String {
    serde_json::to_value(value).ok().and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
}

/// Closes the row of a run that failed.
pub async fn fail(locked: &Locked, fence: Fence, error: &Error) -> Result<(), Error> {
    let sql = format!("{FINISH}, error_code = $3 WHERE id = $1 AND status = 'running'");
    let (status, code) = (error.outcome().as_str(), error.code());
    let parameters: [&(dyn ToSql + Sync); 3] = [&fence.0, &status, &code];
    let closed = despite_cancel(async || locked.client().execute(&sql, &parameters).await).await;
    closed.doing("closing the ledger entry")?;
    Ok(())
}

/// Writes the row of a run that did nothing.
pub async fn skip(session: &Session, entry: &Entry<'_>, outcome: Outcome, skip: &Skip) -> Result<(), Error> {
    insert(session.client(), entry, outcome.as_str(), Some(skip)).await.doing("recording the skip")?;
    Ok(())
}

/// What became of a transaction whose COMMIT got no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// The run's row, which was part of it, says that it was committed.
    Committed,
    /// The row does not say so, and the session that could still commit it is gone.
    RolledBack,
    /// That session is still at it.
    Undecided,
}

/// Looks at the run's row, and at its old session. The session is looked at first: a commit between the two looks is then seen.
pub async fn fate(session: &Session, run: &RunId, backend_pid: i32, application: &str) -> Result<Fate, Error> {
    let sql = "SELECT count(*) FROM pg_stat_activity WHERE pid = $1 AND application_name = $2";
    let old =
        session.client().query_one(sql, &[&backend_pid, &application]).await.doing("looking for our old session")?;
    let sql = "SELECT committed_xid IS NOT NULL FROM ingest_runs WHERE run_id = $1::text::uuid";
    let row = session.client().query_one(sql, &[&run.as_str()]).await.doing("looking at our own run")?;
    Ok(match (row.get(0), old.get::<_, i64>(0)) {
        (true, _) => Fate::Committed,
        (false, 0) => Fate::RolledBack,
        (false, _) => Fate::Undecided,
    })
}
