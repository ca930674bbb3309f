//! `deploy export --terraform`: the way out. Prints what we manage for another tool; changes nothing.

use clap::Args;

use super::Context;
use crate::exit::Exit;
use crate::observe::observe;
use crate::terraform::{Export, export};

/// The flags of `deploy export`.
#[derive(Debug, Args)]
pub struct ExportArgs {
    /// As HCL with import blocks; the only form
    #[arg(long, required = true)]
    terraform: bool,
}

/// Carries the verb out.
pub async fn run(context: &Context, _args: ExportArgs) -> anyhow::Result<Exit> {
    let desired = context.desired();
    let live = observe(&context.aws, &desired).await?;
    let Export { hcl, missing } = export(&desired, &live);
    crate::out::data(format_args!("{hcl}"));
    for what in &missing {
        err!("note: not exported: {what}");
    }
    Ok(if missing.iter().any(|what| what.contains("could not look")) { Exit::Failed } else { Exit::Done })
}
