//! Servers that end when we do.
//!
//! A shell stands between us and the server and reads its stdin to the end. Whatever ends this process (a panic, Ctrl-C, SIGKILL)
//! closes that pipe, and the shell ends the server. The kernel's parent-death signal would not do: it fires when the *thread* that
//! started the child ends, which in a test binary is long before the process does.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

/// `$1` is the signal, `$2` a folder to remove at the end (or empty); the rest is the server's command line. The traps keep the
/// shell alive when a whole process group is signalled; as handlers, unlike ignored signals, the server does not inherit them.
const GUARDIAN: &str = r#"
trap : INT HUP TERM
signal=$1 folder=$2; shift 2
"$@" </dev/null & server=$!
cat >/dev/null
kill -"$signal" "$server" 2>/dev/null
(sleep 10; kill -KILL "$server") >/dev/null 2>&1 & killer=$!
while kill -0 "$server" 2>/dev/null; do wait "$server"; done
kill "$killer" 2>/dev/null
[ -z "$folder" ] || rm -rf "$folder"
"#;

/// A running server; dropping it ends the server and waits until it is gone.
#[derive(Debug)]
pub struct Guarded {
    shell: Child,
    lifeline: Option<ChildStdin>,
}

/// How a server is ended.
#[derive(Debug, Clone, Copy)]
pub enum EndWith {
    /// SIGINT: PostgreSQL's fast shutdown.
    Interrupt,
    /// SIGTERM.
    Terminate,
}

impl Guarded {
    /// Starts `command` (program and arguments; environment and working directory are taken from it too) with its output in
    /// `log`. `remove` is a folder that vanishes once the server is gone.
    pub fn start(command: &Command, end: EndWith, log: &Path, remove: Option<&Path>) -> io::Result<Guarded> {
        let log = File::create(log)?;
        let mut shell = Command::new("sh");
        shell
            .args(["-c", GUARDIAN, "guardian"])
            .arg(match end {
                EndWith::Interrupt => "INT",
                EndWith::Terminate => "TERM",
            })
            .arg(remove.map_or(OsStr::new(""), Path::as_os_str))
            .arg(command.get_program())
            .args(command.get_args())
            .stdin(Stdio::piped())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0);
        for (key, value) in command.get_envs() {
            match value {
                Some(value) => shell.env(key, value),
                None => shell.env_remove(key),
            };
        }
        if let Some(folder) = command.get_current_dir() {
            shell.current_dir(folder);
        }
        let mut shell = shell.spawn()?;
        let lifeline = shell.stdin.take();
        Ok(Guarded { shell, lifeline })
    }

    /// The process id of the guardian; it lives as long as the server does.
    pub fn pid(&self) -> u32 {
        self.shell.id()
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        drop(self.lifeline.take());
        // Nothing to do about a failure here: the guardian ends by itself once its lifeline is cut.
        let _ = self.shell.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
        let start = Instant::now();
        while !done() {
            assert!(start.elapsed() < Duration::from_secs(10), "{what}: not within 10 s");
            std::thread::yield_now();
        }
    }

    #[test]
    fn the_server_and_its_folder_vanish_with_us() {
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().join("home");
        std::fs::create_dir(&home).unwrap();
        let pid_file = folder.path().join("pid");
        let mut server = Command::new("sh");
        server.args(["-c", "echo $$ > \"$0\"; exec sleep 600"]).arg(&pid_file);
        let guarded = Guarded::start(&server, EndWith::Terminate, &folder.path().join("log"), Some(&home)).unwrap();
        let pid = || std::fs::read_to_string(&pid_file).unwrap_or_default().trim().to_owned();
        wait_until("the server starts", || !pid().is_empty());
        let process = format!("/proc/{}", pid());
        assert!(Path::new(&process).exists());
        drop(guarded);
        assert!(!Path::new(&process).exists());
        assert!(!home.exists());
    }
}
