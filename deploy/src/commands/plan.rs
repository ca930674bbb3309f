//! `deploy plan`.

use clap::Args;

use super::Context;
use crate::exit::Exit;

/// The flags of `deploy plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {}

/// Carries the verb out.
pub async fn run(_context: &Context, _args: PlanArgs) -> anyhow::Result<Exit> {
    anyhow::bail!("not there yet")
}
