//! The command line: flags in, a value out.

use std::ffi::OsString;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use geuneul::{DryRun, Interval, JobCommand, NEEDS_A_PERSON, Outcome, RunId, SourceName, Trigger};

use crate::lock::LockKey;
use crate::status::Question;

/// What the command line asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Invocation {
    /// One run.
    Run(JobCommand),
    /// The schema, and no run.
    Migrate,
    /// How things stand.
    Status(Question),
    /// Which rows are one library, and why.
    ExplainMerges,
}

/// Mirrors a public data set into PostgreSQL: fetches it, proves that it is complete, writes what changed, soft-deletes what is gone.
#[derive(Parser)]
#[command(name = "ingest", version, max_term_width = 100)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true, disable_help_subcommand = true)]
#[command(
    override_usage = "ingest --ingest.source=<SOURCE> [OPTIONS]\n       ingest migrate\n       ingest status [--json]\n       ingest explain-merges"
)]
struct Cli {
    #[command(subcommand)]
    verb: Option<Verb>,

    /// The data set to mirror: library
    #[arg(long = "ingest.source", value_name = "SOURCE", require_equals = true, required = true)]
    source: Option<SourceName>,

    /// Soft-delete the places that the new snapshot lacks
    #[arg(long = "ingest.deactivate-stale", value_name = "true|false", require_equals = true, default_value = "false")]
    #[arg(action = clap::ArgAction::Set, hide_possible_values = true)]
    deactivate_stale: bool,

    /// End after the run; only true, as there is nothing to stay for
    #[arg(long = "ingest.exit-after", value_name = "true", require_equals = true, default_value = "true")]
    #[arg(action = clap::ArgAction::Set, value_parser = exit_after)]
    exit_after: bool,

    /// The run that this one repeats, for the ledger
    #[arg(long = "ingest.retry-of", value_name = "RUN_ID", require_equals = true)]
    retry_of: Option<RunId>,

    /// Who starts it: manual, scheduled or backfill [default: what INGEST_TRIGGER says, else manual]
    #[arg(long = "ingest.trigger", value_name = "WHO", require_equals = true)]
    trigger: Option<Trigger>,

    /// For scheduled runs only: do nothing when the last success is younger than this, such as 20d
    #[arg(long = "ingest.min-interval", value_name = "DURATION", require_equals = true)]
    min_interval: Option<Interval>,

    /// Take this advisory lock instead of the source's own: for a cut-over, the key of the job that is replaced
    #[arg(long = "ingest.lock-key", value_name = "I64", require_equals = true, allow_negative_numbers = true)]
    lock_key: Option<i64>,
    /// Show the plan with samples, as text or as JSON, and write nothing but the ledger's row
    #[arg(long = "ingest.dry-run", value_name = "true|json|false", require_equals = true, default_value = "false")]
    #[arg(value_parser = dry_run)]
    dry_run: DryRunFlag,

    /// Believe at most this many deactivations, instead of 5 % (and at least 10): a ceiling for this run
    #[arg(long = "ingest.confirm-deactivations", value_name = "N", require_equals = true)]
    confirm_deactivations: Option<u64>,
}

/// A type of its own, so that clap does not take it for a flag that may be absent.
#[derive(Debug, Clone, Copy)]
struct DryRunFlag(Option<DryRun>);

fn dry_run(word: &str) -> Result<DryRunFlag, String> {
    match word {
        "true" => Ok(DryRunFlag(Some(DryRun::Text))),
        "json" => Ok(DryRunFlag(Some(DryRun::Json))),
        "false" => Ok(DryRunFlag(None)),
        _ => Err("say true, json or false".to_owned()),
    }
}

#[derive(Subcommand)]
enum Verb {
    /// Bring the database's schema up to date, and do nothing else
    Migrate,
    /// Say how things stand; ends with 5 when something needs a person
    Status {
        /// One JSON object instead of text
        #[arg(long)]
        json: bool,

        /// Only this data set [default: all]
        #[arg(long = "ingest.source", value_name = "SOURCE", require_equals = true)]
        source: Option<SourceName>,

        /// How old the last success may be: a month, and the days on which the schedule tries again
        #[arg(long = "ingest.max-age", value_name = "DURATION", require_equals = true, default_value = "35d")]
        max_age: Interval,
    },
    /// List which published rows are one library, and by which rule
    ExplainMerges,
}

fn exit_after(word: &str) -> Result<bool, String> {
    match word {
        "true" => Ok(true),
        "false" => Err("there is nothing to stay for after a run; leave the flag out, or say true".to_owned()),
        _ => Err("say true".to_owned()),
    }
}

/// Reads the command line. The error is clap's: help and version are such errors too, and go to stdout.
pub fn parse(argv: impl IntoIterator<Item = impl Into<OsString> + Clone>) -> Result<Invocation, clap::Error> {
    let matches = Cli::command().after_help(after_help()).try_get_matches_from(argv)?;
    let cli = Cli::from_arg_matches(&matches)?;
    let Cli {
        verb,
        source,
        deactivate_stale,
        exit_after: _,
        retry_of,
        trigger,
        min_interval,
        lock_key,
        dry_run,
        confirm_deactivations,
    } = cli;
    let DryRunFlag(dry_run) = dry_run;
    Ok(match (verb, source) {
        (Some(Verb::Migrate), _) => Invocation::Migrate,
        (Some(Verb::Status { json, source, max_age }), _) => Invocation::Status(Question { json, source, max_age }),
        (Some(Verb::ExplainMerges), _) => Invocation::ExplainMerges,
        (None, Some(source)) => Invocation::Run(JobCommand {
            source,
            deactivate_stale,
            retry_of,
            trigger,
            min_interval,
            lock_key,
            dry_run,
            confirm_deactivations,
        }),
        (None, None) => unreachable!("clap demands a source when there is no verb"),
    })
}

fn after_help() -> String {
    let mut text = "Environment:
  DATABASE_URL             postgres://USER:PASSWORD@HOST:5432/NAME, or instead of it:
  DB_HOST DB_PORT DB_NAME DB_USERNAME DB_PASSWORD DB_SSLMODE
  INGEST_DB_CA             PEM text or file of the authority that signed the server's certificate
                           [default: the public roots]
  INGEST_DB_SCHEMA         the schema that holds our tables [default: ingest]
  INGEST_LEASE             a run without progress for so long loses its session and its lock; one page
                           is given half of it [default: 5m]
  INGEST_PING_URL          where to say that a run starts (URL/start), succeeded (URL) or failed
                           (URL/fail); a secret
  INGEST_TRIGGER           who starts the run: manual, scheduled or backfill
  INGEST_OCCURRENCE        JOB@TIME, the job and the fire time that the run is for: kept and reported
  DATA_GO_KR_SERVICE_KEY   the key of a data.go.kr account, in either of the portal's two forms
  DATA_GO_KR_BASE_URL      [default: https://api.data.go.kr]
  RUST_LOG                 what to log on stderr [default: info]

The last line on stdout is the run's report, one JSON object. Advisory lock keys in the default schema:
"
    .to_owned();
    for &source in SourceName::ALL {
        text.push_str(&format!("  {source}: {}\n", LockKey::of(source).get()));
    }
    text.push_str("\nExit codes:\n");
    text.push_str(&format!("  {NEEDS_A_PERSON:>3}  {:<17} something needs a person\n", "status"));
    for outcome in Outcome::ALL {
        text.push_str(&format!("  {:>3}  {:<17} {}\n", outcome.exit_code(), outcome.as_str(), outcome.meaning()));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse_args(args: &[&str]) -> Result<Invocation, clap::Error> {
        parse(std::iter::once("ingest").chain(args.iter().copied()))
    }

    fn command() -> impl Strategy<Value = JobCommand> {
        let source = proptest::sample::select(SourceName::ALL);
        let run = proptest::option::of("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}");
        let trigger = proptest::option::of(proptest::sample::select(Trigger::ALL));
        let interval = proptest::option::of((1..=366u64, proptest::sample::select(vec!['s', 'm', 'h', 'd'])));
        let key = proptest::option::of(any::<i64>());
        let dry_run = proptest::sample::select(&[None, Some(DryRun::Text), Some(DryRun::Json)][..]);
        let ceiling = proptest::option::of(any::<u64>());
        (source, any::<bool>(), run, trigger, interval, key, dry_run, ceiling).prop_map(
            |(source, deactivate_stale, run, trigger, interval, lock_key, dry_run, confirm_deactivations)| JobCommand {
                source,
                deactivate_stale,
                retry_of: run.map(|run| run.parse().unwrap()),
                trigger,
                min_interval: interval.map(|(number, unit)| format!("{number}{unit}").parse().unwrap()),
                lock_key,
                dry_run,
                confirm_deactivations,
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_scheduled_is_what_is_understood(command in command()) {
            let argv = std::iter::once("ingest".to_owned()).chain(command.argv());
            prop_assert_eq!(parse(argv).unwrap(), Invocation::Run(command));
        }
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
        assert_eq!(parse_args(&["migrate"]).unwrap(), Invocation::Migrate);
        let question = Question { json: false, source: None, max_age: Interval::days(35) };
        assert_eq!(parse_args(&["status"]).unwrap(), Invocation::Status(question));
    }

    #[test]
    fn anything_else_is_refused() {
        for args in [
            &[][..],
            &["--ingest.source"],
            &["--ingest.source", "library"],
            &["--ingest.source=Library"],
            &["--ingest.source=library", "--ingest.source=library"],
            &["--ingest.source=library", "--ingest.deactivate-stale"],
            &["--ingest.source=library", "--ingest.deactivate-stale=yes"],
            &["--ingest.source=library", "--ingest.exit-after=false"],
            &["--ingest.source=library", "--ingest.trigger=monthly"],
            &["--ingest.source=library", "--ingest.retry-of=17"],
            &["--ingest.source=library", "--ingest.min-interval=12"],
            &["--ingest.source=library", "--ingest.min-interval=0d"],
            &["--ingest.source=library", "--ingest.lock-key=9223372036854775808"],
            &["--ingest.source=library", "--ingest.lock-key", "-7"],
            &["status", "--ingest.source=other"],
            &["status", "--ingest.max-age=soon"],
            &["--ingest.source=library", "status"],
            &["--ingest.source=library", "--ingest.dry-run"],
            &["--ingest.source=library", "--ingest.dry-run=yes"],
            &["--ingest.source=library", "--ingest.confirm-deactivations=-1"],
            &["--ingest.source=library", "--ingest.confirm-deactivations=all"],
            &["--ingest.source=library", "--ingest.unknown=1"],
            &["--ingest.source=library", "extra"],
            &["--ingest.source=library", "migrate"],
            &["migrate", "--ingest.source=library"],
        ] {
            assert!(parse_args(args).is_err(), "{args:?}");
        }
    }
}
