//! `deploy trigger-now`.

use clap::Args;

use super::Context;
use crate::exit::Exit;

/// The flags of `deploy trigger-now`.
#[derive(Debug, Args)]
pub struct TriggerNowArgs {}

/// Carries the verb out.
pub async fn run(_context: &Context, _args: TriggerNowArgs) -> anyhow::Result<Exit> {
    anyhow::bail!("not there yet")
}
