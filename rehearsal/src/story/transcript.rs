//! What a person sees, and a record of it.

use std::io::{IsTerminal, Read, Write};
use std::process::{Command, ExitStatus, Stdio};

use anyhow::{Context, Result};

/// Prints as it happens and keeps everything that was printed.
#[derive(Debug, Default)]
pub struct Transcript {
    printed: String,
}

impl Transcript {
    /// Prints a block of text.
    pub fn print(&mut self, text: &str) {
        self.printed.push_str(text);
        let mut stdout = std::io::stdout().lock();
        // A reader that went away (`| head`) is no reason to stop half-way and leave servers behind.
        let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
    }

    /// Prints a comment of the narrator, set apart from the commands.
    pub fn narrate(&mut self, text: &str) {
        let lines: Vec<_> = text.lines().map(|line| format!("# {line}")).collect();
        let styled = styled("\x1b[2m", &lines.join("\n"));
        self.print(&format!("\n{styled}\n"));
    }

    /// Runs a command and prints it and its output, stdout and stderr together, as a terminal would show them.
    pub fn run(&mut self, shown: &str, command: &mut Command) -> Result<ExitStatus> {
        self.print(&format!("{}\n", styled("\x1b[1m", &format!("$ {shown}"))));
        let (mut output, writer) = std::io::pipe()?;
        command.stdin(Stdio::null()).stdout(writer.try_clone()?).stderr(writer);
        let mut child = command.spawn().with_context(|| format!("run {shown}"))?;
        // The command keeps the pipe's other end; without this the end of the output would never come.
        command.stdout(Stdio::null()).stderr(Stdio::null());
        let mut buffer = [0; 8192];
        let mut pending = Vec::new();
        loop {
            let read = output.read(&mut buffer)?;
            pending.extend_from_slice(&buffer[..read]);
            let whole = if read == 0 {
                pending.len()
            } else {
                pending.iter().rposition(|&b| b == b'\n').map_or(0, |at| at + 1)
            };
            let text: Vec<u8> = pending.drain(..whole).collect();
            self.print(&String::from_utf8_lossy(&text));
            if read == 0 {
                break;
            }
        }
        Ok(child.wait()?)
    }

    /// Everything that was printed.
    pub fn printed(&self) -> &str {
        &self.printed
    }
}

fn styled(style: &str, text: &str) -> String {
    let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    if colour { format!("{style}{text}\x1b[0m") } else { text.to_owned() }
}
