//! The end of a run: the lock is given back, the ledger entry closed, and nobody waits for a server that does not answer.

use std::time::Duration;

use tokio::time::timeout;

use crate::error::Error;
use crate::ledger::{self, Fence};
use crate::lock::Locked;
use crate::report::Ending;

/// After a signal: how long what is nearly done may still take.
pub(super) const GRACE: Duration = Duration::from_millis(1500);

/// How long the goodbye of a failed run may take; the process ends after it in any case. Whoever sends a signal waits for less, and
/// a database that has not answered so far will not be quicker now.
fn goodbye(error: &Error) -> Duration {
    Duration::from_secs(if matches!(error, Error::Interrupted | Error::Deadline(_)) { 2 } else { 10 })
}

/// Leaves the lock. The server must say that it was held, and what was committed is reported in any case; after a failure the rest is closed as well as it goes.
pub(super) async fn leave(locked: Locked, fence: Fence, result: Result<Ending, Error>) -> Result<Ending, Error> {
    match result {
        Ok(ending) if locked.session().is_lost() => {
            // The reply to COMMIT was lost and the ledger has it: lock and session ended together, after the commit.
            locked.abandon().await;
            Ok(ending)
        }
        Ok(Ending::Mirrored { counts, withheld, flaw: _ }) => {
            // The transaction held the fence to its end: what it committed holds, whatever became of the lock.
            let flaw = locked.release().await.err();
            Ok(Ending::Mirrored { counts, withheld, flaw })
        }
        Ok(ending) => locked.release().await.map(|()| ending),
        // COMMIT may still happen: nothing is said after it, and the session ends with the process.
        Err(error @ (Error::InterruptedCommit | Error::CommitUnknown(_))) => Err(error),
        Err(error) => {
            if timeout(goodbye(&error), close(locked, fence, &error)).await.is_err() {
                tracing::warn!("the session did not close in time; the server ends it, its transaction and its lock");
            }
            Err(error)
        }
    }
}

async fn close(locked: Locked, fence: Fence, error: &Error) {
    if locked.session().is_lost() {
        return;
    }
    if let Error::Interrupted | Error::Deadline(_) = error {
        locked.session().cancel().await;
    }
    let closed = async {
        locked.session().roll_back().await?;
        ledger::fail(&locked, fence, error).await?;
        locked.release().await
    };
    if let Err(failure) = closed.await {
        tracing::warn!("while closing a failed run: {failure}");
    }
}
