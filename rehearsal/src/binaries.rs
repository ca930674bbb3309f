//! The two programs, built as a person would have them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};

/// Where the programs are.
#[derive(Debug)]
pub struct Binaries {
    ingest: PathBuf,
    deploy: PathBuf,
}

impl Binaries {
    /// The job.
    pub fn ingest(&self) -> &Path {
        &self.ingest
    }

    /// The tool that schedules it.
    pub fn deploy(&self) -> &Path {
        &self.deploy
    }
}

/// Builds the workspace's programs (nothing, when they are fresh) and says where they are.
///
/// Inside its own integration tests a crate's program is `env!("CARGO_BIN_EXE_…")`; this is for everybody else.
pub fn build() -> Result<&'static Binaries> {
    static BINARIES: OnceLock<Result<Binaries, String>> = OnceLock::new();
    let built = BINARIES.get_or_init(|| cargo_build().map_err(|error| format!("{error:#}")));
    built.as_ref().map_err(|error| anyhow::anyhow!("the programs could not be built: {error}"))
}

/// Cargo in this workspace, as if nobody but a person had started it.
pub fn cargo() -> Command {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.current_dir(env!("CARGO_MANIFEST_DIR")).stdin(Stdio::null()).stderr(Stdio::inherit());
    for (key, _) in std::env::vars_os().filter(|(key, _)| is_cargos_own(&key.to_string_lossy())) {
        cargo.env_remove(key);
    }
    cargo
}

fn cargo_build() -> Result<Binaries> {
    // One selection everywhere: features differ by selection, and another one compiles the AWS SDK again.
    let mut cargo = cargo();
    cargo.args(["build", "--workspace", "--bins", "--locked", "--message-format=json-render-diagnostics"]);
    let output = cargo.output().context("run cargo build")?;
    ensure!(output.status.success(), "cargo build ended with {}", output.status);
    let messages = String::from_utf8(output.stdout)?;
    let find = |name: &str| {
        let executable = messages.lines().filter_map(|line| executable_of(line, name)).next();
        executable.with_context(|| format!("cargo built no program {name}"))
    };
    Ok(Binaries { ingest: find("ingest")?, deploy: find("deploy")? })
}

/// What `cargo run` and `cargo test` export to their children. ring's build script watches some of these, so that a nested build
/// which sees them recompiles ring and everything above it, the whole AWS SDK included.
fn is_cargos_own(variable: &str) -> bool {
    ["CARGO_PKG_", "CARGO_MANIFEST_", "CARGO_BIN_"].iter().any(|prefix| variable.starts_with(prefix))
        || ["CARGO_CRATE_NAME", "CARGO_PRIMARY_PACKAGE", "LD_LIBRARY_PATH"].contains(&variable)
}

fn executable_of(message: &str, name: &str) -> Option<PathBuf> {
    let message: serde_json::Value = serde_json::from_str(message).ok()?;
    let ours = message["reason"] == "compiler-artifact" && message["target"]["name"] == name;
    ours.then(|| message["executable"].as_str().map(PathBuf::from)).flatten()
}
