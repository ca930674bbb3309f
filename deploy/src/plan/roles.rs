//! The execution role's inline policy, and the scheduler's role.

use serde_json::Value;

use super::{Draft, Pinned, Refusal, Sign, Step, Thing};
use crate::desired::{SCHEDULER_POLICY_NAME, role_name};
use crate::model::{PolicyDocument, Role, Seen, tags};
use crate::observe;
use crate::templates::EXECUTION_POLICY_SID;

impl Draft<'_> {
    pub(super) fn execution_policy(&mut self) {
        let (desired, live) = (self.desired, self.live);
        let Some(role) = observe::execution_role(desired, &live.task_definition) else { return };
        let Some(seen) = &live.execution_policy else { return };
        let (role, name) = (role_name(&role).to_owned(), desired.execution_policy_name());
        let document = desired.execution_policy();
        let step = Step::PutRolePolicy { role: role.clone(), policy: name.clone(), document: document.clone() };
        match seen {
            Seen::Hidden { why } => self.hidden(Thing::Policy, &name, why),
            Seen::Absent => {
                let why = match desired.parameters.len() {
                    1 => format!("not found; lets {role} read the secret"),
                    n => format!("not found; lets {role} read the {n} secrets"),
                };
                self.item(Thing::Policy, name, Sign::Create, why).steps.push(step);
            }
            Seen::Present(found) if self.same_policy(found, &document) => {
                self.item(Thing::Policy, name, Sign::Same, format!("lets {role} read exactly the secrets"));
            }
            // An inline policy cannot be tagged; our statement's id is the mark.
            Seen::Present(found) if !self.wish.adopt && !found.0.contains(EXECUTION_POLICY_SID) => {
                self.foreign(Thing::Policy, &name, "it would be overwritten");
            }
            Seen::Present(found) => {
                let details = self.what_differs(found, &document);
                let why = format!("what it lets {role} read differs from the secrets");
                let item = self.item(Thing::Policy, name, Sign::Change, why);
                item.details = details;
                item.steps.push(step);
            }
        }
    }

    pub(super) fn scheduler_role(&mut self, pinned: &Pinned) {
        let (desired, live) = (self.desired, self.live);
        let name = desired.role.name.clone();
        let found = match &live.scheduler_role {
            Seen::Hidden { why } => return self.hidden(Thing::Role, &name, why),
            Seen::Absent if !desired.role.ours => {
                self.item(Thing::Role, &name, Sign::Blocked, "not found");
                let what = format!("role {} is not there", desired.role.arn);
                let hint = "create it, or leave `role` out of the configuration and one is made and kept";
                return self.refusals.push(Refusal::new(what, hint));
            }
            Seen::Absent => None,
            Seen::Present(found) => Some(found),
        };
        match found {
            Some(found) if !desired.role.ours => self.given_role(found),
            Some(found) => self.existing_role(found, pinned),
            None => self.new_role(pinned),
        }
    }

    /// A role of somebody else's is only looked at.
    fn given_role(&mut self, found: &Role) {
        let name = &self.desired.role.name;
        if self.normalisers.policy(&found.trust).to_string().contains("scheduler.amazonaws.com") {
            self.item(Thing::Role, name, Sign::Same, "given, used as it is");
            return;
        }
        self.item(Thing::Role, name, Sign::Blocked, "given, and Scheduler may not assume it");
        let what = format!("role {} does not trust scheduler.amazonaws.com", found.arn);
        self.refusals
            .push(Refusal::new(what, "add it to the role's trust policy; templates/scheduler-trust.json shows how"));
    }

    fn new_role(&mut self, pinned: &Pinned) {
        let desired = self.desired;
        let name = desired.role.name.clone();
        let create = Step::CreateRole { name: name.clone(), trust: desired.trust(), tags: desired.tags.clone() };
        let policy = self.put_scheduler_policy(pinned);
        let item = self.item(Thing::Role, name, Sign::Create, "not found");
        item.details =
            vec![("policy".to_owned(), format!("{SCHEDULER_POLICY_NAME}: start this family on this cluster"))];
        item.steps = vec![create, policy];
    }

    fn existing_role(&mut self, found: &Role, pinned: &Pinned) {
        let (desired, live) = (self.desired, self.live);
        let role = &desired.role.name;
        let ours = tags::are_ours(&found.tags, &desired.job.name);
        if !ours && !self.wish.adopt {
            return self.foreign(Thing::Role, role, "its tags are not those of this job");
        }
        let mut changes: Vec<(&str, Step)> = Vec::new();
        let mut details = Vec::new();
        if !ours {
            changes
                .push(("becomes ours by its tags", Step::TagRole { role: role.clone(), tags: desired.tags.clone() }));
        }
        if !self.same_policy(&found.trust, &desired.trust()) {
            details.extend(self.what_differs(&found.trust, &desired.trust()));
            let step = Step::UpdateTrust { role: role.clone(), trust: desired.trust() };
            changes.push(("who may assume it differs", step));
        }
        match &live.scheduler_policy {
            Seen::Hidden { why } => return self.hidden(Thing::Role, role, why),
            Seen::Absent => changes.push(("what it may do is missing", self.put_scheduler_policy(pinned))),
            Seen::Present(policy) if !self.same_policy(policy, &desired.scheduler_policy(&pinned.members)) => {
                details.extend(self.what_differs(policy, &desired.scheduler_policy(&pinned.members)));
                changes.push(("what it may do differs", self.put_scheduler_policy(pinned)));
            }
            Seen::Present(_) => {}
        }
        if changes.is_empty() {
            self.item(Thing::Role, role, Sign::Same, "may start this family on this cluster, and no more");
            return;
        }
        let (words, steps): (Vec<_>, Vec<_>) = changes.into_iter().unzip();
        let item = self.item(Thing::Role, role, Sign::Change, words.join("; "));
        (item.steps, item.details) = (steps, details);
    }

    fn put_scheduler_policy(&self, pinned: &Pinned) -> Step {
        Step::PutRolePolicy {
            role: self.desired.role.name.clone(),
            policy: SCHEDULER_POLICY_NAME.to_owned(),
            document: self.desired.scheduler_policy(&pinned.members),
        }
    }

    fn what_differs(&self, found: &PolicyDocument, wanted: &PolicyDocument) -> Vec<(String, String)> {
        let (found, wanted) = (self.normalisers.policy(found), self.normalisers.policy(wanted));
        let (now, then) = (statements(&found), statements(&wanted));
        let only = |label: &str, these: &[String], those: &[String]| -> Vec<(String, String)> {
            these.iter().filter(|one| !those.contains(one)).map(|one| (label.to_owned(), one.clone())).collect()
        };
        [only("now", &now, &then), only("wanted", &then, &now)].concat()
    }

    fn same_policy(&self, found: &PolicyDocument, wanted: &PolicyDocument) -> bool {
        self.normalisers.policy(found) == self.normalisers.policy(wanted)
    }
}

/// The statements of a policy, each as a person says it: `ecs:RunTask on ... when ecs:cluster is ...`.
fn statements(policy: &Value) -> Vec<String> {
    let list = match policy.get("Statement") {
        Some(Value::Array(statements)) => statements.clone(),
        Some(one) => vec![one.clone()],
        None => Vec::new(),
    };
    list.iter().map(statement).collect()
}

fn statement(statement: &Value) -> String {
    let words = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", "),
        other => other.to_string(),
    };
    let mut said = words(&statement["Action"]);
    if statement["Effect"] != "Allow" {
        said = format!("{} of {said}", words(&statement["Effect"]));
    }
    for (member, joint) in [("Principal", "by"), ("Resource", "on")] {
        if let Some(value) = statement.get(member) {
            said = format!("{said} {joint} {}", words(value.get("Service").unwrap_or(value)));
        }
    }
    let conditions = statement.get("Condition").and_then(Value::as_object).into_iter().flatten();
    let keys = conditions.flat_map(|(_, keys)| keys.as_object().into_iter().flatten());
    let keys: Vec<_> = keys.map(|(key, value)| format!("{key} is {}", words(value))).collect();
    if keys.is_empty() { said } else { format!("{said} when {}", keys.join(" and ")) }
}
