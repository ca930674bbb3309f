//! The advisory lock: one a source, held by the session that writes.

use std::time::Duration;

use geuneul::{RunId, SourceName};
use sha2::{Digest, Sha256};
use tokio::time::timeout;

use crate::config::Schema;
use crate::error::{Doing, Error, chain};
use crate::session::{Session, SessionError, despite_cancel};

/// The key of an advisory lock: the first eight bytes, big-endian, of SHA-256 of `ingest:v1:` + name, where the name is the source's, or
/// `schema/source` in another schema than the default one: two mirrors in one database do not exclude each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LockKey(i64);

impl LockKey {
    /// The key of a source in the default schema. Sources do not exclude each other.
    pub fn of(source: SourceName) -> Self {
        LockKey::named(source.as_str())
    }

    /// The key of a source in any schema.
    pub fn within(schema: &Schema, source: SourceName) -> Self {
        if schema.is_default() { LockKey::of(source) } else { LockKey::named(&format!("{}/{source}", schema.as_str())) }
    }

    /// The key of another program that does the same work, so that the two exclude each other.
    pub fn given(key: i64) -> Self {
        LockKey(key)
    }

    /// The key under which migrations are applied.
    pub fn migrations() -> Self {
        LockKey::named("migrate")
    }

    fn named(name: &str) -> Self {
        let hash = Sha256::digest(format!("ingest:v1:{name}"));
        let (first, _) = hash.split_first_chunk::<8>().expect("SHA-256 has 32 bytes");
        LockKey(i64::from_be_bytes(*first))
    }

    /// The number, as PostgreSQL takes it.
    pub fn get(self) -> i64 {
        self.0
    }
}

/// `pg_locks` shows an int8 key in two halves, with `objsubid` 1.
const IS_THE_LOCK: &str = "locktype = 'advisory' AND objsubid = 1 AND granted
    AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND ((classid::int8 << 32) | objid::int8) = $1";

/// How long the answer to the unlock may take: whoever sent a signal waits for it.
const UNLOCK: Duration = Duration::from_millis(1500);

/// A session that holds the lock of a source. Not `Clone`; whoever has it may write.
pub struct Locked {
    session: Session,
    key: LockKey,
}

/// What came of the one attempt.
pub enum Attempt {
    /// The lock is ours.
    Locked(Locked),
    /// It is somebody else's; the session is as it was.
    Busy(Session),
}

impl Locked {
    /// Tries once, outside of any transaction, and confirms in `pg_locks`. Never waits: a cancelled wait may have been granted.
    ///
    /// On an error, and when the future is dropped, the session is gone with whatever it may hold.
    pub async fn attempt(session: Session, key: LockKey) -> Result<Attempt, Error> {
        let sql = "SELECT pg_try_advisory_lock($1)";
        let row = session.client().query_one(sql, &[&key.get()]).await.doing("taking the lock")?;
        if !row.get::<_, bool>(0) {
            return Ok(Attempt::Busy(session));
        }
        let locked = Locked { session, key };
        locked.confirm().await?;
        tracing::info!(lock_key = key.get(), "holding the lock");
        Ok(Attempt::Locked(locked))
    }

    /// Fails unless this session holds the lock.
    pub async fn confirm(&self) -> Result<(), Error> {
        let sql = format!("SELECT count(*) FROM pg_locks WHERE {IS_THE_LOCK} AND pid = pg_backend_pid()");
        let row = self.client().query_one(&sql, &[&self.key.get()]).await.doing("confirming the lock")?;
        if row.get::<_, i64>(0) == 1 { Ok(()) } else { Err(SessionError::NotHeld.into()) }
    }

    /// The connection.
    pub fn client(&self) -> &tokio_postgres::Client {
        self.session.client()
    }

    /// The connection, for a transaction.
    pub fn client_mut(&mut self) -> &mut tokio_postgres::Client {
        self.session.client_mut()
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// Gives the lock back and closes the session. A server that answers must say that it was held. Without an answer the session ends,
    /// and the lock with it: that undoes nothing of what the run has done.
    pub async fn release(self) -> Result<(), Error> {
        let sql = "SELECT pg_advisory_unlock($1)";
        let unlock = despite_cancel(async || self.client().query_one(sql, &[&self.key.get()]).await);
        let unconfirmed = match timeout(UNLOCK, unlock).await {
            Ok(Ok(row)) => {
                self.session.close().await;
                return if row.get(0) { Ok(()) } else { Err(SessionError::NotUnlocked.into()) };
            }
            Ok(Err(error)) => chain(&error),
            Err(_) => "no answer in time".to_owned(),
        };
        tracing::warn!("the unlock was not confirmed; the session ends, and the lock with it: {unconfirmed}");
        Ok(())
    }

    /// Closes the session, and with it the lock.
    pub async fn abandon(self) {
        self.session.close().await;
    }
}

/// Who holds a lock that is busy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Holder {
    /// The server process.
    pub pid: Option<i32>,
    /// Its `application_name`.
    pub application: Option<String>,
    /// Seconds since the session began.
    pub age_s: Option<u64>,
}

impl Holder {
    /// Looks. The holder may be gone by now.
    pub async fn look(session: &Session, key: LockKey) -> Result<Option<Holder>, Error> {
        let sql = format!(
            "SELECT pid, a.application_name, floor(extract(epoch FROM clock_timestamp() - a.backend_start))::int8
             FROM pg_locks LEFT JOIN pg_stat_activity a USING (pid) WHERE {IS_THE_LOCK} LIMIT 1"
        );
        let row = session.client().query_opt(&sql, &[&key.get()]).await.doing("looking at the lock's holder")?;
        Ok(row.map(|row| Holder {
            pid: row.get(0),
            application: row.get(1),
            age_s: row.get::<_, Option<i64>>(2).and_then(|seconds| u64::try_from(seconds).ok()),
        }))
    }

    /// The run of ours that the holder says it is.
    pub fn run(&self, source: SourceName) -> Option<RunId> {
        run_of_application(self.application.as_deref()?, source)
    }
}

/// The `application_name` of a run: readable by every role, and short enough not to be cut (63 bytes).
pub fn application_name(source: SourceName, run: &RunId) -> String {
    format!("ingest {source} run={run}")
}

fn run_of_application(name: &str, source: SourceName) -> Option<RunId> {
    name.strip_prefix("ingest ")?.strip_prefix(source.as_str())?.strip_prefix(" run=")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_never_change() {
        // A changed key would let a run of the new version work beside one of the old.
        assert_eq!(LockKey::named("library").get(), -15_413_951_085_305_899);
        assert_eq!(LockKey::named("migrate").get(), -2_279_132_941_120_767_131);
        assert_eq!(LockKey::of(SourceName::Library), LockKey::named("library"));
    }

    #[test]
    fn each_schema_has_a_key_of_its_own() {
        let within = |name: &'static str| LockKey::within(&Schema::named(name), SourceName::Library);
        assert_eq!(within("ingest"), LockKey::of(SourceName::Library));
        assert_eq!(within("staging").get(), 5_957_479_179_214_454_588);
        assert_ne!(within("staging"), within("ingest"));
    }

    #[test]
    fn nobody_else_has_our_keys() {
        // What others take in the same database: sqlx, Rails and golang-migrate (for a database named ingestdb), Flyway, Prisma.
        let theirs =
            [3_263_459_014_517_477_874, 6_526_918_032_213_449_115, 2_431_430_124, 0x4679_7761_7900, 72_707_369];
        let ours = SourceName::ALL.iter().map(|&source| LockKey::of(source)).chain([LockKey::migrations()]);
        let ours: std::collections::BTreeSet<i64> = ours.map(LockKey::get).collect();
        assert_eq!(ours.len(), SourceName::ALL.len() + 1);
        assert!(theirs.iter().all(|key| !ours.contains(key)));
    }

    #[test]
    fn a_run_is_known_by_its_application_name() {
        let run: RunId = "7b0b1f3e-1111-4222-8333-944445555666".parse().unwrap();
        for &source in SourceName::ALL {
            let name = application_name(source, &run);
            assert!(name.len() <= 63, "{name}");
            assert_eq!(run_of_application(&name, source), Some(run.clone()));
        }
        for name in [
            "psql",
            "ingest library",
            "ingest library run=",
            "ingest library_csv run=7b0b1f3e-1111-4222-8333-944445555666",
        ] {
            assert_eq!(run_of_application(name, SourceName::Library), None, "{name}");
        }
    }
}
