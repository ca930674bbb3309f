//! The receipt while a run is under way: void from before the start, and kept only when the run is proven and still the newest.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::look::Look;
use super::{Context, path_record};
use crate::cloud::{ErrorKind, Receipts};
use crate::exit::{Exit, Stop};
use crate::fingerprint::{Fingerprint, NoFingerprint};
use crate::receipt::{Overridden, Path, Receipt, VerifiedRun, Void};
use crate::run::ending::Ending;
use crate::run::judge::Proven;

/// A run that may earn the receipt.
pub struct Attempt<'a> {
    context: &'a Context,
    look: &'a Look,
    /// How a person says it again.
    verb: &'static str,
    fingerprint: Fingerprint,
    void: Void,
    begun: Kept,
}

/// Which run is the newest, and so the one that counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Newest {
    /// This one.
    This,
    /// One that was begun while this one ran.
    Overtaken,
}

/// A receipt that was kept: its text, and the version of the parameter.
struct Kept {
    text: String,
    version: i64,
}

/// What a run would depend on, of the world before it: what moves while it runs will not match afterwards.
pub fn fingerprint(context: &Context, look: &Look, verb: &str) -> Result<Fingerprint, Stop> {
    Fingerprint::of(&look.live)
        .map_err(|error| Stop::refused(error.to_string(), way_to_see(&error, &context.program, verb)))
}

impl<'a> Attempt<'a> {
    /// Voids the receipt: from here on no earlier proof counts.
    pub async fn begin(
        context: &'a Context,
        look: &'a Look,
        verb: &'static str,
        path: Path,
    ) -> anyhow::Result<Attempt<'a>> {
        let fingerprint = fingerprint(context, look, verb)?;
        let overridden = overridden(context, look).await?;
        let (by, via_scheduler) = (look.live.identity.arn.clone(), path == Path::Scheduler);
        let void = Void { since: now(), by, ending: None, via_scheduler, overridden };
        let begun = keep(context, look, &Receipt::Void(void.clone())).await?;
        Ok(Attempt { context, look, verb, fingerprint, void, begun })
    }

    /// What the run depends on, as it was before.
    pub fn fingerprint(&self) -> &Fingerprint {
        &self.fingerprint
    }

    /// Keeps the receipt of the run.
    pub async fn proven(self, path: Path, proven: &Proven) -> anyhow::Result<VerifiedRun> {
        let proof = self.look.desired.job.gate.proof;
        let by = &self.look.live.identity.arn;
        let verified = VerifiedRun::new(path, proven, proof, self.fingerprint.clone(), versions(self.look), now(), by);
        self.keep_if_newest(&Receipt::Verified(Box::new(verified.clone()))).await?;
        Ok(verified)
    }

    /// Keeps that nobody watches it.
    pub async fn unwatched(mut self) -> anyhow::Result<()> {
        self.void.ending = Some("it was started with --no-wait, and its end was not watched".to_owned());
        self.keep_if_newest(&Receipt::Void(self.void.clone())).await
    }

    /// Keeps how it ended instead; says whether another run has been begun since.
    pub async fn ended(mut self, ending: &Ending) -> Newest {
        self.void.ending = Some(shortened(&ending.lasting()));
        match self.keep_if_newest(&Receipt::Void(self.void.clone())).await {
            Ok(()) => Newest::This,
            Err(error) if error.downcast_ref::<Stop>().is_some_and(|stop| stop.exit == Exit::NotProven) => {
                Newest::Overtaken
            }
            Err(error) => {
                err!("note: how it ended could not be kept, and no earlier proof counts either: {error:#}");
                Newest::This
            }
        }
    }

    /// Keeps what became of a run, when it is still the newest: two may have begun at once, and then neither says anything of the
    /// job at rest. AWS has no conditional write here; the version that the write answers shows what came between. An answer that is
    /// lost is no sign of another run: the SDK writes again, and the versions between are our own.
    async fn keep_if_newest(&self, receipt: &Receipt) -> anyhow::Result<()> {
        let (context, look, begun) = (self.context, self.look, &self.begun);
        let name = &look.desired.receipt_parameter;
        let overtaken = || {
            let hint = format!("when that run has ended, prove the job again: {} {}", context.program, self.verb);
            let what = format!(
                "another run was begun while this one ran ({name} is not as this one left it), and only the newest counts"
            );
            Stop { exit: Exit::NotProven, what, hint }
        };
        let (text, version) = context.aws.receipt_version(name).await?;
        if (&text, version) != (&begun.text, begun.version) {
            return Err(overtaken().into());
        }
        let ours = receipt.to_text(&look.desired.owner)?;
        let written = match keep(context, look, receipt).await {
            Ok(kept) => kept.version,
            Err(error) => match context.aws.receipt_version(name).await {
                Ok((text, version)) if text == ours => version,
                Ok(_) | Err(_) => return Err(error),
            },
        };
        // What is not seen to be ours is another's.
        let since = begun.version + 1..=written;
        if written != begun.version + 1 && !context.aws.all_hold(name, since, &ours).await.unwrap_or(false) {
            let ending = Some("another run was begun while it ran".to_owned());
            let (by, via_scheduler, overridden) =
                (look.live.identity.arn.clone(), self.void.via_scheduler, self.void.overridden.clone());
            let void = Void { since: now(), by, ending, via_scheduler, overridden };
            keep(context, look, &Receipt::Void(void)).await?;
            return Err(overtaken().into());
        }
        Ok(())
    }
}

/// Keeps a receipt, or the lack of one.
async fn keep(context: &Context, look: &Look, receipt: &Receipt) -> anyhow::Result<Kept> {
    let (name, job) = (&look.desired.receipt_parameter, &look.desired.job.name);
    let text = receipt.to_text(&look.desired.owner)?;
    let version =
        context.aws.write_receipt(name, &text, job).await.map_err(|error| path_record::refused(context, error))?;
    Ok(Kept { text, version })
}

/// What only a proven run takes away; read anew, because somebody may have given a word since we looked.
async fn overridden(context: &Context, look: &Look) -> anyhow::Result<Option<Overridden>> {
    match context.aws.receipt(&look.desired.receipt_parameter).await {
        Ok(text) => {
            let receipt = Receipt::read(&text, &look.desired.owner).ok();
            Ok(receipt.and_then(|receipt| receipt.overridden().cloned()))
        }
        Err(error) if error.kind == ErrorKind::NotFound => Ok(None),
        // Whoever may not read it could not keep it after the run, either.
        Err(error) => Err(error.into()),
    }
}

/// What the run depends on, and was not seen.
fn way_to_see(error: &NoFingerprint, program: &str, verb: &str) -> String {
    let iam = if verb.ends_with("via-scheduler") { "trigger-via-scheduler" } else { "trigger" };
    match error {
        NoFingerprint::Hidden { .. } => {
            format!("allow that to the caller: {program} iam --for {iam} prints all it takes")
        }
        _ => format!("see more: {program} plan"),
    }
}

/// The versions of the secrets, by variable, as they were before the run.
fn versions(look: &Look) -> BTreeMap<String, i64> {
    let found = look.desired.parameters.iter().zip(&look.live.parameters);
    found.filter_map(|(wanted, seen)| Some((wanted.env.clone(), seen.present()?.version))).collect()
}

/// Now, to the second: nothing here is measured finer, and texts stay short.
pub fn now() -> Timestamp {
    let now = Timestamp::now();
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

/// A receipt has 4 KB; what ECS says of an end may be long.
fn shortened(text: &str) -> String {
    let mut short: String = text.chars().take(400).collect();
    if short.len() < text.len() {
        short.push('…');
    }
    short
}
