//! `deploy apply`.

use clap::Args;

use super::Context;
use crate::exit::Exit;

/// The flags of `deploy apply`.
#[derive(Debug, Args)]
pub struct ApplyArgs {}

/// Carries the verb out.
pub async fn run(_context: &Context, _args: ApplyArgs) -> anyhow::Result<Exit> {
    anyhow::bail!("not there yet")
}
