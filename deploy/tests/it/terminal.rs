//! `deploy` on a terminal, with somebody in front of it.

use std::io::Read;
use std::process::{Child, Command, Stdio};

use crate::scene::Scene;

/// `deploy ...` on a terminal of its own.
pub fn on_a_terminal(scene: &Scene, arguments: &[&str]) -> Child {
    let deploy = scene.deploy(arguments);
    let code = "import os, pty, sys; sys.exit(os.waitstatus_to_exitcode(pty.spawn(sys.argv[1:])))";
    let python = rehearsal::toolbox().and_then(|tools| tools.python()).expect("the local AWS has a Python");
    let mut command = Command::new(python);
    command.args(["-c", code]).arg(deploy.get_program()).args(deploy.get_args()).current_dir(scene.path());
    command
        .envs(deploy.get_envs().filter_map(|(name, value)| Some((name, value?))).filter(|(name, _)| *name != "HOME"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("Python runs")
}

/// What is on the screen when it ends with these words.
pub fn read_until(screen: &mut impl Read, words: &str) -> String {
    let mut said = Vec::new();
    while !said.ends_with(words.as_bytes()) {
        let mut byte = [0];
        screen.read_exact(&mut byte).unwrap_or_else(|_| panic!("no {words:?}: {}", String::from_utf8_lossy(&said)));
        said.push(byte[0]);
    }
    String::from_utf8_lossy(&said).into_owned()
}
