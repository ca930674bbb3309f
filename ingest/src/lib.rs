//! `ingest`: mirrors a public data set into PostgreSQL and can be trusted alone.
//!
//! One grammar: observe -> plan -> apply -> report. [`run`](mod@run) tells the story; every other module is one idea of it.
//!
//! Architecture invariant: no pool, and no AWS. The session that holds the lock is the session that writes.

mod apply;
mod cli;
pub mod config;
pub mod error;
mod identity;
mod ledger;
mod lock;
mod logging;
mod merges;
mod migrate;
mod observe;
pub mod ping;
mod plan;
mod preview;
mod record;
mod report;
pub mod run;
pub mod session;
mod skip;
mod snapshot;
mod source;
mod spool;
mod status;
mod tls;
pub mod upstream;

use std::io::{IsTerminal, Write};
use std::process::ExitCode;

use geuneul::{JobCommand, NEEDS_A_PERSON, Outcome};
use tokio::signal::unix::{SignalKind, signal};

use cli::Invocation;
use config::{Database, Settings};
use error::{Error, Explained};
use session::{Lease, Session};
use status::Question;
use upstream::Pace;

/// The program.
pub fn main() -> ExitCode {
    let invocation = match cli::parse(std::env::args_os()) {
        Ok(invocation) => invocation,
        Err(error) => {
            // Nothing can be done about a stream that is closed.
            let _ = error.print();
            return if error.use_stderr() { ExitCode::from(Outcome::Usage.exit_code()) } else { ExitCode::SUCCESS };
        }
    };
    logging::start();
    let runtime = match runtime() {
        Ok(runtime) => runtime,
        Err(error) => return ExitCode::from(unable_to_start(&invocation, error).exit_code()),
    };
    let code = runtime.block_on(async {
        match invocation {
            Invocation::Run(command) => run_once(&command).await.exit_code(),
            Invocation::Migrate => migrate_once().await.exit_code(),
            Invocation::Status(question) => status_now(&question).await,
            Invocation::ExplainMerges => explain_merges().await.exit_code(),
        }
    });
    // A name lookup that hangs must not keep the process.
    runtime.shutdown_background();
    ExitCode::from(code)
}

fn environment(name: &str) -> Option<String> {
    std::env::var_os(name).map(|value| value.to_string_lossy().into_owned())
}

/// Without a file to open, one of its parts gives an error and another panics.
fn runtime() -> Result<tokio::runtime::Runtime, Error> {
    let built = std::panic::catch_unwind(|| tokio::runtime::Builder::new_current_thread().enable_all().build());
    built.unwrap_or_else(|_| Err(std::io::Error::other("no runtime"))).map_err(Error::Start)
}

fn unable_to_start(invocation: &Invocation, error: Error) -> Outcome {
    explain(&error);
    let outcome = error.outcome();
    if let Invocation::Run(command) = invocation {
        let occurrence = config::occurrence(&environment).ok().flatten();
        print(&run::unable(command, occurrence, error).report.to_line());
    }
    outcome
}

/// What is no run: within the budget of one, and a panic is an error.
async fn within_limits<T>(story: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    let limit = Pace::UNATTENDED.run;
    tokio::select! {
        biased;
        () = interrupted() => Err(Error::Interrupted),
        () = tokio::time::sleep(limit) => Err(Error::Deadline(limit)),
        done = run::contain(story) => done,
    }
}

async fn run_once(command: &JobCommand) -> Outcome {
    let settings = Settings::read(&environment);
    let lease = settings.as_ref().map_or(Lease::UNATTENDED, |settings| settings.database.lease);
    let ended = run::run(command, settings, Pace::UNATTENDED.within(lease), interrupted()).await;
    if let Some(error) = &ended.error {
        explain(error);
    }
    if let Some(preview) = &ended.preview {
        print(preview);
    }
    print(&ended.report.to_line());
    // The evidence is out and the lock is free: telling somebody decides nothing any more.
    tokio::select! {
        biased;
        () = interrupted() => {}
        () = ended.ping.finish(&ended.report) => {}
    }
    ended.report.outcome
}

async fn status_now(question: &Question) -> u8 {
    let answer = async {
        let database = Database::read(&environment)?;
        let session = Session::open(&database, "ingest status").await?;
        let status = status::look(&session, &database.schema, question).await?;
        session.close().await;
        Ok(status)
    };
    match within_limits(answer).await {
        Ok(status) => {
            print(&if question.json { status.to_json() } else { status.to_text() });
            if status.needs_a_person() { NEEDS_A_PERSON } else { 0 }
        }
        Err(error) => {
            explain(&error);
            error.outcome().exit_code()
        }
    }
}

async fn migrate_once() -> Outcome {
    let migrated = async {
        let database = Database::read(&environment)?;
        let mut session = Session::open(&database, "ingest migrate").await?;
        let migrated = migrate::ensure(&mut session, &database.schema).await?;
        session.close().await;
        Ok((database.schema, migrated))
    };
    match within_limits(migrated).await {
        Ok((schema, migrate::Migrated { from, to })) if from == to => {
            print(&format!("schema {} is at version {to}; nothing to do", schema.as_str()));
            Outcome::Succeeded
        }
        Ok((schema, migrate::Migrated { from, to })) => {
            print(&format!("schema {} migrated from version {from} to {to}", schema.as_str()));
            Outcome::Succeeded
        }
        Err(error) => {
            explain(&error);
            error.outcome()
        }
    }
}

/// Prints which rows are one library. Reads only.
async fn explain_merges() -> Outcome {
    let explained = async {
        let database = Database::read(&environment)?;
        let session = Session::open(&database, "ingest explain-merges").await?;
        let mut held = Vec::new();
        let used = migrate::is_there(&session, &database.schema).await?;
        if !used {
            tracing::warn!(schema = database.schema.as_str(), "no run has ever been here");
        }
        for &name in if used { geuneul::SourceName::ALL } else { &[] } {
            held.extend(observe::places(session.client(), &source::Source::of(name)).await?);
        }
        session.close().await;
        Ok::<_, Error>(merges::explain(&held))
    };
    match within_limits(explained).await {
        Ok(text) => {
            print(&text);
            Outcome::Succeeded
        }
        Err(error) => {
            explain(&error);
            error.outcome()
        }
    }
}

/// Resolves when the process is asked to end.
async fn interrupted() {
    let (Ok(mut terminate), Ok(mut interrupt)) = (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => tracing::warn!("SIGTERM: rolling back"),
        _ = interrupt.recv() => tracing::warn!("SIGINT: rolling back"),
    }
}

fn explain(error: &Error) {
    if std::io::stderr().is_terminal() {
        let _ = writeln!(std::io::stderr(), "{}", Explained(error));
    } else {
        tracing::error!(code = error.code(), hint = error.hint(), "{error}");
    }
}

/// The one line on stdout. A closed stdout is no reason to end otherwise: the ledger has it too.
fn print(line: &str) {
    if let Err(error) = writeln!(std::io::stdout(), "{line}") {
        tracing::warn!("stdout cannot be written: {error}");
    }
}
