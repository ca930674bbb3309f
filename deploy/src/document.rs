//! A plan as JSON for a program: `deploy-plan/1`. Members may be added to it; what is there keeps its name and meaning.
//!
//! Architecture invariant: no I/O, no async, no clock, no SDK. No value of a secret and no value of a variable gets here: the first
//! is in no plan, the second is left out of the differences that a plan tells.

use serde_json::{Value, json};

use crate::desired::Desired;
use crate::plan::{Cure, Plan, Sign};
use crate::requests;

/// The name of the format and its version.
pub const FORMAT: &str = "deploy-plan/1";

/// The document. `notes` and `next` are those that a person is told.
pub fn plan(plan: &Plan, notes: &[String], next: Option<&str>, with_requests: Option<&Desired>) -> Value {
    let items: Vec<_> = plan
        .items
        .iter()
        .map(|item| {
            let details: Vec<_> =
                item.details.iter().map(|(label, text)| json!({ "label": label, "text": text })).collect();
            let steps: Vec<_> = item.steps.iter().map(ToString::to_string).collect();
            json!({
                "thing": item.thing.as_str(), "name": item.name, "action": action(item.sign), "why": item.why, "details": details,
                "steps": steps,
            })
        })
        .collect();
    let refusals: Vec<_> = plan
        .refusals
        .iter()
        .map(|refusal| {
            let flag = refusal.cure.map(|cure| match cure {
                Cure::Disabled => "--disabled",
                Cure::Adopt => "--adopt",
            });
            json!({ "what": refusal.what, "hint": refusal.hint, "flag": flag })
        })
        .collect();
    let mut document = json!({
        "geuneul": FORMAT, "job": plan.job, "place": plan.place, "state": plan.state.map(|state| state.as_str()),
        "empty": plan.is_empty(), "items": items, "refusals": refusals, "notes": notes, "next": next,
    });
    if let Some(desired) = with_requests {
        let requests = plan.steps().map(|step| {
            let (action, body) = requests::of(step, desired);
            json!({ "step": step.to_string(), "call": action, "request": body })
        });
        document["requests"] = requests.collect();
    }
    document
}

fn action(sign: Sign) -> &'static str {
    match sign {
        Sign::Create => "create",
        Sign::Change => "change",
        Sign::Blocked => "blocked",
        Sign::Same => "same",
        Sign::Unread => "unread",
    }
}
