//! A real PostgreSQL of our own: one cluster a process, one database a test (advisory locks are per database).

use std::fs;
use std::net::TcpListener;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use tokio_postgres::{Client, NoTls};

use crate::guardian::{EndWith, Guarded};
use crate::{blocking, toolbox};

/// The user and group that stand in for root, which PostgreSQL refuses, where user namespaces are forbidden.
const NOBODY: u32 = 65534;
/// How long a server may take to accept connections.
const START_LIMIT: Duration = Duration::from_secs(60);

/// A running server on a port that the kernel chose. It ends, and its data vanish, when this is dropped or the process ends.
#[derive(Debug)]
pub struct Cluster {
    port: u16,
    version: String,
    databases: AtomicU32,
    _server: Guarded,
}

/// The cluster of this test binary.
pub fn shared() -> &'static Cluster {
    static CLUSTER: OnceLock<Cluster> = OnceLock::new();
    CLUSTER.get_or_init(|| Cluster::start().expect("a temporary PostgreSQL can be started"))
}

impl Cluster {
    /// Makes and starts a cluster with the server that the toolbox found.
    pub fn start() -> Result<Cluster> {
        Cluster::start_from(toolbox()?.postgres_bin()?)
    }

    /// Makes and starts a cluster with the server in `bin`.
    pub(crate) fn start_from(bin: &Path) -> Result<Cluster> {
        let identity = Identity::find();
        // Not below the target directory: the fallback user may not be able to walk there.
        let home = tempfile::Builder::new().prefix("rehearsal-pg-").tempdir()?;
        identity.own(home.path())?;
        let data = home.path().join("data");
        let log = home.path().join("log");
        let mut initdb = identity.command(&bin.join("initdb"));
        initdb
            .args(["--no-sync", "--locale=C", "--encoding=UTF8", "--username=postgres", "--auth=trust"])
            .arg("-D")
            .arg(&data);
        let output = initdb.stdin(Stdio::null()).output().context("run initdb")?;
        if !output.status.success() {
            bail!("initdb ended with {}:\n{}", output.status, String::from_utf8_lossy(&output.stderr).trim());
        }
        // The port was free a moment ago; another process may take it first, then the next one is tried.
        let mut last = None;
        for _ in 0..5 {
            let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
            let server =
                Guarded::start(&server(&identity, bin, &data, port), EndWith::Interrupt, &log, Some(home.path()))?;
            match wait_until_ready(server, port, &log) {
                Ok((server, version)) => {
                    // From here on the guardian removes the folder, after the server is gone.
                    let _ = home.keep();
                    return Ok(Cluster { port, version, databases: AtomicU32::new(0), _server: server });
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
        Database { port: self.port, name: name.to_owned() }
    }

    /// A role that may log in, without a password. Roles belong to the whole cluster: give each test names of its own.
    pub fn role(&self, name: &str, attributes: &str) {
        let created = self.execute("postgres", &format!("CREATE ROLE {name} LOGIN {attributes}"));
        created.expect("a role can be created");
    }

    fn execute(&self, database: &str, sql: &str) -> Result<()> {
        let url = url(self.port, "postgres", database);
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
    name: String,
}

impl Database {
    /// A URL for the superuser.
    pub fn url(&self) -> String {
        self.url_as("postgres")
    }

    /// A URL for another role.
    pub fn url_as(&self, role: &str) -> String {
        url(self.port, role, &self.name)
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
        connect(&self.url()).await.expect("the temporary PostgreSQL accepts a connection")
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

fn url(port: u16, role: &str, database: &str) -> String {
    format!("postgres://{role}@127.0.0.1:{port}/{database}?sslmode=disable")
}

async fn connect(url: &str) -> Result<Client> {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await?;
    tokio::spawn(async move {
        // The client reports a broken connection to whoever uses it.
        let _ = connection.await;
    });
    Ok(client)
}

/// Under which user the server runs: PostgreSQL refuses root.
enum Identity {
    /// We are somebody already.
    Ourselves,
    /// Root outside, user 1000 inside a user namespace: no user is made, no permission changed.
    Namespace,
    /// Where user namespaces are forbidden (a container with Docker's seccomp profile).
    Nobody,
}

impl Identity {
    fn find() -> Identity {
        let root = fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0);
        if !root {
            return Identity::Ourselves;
        }
        let mut probe = Identity::Namespace.command(Path::new("true"));
        match probe.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status() {
            Ok(status) if status.success() => Identity::Namespace,
            _ => Identity::Nobody,
        }
    }

    fn own(&self, folder: &Path) -> Result<()> {
        if let Identity::Nobody = self {
            std::os::unix::fs::chown(folder, Some(NOBODY), Some(NOBODY))?;
        }
        Ok(())
    }

    fn command(&self, program: &Path) -> Command {
        match self {
            Identity::Ourselves => Command::new(program),
            Identity::Namespace => {
                let mut command = Command::new("unshare");
                command.args(["--user", "--map-user=1000", "--map-group=1000", "--"]).arg(program);
                command
            }
            Identity::Nobody => {
                let mut command = Command::new(program);
                command.uid(NOBODY).gid(NOBODY);
                command
            }
        }
    }
}

fn server(identity: &Identity, bin: &Path, data: &Path, port: u16) -> Command {
    let program: PathBuf = bin.join("postgres");
    // `Guarded` takes program and arguments only, so the fallback user needs a program that changes it.
    let mut command = match identity {
        Identity::Nobody => {
            let mut setpriv = Command::new("setpriv");
            setpriv.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(program);
            setpriv
        }
        _ => identity.command(&program),
    };
    command.arg("-D").arg(data).args(["-p", &port.to_string(), "-k", "", "-h", "127.0.0.1"]);
    for setting in ["fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=200"] {
        command.args(["-c", setting]);
    }
    command
}

fn wait_until_ready(server: Guarded, port: u16, log: &Path) -> Result<(Guarded, String)> {
    let url = url(port, "postgres", "postgres");
    let start = Instant::now();
    loop {
        let answer = blocking(async {
            let row = connect(&url).await?.query_one("SELECT version()", &[]).await?;
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
