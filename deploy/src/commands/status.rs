//! `deploy status`.

use clap::Args;

use super::Context;
use crate::exit::Exit;

/// The flags of `deploy status`.
#[derive(Debug, Args)]
pub struct StatusArgs {}

/// Carries the verb out.
pub async fn run(_context: &Context, _args: StatusArgs) -> anyhow::Result<Exit> {
    anyhow::bail!("not there yet")
}
