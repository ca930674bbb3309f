//! The execution role's inline policy, and the scheduler's role.

use std::collections::BTreeSet;

use serde_json::Value;

use super::trust::like;
use super::{Draft, Pinned, Refusal, SCHEDULER, Sign, Step, Thing, Trust, lines, not_compared, tag_lines};
use crate::desired::{Desired, SCHEDULER_POLICY_NAME, WantedRole, role_name};
use crate::model::{NewRole, PolicyDocument, Role, Seen, tags};
use crate::normalise::{Normalisers, differences};
use crate::observe;
use crate::templates::EXECUTION_POLICY_SID;

impl Draft<'_> {
    /// The ARNs of the parameters that our inline policy lets the execution role read now.
    pub(super) fn granted(&self) -> BTreeSet<String> {
        match &self.live.execution_policy {
            Some(Seen::Present(found)) => granted(found, self.normalisers),
            _ => BTreeSet::new(),
        }
    }

    /// Those of them that no secret of the job names any more.
    pub(super) fn no_longer_wanted(&self) -> BTreeSet<String> {
        let wanted: BTreeSet<_> = self.desired.parameters.iter().map(|parameter| parameter.arn.clone()).collect();
        self.granted().difference(&wanted).cloned().collect()
    }

    pub(super) fn narrows_policy(&self) -> bool {
        !self.no_longer_wanted().is_empty()
    }

    /// A container whose secret the execution role may not read does not start.
    pub(super) fn keep_readable(&mut self, pinned: &Pinned) {
        let lost = self.no_longer_wanted();
        for container in items(pinned.members.get("containerDefinitions").unwrap_or(&Value::Null)) {
            for secret in items(&container["secrets"]) {
                let arn = self.desired.parameter_arn(secret["valueFrom"].as_str().unwrap_or_default());
                if lost.contains(&arn) {
                    let words = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                    let (name, env) = (words(&container["name"]), words(&secret["name"]));
                    let what =
                        format!("container {name} still reads {arn} as {env}, and it is no secret of the job any more");
                    let hint = "take it out of the task definition as well, or put it back into the configuration";
                    self.refusals.push(Refusal::new(what, hint));
                }
            }
        }
    }

    pub(super) fn execution_policy(&mut self) {
        let (desired, live) = (self.desired, self.live);
        let Some(role) = observe::execution_role(desired, &live.task_definition) else { return };
        let Some(seen) = &live.execution_policy else { return };
        let (role, name) = (role_name(&role).to_owned(), desired.execution_policy_name());
        let document = desired.execution_policy();
        let step = Step::PutRolePolicy { role: role.clone(), policy: name.clone(), document: document.clone() };
        if let Seen::Present(found) = seen
            && let Some(region) = granted_in_other_region(found, desired)
        {
            return self.taken_in(&region, Thing::Policy, &name);
        }
        match seen {
            Seen::Hidden { why } => self.hidden(Thing::Policy, &name, why),
            Seen::Absent if desired.parameters.is_empty() => {}
            Seen::Present(found) if desired.parameters.is_empty() => {
                // One that is not ours would not be missed, and so is nobody's business here.
                if found.0.contains(EXECUTION_POLICY_SID) {
                    let step = Step::DeleteRolePolicy { role: role.clone(), policy: name.clone() };
                    let why = format!("is deleted: {role} has no secret of the job to read any more");
                    self.item(Thing::Policy, name, Sign::Change, why).steps.push(step);
                }
            }
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

    /// Whether Scheduler may assume a role for this job's group.
    fn schedulers_trust(&self, role: &Role) -> Trust {
        let (trust, group) = (self.normalisers.policy(&role.trust), self.desired.group_arn());
        Trust::of(&trust, SCHEDULER, &[("aws:sourceaccount", &self.desired.account), ("aws:sourcearn", &group)])
    }

    /// A role of somebody else's is only looked at.
    fn given_role(&mut self, found: &Role) {
        let WantedRole { name, arn, .. } = &self.desired.role;
        if found.arn != *arn {
            self.item(Thing::Role, name, Sign::Blocked, format!("given as {arn}, and that name is {}", found.arn));
            let what = format!("role {arn} is not there; a role of the same name is {}", found.arn);
            return self.refusals.push(Refusal::new(what, "set `role` to the whole ARN of a role in this account"));
        }
        match self.schedulers_trust(found) {
            Trust::Given => {
                let boundary = self.boundary_of_others(found);
                self.item(Thing::Role, name, Sign::Same, "given, used as it is").details.extend(boundary);
            }
            Trust::Missing(why) => {
                self.item(Thing::Role, name, Sign::Blocked, "given, and Scheduler may not assume it");
                let what = format!("role {arn} does not trust scheduler.amazonaws.com for this job: {why}");
                let hint = format!(
                    "let its trust policy allow that, where aws:SourceAccount is {} and aws:SourceArn is {}; templates/scheduler-trust.json shows how",
                    self.desired.account,
                    self.desired.group_arn()
                );
                self.refusals.push(Refusal::new(what, hint));
            }
        }
    }

    fn new_role(&mut self, pinned: &Pinned) {
        let desired = self.desired;
        let name = desired.role.name.clone();
        let create = Step::CreateRole(NewRole {
            name: name.clone(),
            path: desired.role.path.clone(),
            trust: desired.trust(),
            boundary: desired.role.boundary.clone(),
            tags: desired.role_tags(),
        });
        let policy = self.put_scheduler_policy(pinned);
        let item = self.item(Thing::Role, name, Sign::Create, "not found");
        item.details =
            vec![("policy".to_owned(), format!("{SCHEDULER_POLICY_NAME}: start this family on this cluster"))];
        item.steps = vec![create, policy];
    }

    fn existing_role(&mut self, found: &Role, pinned: &Pinned) {
        let (desired, live) = (self.desired, self.live);
        let role = &desired.role.name;
        if let Some(region) = desired.other_region(&found.tags) {
            return self.taken_in(region, Thing::Role, role);
        }
        let ours = desired.owns_role(&found.tags);
        if !ours && !self.wish.adopt {
            return self.foreign(Thing::Role, role, "its tags are not those of this job");
        }
        let mut changes: Vec<(&str, Step)> = Vec::new();
        let mut details = Vec::new();
        if found.arn != desired.role.arn {
            self.item(Thing::Role, role, Sign::Blocked, format!("is {}, wanted is {}", found.arn, desired.role.arn));
            let what = format!("role {role} has another path, and a path cannot be changed");
            let hint = "set role_path to the one that it has, or delete the role when nothing uses it any more";
            return self.refusals.push(Refusal::new(what, hint));
        }
        if !tags::has_all(&found.tags, &desired.role_tags()) {
            let why = if ours { "tags differ" } else { "becomes ours by its tags" };
            details.extend(tag_lines(&found.tags, &desired.role_tags()));
            changes.push((why, Step::TagRole { role: role.clone(), tags: desired.role_tags() }));
        }
        if let Some(boundary) = desired.role.boundary.as_ref().filter(|wanted| found.boundary.as_ref() != Some(wanted))
        {
            let was = found.boundary.as_deref().unwrap_or("(none)");
            details.push(("boundary".to_owned(), format!("{was} -> {boundary}")));
            let step = Step::PutBoundary { role: role.clone(), boundary: boundary.clone() };
            changes.push(("permissions boundary differs", step));
        }
        if !self.same_policy(&found.trust, &desired.trust()) {
            details.extend(self.what_differs(&found.trust, &desired.trust()));
            let is_shut = self.schedulers_trust(found) != Trust::Given;
            let step = Step::UpdateTrust { role: role.clone(), trust: desired.trust(), is_shut };
            changes.push(("who may assume it differs", step));
        }
        match &live.scheduler_policy {
            Seen::Hidden { why } => return self.hidden(Thing::Role, role, why),
            Seen::Absent => changes.push(("what it may do is missing", self.put_scheduler_policy(pinned))),
            Seen::Present(_) if pinned.unseen.is_some() => {}
            Seen::Present(policy) if !self.same_policy(policy, &desired.scheduler_policy(&pinned.members)) => {
                details.extend(self.what_differs(policy, &desired.scheduler_policy(&pinned.members)));
                changes.push(("what it may do differs", self.put_scheduler_policy(pinned)));
            }
            Seen::Present(_) => {}
        }
        let mut others = self.other_policies();
        others.extend(self.boundary_of_others(found));
        if let (true, Some(why)) = (changes.is_empty(), &pinned.unseen) {
            self.item(Thing::Role, role, Sign::Unread, not_compared(why)).details = others;
            return;
        }
        if changes.is_empty() {
            let no_more = if others.is_empty() { ", and no more" } else { "; what else it may do is not ours" };
            self.item(Thing::Role, role, Sign::Same, format!("may start this family on this cluster{no_more}"))
                .details = others;
            return;
        }
        details.extend(others);
        let (words, steps): (Vec<_>, Vec<_>) = changes.into_iter().unzip();
        let item = self.item(Thing::Role, role, Sign::Change, words.join("; "));
        (item.steps, item.details) = (steps, details);
    }

    /// The names of roles and of their policies are the account's: changed from here, the job of the other region would stop to work.
    fn taken_in(&mut self, region: &str, thing: Thing, name: &str) {
        let why = format!("is of the job of the same name in {region}");
        self.item(thing, name, Sign::Blocked, &why);
        let what = format!("{} {name} {why}", thing.as_str());
        let hint = "give the job another name here: what IAM knows by name is of the whole account";
        self.refusals.push(Refusal::new(what, hint));
    }

    /// What else our role may do, by whoever gave it that: it is shown, and stays.
    fn other_policies(&self) -> Vec<(String, String)> {
        match &self.live.scheduler_role_policies {
            Seen::Absent => Vec::new(),
            Seen::Hidden { why } => vec![("others".to_owned(), format!("could not look for more policies: {why}"))],
            Seen::Present(policies) => {
                let said = |(kind, name): (&str, &str)| (kind.to_owned(), format!("{name}, not ours: it stays"));
                policies.beside(SCHEDULER_POLICY_NAME).into_iter().map(said).collect()
            }
        }
    }

    /// A boundary that the configuration does not name: whoever set it decides what the role may do at all.
    fn boundary_of_others(&self, found: &Role) -> Option<(String, String)> {
        let boundary = found.boundary.as_ref().filter(|_| self.desired.role.boundary.is_none())?;
        Some((
            "boundary".to_owned(),
            format!("{boundary}, not ours: it stays, and may take away what the policy allows"),
        ))
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
        // What no sentence says: a version, a statement's id.
        if now == then {
            return lines(&differences(&found, &wanted));
        }
        let only = |label: &str, these: &[String], those: &[String]| -> Vec<(String, String)> {
            these.iter().filter(|one| !those.contains(one)).map(|one| (label.to_owned(), one.clone())).collect()
        };
        [only("now", &now, &then), only("wanted", &then, &now)].concat()
    }

    fn same_policy(&self, found: &PolicyDocument, wanted: &PolicyDocument) -> bool {
        self.normalisers.policy(found) == self.normalisers.policy(wanted)
    }
}

/// The ARNs of the parameters that a policy of ours lets the execution role read.
fn granted(policy: &PolicyDocument, normalisers: Normalisers) -> BTreeSet<String> {
    let policy = normalisers.policy(policy);
    let ours = items(&policy["Statement"]).filter(|statement| statement["Sid"] == EXECUTION_POLICY_SID);
    ours.flat_map(|statement| items(&statement["Resource"])).filter_map(Value::as_str).map(str::to_owned).collect()
}

/// Where the parameters of a policy of ours lie, when that is not here: an inline policy has no tags that could tell, and IAM knows no
/// region.
pub fn granted_in_other_region(policy: &PolicyDocument, desired: &Desired) -> Option<String> {
    let granted = granted(policy, Normalisers::default());
    let mut regions = granted.iter().filter_map(|arn| arn.split(':').nth(3));
    regions.find(|region| *region != desired.region).map(str::to_owned)
}

/// Whether a policy lets somebody read this parameter, by its name or by a wildcard.
pub fn grants(policy: &PolicyDocument, arn: &str) -> bool {
    let policy = Normalisers::default().policy(policy);
    let fits = |value: &Value, text: &str| items(value).filter_map(Value::as_str).any(|pattern| like(pattern, text));
    let reads = |statement: &&Value| {
        let actions: Vec<_> = items(&statement["Action"]).filter_map(Value::as_str).map(str::to_lowercase).collect();
        let is_read = |action: &String| like(action, "ssm:getparameters") || like(action, "ssm:getparameter");
        statement["Effect"] == "Allow" && actions.iter().any(is_read)
    };
    items(&policy["Statement"]).filter(reads).any(|statement| fits(&statement["Resource"], arn))
}

/// The elements of a list; a single value is a list of one.
pub(super) fn items(value: &Value) -> impl Iterator<Item = &Value> {
    match value {
        Value::Array(items) => items.iter(),
        Value::Null => [].iter(),
        one => std::slice::from_ref(one).iter(),
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
            let alone = value.as_object().is_none_or(|members| members.len() == 1);
            said = format!("{said} {joint} {}", words(value.get("Service").filter(|_| alone).unwrap_or(value)));
        }
    }
    for member in ["NotPrincipal", "NotAction", "NotResource"] {
        if let Some(value) = statement.get(member) {
            said = format!("{said} {member} {}", words(value));
        }
    }
    let conditions = statement.get("Condition").and_then(Value::as_object).into_iter().flatten();
    let keys = conditions.flat_map(|(operator, keys)| {
        keys.as_object().into_iter().flatten().map(move |(key, value)| (operator, key, value))
    });
    let keys: Vec<_> = keys.map(|(operator, key, value)| format!("{key} is {} ({operator})", words(value))).collect();
    if keys.is_empty() { said } else { format!("{said} when {}", keys.join(" and ")) }
}
