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
    mend(&transaction, &job, plan).await?;
    if !plan.writes.is_empty() {
        copy(&transaction, &plan.writes).await?;
        swap(&transaction, &job, plan).await?;
        write(&transaction, &job, plan).await?;
    }
    settle(&transaction, &job, plan).await?;
    note(&transaction, job.fence, plan).await?;
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

/// Puts right what no run has written; everything after it may rely on that.
async fn mend(transaction: &Transaction<'_>, job: &Job<'_>, plan: &Plan) -> Result<(), Error> {
    if plan.mends.is_empty() {
        return Ok(());
    }
    let sql = "UPDATE places SET duplicate_of = place, deleted_at = CASE WHEN revived THEN NULL ELSE deleted_at END
        FROM unnest($2::int8[], $3::int8[], $4::bool[]) AS mends (id, place, revived) WHERE places.id = mends.id AND source = $1";
    let ids: Vec<i64> = plan.mends.iter().map(|mend| mend.id).collect();
    let places: Vec<Option<i64>> = plan.mends.iter().map(|mend| mend.place).collect();
    let revived: Vec<bool> = plan.mends.iter().map(|mend| mend.revived).collect();
    let mended = transaction.execute(sql, &[&job.source.as_str(), &ids, &places, &revived]).await;
    expect("rows put right", plan.mends.len(), mended.doing("putting rows right")?)
}

const STAGING: &str = "CREATE TEMP TABLE pg_temp.incoming (
    place_id bigint, was_deleted boolean NOT NULL, key text NOT NULL, key_before text, face text, name text NOT NULL, category text,
    address text, province text, district text, latitude double precision, longitude double precision, attributes text NOT NULL,
    digest bytea NOT NULL
) ON COMMIT DROP";

const STAGING_TYPES: [Type; 14] = [
    Type::INT8,
    Type::BOOL,
    Type::TEXT,
    Type::TEXT,
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
    for Write { key, key_before, face, record, change } in writes {
        let (place_id, was_deleted) = match change {
            Change::Insert => (None, false),
            Change::Update(id) => (Some(id), false),
            Change::Reactivate(id) => (Some(id), true),
        };
        let latitude = record.position.map(|position| position.latitude);
        let longitude = record.position.map(|position| position.longitude);
        let digest = record.digest.as_slice();
        let row: [&(dyn ToSql + Sync); 14] = [
            &place_id,
            &was_deleted,
            key,
            key_before,
            face,
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

/// Merges the staging table into the places, faces before those that point to them. A key that another place took over is already on
/// its way; see [`swap`].
async fn write(transaction: &Transaction<'_>, job: &Job<'_>, plan: &Plan) -> Result<(), Error> {
    let (mut updated, mut inserted) = (0, 0);
    for (face, of_face) in [("NULL::bigint", "i.face IS NULL"), ("f.id", "f.source = $1 AND f.key = i.face")] {
        let faces = if face == "f.id" { ", places f" } else { "" };
        let update = format!(
            "UPDATE places SET key = i.key, name = i.name, category = i.category, address = i.address, province = i.province,
                district = i.district, latitude = i.latitude, longitude = i.longitude, attributes = i.attributes::jsonb,
                digest = i.digest, duplicate_of = {face}, changed_at = now(), deleted_at = NULL
            FROM pg_temp.incoming i{faces}
            WHERE places.id = i.place_id AND places.source = $1 AND places.key = coalesce(i.key_before, i.key)
                AND (places.deleted_at IS NOT NULL) = i.was_deleted AND {of_face}"
        );
        updated += transaction.execute(&update, &[&job.source.as_str()]).await.doing("updating places")?;
        let insert = format!(
            "INSERT INTO places (source, key, name, category, address, province, district, latitude, longitude, attributes, digest, duplicate_of)
            SELECT $1, i.key, i.name, i.category, i.address, i.province, i.district, i.latitude, i.longitude, i.attributes::jsonb, i.digest, {face}
            FROM pg_temp.incoming i{faces} WHERE i.place_id IS NULL AND {of_face} ORDER BY i.key"
        );
        inserted += transaction.execute(&insert, &[&job.source.as_str()]).await.doing("inserting places")?;
    }
    expect("places inserted", plan.inserts(), inserted)?;
    expect("places updated or reactivated", plan.updates() + plan.reactivations(), updated)
}

/// Gives the row that a place takes over the place's old key and content, as a member that is gone. Until the place itself is written,
/// both have the same key.
async fn swap(transaction: &Transaction<'_>, job: &Job<'_>, plan: &Plan) -> Result<(), Error> {
    if plan.swaps.is_empty() {
        return Ok(());
    }
    transaction.batch_execute("SET CONSTRAINTS places_source_key_key DEFERRED").await.doing("deferring the keys")?;
    let sql = "UPDATE places SET key = p.key, name = p.name, category = p.category, address = p.address, province = p.province,
            district = p.district, latitude = p.latitude, longitude = p.longitude, attributes = p.attributes, digest = p.digest,
            duplicate_of = p.id, changed_at = now(), deleted_at = coalesce(places.deleted_at, p.deleted_at, now())
        FROM unnest($2::int8[], $3::int8[]) AS swaps (place, displaced) JOIN places p ON p.id = place
        WHERE places.id = displaced AND places.source = $1 AND p.source = $1";
    let (places, displaced): (Vec<i64>, Vec<i64>) = plan.swaps.iter().copied().unzip();
    let swapped = transaction.execute(sql, &[&job.source.as_str(), &places, &displaced]).await;
    expect("rows exchanged", plan.swaps.len(), swapped.doing("exchanging rows")?)
}

/// What changes without a row of the snapshot: soft deletes, and what points elsewhere. Rows and ids stay.
async fn settle(transaction: &Transaction<'_>, job: &Job<'_>, plan: &Plan) -> Result<(), Error> {
    let source = job.source.as_str();
    let gone: Vec<i64> = plan.deactivate.iter().chain(&plan.delist).copied().collect();
    if !gone.is_empty() {
        let sql = "UPDATE places SET deleted_at = now() WHERE source = $1 AND id = ANY($2) AND deleted_at IS NULL";
        let retired = transaction.execute(sql, &[&source, &gone]).await.doing("deactivating places")?;
        expect("places deactivated", gone.len(), retired)?;
    }
    if !plan.forwards.is_empty() {
        let sql = "UPDATE places SET duplicate_of = place FROM unnest($2::int8[], $3::int8[]) AS forwards (id, place)
            WHERE places.id = forwards.id AND source = $1";
        let (ids, places): (Vec<i64>, Vec<i64>) = plan.forwards.iter().copied().unzip();
        let forwarded = transaction.execute(sql, &[&source, &ids, &places]).await.doing("forwarding places")?;
        expect("rows forwarded", plan.forwards.len(), forwarded)?;
    }
    Ok(())
}

/// Says in the ledger what was done to each place that was there before.
async fn note(transaction: &Transaction<'_>, fence: Fence, plan: &Plan) -> Result<(), Error> {
    if plan.changes.is_empty() {
        return Ok(());
    }
    let sql = "INSERT INTO ingest_changes (run, place, change, key_before, merged_into)
        SELECT $1, * FROM unnest($2::int8[], $3::text[], $4::text[], $5::int8[])";
    let places: Vec<i64> = plan.changes.iter().map(|noted| noted.place).collect();
    let words: Vec<&str> = plan.changes.iter().map(|noted| noted.what.as_str()).collect();
    let keys: Vec<Option<&str>> = plan.changes.iter().map(|noted| noted.key_before.as_deref()).collect();
    let into: Vec<Option<i64>> = plan.changes.iter().map(|noted| noted.into).collect();
    let parameters: [&(dyn ToSql + Sync); 5] = [&fence.run(), &places, &words, &keys, &into];
    let noted = transaction.execute(sql, &parameters).await.doing("recording the changes")?;
    expect("changes recorded", plan.changes.len(), noted)
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
    let sql = "SELECT count(*) FILTER (WHERE duplicate_of IS NULL AND deleted_at IS NULL), count(*) FILTER (WHERE duplicate_of IS NOT NULL AND deleted_at IS NULL)
        FROM places WHERE source = $1";
    let row = transaction.query_one(sql, &[&source.as_str()]).await.doing("counting places")?;
    counts.active = row.get::<_, i64>(0) as u64;
    counts.duplicates = row.get::<_, i64>(1) as u64;
    expect("active places", plan.active_after, counts.active)?;
    expect("duplicates", plan.duplicates_after, counts.duplicates)
}

fn expect(what: &'static str, planned: usize, found: u64) -> Result<(), Error> {
    let planned = planned as u64;
    if planned == found { Ok(()) } else { Err(Error::Mismatch { what, planned, found }) }
}
