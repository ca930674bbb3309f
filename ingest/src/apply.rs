//! Carries a plan out: one transaction on the session that holds the lock.
//!
//! Only changed rows travel; an unchanged world writes no place row. Every count that the database answers with must be the plan's.

use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};

use geuneul::{Outcome, SourceName};
use tokio_postgres::Transaction;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::{ToSql, Type};

use crate::error::{Doing, Error};
use crate::ledger::{self, Fence};
use crate::lock::Locked;
use crate::plan::{Change, Plan, Write};
use crate::report::Counts;

/// Set once COMMIT is on its way: from then on a signal no longer decides how the run ends.
#[derive(Default)]
pub struct Committing(AtomicBool);

impl Committing {
    /// COMMIT is on its way.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// What became of the transaction.
pub enum Committed {
    /// The server said so.
    Yes,
    /// The connection broke before the server could say.
    ReplyLost(tokio_postgres::Error),
}

/// What one application needs besides the plan.
pub struct Job<'a> {
    /// The data set.
    pub source: SourceName,
    /// The right to write.
    pub fence: Fence,
    /// How the run ends if this succeeds.
    pub outcome: Outcome,
    /// Set before COMMIT.
    pub committing: &'a Committing,
}

/// Does everything or nothing. `counts` are the plan's; what only the database knows is filled in.
pub async fn apply(locked: &mut Locked, job: Job<'_>, plan: &Plan, counts: &mut Counts) -> Result<Committed, Error> {
    locked.confirm().await?;
    let transaction = locked.client_mut().transaction().await.doing("beginning the transaction")?;
    ledger::hold_fence(&transaction, job.source, job.fence).await?;
    if !plan.writes.is_empty() {
        copy(&transaction, &plan.writes).await?;
        write(&transaction, &job, plan).await?;
    }
    deactivate(&transaction, &job, plan).await?;
    reject(&transaction, job.fence, plan).await?;
    count(&transaction, job.source, plan, counts).await?;
    ledger::succeed(&transaction, job.fence, job.outcome, counts, plan.withheld.as_ref()).await?;
    job.committing.0.store(true, Ordering::Relaxed);
    match transaction.commit().await {
        Ok(()) => Ok(Committed::Yes),
        Err(error) if error.code().is_none() => Ok(Committed::ReplyLost(error)),
        Err(error) => Err(error).doing("committing"),
    }
}

const STAGING: &str = "CREATE TEMP TABLE pg_temp.incoming (
    place_id bigint, was_deleted boolean NOT NULL, key text NOT NULL, name text NOT NULL, category text, address text, province text,
    district text, latitude double precision, longitude double precision, attributes text NOT NULL, digest bytea NOT NULL
) ON COMMIT DROP";

const STAGING_TYPES: [Type; 12] = [
    Type::INT8,
    Type::BOOL,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::FLOAT8,
    Type::FLOAT8,
    Type::TEXT,
    Type::BYTEA,
];

/// Streams the changed rows into a temporary table.
async fn copy(transaction: &Transaction<'_>, writes: &[Write]) -> Result<(), Error> {
    let doing = "copying the changed rows";
    transaction.batch_execute(STAGING).await.doing("creating the staging table")?;
    let sink = transaction.copy_in("COPY pg_temp.incoming FROM STDIN BINARY").await.doing(doing)?;
    let mut writer = pin!(BinaryCopyInWriter::new(sink, &STAGING_TYPES));
    for Write { key, record, change } in writes {
        let (place_id, was_deleted) = match change {
            Change::Insert => (None, false),
            Change::Update(id) => (Some(id), false),
            Change::Reactivate(id) => (Some(id), true),
        };
        let latitude = record.position.map(|position| position.latitude);
        let longitude = record.position.map(|position| position.longitude);
        let digest = record.digest.as_slice();
        let row: [&(dyn ToSql + Sync); 12] = [
            &place_id,
            &was_deleted,
            key,
            &record.handle.name,
            &record.category,
            &record.handle.address,
            &record.province,
            &record.district,
            &latitude,
            &longitude,
            &record.attributes,
            &digest,
        ];
        writer.as_mut().write(&row).await.doing(doing)?;
    }
    let copied = writer.finish().await.doing(doing)?;
    expect("rows copied", writes.len(), copied)
}

/// Inserts and updates from the staging table, in the order of keys. A plain INSERT: were somebody else writing, 23505 would say so.
async fn write(transaction: &Transaction<'_>, job: &Job<'_>, plan: &Plan) -> Result<(), Error> {
    let insert = "INSERT INTO places (source, key, name, category, address, province, district, latitude, longitude, attributes, digest)
        SELECT $1, key, name, category, address, province, district, latitude, longitude, attributes::jsonb, digest
        FROM pg_temp.incoming WHERE place_id IS NULL ORDER BY key";
    let inserted = transaction.execute(insert, &[&job.source.as_str()]).await.doing("inserting places")?;
    expect("places inserted", plan.inserts(), inserted)?;

    let update = "UPDATE places SET name = i.name, category = i.category, address = i.address, province = i.province,
            district = i.district, latitude = i.latitude, longitude = i.longitude, attributes = i.attributes::jsonb,
            digest = i.digest, changed_at = now(), deleted_at = NULL
        FROM pg_temp.incoming i
        WHERE places.id = i.place_id AND places.source = $1 AND places.key = i.key AND (places.deleted_at IS NOT NULL) = i.was_deleted";
    let updated = transaction.execute(update, &[&job.source.as_str()]).await.doing("updating places")?;
    expect("places updated or reactivated", plan.updates() + plan.reactivations(), updated)?;

    let record = "INSERT INTO ingest_changes (run, place, change)
        SELECT $1, place_id, CASE WHEN was_deleted THEN 'reactivated' ELSE 'updated' END
        FROM pg_temp.incoming WHERE place_id IS NOT NULL ORDER BY place_id";
    transaction.execute(record, &[&job.fence.run()]).await.doing("recording the changes")?;
    Ok(())
}

/// Soft-deletes; the row and its id stay.
async fn deactivate(transaction: &Transaction<'_>, job: &Job<'_>, plan: &Plan) -> Result<(), Error> {
    if plan.deactivate.is_empty() {
        return Ok(());
    }
    let sql = "WITH retired AS (
            UPDATE places SET deleted_at = now() WHERE source = $1 AND id = ANY($2) AND deleted_at IS NULL RETURNING id)
        INSERT INTO ingest_changes (run, place, change) SELECT $3, id, 'deactivated' FROM retired";
    let parameters: [&(dyn ToSql + Sync); 3] = [&job.source.as_str(), &plan.deactivate, &job.fence.run()];
    let retired = transaction.execute(sql, &parameters).await.doing("deactivating places")?;
    expect("places deactivated", plan.deactivate.len(), retired)
}

async fn reject(transaction: &Transaction<'_>, fence: Fence, plan: &Plan) -> Result<(), Error> {
    let sql = "INSERT INTO ingest_rejects (run, row_number, key, column_name, reason) VALUES ($1, $2, $3, $4, $5)";
    for aside in &plan.rejects {
        let (row, column, reason) = (aside.row as i64, aside.reject.column, aside.reject.reason.as_str());
        transaction
            .execute(sql, &[&fence.run(), &row, &aside.key, &column, &reason])
            .await
            .doing("recording rejects")?;
    }
    Ok(())
}

/// The table's own count of active places must be the plan's.
async fn count(
    transaction: &Transaction<'_>,
    source: SourceName,
    plan: &Plan,
    counts: &mut Counts,
) -> Result<(), Error> {
    let sql = "SELECT count(*) FILTER (WHERE duplicate_of IS NULL AND deleted_at IS NULL), count(*) FILTER (WHERE duplicate_of IS NOT NULL)
        FROM places WHERE source = $1";
    let row = transaction.query_one(sql, &[&source.as_str()]).await.doing("counting places")?;
    counts.active = row.get::<_, i64>(0) as u64;
    counts.duplicates = row.get::<_, i64>(1) as u64;
    expect("active places", plan.active_after, counts.active)
}

fn expect(what: &'static str, planned: usize, found: u64) -> Result<(), Error> {
    let planned = planned as u64;
    if planned == found { Ok(()) } else { Err(Error::Mismatch { what, planned, found }) }
}
