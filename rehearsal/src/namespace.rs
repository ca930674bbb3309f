//! A network of its own for a server and its client, with a loopback that can be cut without either of them hearing of it: no FIN, no
//! RST, no error, as when a host or a cable is gone. Needs root and `ip` (iproute2).

use std::process::Command;

use anyhow::{Context, Result, ensure};

/// A named network namespace; gone when dropped.
#[derive(Debug)]
pub struct Namespace {
    name: String,
    owner: bool,
}

impl Namespace {
    /// Makes one, with its loopback up.
    pub fn new() -> Result<Namespace> {
        // The process id makes the name ours; one namespace a process is enough.
        let namespace = Namespace { name: format!("rehearsal-{}", std::process::id()), owner: true };
        ip(&["netns", "add", &namespace.name]).context("network namespaces need root and iproute2")?;
        namespace.loopback("up")?;
        Ok(namespace)
    }

    /// The same namespace, for somebody who does not remove it.
    pub fn share(&self) -> Namespace {
        Namespace { name: self.name.clone(), owner: false }
    }

    /// From now on nothing arrives.
    pub fn cut(&self) -> Result<()> {
        self.loopback("down")
    }

    fn loopback(&self, state: &str) -> Result<()> {
        ip(&["-n", &self.name, "link", "set", "lo", state])
    }

    /// The command, run inside. Its environment is taken along; it is the process itself, without a parent in between.
    pub fn command(&self, command: &Command) -> Command {
        let mut inside = Command::new("ip");
        inside.args(["netns", "exec", &self.name]).arg(command.get_program()).args(command.get_args());
        for (key, value) in command.get_envs() {
            match value {
                Some(value) => inside.env(key, value),
                None => inside.env_remove(key),
            };
        }
        inside
    }
}

impl Drop for Namespace {
    fn drop(&mut self) {
        if self.owner {
            // Processes inside keep it alive, without its name, for as long as they live.
            let _ = ip(&["netns", "del", &self.name]);
        }
    }
}

fn ip(arguments: &[&str]) -> Result<()> {
    let output = Command::new("ip").args(arguments).output().context("run ip")?;
    ensure!(output.status.success(), "ip {}: {}", arguments.join(" "), String::from_utf8_lossy(&output.stderr).trim());
    Ok(())
}
