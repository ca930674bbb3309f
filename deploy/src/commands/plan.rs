//! `deploy plan`: what would change, and why.

use std::path::{Path, PathBuf};

use clap::Args;
use jiff::Timestamp;

use super::Context;
use super::look::Look;
use crate::desired::Desired;
use crate::exit::{Exit, Stop};
use crate::plan::{Cure, Plan, Sign, Wish};
use crate::saved::Saved;
use crate::secret::{SecretValue, Values};
use crate::{document, leak, render, requests as documents};

/// The flags of `deploy plan`.
#[derive(Debug, Args)]
pub struct PlanArgs {
    /// What is asked for.
    #[command(flatten)]
    pub wish: WishArgs,
    /// Exit 2 when changes are pending, 1 when something could not be looked at
    #[arg(long)]
    pub detailed_exitcode: bool,
    /// One JSON document (deploy-plan/1) in place of the text
    #[arg(long)]
    pub json: bool,
    /// Also the exact documents that each step will send; where a secret's value would stand, its source does
    #[arg(long)]
    pub requests: bool,
    /// Save the plan for `apply FILE`, which refuses when the world or the configuration has moved since
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// What is asked for, besides the configuration.
#[derive(Debug, Clone, Args)]
pub struct WishArgs {
    /// End switched off, whatever the state is now; a new schedule is created only with this
    #[arg(long)]
    pub disabled: bool,
    /// Take over what is there under our names and not ours
    #[arg(long)]
    pub adopt: bool,
    /// Move the schedule to the family's newest revision; else it stays on the one that it runs
    #[arg(long)]
    pub latest: bool,
    /// Write this secret's value anew, by its variable or its parameter (repeatable); else a value moves only when its parameter is
    /// absent
    #[arg(long, value_name = "NAME")]
    pub rotate: Vec<String>,
}

impl From<WishArgs> for Wish {
    fn from(WishArgs { disabled, adopt, latest, rotate }: WishArgs) -> Wish {
        Wish { disabled, adopt, latest, rotate }
    }
}

/// Carries the verb out.
pub async fn run(context: &Context, args: PlanArgs) -> anyhow::Result<Exit> {
    let wish: Wish = args.wish.into();
    let Look { desired, live, plan } = Look::at(context, &wish).await?;
    leak::refuse(&plan, &live, &peek(&desired))?;
    let notes = render::notes(&plan, &live, Timestamp::now());
    let mut next = render::next(&plan, &live, &context.job, &wish, Timestamp::now(), &context.program);
    if let Some(file) = &args.out {
        let document = document::plan(&plan, &notes, next.as_deref(), args.requests.then_some(&desired));
        save(file, &Saved::new(&plan, &live, &desired, &wish, document), &plan)?;
        next = Some(format!("{} apply {}", context.program, file.display()));
    }
    let refusals: Vec<_> = plan.refusals.iter().filter(|refusal| refusal.cure != Some(Cure::Disabled)).collect();
    if args.json {
        out!("{:#}", document::plan(&plan, &notes, next.as_deref(), args.requests.then_some(&desired)));
    } else {
        print(context, &plan, &notes);
        if args.requests {
            requests(&plan, &desired);
        }
        for refusal in &refusals {
            out!("refused: {}", refusal.what);
            out!("hint: {}", refusal.hint);
        }
        if let Some(next) = next {
            out!("next: {next}");
        }
    }
    Ok(match args.detailed_exitcode {
        true if plan.count(Sign::Unread) > 0 => Exit::Failed,
        _ if !refusals.is_empty() => Exit::Refused,
        true if !plan.is_empty() => Exit::Pending,
        _ => Exit::Done,
    })
}

fn print(context: &Context, plan: &Plan, notes: &[String]) {
    crate::out::data(format_args!("{}", render::plan(plan, context.style)));
    for note in notes {
        out!("note: {note}");
    }
}

fn requests(plan: &Plan, desired: &Desired) {
    for step in plan.steps() {
        let (action, request) = documents::of(step, desired);
        out!("\n--- {step}: {action}\n{request:#}");
    }
}

/// What a value is compared with: those that can be looked at without anybody noticing. A plan itself needs none.
pub fn peek(desired: &Desired) -> Values {
    let peeked = desired.parameters.iter().filter(|parameter| parameter.from.can_be_peeked());
    let read = peeked.filter_map(|one| Some((one.env.clone(), SecretValue::read(&one.from, &one.env).ok()?.0)));
    read.collect()
}

fn save(file: &Path, saved: &Saved, plan: &Plan) -> anyhow::Result<()> {
    if let Some(refusal) = plan.refusals.first() {
        let what = format!("a plan that would be refused is not saved: {}", refusal.what);
        return Err(Stop::refused(what, refusal.hint.clone()).into());
    }
    let text = serde_json::to_string_pretty(saved)?;
    std::fs::write(file, text + "\n").map_err(|error| {
        Stop::failed(format!("cannot write {}: {error}", file.display()), "say another file to --out").into()
    })
}
