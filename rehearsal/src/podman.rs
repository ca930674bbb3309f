//! The real image, built from the real Dockerfile and run by a real podman.
//!
//! No registry is asked: the image that the Dockerfile builds in is a stand-in, made of this machine's own compiler and C library,
//! lent to the build as read-only mounts. What ends up in the final image is what the Dockerfile puts there.
//!
//! Architecture invariant: the storage is our own, below the toolbox; the machine's images and containers are never touched. What
//! podman leaves mounted there is unmounted at the end, so that the target directory can be removed like any other.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::toolbox;

/// The repository: what the Dockerfile builds.
const REPOSITORY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");
/// Where the stand-in has the toolchain and the registry's crates.
const TOOLCHAIN: &str = "/toolchain";
const CARGO_HOME: &str = "/cargo";

/// A podman with a storage of its own.
#[derive(Debug)]
pub struct Podman {
    home: PathBuf,
}

/// What the image is.
#[derive(Debug, Clone, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct ImageFacts {
    /// Bytes of all its layers.
    pub size: u64,
    /// Whom its process runs as.
    pub user: String,
}

/// What this machine lacks for it, each with a way to get it.
pub fn missing() -> Vec<(&'static str, &'static str)> {
    let on_path = |program: &str| {
        let path = std::env::var_os("PATH").unwrap_or_default();
        std::env::split_paths(&path).any(|folder| folder.join(program).exists())
    };
    let needed = [
        ("podman", "apt-get update && apt-get install -y podman runc"),
        ("runc", "apt-get update && apt-get install -y runc"),
        ("cc", "apt-get update && apt-get install -y gcc libc6-dev"),
    ];
    needed.into_iter().filter(|(program, _)| !on_path(program)).collect()
}

impl Podman {
    /// Prepares the storage. Nothing runs yet.
    pub fn open() -> Result<Podman> {
        let podman = Podman { home: toolbox()?.folder("podman")? };
        // Plain files of our own: no systemd for the control groups, limits that a container of our own may always have.
        fs::write(
            podman.home.join("containers.conf"),
            "[containers]\ndefault_ulimits = [\"nofile=8192:8192\", \"nproc=8192:8192\"]\n\
             [engine]\nruntime = \"runc\"\ncgroup_manager = \"cgroupfs\"\nevents_logger = \"none\"\n",
        )?;
        let (graph, run) = (podman.home.join("storage"), podman.home.join("run"));
        let storage = format!("[storage]\ndriver = \"overlay\"\ngraphroot = {graph:?}\nrunroot = {run:?}\n");
        fs::write(podman.home.join("storage.conf"), storage)?;
        Ok(podman)
    }

    /// What makes a `podman` use this storage.
    pub fn env(&self) -> Vec<(&'static str, PathBuf)> {
        vec![
            ("CONTAINERS_CONF", self.home.join("containers.conf")),
            ("CONTAINERS_STORAGE_CONF", self.home.join("storage.conf")),
        ]
    }

    /// `podman` with this storage.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new("podman");
        command.envs(self.env()).args(arguments).stdin(Stdio::null());
        command
    }

    /// What `podman` prints.
    pub fn output(&self, arguments: &[&str]) -> Result<String> {
        let output = self.command(arguments).output().context("run podman")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "podman {} ended with {}:\n{}", arguments[0], output.status, said.trim());
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    }

    /// Builds the repository's Dockerfile, as it is, under this name. Minutes at first; seconds when nothing changed.
    pub fn build(&self, name: &str) -> Result<ImageFacts> {
        let dockerfile = fs::read_to_string(Path::new(REPOSITORY).join("Dockerfile"))?;
        let builder =
            dockerfile.lines().find_map(|line| line.strip_prefix("FROM ")).and_then(|from| from.split(' ').next());
        let lent = self.stand_in(builder.context("the Dockerfile has no FROM")?)?;
        // Compiled crates outlive the build, so that a second one compiles only what changed.
        let target = format!("{}:/src/target", toolbox()?.folder("image-target")?.display());
        let mut build =
            self.command(&["build", "--quiet", "--force-rm", "--network=host", "--tag", name, "--volume", &target]);
        for mount in &lent {
            build.args(["--volume", mount]);
        }
        let output = build.arg(REPOSITORY).output().context("run podman")?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "the image could not be built:\n{}", said.trim());
        self.facts(name)
    }

    fn facts(&self, name: &str) -> Result<ImageFacts> {
        let format = r#"{"Size": {{.Size}}, "User": "{{.User}}"}"#;
        Ok(serde_json::from_str(&self.output(&["image", "inspect", "--format", format, name])?)?)
    }

    /// An image of this name that is this machine's own toolchain once these mounts are in place.
    fn stand_in(&self, name: &str) -> Result<Vec<String>> {
        let root = self.home.join("stand-in");
        let mut mounts = vec!["/usr:/usr:ro".to_owned()];
        for folder in ["tmp", "etc"] {
            fs::create_dir_all(root.join("base").join(folder))?;
        }
        for top in ["bin", "sbin", "lib", "lib64"] {
            let (here, there) = (Path::new("/").join(top), root.join("base").join(top));
            match fs::read_link(&here) {
                Ok(target) if there.symlink_metadata().is_err() => std::os::unix::fs::symlink(target, there)?,
                Err(_) if here.is_dir() => mounts.push(format!("/{top}:/{top}:ro")),
                _ => {}
            }
        }
        // `cc` is found through the alternatives, the registry's certificate through the authorities.
        let lent = ["/etc/alternatives", "/etc/ssl"].into_iter().filter(|folder| Path::new(folder).is_dir());
        mounts.extend(lent.map(|folder| format!("{folder}:{folder}:ro")));
        mounts.push(format!("{}:{TOOLCHAIN}:ro", sysroot()?));
        let registry = cargo_home()?.join("registry");
        fs::create_dir_all(&registry)?;
        mounts.push(format!("{}:{CARGO_HOME}/registry", registry.display()));
        let path = format!("ENV PATH={TOOLCHAIN}/bin:/usr/bin:/bin CARGO_HOME={CARGO_HOME} HOME=/tmp");
        let file = root.join("Dockerfile");
        fs::write(&file, format!("FROM scratch\nCOPY base/ /\n{path}\n"))?;
        let (file, root) = (file.display().to_string(), root.display().to_string());
        self.output(&["build", "--quiet", "--tag", &format!("localhost/{name}"), "--file", &file, &root])?;
        Ok(mounts)
    }
}

impl Drop for Podman {
    fn drop(&mut self) {
        let mounts = fs::read_to_string("/proc/mounts").unwrap_or_default();
        let points = mounts.lines().filter_map(|line| line.split(' ').nth(1));
        let mut ours: Vec<_> = points.filter(|point| Path::new(point).starts_with(&self.home)).collect();
        // The innermost first. What another process still uses is busy, and stays.
        ours.sort_unstable_by_key(|point| std::cmp::Reverse(point.len()));
        for point in ours {
            let _ = Command::new("umount").arg(point).stderr(Stdio::null()).status();
        }
    }
}

/// Where the toolchain that builds this workspace is.
fn sysroot() -> Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output =
        Command::new(rustc).args(["--print", "sysroot"]).current_dir(REPOSITORY).output().context("run rustc")?;
    ensure!(output.status.success(), "rustc --print sysroot ended with {}", output.status);
    Ok(String::from_utf8(output.stdout)?.trim().to_owned())
}

/// Where this machine's cargo keeps what it downloads.
fn cargo_home() -> Result<PathBuf> {
    let own = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".cargo"));
    own.or_else(home).context("neither CARGO_HOME nor HOME is set")
}
