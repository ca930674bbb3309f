//! Keeping the record that Scheduler can start the job.

use super::Context;
use super::attempt::now;
use super::look::Look;
use crate::cloud::ReceiptWriteError;
use crate::exit::Stop;
use crate::fingerprint::Fingerprint;
use crate::model::Seen;
use crate::run::judge::Proven;
use crate::scheduled_path::{How, ScheduledPath};
use crate::standing::path::shown_by;

/// How many of the last runs are looked at.
const RUNS: usize = 5;

/// A record that could not be kept is known before a run is begun for it.
pub async fn refuse_foreign(context: &Context, look: &Look) -> anyhow::Result<()> {
    let Seen::Present(_) = look.live.scheduled_path else { return Ok(()) };
    let (name, job) = (&look.desired.scheduled_path_parameter, &look.desired.job.name);
    context.aws.guard_receipt(name, job).await.map_err(|error| refused(context, error))
}

/// A run by a one-off schedule proved the path for what it was when the run was begun.
pub async fn keep_proven(context: &Context, look: &Look, was: &Fingerprint, proven: &Proven) -> anyhow::Result<()> {
    let by = &look.live.identity.arn;
    keep(context, look, &ScheduledPath::new(How::ViaScheduler, &proven.task().arn, was, now(), by)).await
}

/// A run that the schedule itself started proves it as well, as long as the log and the receipt remember: that is kept before a new
/// run voids the receipt. It is a courtesy: what fails here costs nothing that is there.
pub async fn keep_scheduled(context: &Context, look: &Look) {
    // A schedule that is switched off was written since its last run, which therefore shows nothing of it.
    let (true, Ok(now), Some((group, prefix))) = (look.is_on(), Fingerprint::of(&look.live), look.stream_prefix())
    else {
        return;
    };
    let known = look.live.scheduled_path.present().and_then(|record| record.as_ref().ok());
    if known.is_some_and(|record| record.proven_for(&now).is_ok()) {
        return;
    }
    let Ok(runs) = context.reports(&group, &prefix).recent(RUNS).await else { return };
    let Some((run, began)) = shown_by(&look.live, &now, &runs) else { return };
    let task = format!("{}/{}", look.desired.cluster_arn().replacen(":cluster/", ":task/", 1), run.task);
    let record = ScheduledPath::new(How::Scheduled, &task, &now, began, &look.live.identity.arn);
    if keep(context, look, &record).await.is_ok() {
        err!("note: the schedule itself has run the job as it is now: recorded, the scheduled path is proven");
    }
}

async fn keep(context: &Context, look: &Look, record: &ScheduledPath) -> anyhow::Result<()> {
    let (name, text) = (&look.desired.scheduled_path_parameter, record.to_text(&look.desired.owner));
    context
        .aws
        .write_receipt(name, &text, &look.desired.job.name)
        .await
        .map(drop)
        .map_err(|error| refused(context, error))
}

/// With the way out; what AWS said gets its own hint.
pub(super) fn refused(context: &Context, error: ReceiptWriteError) -> anyhow::Error {
    match error {
        ReceiptWriteError::Foreign(_) => {
            let hint = format!(
                "choose another `app` in deploy.toml, or delete that parameter if nobody needs it; then: {} plan",
                context.program
            );
            Stop::refused(error.to_string(), hint).into()
        }
        ReceiptWriteError::Cloud(error) => error.into(),
    }
}
