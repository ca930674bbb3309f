//! `cargo rehearse`: the whole story, with the real programs, on a machine without an AWS account.

mod story;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;

/// Tells the whole story, from nothing to a proven and enabled monthly schedule, with the real programs as separate
/// processes: a local AWS that really runs tasks, a stand-in for data.go.kr, a temporary PostgreSQL. Leaves nothing behind.
#[derive(Debug, Parser)]
#[command(name = "cargo rehearse", version, max_term_width = 100)]
struct Cli {
    /// Serve this month (one API item a line) instead of an invented one; a further --snapshot is the month after
    #[arg(long, value_name = "FILE")]
    snapshot: Vec<PathBuf>,

    /// Leave the stage up when the story ends, and print how to drive it by hand, until Enter or Ctrl-C
    #[arg(long)]
    keep: bool,
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(64) } else { ExitCode::SUCCESS };
        }
    };
    match story::tell(&cli.snapshot, cli.keep) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("rehearsal: {error:#}");
            ExitCode::FAILURE
        }
    }
}
