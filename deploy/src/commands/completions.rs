//! `deploy completions SHELL`: what a shell needs to complete our verbs and flags.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::cli::Cli;
use crate::exit::Exit;

/// The flags of `deploy completions`.
#[derive(Debug, Args)]
pub struct CompletionsArgs {
    /// Which shell
    #[arg(value_enum)]
    shell: Shell,
}

/// Carries the verb out.
pub fn run(args: CompletionsArgs) -> Exit {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "deploy", &mut script);
    crate::out::data(format_args!("{}", String::from_utf8_lossy(&script)));
    Exit::Done
}
