//! The one session of a run: the connection that holds the lock and the connection that writes are the same.
//!
//! Architecture invariant: no pool. If this session dies, its lock and its transaction die with it, on the server, together.

use std::time::Duration;

use geuneul::{Interval, Outcome};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls, SimpleQueryMessage};
use tokio_postgres_rustls::MakeRustlsConnect;
use uuid::Uuid;

use crate::config::Database;
use crate::error::{Doing, Error, chain};

/// For how long a session may make no progress before the server ends it, and its lock with it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease(Interval);

impl Lease {
    /// Five minutes.
    pub const UNATTENDED: Lease = Lease(Interval::minutes(5));

    /// From a second to an hour.
    pub fn new(interval: Interval) -> Option<Lease> {
        (interval <= Interval::minutes(60)).then_some(Lease(interval))
    }

    /// In seconds.
    pub fn seconds(self) -> u64 {
        self.0.seconds()
    }

    /// For how long one page may be asked for: half of the lease, so that a slow upstream never costs the session.
    pub fn page(self) -> Duration {
        self.0.duration() / 2
    }
}

/// No session, or none that a run may use.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// Something between us and the server hands sessions around.
    #[error("the database is behind a pooler, which hands sessions around: the lock would be worth nothing ({0})")]
    Pooler(String),
    /// A standby grants locks of its own.
    #[error("the database is a read replica: locks taken there exclude nobody")]
    Replica,
    /// The server lacks what the session relies on.
    #[error("the server is older than PostgreSQL 14 ({0})")]
    TooOld(String),
    /// Text would not survive.
    #[error("the database stores text as {0}, which cannot hold every published name; it has to be UTF8")]
    Encoding(String),
    /// The server does not let us in.
    #[error("the database refuses the connection: {0}")]
    Refused(String),
    /// An option that the URL asks for.
    #[error("the database refuses an option of the connection: {0}")]
    Options(String),
    /// No trusted TLS connection.
    #[error("no trusted TLS connection to the database: {0}")]
    Tls(String),
    /// No connection.
    #[error("the database cannot be reached: {0}")]
    Unreachable(String),
    /// `pg_try_advisory_lock` said yes, `pg_locks` says no.
    #[error("the advisory lock was granted, and pg_locks does not show it")]
    NotHeld,
    /// `pg_advisory_unlock` answered false.
    #[error("the advisory lock was no longer held at the end; only the fence kept others from writing")]
    NotUnlocked,
}

impl SessionError {
    /// How a run with this error ends.
    pub fn outcome(&self) -> Outcome {
        match self {
            SessionError::Pooler(_)
            | SessionError::Replica
            | SessionError::TooOld(_)
            | SessionError::Encoding(_)
            | SessionError::Refused(_)
            | SessionError::Options(_)
            | SessionError::Tls(_) => Outcome::Misconfigured,
            SessionError::Unreachable(_) => Outcome::DatabaseLost,
            SessionError::NotHeld | SessionError::NotUnlocked => Outcome::Internal,
        }
    }

    /// A stable word.
    pub fn code(&self) -> &'static str {
        match self {
            SessionError::Pooler(_) => "database_pooler",
            SessionError::Replica => "database_replica",
            SessionError::TooOld(_) => "database_too_old",
            SessionError::Encoding(_) => "database_encoding",
            SessionError::Refused(_) => "database_refused",
            SessionError::Options(_) => "database_options",
            SessionError::Tls(_) => "database_tls",
            SessionError::Unreachable(_) => "database_unreachable",
            SessionError::NotHeld => "lock_not_held",
            SessionError::NotUnlocked => "lock_lost",
        }
    }

    /// The way out.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            SessionError::Pooler(_) => {
                Some("use the direct endpoint of the database: the instance or the cluster's writer, not the proxy")
            }
            SessionError::Replica => Some("use the writer's endpoint"),
            SessionError::TooOld(_) => Some("upgrade the server to 14 or later"),
            SessionError::Refused(_) => Some("check user, password and database name, and the server's pg_hba.conf"),
            SessionError::Encoding(_) => {
                Some("make the job a database of its own: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0")
            }
            SessionError::Options(_) => Some("look at what stands behind options= in DATABASE_URL, or leave it out"),
            SessionError::Tls(_) => Some(
                "set INGEST_DB_CA to the authority that signed the server's certificate (on RDS: the region's bundle), and connect by the name in the certificate",
            ),
            SessionError::Unreachable(_) => Some("check host, port, security groups and routes; then run again"),
            SessionError::NotHeld => None,
            SessionError::NotUnlocked => Some(
                "what was committed holds: the fence was held until then. Look for what releases the locks of this session (a trigger, a proxy)",
            ),
        }
    }
}

/// How long opening a session may take, from the name lookup to the tripwires.
const OPENING: Duration = Duration::from_secs(20);

#[derive(Clone)]
enum Tls {
    Off,
    On(MakeRustlsConnect),
}

/// An open session that has passed the tripwires.
pub struct Session {
    client: Client,
    connection: JoinHandle<()>,
    tls: Tls,
    /// The server process that is this session.
    pub backend_pid: i32,
    /// Locks are per database: a wrong name would silently exclude nobody, so it is shown.
    pub database: String,
    /// What the server was asked for.
    pub lease: Lease,
}

impl Session {
    /// Connects and checks that this is a session of our own, on a writable server that is new enough. All of it within `OPENING`,
    /// or the lease when that is shorter: a port that accepts and never answers is no database.
    pub async fn open(database: &Database, application: &str) -> Result<Session, Error> {
        let limit = OPENING.min(Duration::from_secs(database.lease.seconds()));
        let late = |_| SessionError::Unreachable(format!("no session within {} s", limit.as_secs()));
        timeout(limit, Session::begin(database, application)).await.map_err(late)?
    }

    async fn begin(database: &Database, application: &str) -> Result<Session, Error> {
        let token = Uuid::new_v4();
        let driver = with_startup_options(database, application, token);
        let tls = database.tls.clone().map_or(Tls::Off, |config| Tls::On(MakeRustlsConnect::new(config)));
        let (client, connection) = match tls.clone() {
            Tls::Off => {
                let (client, connection) = driver.connect(NoTls).await.map_err(cannot_connect)?;
                (client, tokio::spawn(drive(connection)))
            }
            Tls::On(connector) => {
                let (client, connection) = driver.connect(connector).await.map_err(cannot_connect)?;
                (client, tokio::spawn(drive(connection)))
            }
        };
        let mut session =
            Session { client, connection, tls, backend_pid: 0, database: String::new(), lease: database.lease };
        session.check(token).await?;
        Ok(session)
    }

    /// The tripwires. A simple query: behind a pooler, even the answer to a prepared one may come from another session.
    async fn check(&mut self, token: Uuid) -> Result<(), Error> {
        let sql = "SELECT current_setting('ingest.session', true), pg_is_in_recovery(), pg_backend_pid(),
            current_database(), current_setting('server_version_num'), current_setting('server_version'),
            current_setting('server_encoding')";
        let answer = self.client.simple_query(sql).await.doing("looking at the session")?;
        let row = answer.iter().find_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(row),
            _ => None,
        });
        let text = |column| row.and_then(|row| row.get(column)).unwrap_or_default();
        if text(0) != token.to_string() {
            return Err(SessionError::Pooler("the session is not the one that was asked for".to_owned()).into());
        }
        if text(1) != "f" {
            return Err(SessionError::Replica.into());
        }
        if text(4).parse::<u32>().unwrap_or(0) < 140_000 {
            return Err(SessionError::TooOld(text(5).to_owned()).into());
        }
        if text(6) != "UTF8" {
            return Err(SessionError::Encoding(text(6).to_owned()).into());
        }
        let server = text(5).to_owned();
        (self.backend_pid, self.database) = (text(2).parse().unwrap_or(0), text(3).to_owned());
        tracing::info!(backend_pid = self.backend_pid, database = %self.database, %server, "connected");
        Ok(())
    }

    /// The connection.
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// The connection, for a transaction.
    pub fn client_mut(&mut self) -> &mut Client {
        &mut self.client
    }

    /// The connection is gone.
    pub fn is_lost(&self) -> bool {
        self.client.is_closed()
    }

    /// Cancels whatever the server is doing for this session.
    pub async fn cancel(&self) {
        let token = self.client.cancel_token();
        let cancelled = match self.tls.clone() {
            Tls::Off => token.cancel_query(NoTls).await,
            Tls::On(connector) => token.cancel_query(connector).await,
        };
        if let Err(error) = cancelled {
            tracing::warn!("the running statement could not be cancelled: {}", chain(&error));
        }
    }

    /// Leaves any transaction.
    pub async fn roll_back(&self) -> Result<(), Error> {
        despite_cancel(async || self.client.batch_execute("ROLLBACK").await).await.doing("rolling back")
    }

    /// Says goodbye to the server and waits until it is said.
    pub async fn close(self) {
        drop(self.client);
        let _ = timeout(Duration::from_secs(2), self.connection).await;
    }
}

/// A cancellation that arrives late hits whatever the session does by then, which is then sent once more. The server signals one request
/// to the process and to its group, so it may hit two statements; an operator may add another.
pub async fn despite_cancel<T>(
    statement: impl AsyncFn() -> Result<T, tokio_postgres::Error>,
) -> Result<T, tokio_postgres::Error> {
    for _ in 0..4 {
        match statement().await {
            Err(error) if error.code() == Some(&SqlState::QUERY_CANCELED) => {
                tracing::info!("a cancellation came late; once more");
            }
            other => return other,
        }
    }
    statement().await
}

/// Every option is one that an unprivileged role may set, so that no administrator is needed.
fn with_startup_options(database: &Database, application: &str, token: Uuid) -> tokio_postgres::Config {
    let mut driver = database.driver.clone();
    let lease = database.lease.seconds();
    let ours = [
        // A pooler refuses unknown startup options or swallows them; either way the token does not come back.
        format!("ingest.session={token}"),
        format!("search_path={},pg_temp", database.schema.quoted()),
        // Whoever waited for a lock must then see what its holder committed, whatever the role's own default is.
        "default_transaction_isolation=read\\ committed".to_owned(),
        // The server finds a dead peer within about a minute, with a reply on the way or without.
        "tcp_keepalives_idle=30".to_owned(),
        "tcp_keepalives_interval=10".to_owned(),
        "tcp_keepalives_count=3".to_owned(),
        "tcp_user_timeout=60000".to_owned(),
        "client_connection_check_interval=5s".to_owned(),
        // The lease: a process that hangs loses its session, and with it the lock.
        format!("idle_session_timeout={lease}s"),
        format!("idle_in_transaction_session_timeout={lease}s"),
        "lock_timeout=10s".to_owned(),
        "statement_timeout=30min".to_owned(),
    ];
    let mut options = database.driver.get_options().unwrap_or_default().to_owned();
    for option in ours {
        options.push_str(" -c ");
        options.push_str(&option);
    }
    driver
        .options(options.trim())
        .application_name(application)
        .connect_timeout(Duration::from_secs(10))
        .keepalives(true)
        .keepalives_idle(Duration::from_secs(30))
        .keepalives_interval(Duration::from_secs(10))
        .keepalives_retries(3)
        .tcp_user_timeout(Duration::from_secs(60));
    driver
}

async fn drive<S, T>(connection: tokio_postgres::Connection<S, T>)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    if let Err(error) = connection.await {
        tracing::warn!("the connection to the database ended: {}", chain(&error));
    }
}

/// What of our options PostgreSQL 13 does not know.
const OF_NEWER_SERVERS: [&str; 2] = ["idle_session_timeout", "client_connection_check_interval"];

fn cannot_connect(error: tokio_postgres::Error) -> SessionError {
    let said = chain(&error);
    if said.contains("unsupported startup parameter") || said.contains("command-line options") {
        return SessionError::Pooler(said);
    }
    match error.code().map(SqlState::code) {
        Some("42704") if OF_NEWER_SERVERS.iter().any(|option| said.contains(option)) => SessionError::TooOld(said),
        Some("3D000" | "42501") => SessionError::Refused(said),
        Some(code) if code.starts_with("28") => SessionError::Refused(said),
        // A name that there is not, a value that it does not take, a time at which it cannot be set.
        Some("55P02") => SessionError::Options(said),
        Some(code) if code.starts_with("22") || code.starts_with("42") => SessionError::Options(said),
        Some(_) => SessionError::Unreachable(said),
        None if said.contains("authentication") || said.contains("password") => SessionError::Refused(said),
        None if said.contains("certificate") || said.contains("TLS") => SessionError::Tls(said),
        None => SessionError::Unreachable(said),
    }
}
