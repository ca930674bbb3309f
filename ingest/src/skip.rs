//! A run that does nothing, and the evidence that it leaves: who was in its way, how often in a row, and how old the last success is.

use geuneul::{Interval, Outcome, RunId, Skip, SkipReason, SourceName};

use crate::error::{Doing, Error};
use crate::ledger::{self, Entry};
use crate::lock::{Holder, Locked};
use crate::session::Session;

/// What the ledger remembers of earlier runs of the source.
pub struct Memory {
    /// Runs in a row, since one worked, that found the lock held.
    pub skips: u64,
    /// Those of them that found no live run of ours in their way, or the same as before.
    pub busy: u64,
    /// Who held it the last time.
    previous_holder: Option<RunId>,
    /// Seconds since a run succeeded.
    pub last_success_age_s: Option<u64>,
}

/// A run that only shows its plan is none here. A time that cannot be is no time: a clock, or a hand, was wrong. A run that was in the way
/// and then worked is the end of a row of skips, although it is older than they are.
const MEMORY: &str = "WITH runs AS (SELECT * FROM ingest_runs WHERE source = $1 AND NOT dry_run),
    past AS (SELECT *, coalesce(finished_at, started_at) AS at FROM runs WHERE isfinite(coalesce(finished_at, started_at))
        AND coalesce(finished_at, started_at) < clock_timestamp() + interval '5 minutes'),
    locked AS (SELECT * FROM past WHERE skip_reason = 'locked'
        AND at > coalesce((SELECT max(at) FROM past WHERE skip_reason IS NULL), '-infinity'))
    SELECT (SELECT count(*) FROM locked),
        (SELECT count(*) FROM locked WHERE status = 'busy'),
        (SELECT holder_run_id::text FROM runs WHERE skip_reason = 'locked' ORDER BY id DESC LIMIT 1),
        (SELECT floor(extract(epoch FROM clock_timestamp() - max(at)))::int8 FROM past
            WHERE status = 'succeeded' AND (deactivate_stale OR NOT $2))";

/// Asks the ledger. `deactivating`: only what deactivated, or would have, is a success.
pub async fn remember(session: &Session, source: SourceName, deactivating: bool) -> Result<Memory, Error> {
    let asked = session.client().query_one(MEMORY, &[&source.as_str(), &deactivating]).await;
    let row = asked.doing("looking at earlier runs")?;
    Ok(Memory {
        skips: row.get::<_, i64>(0) as u64,
        busy: row.get::<_, i64>(1) as u64,
        previous_holder: row.get::<_, Option<&str>>(2).and_then(|run| run.parse().ok()),
        last_success_age_s: row.get::<_, Option<i64>>(3).map(|seconds| seconds.max(0) as u64),
    })
}

/// The lock is held. Writes the row: `skipped` behind a live run of ours; `busy` behind anything else, behind a run that was already in
/// the way of the previous skip, and behind one that only shows its plan: it does not do the work.
pub async fn locked_out(
    session: &Session,
    entry: &Entry<'_>,
    holder: Option<Holder>,
) -> Result<(Outcome, Skip), Error> {
    let known = identify(session, entry.source, holder.as_ref()).await?;
    let memory = remember(session, entry.source, false).await?;
    let again = holder.is_some() && known.run.is_some() && known.run == memory.previous_holder;
    let outcome = if known.live() && !known.dry_run() && !again { Outcome::Skipped } else { Outcome::Busy };
    let Holder { pid, application, age_s } = holder.unwrap_or_default();
    let skip = Skip {
        reason: SkipReason::Locked,
        holder_pid: pid,
        holder_application: application,
        holder_heartbeat_age_s: known.heartbeat_age_s(),
        holder_run_id: known.run,
        holder_age_s: age_s,
        consecutive_skips: memory.skips + u64::from(!entry.dry_run),
        last_success_age_s: memory.last_success_age_s,
    };
    ledger::skip(session, entry, outcome, &skip).await?;
    Ok((outcome, skip))
}

/// Under the lock: when the last success that did as much as this run is to do is younger than `interval`, writes the row of a run that has nothing to do.
pub async fn done_recently(locked: &Locked, entry: &Entry<'_>, interval: Interval) -> Result<Option<Skip>, Error> {
    let memory = remember(locked.session(), entry.source, entry.deactivate_stale).await?;
    if memory.last_success_age_s.is_none_or(|age| age >= interval.seconds()) {
        return Ok(None);
    }
    let skip = Skip {
        reason: SkipReason::RecentSuccess,
        holder_pid: None,
        holder_application: None,
        holder_run_id: None,
        holder_age_s: None,
        holder_heartbeat_age_s: None,
        consecutive_skips: 0,
        last_success_age_s: memory.last_success_age_s,
    };
    ledger::skip(locked.session(), entry, Outcome::Skipped, &skip).await?;
    Ok(Some(skip))
}

/// The run that holds the lock, if it is one of ours.
pub struct Known {
    /// Its name.
    pub run: Option<RunId>,
    row: Option<Running>,
    young: bool,
}

/// Between connecting and the first row lies at most a migration, which waits for its lock for a minute.
const BEFORE_ITS_ROW_S: u64 = 120;

struct Running {
    heartbeat_age_s: u64,
    fresh: bool,
    dry_run: bool,
}

impl Known {
    /// It is ours and makes progress. A run that is about to write its first row has the name and no row yet, but not for long:
    /// after that, the name is a borrowed one, or of a run whose ledger is another.
    pub fn live(&self) -> bool {
        self.run.is_some() && self.row.as_ref().map_or(self.young, |row| row.fresh)
    }

    /// It only shows its plan.
    pub fn dry_run(&self) -> bool {
        self.row.as_ref().is_some_and(|row| row.dry_run)
    }

    /// Seconds since it made progress.
    pub fn heartbeat_age_s(&self) -> Option<u64> {
        self.row.as_ref().map(|row| row.heartbeat_age_s)
    }
}

/// Which run of ours the holder is.
pub async fn identify(session: &Session, source: SourceName, holder: Option<&Holder>) -> Result<Known, Error> {
    let run = match holder {
        Some(holder) => holder.run(source),
        // The lock was given back between the attempt and the look: by a run of ours if one ended just now.
        None => just_ended(session, source).await?,
    };
    let row = match &run {
        Some(run) => running(session, run).await?,
        None => None,
    };
    let young = holder.and_then(|holder| holder.age_s).is_none_or(|age| age < BEFORE_ITS_ROW_S);
    Ok(Known { run, row, young })
}

/// How long ago the run made progress. The server ends a session after one lease without any, so two are beyond doubt.
async fn running(session: &Session, run: &RunId) -> Result<Option<Running>, Error> {
    let sql = "SELECT floor(extract(epoch FROM clock_timestamp() - heartbeat_at))::int8, dry_run FROM ingest_runs
        WHERE run_id = $1::text::uuid AND isfinite(heartbeat_at)";
    let row = session.client().query_opt(sql, &[&run.as_str()]).await.doing("looking at the holder's run")?;
    Ok(row.map(|row| {
        let heartbeat_age_s = row.get::<_, i64>(0).max(0) as u64;
        Running { heartbeat_age_s, fresh: heartbeat_age_s < 2 * session.lease.seconds(), dry_run: row.get(1) }
    }))
}

async fn just_ended(session: &Session, source: SourceName) -> Result<Option<RunId>, Error> {
    let sql = "SELECT run_id::text FROM ingest_runs JOIN ingest_sources ON fence = id AND ingest_sources.source = ingest_runs.source
        WHERE ingest_runs.source = $1 AND finished_at > clock_timestamp() - interval '1 minute'";
    let row = session.client().query_opt(sql, &[&source.as_str()]).await.doing("looking for a run that just ended")?;
    Ok(row.and_then(|row| row.get::<_, &str>(0).parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_without_a_row_is_believed_for_a_while() {
        let run: RunId = "7b0b1f3e-1111-4222-8333-944445555666".parse().unwrap();
        let known = |young, fresh: Option<bool>| {
            let row = fresh.map(|fresh| Running { heartbeat_age_s: 0, fresh, dry_run: false });
            Known { run: Some(run.clone()), row, young }
        };
        assert!(known(true, None).live() && known(false, Some(true)).live());
        assert!(!known(false, None).live() && !known(true, Some(false)).live());
        assert!(!Known { run: None, ..known(true, None) }.live());
    }
}
