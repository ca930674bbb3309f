//! The story of one run: connect, lock, fetch, prove, observe, plan, apply, unlock, report.

mod leaving;

use std::future::Future;
use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::time::Duration;

use futures_util::FutureExt;
use geuneul::{DryRun, JobCommand, Outcome, RunReport, Trigger};
use tokio::select;
use tokio::time::{Instant, sleep, sleep_until, timeout, timeout_at};
use tracing::Instrument;

use crate::apply::{self, Committed, Committing};
use crate::config::{ConfigError, Database, Settings};
use crate::error::{Doing, Error};
use crate::ledger::{self, Entry, Fate, Fence};
use crate::lock::{Attempt, Holder, LockKey, Locked, application_name};
use crate::ping::Ping;
use crate::plan::{self, Plan, Stale};
use crate::preview::{self, Preview};
use crate::record::{Note, Row};
use crate::report::{Counts, Ending, Facts};
use crate::session::Session;
use crate::snapshot::{self, Snapshot};
use crate::source::Source;
use crate::upstream::{Pace, Upstream};
use crate::{migrate, observe, skip};
use leaving::{GRACE, leave};

/// A run that is over.
pub struct Ended {
    /// What it says about itself.
    pub report: RunReport,
    /// Why it ended early, or what was odd after the commit, for a person.
    pub error: Option<Error>,
    /// Who is to be told. Nothing has been sent but the start.
    pub ping: Ping,
    /// The plan of a run that only looked, to be printed before the report.
    pub preview: Option<String>,
}

/// Runs. Whatever happens, a panic included, there is a report. `interrupt` ends the run when it resolves.
pub async fn run(
    command: &JobCommand,
    settings: Result<Settings, ConfigError>,
    pace: Pace,
    interrupt: impl Future<Output = ()>,
) -> Ended {
    let trigger = settings.as_ref().map_or_else(ConfigError::trigger, |settings| settings.trigger);
    let occurrence = settings.as_ref().map_or_else(ConfigError::occurrence, |settings| settings.occurrence.clone());
    let facts = Facts::start(command, trigger, occurrence);
    // A run that only shows its plan has nothing to tell.
    let told = settings.as_ref().map_or_else(ConfigError::ping, |settings| settings.ping.as_ref());
    let ping = Ping::new(told.filter(|_| command.dry_run.is_none()), &facts.run_id);
    let ending = match settings {
        Ok(settings) => {
            let story = Story { facts: &facts, command, settings: &settings, pace, ping: &ping };
            let span = tracing::info_span!("run", id = %facts.run_id, source = %facts.source);
            contain(story.tell(interrupt)).instrument(span).await.unwrap_or_else(Ending::Failed)
        }
        Err(error) => Ending::Failed(error.into()),
    };
    let report = facts.report(&ending);
    let (error, preview) = match ending {
        Ending::Failed(error) => (Some(error), None),
        Ending::Shown { preview, .. } => (None, Some(preview)),
        Ending::Mirrored { flaw, .. } => (flaw, None),
        Ending::Skipped(..) => (None, None),
    };
    Ended { report, error, preview, ping }
}

/// The report of a run that could not even begin.
pub fn unable(command: &JobCommand, occurrence: Option<String>, error: Error) -> Ended {
    let facts = Facts::start(command, None, occurrence);
    let ping = Ping::new(None, &facts.run_id);
    Ended { report: facts.report(&Ending::Failed(error)), error: None, preview: None, ping }
}

/// Turns a panic into an error. A session that the story owns is dropped while unwinding, so the server rolls back and frees the lock.
pub(crate) async fn contain<T>(story: impl Future<Output = Result<T, Error>>) -> Result<T, Error> {
    AssertUnwindSafe(story).catch_unwind().await.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str).or_else(|| panic.downcast_ref::<&str>().copied());
        Err(Error::Panic(text.unwrap_or("a panic without words").to_owned()))
    })
}

struct Story<'a> {
    facts: &'a Facts,
    command: &'a JobCommand,
    settings: &'a Settings,
    pace: Pace,
    ping: &'a Ping,
}

enum Entered {
    Working(Locked, Fence),
    Skipped(Outcome, geuneul::Skip),
}

impl Story<'_> {
    async fn tell(&self, interrupt: impl Future<Output = ()>) -> Result<Ending, Error> {
        let mut interrupt = pin!(interrupt);
        let deadline = Instant::now() + self.pace.run;
        let entered = {
            let mut entering = pin!(self.enter());
            select! {
                biased;
                // A moment for the ledger entry, so that it can be closed.
                () = &mut interrupt => match timeout(GRACE, entering).await {
                    Ok(Ok(Entered::Working(locked, fence))) => {
                        return leave(locked, fence, Err(Error::Interrupted)).await;
                    }
                    Ok(Ok(skipped)) => skipped,
                    Ok(Err(_)) | Err(_) => return Err(Error::Interrupted),
                },
                () = sleep_until(deadline) => return Err(Error::Deadline(self.pace.run)),
                entered = &mut entering => entered?,
            }
        };
        let (mut locked, fence) = match entered {
            Entered::Working(locked, fence) => (locked, fence),
            Entered::Skipped(outcome, skip) => return Ok(Ending::Skipped(outcome, skip)),
        };
        let committing = Committing::default();
        let result = {
            // A panic is an error like any other here: the ledger entry is closed.
            let mut work = pin!(contain(self.work(&mut locked, fence, &committing)));
            select! {
                biased;
                // Once COMMIT is on its way, its answer says how the run ends; but nobody waits for it for ever.
                () = &mut interrupt => match committing.is_set() {
                    true => timeout(GRACE, work).await.unwrap_or(Err(Error::InterruptedCommit)),
                    false => Err(Error::Interrupted),
                },
                () = sleep_until(deadline) => Err(match committing.is_set() {
                    true => Error::CommitUnknown("no answer in time".to_owned()),
                    false => Error::Deadline(self.pace.run),
                }),
                result = &mut work => result,
            }
        };
        leave(locked, fence, result).await
    }

    fn entry(&self) -> Entry<'_> {
        Entry {
            run_id: &self.facts.run_id,
            source: self.facts.source,
            trigger: self.facts.trigger,
            occurrence: self.facts.occurrence.as_deref(),
            retry_of: self.command.retry_of.as_ref(),
            deactivate_stale: self.command.deactivate_stale,
            lock_key: self.lock_key(),
            dry_run: self.command.dry_run.is_some(),
            ceiling: self.command.confirm_deactivations,
        }
    }

    fn lock_key(&self) -> LockKey {
        self.command.lock_key.map_or(LockKey::within(&self.settings.database.schema, self.facts.source), LockKey::given)
    }

    /// Up to the lock, and the ledger entry that goes with it.
    async fn enter(&self) -> Result<Entered, Error> {
        let Database { schema, .. } = &self.settings.database;
        let source = self.facts.source;
        let application = application_name(source, &self.facts.run_id);
        let mut session = Session::open(&self.settings.database, &application).await?;
        // Whoever only looks makes the tables that its entry needs, and changes none for the programs that use them.
        if self.command.dry_run.is_none() || !migrate::is_there(&session, schema).await? {
            migrate::ensure(&mut session, schema).await?;
        }
        let key = self.lock_key();
        match Locked::attempt(session, key).await? {
            Attempt::Locked(mut locked) => {
                if let Some(skip) = self.done_recently(&locked).await? {
                    locked.release().await?;
                    return Ok(Entered::Skipped(Outcome::Skipped, skip));
                }
                if self.command.dry_run.is_none() {
                    self.ping.start();
                }
                let fence = ledger::begin(&mut locked, &self.entry()).await?;
                Ok(Entered::Working(locked, fence))
            }
            Attempt::Busy(session) => {
                let holder = Holder::look(&session, key).await?;
                let (outcome, skip) = skip::locked_out(&session, &self.entry(), holder).await?;
                tracing::warn!(lock_key = key.get(), holder = skip.holder_application.as_deref(), %outcome, "the lock is held");
                session.close().await;
                Ok(Entered::Skipped(outcome, skip))
            }
        }
    }

    /// Only the schedule fires twice for one month; a person knows why.
    async fn done_recently(&self, locked: &Locked) -> Result<Option<geuneul::Skip>, Error> {
        match self.command.min_interval {
            Some(interval) if self.facts.trigger == Trigger::Scheduled => {
                let skip = skip::done_recently(locked, &self.entry(), interval).await?;
                let age_s = skip.as_ref().and_then(|skip| skip.last_success_age_s);
                tracing::info!(%interval, age_s, skipped = skip.is_some(), "looked at the last success");
                Ok(skip)
            }
            _ => Ok(None),
        }
    }

    /// Under the lock.
    async fn work(&self, locked: &mut Locked, fence: Fence, committing: &Committing) -> Result<Ending, Error> {
        let source = Source::of(self.facts.source);
        let mut snapshot = self.fetch(locked, fence, &source).await?;
        let rows = read(&source, &mut snapshot)?;
        let noted = tell_notes(&rows);
        let held = observe::places(locked.client(), &source).await?;
        let ceiling = self.command.confirm_deactivations;
        let stale = match (self.command.deactivate_stale, snapshot.complete()) {
            // Whoever reads of a success must be able to rely on it, whether or not anything was to be deactivated.
            (_, None) => Stale::Withhold { ceiling },
            (false, Some(_)) => Stale::Keep { ceiling },
            (true, Some(proof)) => Stale::Deactivate { proof, ceiling },
        };
        let plan = plan::plan(rows, &held, stale);
        tell_plan(&plan);
        let mut counts = Counts::of(&plan, &snapshot, noted);
        if let Some(form) = self.command.dry_run {
            return self.show(locked, fence, plan, counts, form).await;
        }
        if let Some(churn) = plan.churn {
            return Err(Error::KeyChurn(churn));
        }
        let outcome = Ending::outcome_of(plan.withheld.as_ref());
        let job = apply::Job { source: source.name, fence, outcome, committing };
        let backend_pid = locked.session().backend_pid;
        if let Committed::ReplyLost(error) = apply::apply(locked, job, &plan, &mut counts).await? {
            self.settle(backend_pid, error).await?;
        }
        Ok(Ending::Mirrored { counts, withheld: plan.withheld, flaw: None })
    }

    /// Instead of carrying the plan out: nothing but the ledger's row is written.
    async fn show(
        &self,
        locked: &mut Locked,
        fence: Fence,
        plan: Plan,
        counts: Counts,
        form: DryRun,
    ) -> Result<Ending, Error> {
        let stored = observe::contents(locked.client(), &preview::sampled(&plan)).await?;
        let preview = Preview::of(self.facts.source, &plan, &counts, &stored).render(form);
        let transaction = locked.client_mut().transaction().await.doing("beginning the transaction")?;
        ledger::succeed(&transaction, fence, Outcome::DryRun, &counts, plan.withheld.as_ref()).await?;
        transaction.commit().await.doing("committing the ledger entry")?;
        Ok(Ending::Shown { counts, withheld: plan.withheld, preview })
    }

    /// No transaction is open meanwhile; each page renews the lease.
    async fn fetch(&self, locked: &Locked, fence: Fence, source: &Source) -> Result<Snapshot, Error> {
        let upstream =
            Upstream::new(&self.settings.endpoint, source.path, source.is_field, self.pace).map_err(Error::Http)?;
        let mut pages = 0;
        let mut turned = async |progress: crate::upstream::Progress| {
            pages += 1;
            tracing::info!(page = progress.pages, rows = progress.rows, total = progress.total, "a page arrived");
            ledger::progress(locked, fence, pages).await
        };
        snapshot::obtain(&upstream, &mut turned).await
    }

    /// The reply to COMMIT was lost: a new session asks the ledger, whose row was part of the transaction.
    async fn settle(&self, old_backend: i32, lost: tokio_postgres::Error) -> Result<(), Error> {
        tracing::warn!("the connection broke during COMMIT; asking the ledger: {}", crate::error::chain(&lost));
        let mut last = "the old session is still there".to_owned();
        let deadline = Instant::now() + SETTLE;
        while Instant::now() < deadline {
            match timeout_at(deadline, self.ask_for_fate(old_backend)).await {
                Ok(Ok(Fate::Committed)) => return Ok(()),
                Ok(Ok(Fate::RolledBack)) => return Err(Error::NotCommitted),
                Ok(Ok(Fate::Undecided)) => {}
                Ok(Err(error)) => last = error.to_string(),
                Err(_) => "the ledger does not answer".clone_into(&mut last),
            }
            sleep(self.pace.first_delay).await;
        }
        Err(Error::CommitUnknown(last))
    }

    async fn ask_for_fate(&self, old_backend: i32) -> Result<Fate, Error> {
        let session = Session::open(&self.settings.database, "ingest settle").await?;
        let application = application_name(self.facts.source, &self.facts.run_id);
        let fate = ledger::fate(&session, &self.facts.run_id, old_backend, &application).await;
        session.close().await;
        fate
    }
}

/// Reads every row, and refuses a snapshot of which too much cannot be stored.
fn read(source: &Source, snapshot: &mut Snapshot) -> Result<Vec<plan::Read>, Error> {
    let mut rows = Vec::with_capacity(snapshot.len());
    for row in snapshot.read().map_err(Error::Spool)? {
        let row = row.map_err(Error::Spool)?;
        rows.push(((source.read)(&row.item), row.fingerprint));
    }
    let rejects = rows.iter().filter_map(|(row, _)| if let Row::Bad(reject) = row { Some(reject) } else { None });
    let rejected = rejects.clone().count();
    for reject in rejects.clone().take(20) {
        tracing::warn!(column = reject.column, reason = %reject.reason, handle = ?reject.handle, "a row is set aside");
    }
    if plan::too_many_rejects(rejected, rows.len()) {
        let first = rejects.clone().next().map(|reject| format!("The first: {} {}.", reject.column, reject.reason));
        return Err(Error::TooManyRejects { rejected, fetched: rows.len(), first: first.unwrap_or_default() });
    }
    Ok(rows)
}

/// Counts the odd values that are stored all the same, by kind.
fn tell_notes(rows: &[plan::Read]) -> usize {
    let mut notes: Vec<Note> = rows
        .iter()
        .filter_map(|(row, _)| if let Row::Good(record) = row { Some(&record.notes) } else { None })
        .flatten()
        .copied()
        .collect();
    notes.sort_unstable();
    for kind in notes.chunk_by(|a, b| a == b) {
        tracing::warn!(values = kind.len(), note = kind[0].as_str(), "odd values");
    }
    notes.len()
}

fn tell_plan(plan: &Plan) {
    if plan.repairs() > 0 {
        let ids = plan.mends.iter().map(|mend| mend.id).take(20).collect::<Vec<_>>();
        tracing::warn!(rows = plan.put_right, pointers = plan.mends.len(), ?ids, "changed by hand, and put right");
    }
    tracing::info!(
        insert = plan.inserts(),
        update = plan.updates(),
        reactivate = plan.reactivations(),
        deactivate = plan.deactivate.len(),
        carry_over = plan.changed(plan::What::CarriedOver),
        merge = plan.changed(plan::What::Merged),
        unchanged = plan.unchanged,
        rejected = plan.rejects.len(),
        withheld = plan.withheld.as_ref().map(|withheld| withheld.deactivations),
        "planned"
    );
}

/// For how long the ledger is asked what became of a COMMIT.
const SETTLE: Duration = Duration::from_secs(20);

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_is_an_error_with_its_words() {
        let error = contain::<()>(async { panic!("the row {} is impossible", 7) }).await.unwrap_err();
        assert_eq!(error.to_string(), "a fault of this program: the row 7 is impossible");
        assert_eq!(error.outcome().exit_code(), 70);
    }
}
