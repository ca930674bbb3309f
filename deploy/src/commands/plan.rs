//! `deploy plan`: what would change, and why.

use clap::Args;
use jiff::Timestamp;

use super::Context;
use super::look::Look;
use crate::exit::Exit;
use crate::plan::{Cure, Sign, Wish};
use crate::render;

/// The flags of `deploy plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// What is asked for.
    #[command(flatten)]
    pub wish: WishArgs,
    /// Exit 2 when changes are pending, 1 when something could not be looked at
    #[arg(long)]
    pub detailed_exitcode: bool,
}

/// What is asked for, besides the configuration.
#[derive(Debug, Clone, Copy, Args)]
pub struct WishArgs {
    /// End switched off, whatever the state is now; a new schedule is created only with this
    #[arg(long)]
    pub disabled: bool,
    /// Take over what is there under our names and not ours
    #[arg(long)]
    pub adopt: bool,
    /// Write the secrets' values anew; else a value moves only when its parameter is absent
    #[arg(long)]
    pub rotate: bool,
}

impl From<WishArgs> for Wish {
    fn from(WishArgs { disabled, adopt, rotate }: WishArgs) -> Wish {
        Wish { disabled, adopt, rotate }
    }
}

/// Carries the verb out.
pub async fn run(context: &Context, args: PlanArgs) -> anyhow::Result<Exit> {
    let wish = args.wish.into();
    let Look { live, plan, .. } = Look::at(context, wish).await?;
    crate::out::data(format_args!("{}", render::plan(&plan, context.style)));
    for note in render::notes(&plan, &live, Timestamp::now()) {
        out!("note: {note}");
    }
    let refusals: Vec<_> = plan.refusals.iter().filter(|refusal| refusal.cure != Some(Cure::Disabled)).collect();
    for refusal in &refusals {
        out!("refused: {}", refusal.what);
        out!("hint: {}", refusal.hint);
    }
    if let Some(next) = render::next(&plan, &live, &context.job, wish, Timestamp::now(), &context.program) {
        out!("next: {next}");
    }
    Ok(match args.detailed_exitcode {
        true if plan.count(Sign::Unread) > 0 => Exit::Failed,
        _ if !refusals.is_empty() => Exit::Refused,
        true if !plan.is_empty() => Exit::Pending,
        _ => Exit::Done,
    })
}
