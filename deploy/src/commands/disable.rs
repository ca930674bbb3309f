//! `deploy disable`.

use clap::Args;

use super::Context;
use crate::exit::Exit;

/// The flags of `deploy disable`.
#[derive(Debug, Args)]
pub struct DisableArgs {}

/// Carries the verb out.
pub async fn run(_context: &Context, _args: DisableArgs) -> anyhow::Result<Exit> {
    anyhow::bail!("not there yet")
}
