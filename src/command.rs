//! The job's command: a value, and the argv that stands for it.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Interval, RunId, SourceName};

/// Every flag of the job starts with this, as in the system that it comes from (`--ingest.source=library`).
pub const FLAG_PREFIX: &str = "--ingest.";

/// What one run of `ingest` is asked to do. `deploy` renders it into the schedule's Input with [`JobCommand::argv`]; `ingest`
/// parses its command line into the same value.
///
/// A flag that has its default is not rendered, except the three that make the command readable on its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobCommand {
    /// `--ingest.source`: the data set.
    pub source: SourceName,
    /// `--ingest.deactivate-stale`: soft-delete what the new snapshot lacks. Default false.
    pub deactivate_stale: bool,
    /// `--ingest.retry-of`: the run that this one repeats, for the ledger.
    pub retry_of: Option<RunId>,
    /// `--ingest.trigger`: who started it. When absent, the environment's `INGEST_TRIGGER` says it, so that a manual and a
    /// scheduled run have the same command.
    pub trigger: Option<Trigger>,
    /// `--ingest.min-interval`: a scheduled run does nothing when the last success is younger. Manual runs and backfills ignore it.
    pub min_interval: Option<Interval>,
    /// `--ingest.lock-key`: the advisory lock to take instead of the source's own, shared with an older job during a cut-over.
    pub lock_key: Option<i64>,
}

impl JobCommand {
    /// The monthly command of a source.
    pub const fn monthly(source: SourceName) -> Self {
        JobCommand { source, deactivate_stale: true, retry_of: None, trigger: None, min_interval: None, lock_key: None }
    }

    /// The command line, one flag an element, in a fixed order. `exit-after` is always true: there is nothing to stay for.
    pub fn argv(&self) -> Vec<String> {
        let JobCommand { source, deactivate_stale, retry_of, trigger, min_interval, lock_key } = self;
        let flag = |name: &str, value: &dyn fmt::Display| format!("{FLAG_PREFIX}{name}={value}");
        let mut argv =
            vec![flag("source", source), flag("deactivate-stale", deactivate_stale), flag("exit-after", &true)];
        argv.extend(retry_of.as_ref().map(|run| flag("retry-of", run)));
        argv.extend(trigger.map(|trigger| flag("trigger", &trigger)));
        argv.extend(min_interval.map(|interval| flag("min-interval", &interval)));
        argv.extend(lock_key.map(|key| flag("lock-key", &key)));
        argv
    }
}

/// Who started a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Trigger {
    /// A person, with `deploy trigger-now` or at a shell.
    Manual,
    /// The schedule.
    Scheduled,
    /// A person, to catch up on a month that was missed.
    Backfill,
}

impl Trigger {
    /// Every trigger.
    pub const ALL: &'static [Trigger] = &[Trigger::Manual, Trigger::Scheduled, Trigger::Backfill];

    /// The name as flags, environment and ledger write it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Trigger::Manual => "manual",
            Trigger::Scheduled => "scheduled",
            Trigger::Backfill => "backfill",
        }
    }
}

impl fmt::Display for Trigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The word is not one of [`Trigger::ALL`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown trigger {0:?}; known: manual, scheduled, backfill")]
pub struct UnknownTrigger(pub String);

impl FromStr for Trigger {
    type Err = UnknownTrigger;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        Trigger::ALL
            .iter()
            .copied()
            .find(|trigger| trigger.as_str() == word)
            .ok_or_else(|| UnknownTrigger(word.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_monthly_command_is_spelt_as_it_always_was() {
        assert_eq!(
            JobCommand::monthly(SourceName::Library).argv(),
            ["--ingest.source=library", "--ingest.deactivate-stale=true", "--ingest.exit-after=true"]
        );
    }

    #[test]
    fn what_has_no_default_is_rendered() {
        let command = JobCommand {
            source: SourceName::Library,
            deactivate_stale: false,
            retry_of: Some("7b0b1f3e-1111-4222-8333-944445555666".parse().unwrap()),
            trigger: Some(Trigger::Backfill),
            min_interval: Some(Interval::days(20)),
            lock_key: Some(-7),
        };
        assert_eq!(
            command.argv(),
            [
                "--ingest.source=library",
                "--ingest.deactivate-stale=false",
                "--ingest.exit-after=true",
                "--ingest.retry-of=7b0b1f3e-1111-4222-8333-944445555666",
                "--ingest.trigger=backfill",
                "--ingest.min-interval=20d",
                "--ingest.lock-key=-7",
            ]
        );
    }
}
