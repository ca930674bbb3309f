//! A real PostgreSQL of our own: one cluster a process, one database a test (advisory locks are per database).

use std::fs;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio_postgres::{Client, NoTls};

use self::identity::Identity;
use crate::guardian::{EndWith, Guarded};
use crate::namespace::Namespace;
use crate::{blocking, toolbox};

pub(crate) mod identity;

/// How long a server may take to accept connections.
const START_LIMIT: Duration = Duration::from_secs(60);

/// A running server on a port that the kernel chose. It ends, and its data vanish, when this is dropped or the process ends.
#[derive(Debug)]
pub struct Cluster {
    port: u16,
    /// Where its socket is, when its port cannot be reached from here.
    socket: Option<PathBuf>,
    version: String,
    databases: AtomicU32,
    _server: Guarded,
}

/// What a cluster may have besides the usual.
#[derive(Debug, Default)]
pub struct Setup {
    /// TLS is on, with this certificate. Needs a server that was built with it: the bundled one was not.
    pub certificate: Option<Certificate>,
    /// The server listens on the loopback of this namespace; we reach it through a socket.
    pub namespace: Option<Namespace>,
}

/// A certificate and its key, as PEM.
#[derive(Debug)]
pub struct Certificate {
    /// The certificate.
    pub certificate: String,
    /// Its key.
    pub key: String,
}

const CERTIFICATE: &str = "server.crt";
const KEY: &str = "server.key";

/// The cluster of this test binary.
pub fn shared() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| Cluster::start().expect("a temporary PostgreSQL can be started"))
}

impl Cluster {
    /// Makes and starts a cluster with the server that the toolbox found.
    pub fn start() -> Result<Cluster> {
        Cluster::start_as(&Setup::default())
    }

    /// The same, with more than the usual.
    pub fn start_as(setup: &Setup) -> Result<Cluster> {
        Cluster::start_from(toolbox()?.postgres_bin()?, setup)
    }

    /// Makes and starts a cluster with the server in `bin`.
    pub(crate) fn start_from(bin: &Path, setup: &Setup) -> Result<Cluster> {
        Cluster::launch(bin, setup, |identity, data| {
            let mut initdb = identity.command(&bin.join("initdb"));
            initdb.args(["--no-sync", "--locale=C", "--encoding=UTF8", "--username=postgres", "--auth=trust", "-D"]);
            initdb.arg(data);
            initdb
        })
    }

    /// A hot standby of this cluster: it answers queries, and is in recovery for ever.
    pub fn standby(&self) -> Result<Cluster> {
        // Some machines link only some of the programs to where they found the server.
        let initdb = toolbox()?.postgres_bin()?.join("initdb").canonicalize()?;
        let bin = initdb.parent().context("initdb is in a folder")?;
        Cluster::launch(bin, &Setup::default(), |identity, data| {
            let mut copy = identity.command(&bin.join("pg_basebackup"));
            copy.args(["--no-sync", "--checkpoint=fast", "--write-recovery-conf", "--username=postgres"]);
            copy.args(["--host=127.0.0.1", &format!("--port={}", self.port), "-D"]).arg(data);
            copy
        })
    }

    /// Makes a standby a primary: it no longer follows anybody, and can be written. Returns when it is.
    pub fn promote(&self) -> Result<()> {
        self.execute("postgres", "DO $$ BEGIN IF NOT pg_promote(true, 60) THEN RAISE 'not promoted'; END IF; END $$")
    }

    fn launch(bin: &Path, setup: &Setup, make: impl FnOnce(&Identity, &Path) -> Command) -> Result<Cluster> {
        let identity = Identity::find();
        // Not below the target directory: the fallback user may not be able to walk there.
        let home = tempfile::Builder::new().prefix("rehearsal-pg-").tempdir()?;
        identity.own(home.path())?;
        let mut make = make(&identity, &home.path().join("data"));
        let output = make.stdin(Stdio::null()).output().with_context(|| format!("run {make:?}"))?;
        if !output.status.success() {
            bail!("{make:?} ended with {}:\n{}", output.status, String::from_utf8_lossy(&output.stderr).trim());
        }
        if let Some(pair) = &setup.certificate {
            for (name, text) in [(CERTIFICATE, &pair.certificate), (KEY, &pair.key)] {
                let path = home.path().join(name);
                fs::write(&path, text)?;
                fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
                identity.own(&path)?;
            }
        }
        let log = home.path().join("log");
        // The port was free a moment ago; another process may take it first, then the next one is tried.
        let mut last = None;
        for _ in 0..5 {
            let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
            let socket = setup.namespace.as_ref().map(|_| home.path().to_owned());
            let command = server(&identity, bin, home.path(), port, setup);
            let server = Guarded::start(&command, EndWith::Interrupt, &log, Some(home.path()))?;
            match wait_until_ready(server, &url(port, socket.as_deref(), "postgres", "postgres"), &log) {
                Ok((server, version)) => {
                    // From here on the guardian removes the folder, after the server is gone.
                    let _ = home.keep();
                    return Ok(Cluster { port, socket, version, databases: AtomicU32::new(0), _server: server });
                }
                Err(error) => last = Some(error),
            }
            fs::create_dir_all(home.path())?;
        }
        Err(last.expect("at least one attempt was made"))
    }

    /// What `SELECT version()` says.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// The server's port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// A new, empty database.
    pub fn database(&self) -> Database {
        let name = format!("db{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.named_database(&name)
    }

    /// A new, empty database of this name.
    pub fn named_database(&self, name: &str) -> Database {
        let created = self.execute("postgres", &format!("CREATE DATABASE {name}"));
        created.expect("a database can be created");
        self.existing_database(name)
    }

    /// A database that is there: a standby has those of its primary.
    pub fn existing_database(&self, name: &str) -> Database {
        Database { port: self.port, socket: self.socket.clone(), name: name.to_owned() }
    }

    /// A role that may log in, without a password. Roles belong to the whole cluster: give each test names of its own.
    pub fn role(&self, name: &str, attributes: &str) {
        let created = self.execute("postgres", &format!("CREATE ROLE {name} LOGIN {attributes}"));
        created.expect("a role can be created");
    }

    fn execute(&self, database: &str, sql: &str) -> Result<()> {
        let url = url(self.port, self.socket.as_deref(), "postgres", database);
        blocking(async {
            let client = connect(&url).await?;
            Ok(client.batch_execute(sql).await?)
        })
    }
}

/// One database of a [`Cluster`].
#[derive(Debug, Clone)]
pub struct Database {
    port: u16,
    socket: Option<PathBuf>,
    name: String,
}

impl Database {
    /// A URL for the superuser.
    pub fn url(&self) -> String {
        self.url_as("postgres")
    }

    /// A URL for another role.
    pub fn url_as(&self, role: &str) -> String {
        url(self.port, None, role, &self.name)
    }

    /// 127.0.0.1.
    pub fn host(&self) -> &'static str {
        "127.0.0.1"
    }

    /// The server's port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// A superuser session for looking at what a program did. Must be called inside a runtime.
    pub async fn client(&self) -> Client {
        let url = url(self.port, self.socket.as_deref(), "postgres", &self.name);
        connect(&url).await.expect("the temporary PostgreSQL accepts a connection")
    }

    /// Runs statements as the superuser; works outside of a runtime too.
    pub fn execute(&self, sql: &str) {
        blocking(async { self.client().await.batch_execute(sql).await }).expect("the statements run");
    }

    /// The first column of every row that a query gives, as text (cast it to text); works outside of a runtime too.
    pub fn texts(&self, sql: &str) -> Vec<Option<String>> {
        let rows = blocking(async { self.client().await.query(sql, &[]).await }).expect("the query runs");
        rows.iter().map(|row| row.get(0)).collect()
    }

    /// The one number that a query gives (cast it to bigint); works outside of a runtime too.
    pub fn number(&self, sql: &str) -> i64 {
        let row = blocking(async { self.client().await.query_one(sql, &[]).await }).expect("the query runs");
        row.get(0)
    }
}

fn url(port: u16, socket: Option<&Path>, role: &str, database: &str) -> String {
    let host = socket.map_or("127.0.0.1".to_owned(), |folder| folder.display().to_string().replace('/', "%2F"));
    format!("postgres://{role}@{host}:{port}/{database}?sslmode=disable")
}

async fn connect(url: &str) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(async move {
        // The client reports a broken connection to whoever uses it.
        let _ = connection.await;
    });
    Ok(client)
}

fn server(identity: &Identity, bin: &Path, home: &Path, port: u16, setup: &Setup) -> Command {
    let mut command = identity.command(&bin.join("postgres"));
    let socket = if setup.namespace.is_some() { home.as_os_str() } else { "".as_ref() };
    command.arg("-D").arg(home.join("data")).args(["-p", &port.to_string(), "-h", "127.0.0.1", "-k"]).arg(socket);
    for setting in ["fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=200"] {
        command.args(["-c", setting]);
    }
    if setup.certificate.is_some() {
        for (setting, file) in [("ssl_cert_file", CERTIFICATE), ("ssl_key_file", KEY)] {
            command.arg("-c").arg(format!("{setting}={}", home.join(file).display()));
        }
        command.args(["-c", "ssl=on"]);
    }
    match &setup.namespace {
        Some(namespace) => namespace.command(&command),
        None => command,
    }
}

fn wait_until_ready(server: Guarded, url: &str, log: &Path) -> Result<(Guarded, String)> {
    let start = Instant::now();
    loop {
        let answer = blocking(async {
            let row = connect(url).await?.query_one("SELECT version()", &[]).await?;
            anyhow::Ok(row.get(0))
        });
        match answer {
            Ok(version) => return Ok((server, version)),
            Err(error) => {
                let log = fs::read_to_string(log).unwrap_or_default();
                let ended = log.contains("could not create any TCP/IP sockets") || log.contains("system is shut down");
                if ended || start.elapsed() > START_LIMIT {
                    return Err(error.context(format!("the temporary PostgreSQL did not start:\n{}", log.trim())));
                }
                std::thread::sleep(Duration::from_millis(20));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_there_and_empty_and_gone_with_its_cluster() {
        let cluster = Cluster::start().unwrap();
        let database = cluster.database();
        assert_eq!(database.number("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'"), 0);
        assert_eq!(database.texts("SELECT current_user::text"), [Some("postgres".to_owned())]);
        let port = cluster.port();
        drop(cluster);
        assert!(std::net::TcpStream::connect(("127.0.0.1", port)).is_err());
    }
}
