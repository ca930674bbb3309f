//! `cargo rehearse`: the whole story, with the real programs, on a machine without an AWS account.

mod hostile;
mod story;

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

/// Tells the whole story, from nothing to a proven and enabled monthly schedule, with the real programs as separate
/// processes: a local AWS that really runs tasks, a stand-in for data.go.kr, a temporary PostgreSQL. Leaves nothing behind.
#[derive(Debug, Parser)]
#[command(name = "cargo rehearse", bin_name = "cargo rehearse", version, max_term_width = 100)]
#[command(args_conflicts_with_subcommands = true, disable_help_subcommand = true)]
struct Cli {
    #[command(subcommand)]
    verb: Option<Verb>,

    /// Serve this month (one API item a line) instead of an invented one; a further --snapshot is the month after
    #[arg(long, value_name = "FILE")]
    snapshot: Vec<PathBuf>,

    /// Leave the stage up when the story ends, and print how to drive it by hand, until Enter or Ctrl-C
    #[arg(long)]
    keep: bool,

    /// What a task is: a process of this machine, or a container of the real image, built from the Dockerfile (needs root, podman and runc)
    #[arg(long, value_enum, value_name = "ENGINE", default_value_t = Engine::Process)]
    engine: Engine,
}

/// What a task of the local AWS is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Engine {
    /// A process of this machine.
    Process,
    /// A container of the real image.
    Podman,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Instead of the story: a real PgBouncer and a connection that vanishes; needs root, pgbouncer and iproute2
    Hostile,
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(64) } else { ExitCode::SUCCESS };
        }
    };
    let ended = match cli.verb {
        Some(Verb::Hostile) => hostile::rehearse(),
        None => story::tell(&cli.snapshot, cli.keep, cli.engine),
    };
    match ended {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(_) if story::interrupted() => ExitCode::from(130),
        Err(error) => {
            eprintln!("rehearsal: {error:#}");
            ExitCode::FAILURE
        }
    }
}
