//! Who a server is.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Result;

/// The user and group that stand in for root where user namespaces are forbidden.
const NOBODY: u32 = 65534;

/// Under which user a server runs: PostgreSQL and PgBouncer refuse root.
pub(crate) enum Identity {
    /// We are somebody already.
    Ourselves,
    /// Root outside, user 1000 inside a user namespace: no user is made, no permission changed.
    Namespace,
    /// Where user namespaces are forbidden (a container with Docker's seccomp profile).
    Nobody,
}

impl Identity {
    pub(crate) fn find() -> Identity {
        let root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
        if !root {
            return Identity::Ourselves;
        }
        let mut probe = Identity::Namespace.command(Path::new("true"));
        match probe.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).status() {
            Ok(status) if status.success() => Identity::Namespace,
            _ => Identity::Nobody,
        }
    }

    pub(crate) fn own(&self, folder: &Path) -> Result<()> {
        if let Identity::Nobody = self {
            std::os::unix::fs::chown(folder, Some(NOBODY), Some(NOBODY))?;
        }
        Ok(())
    }

    pub(crate) fn command(&self, program: &Path) -> Command {
        match self {
            Identity::Ourselves => Command::new(program),
            Identity::Namespace => {
                let mut command = Command::new("unshare");
                command.args(["--user", "--map-user=1000", "--map-group=1000", "--"]).arg(program);
                command
            }
            // A program that changes the user, as `Guarded` takes program and arguments only.
            Identity::Nobody => {
                let mut command = Command::new("setpriv");
                command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]).arg(program);
                command
            }
        }
    }
}
