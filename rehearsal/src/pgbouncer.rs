//! A real PgBouncer in front of a [`Cluster`].

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::guardian::{EndWith, Guarded};
use crate::postgres::Cluster;
use crate::postgres::identity::Identity;

/// A running pooler.
#[derive(Debug)]
pub struct PgBouncer {
    port: u16,
    _server: Guarded,
}

/// Where the program is.
pub fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    folders.map(|folder| folder.join("pgbouncer")).find(|program| program.exists())
}

impl PgBouncer {
    /// Starts one in this pool mode (`session`, `transaction`, `statement`), with these further lines of configuration.
    pub fn start(cluster: &Cluster, mode: &str, settings: &[&str]) -> Result<PgBouncer> {
        let program = program().context("pgbouncer is not installed (on Debian: apt-get install pgbouncer)")?;
        let identity = Identity::find();
        let home = tempfile::Builder::new().prefix("rehearsal-pgbouncer-").tempdir()?;
        identity.own(home.path())?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let configuration = home.path().join("pgbouncer.ini");
        let text = format!(
            "[databases]\n* = host=127.0.0.1 port={} user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = any\npool_mode = {mode}\n{}\n",
            cluster.port(),
            settings.join("\n")
        );
        fs::write(&configuration, text)?;
        identity.own(&configuration)?;
        let mut command = identity.command(&program);
        command.arg(&configuration);
        let log = home.path().join("log");
        let server = Guarded::start(&command, EndWith::Interrupt, &log, Some(home.path()))?;
        let home = home.keep();
        wait_until_ready(port, &home.join("log"))?;
        Ok(PgBouncer { port, _server: server })
    }

    /// Its port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }
}

fn wait_until_ready(port: u16, log: &Path) -> Result<()> {
    let start = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        let said = || fs::read_to_string(log).unwrap_or_default();
        ensure!(start.elapsed() < Duration::from_secs(10), "PgBouncer did not start:\n{}", said().trim());
        std::thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
