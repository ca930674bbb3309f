//! `deploy enable`.

use clap::Args;

use super::Context;
use crate::exit::Exit;

/// The flags of `deploy enable`.
#[derive(Debug, Args)]
pub struct EnableArgs {}

/// Carries the verb out.
pub async fn run(_context: &Context, _args: EnableArgs) -> anyhow::Result<Exit> {
    anyhow::bail!("not there yet")
}
