//! The command line: flags to values, values to a verb, an error to an exit code.

use std::ffi::OsString;
use std::io::IsTerminal;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

use crate::again;
use crate::commands::{self, Context};
use crate::exit::{Exit, Stop};
use crate::explain;
use crate::render::Style;

/// Puts a container job on a schedule, switched off, proves one run, and only then lets it be switched on.
#[derive(Debug, Parser)]
#[command(name = "deploy", version, max_term_width = 100, args_override_self = true, after_help = EXIT_CODES)]
pub struct Cli {
    /// What every verb understands.
    #[command(flatten)]
    pub global: Global,
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

const EXIT_CODES: &str = "\
Exit codes:
  0   done, or nothing to do
  1   failed; with plan --detailed-exitcode also: something could not be looked at
  2   changes are pending (only plan --detailed-exitcode)
  3   refused by a guard, nothing was changed
  4   the run did not prove itself
  5   needs a person (status, verify)
  64  the command line or deploy.toml is wrong
  run ends with the container's own exit code";

/// What every verb understands.
#[derive(Debug, Args)]
pub struct Global {
    /// What is wanted
    #[arg(
        long,
        global = true,
        help_heading = "Options of every command",
        value_name = "FILE",
        default_value = "deploy.toml"
    )]
    pub config: PathBuf,
    /// Which [job.NAME] of the file; needed only when it has several
    #[arg(long, global = true, help_heading = "Options of every command", value_name = "NAME")]
    pub job: Option<String>,
    /// Which profile of ~/.aws/config, in place of AWS_PROFILE
    #[arg(long, global = true, help_heading = "Options of every command", value_name = "NAME")]
    pub profile: Option<String>,
    /// Another AWS, such as a local one; AWS_ENDPOINT_URL does the same
    #[arg(long, global = true, help_heading = "Options of every command", value_name = "URL")]
    pub endpoint_url: Option<String>,
    /// Colour in the output; NO_COLOR is respected
    #[arg(long, global = true, help_heading = "Options of every command", value_enum, value_name = "WHEN")]
    #[arg(default_value_t = Color::Auto)]
    pub color: Color,
}

/// When to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Color {
    /// On a terminal, unless NO_COLOR is set.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl Color {
    /// The style for stdout: what was asked for, else colour on a terminal unless NO_COLOR is set.
    pub fn style(self) -> Style {
        let asked = std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
        let color = match self {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => asked && std::io::stdout().is_terminal(),
        };
        Style { color }
    }
}

/// The verbs, one file each under `commands/`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Show what would change, and why; touches nothing
    #[command(after_help = "Exit codes: 0 seen, 1 failed, 3 apply would be refused; with --detailed-exitcode also 1 \
        something could not be looked at, 2 changes are pending")]
    Plan(commands::plan::PlanArgs),
    /// Make it so; never switches the schedule on
    #[command(
        after_help = "Exit codes: 0 done, 1 failed (say it again, and it goes on), 3 refused and nothing was changed"
    )]
    Apply(commands::apply::ApplyArgs),
    /// Run the job once with the schedule's own input, and keep the receipt if it proves itself
    #[command(
        after_help = "Exit codes: 0 the run is proven, 1 failed, 3 refused and nothing was started, 4 the run did not prove itself"
    )]
    TriggerNow(commands::trigger_now::TriggerNowArgs),
    /// Run the job's container with other arguments, inside its network and with its secrets; earns no receipt
    #[command(
        after_help = "Exit codes: the container's own; also 1 it never started or its end was not seen, 3 refused, 64 usage"
    )]
    Run(commands::run::RunArgs),
    /// Follow a task again, and say how it ended; earns no receipt
    #[command(
        after_help = "Exit codes: 0 it ended well, 1 failed, 3 refused: the task is not ours, 4 it did not end well, or \
        its end was not seen"
    )]
    Attach(commands::attach::AttachArgs),
    /// Print what the job's container wrote, the newest task's unless one is named
    #[command(after_help = "Exit codes: 0 printed, 1 failed")]
    Logs(commands::logs::LogsArgs),
    /// Stop a task of the job, and say what it ended with
    #[command(after_help = "Exit codes: 0 it has stopped, 1 failed, 3 refused: the task is not ours")]
    Stop(commands::stop::StopArgs),
    /// Switch the schedule on; refuses unless a run is proven and nothing has moved since
    #[command(after_help = "Exit codes: 0 switched on, 1 failed, 3 refused and nothing was changed")]
    Enable(commands::enable::EnableArgs),
    /// Switch the schedule off
    #[command(
        after_help = "Exit codes: 0 it does not fire, 1 failed and it may still fire, 3 refused: the schedule is not ours"
    )]
    Disable(commands::disable::DisableArgs),
    /// What is there, whether it is on, and what the last runs said
    #[command(after_help = "Exit codes: 0 well, 1 something could not be looked at, 5 needs a person")]
    Status(commands::status::StatusArgs),
    /// The last runs, scheduled and by hand: how each ended, and what it did
    #[command(after_help = "Exit codes: 0 shown, 1 something could not be looked at")]
    History(commands::history::HistoryArgs),
    /// Look at everything that a run needs, at once; touches nothing
    Verify(commands::verify::VerifyArgs),
    /// Write a commented deploy.toml from what is there already
    Init(commands::init::InitArgs),
    /// Print the least that a caller must be allowed, as a policy
    Iam(commands::iam::IamArgs),
    /// Print what we manage for another tool; touches nothing
    Export(commands::export::ExportArgs),
    /// Delete what is ours, in reverse order, and say what stays
    Destroy(commands::destroy::DestroyArgs),
    /// Print what a shell needs to complete this program's verbs and flags
    Completions(commands::completions::CompletionsArgs),
}

impl Verb {
    /// Whether it is lost without the file that `task_definition` names. Whoever stops a job, or looks how it does, is not.
    fn reads_the_document(&self) -> bool {
        use Verb::{Apply, Enable, Export, Iam, Plan, TriggerNow, Verify};
        matches!(self, Apply(_) | Enable(_) | Export(_) | Iam(_) | Plan(_) | TriggerNow(_) | Verify(_))
    }
}

/// Runs one command line to its end.
pub fn main(arguments: impl Iterator<Item = OsString>) -> Exit {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            // clap's own code for a usage error is 2, which here means "changes pending".
            return if error.use_stderr() { Exit::Usage } else { Exit::Done };
        }
    };
    log_to_stderr();
    again::remember(&cli.global);
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return report(&anyhow::Error::new(error).context("cannot start the async runtime")),
    };
    let exit = runtime.block_on(dispatch(cli)).unwrap_or_else(|error| report(&error));
    match crate::out::finish() {
        // What was asked for has not arrived, and nobody else says so.
        Err(error) => {
            err!("error: stdout could not be written: {error}");
            if exit.code() == 0 { Exit::Failed } else { exit }
        }
        Ok(()) => exit,
    }
}

async fn dispatch(cli: Cli) -> anyhow::Result<Exit> {
    // What needs no deploy.toml.
    let verb = match cli.verb {
        Verb::Init(args) => return commands::init::run(&cli.global, args).await,
        Verb::Completions(args) => return Ok(commands::completions::run(args)),
        Verb::Disable(args) if args.schedule.is_some() => return commands::disable::named(&cli.global, args).await,
        verb => verb,
    };
    let context = match prepared(&cli.global, &verb).await {
        Ok(context) => context,
        Err(error) => {
            if let Verb::TriggerNow(args) = &verb {
                args.tell(&error);
            }
            return Err(match verb {
                Verb::Disable(_) => commands::disable::without_a_file(&cli.global, error),
                _ => error,
            });
        }
    };
    match verb {
        Verb::Init(_) | Verb::Completions(_) => Ok(Exit::Done), // told above
        Verb::Plan(args) => commands::plan::run(&context, args).await,
        Verb::Apply(args) => commands::apply::run(&context, args).await,
        Verb::TriggerNow(args) => commands::trigger_now::run(&context, args).await,
        Verb::Run(args) => commands::run::run(&context, args).await,
        Verb::Attach(args) => commands::attach::run(&context, args).await,
        Verb::Logs(args) => commands::logs::run(&context, args).await,
        Verb::Stop(args) => commands::stop::run(&context, args).await,
        Verb::Enable(args) => commands::enable::run(&context, args).await,
        Verb::Disable(args) => commands::disable::run(&context, args).await,
        Verb::Status(args) => commands::status::run(&context, args).await,
        Verb::History(args) => commands::history::run(&context, args).await,
        Verb::Verify(args) => commands::verify::run(&context, args).await,
        Verb::Iam(args) => commands::iam::run(&context, args).await,
        Verb::Export(args) => commands::export::run(&context, args).await,
        Verb::Destroy(args) => commands::destroy::run(&context, args).await,
    }
}

async fn prepared(global: &Global, verb: &Verb) -> anyhow::Result<Context> {
    let context = Context::new(global).await?;
    match &context.job.task_definition {
        Some(Err(unusable)) if verb.reads_the_document() => Err(Stop::from(unusable).into()),
        _ => Ok(context),
    }
}

/// Prints an error with its causes, and its way out.
fn report(error: &anyhow::Error) -> Exit {
    err!("error: {error:#}");
    let (exit, hint) = explain::way_out(error);
    for line in hint.lines() {
        err!("hint: {line}");
    }
    exit
}

/// `RUST_LOG` only. The SDK's own logs hold request bodies at trace level, and its warnings repeat what our errors say: all off.
fn log_to_stderr() {
    use tracing_subscriber::EnvFilter;
    let wanted = std::env::var("RUST_LOG").unwrap_or_else(|_| "warn".to_owned());
    let mut filter = EnvFilter::try_new(&wanted).unwrap_or_else(|_| EnvFilter::new("warn"));
    for crate_name in
        ["aws_config", "aws_runtime", "aws_sigv4", "aws_smithy_runtime", "aws_smithy_http_client", "hyper"]
    {
        if let Ok(directive) = format!("{crate_name}=off").parse() {
            filter = filter.add_directive(directive);
        }
    }
    let _ = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr()))
        // Else a line that stderr does not take is reported to stderr, by a macro that panics.
        .log_internal_errors(false)
        .try_init();
}
