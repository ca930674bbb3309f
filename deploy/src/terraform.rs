//! The way out: what we manage, as HCL with `import` blocks that hand it to Terraform as it is.
//!
//! The secrets' parameters are written as comments: an import would read their values into Terraform's state. Revisions of the family
//! are left out too: Terraform would register a new one, and the schedule is pinned to the one that is proven.
//!
//! Architecture invariant: no I/O, no async, no clock, no SDK, no printing.

use std::fmt::Write as _;

use serde_json::Value;

use crate::desired::{Desired, SCHEDULER_POLICY_NAME, role_name};
use crate::model::{Live, PolicyDocument, Schedule, Seen, Tags, tags};
use crate::observe::execution_role;

/// The file, and what could not be put into it.
pub struct Export {
    /// HCL.
    pub hcl: String,
    /// What is missing in it, and why.
    pub missing: Vec<String>,
}

/// What is there and ours, as HCL.
pub fn export(desired: &Desired, live: &Live) -> Export {
    let mut out = Writer { hcl: HEAD.to_owned(), missing: Vec::new() };
    let name = label(&desired.job.name);
    if let Some(group) = out.seen("schedule group", &live.group)
        && out.ours(&format!("schedule group {}", group.name), tags::are_ours(&group.tags, &desired.job.name))
    {
        let body = [attribute("name", &group.name), tags_of(&group.tags)].concat();
        out.resource("aws_scheduler_schedule_group", &name, &group.name, &body);
    }
    if desired.role.ours {
        if let Some(role) = out.seen("role", &live.scheduler_role)
            && out.ours(&format!("role {}", desired.role.name), desired.owns_role(&role.tags))
        {
            let body = [
                attribute("name", &desired.role.name),
                path_of(&role.arn),
                role.boundary.as_deref().map(|arn| attribute("permissions_boundary", arn)).unwrap_or_default(),
                policy("assume_role_policy", &role.trust),
                attribute("description", "Lets EventBridge Scheduler start the job; kept by deploy"),
                tags_of(&role.tags),
            ];
            out.resource("aws_iam_role", &format!("{name}_scheduler"), &desired.role.name, &body.concat());
        }
        if let Some(document) = out.seen("policy of the role", &live.scheduler_policy) {
            out.role_policy(&format!("{name}_run_task"), &desired.role.name, SCHEDULER_POLICY_NAME, document);
        }
    }
    if let Seen::Hidden { why } = &live.task_definition
        && live.execution_policy.is_none()
    {
        out.missing.push(format!("policy of the execution role: could not look: {why}"));
    }
    if let (Some(seen), Some(role)) = (&live.execution_policy, execution_role(desired, &live.task_definition))
        && let Some(document) = out.seen("policy of the execution role", seen)
    {
        let (label, policy) = (format!("{name}_secrets"), desired.execution_policy_name());
        out.role_policy(&label, role_name(&role), &policy, document);
    }
    if let Some(schedule) = out.seen("schedule", &live.schedule) {
        let id = format!("{}/{}", desired.timing().group, desired.job.name);
        out.resource("aws_scheduler_schedule", &name, &id, &schedule_body(schedule));
    }
    for parameter in &desired.parameters {
        let _ = writeln!(
            out.hcl,
            "{}",
            PARAMETER.replace("${LABEL}", &label(&parameter.env)).replace("${NAME}", &quoted(&parameter.name))
        );
    }
    Export { hcl: aligned(&out.hcl), missing: out.missing }
}

const HEAD: &str = "\
# What `deploy` manages, for Terraform (1.5 or newer): `terraform plan` imports it and should change nothing.
# Afterwards switch it here, in `state`; `deploy` must not keep the same things too.
";

const PARAMETER: &str = "
# Not imported: Terraform would read the secret's value into its state. With 1.11 or newer it can be kept without:
# resource \"aws_ssm_parameter\" \"${LABEL}\" {
#   name             = ${NAME}
#   type             = \"SecureString\"
#   value_wo         = var.${LABEL}  # declared as an ephemeral variable
#   value_wo_version = 1
# }";

struct Writer {
    hcl: String,
    missing: Vec<String>,
}

impl Writer {
    fn seen<'t, T>(&mut self, what: &str, seen: &'t Seen<T>) -> Option<&'t T> {
        match seen {
            Seen::Present(thing) => return Some(thing),
            Seen::Absent => self.missing.push(format!("{what}: not there")),
            Seen::Hidden { why } => self.missing.push(format!("{what}: could not look: {why}")),
        }
        None
    }

    /// What is not ours to hand over stays with whom it belongs to.
    fn ours(&mut self, what: &str, is_ours: bool) -> bool {
        if !is_ours {
            self.missing.push(format!("{what}: not ours by its tags"));
        }
        is_ours
    }

    fn resource(&mut self, kind: &str, label: &str, id: &str, body: &str) {
        let id = quoted(id);
        let _ = write!(
            self.hcl,
            "\nimport {{\n  to = {kind}.{label}\n  id = {id}\n}}\n\nresource \"{kind}\" \"{label}\" {{\n{body}}}\n"
        );
    }

    fn role_policy(&mut self, label: &str, role: &str, name: &str, document: &PolicyDocument) {
        let body = [attribute("name", name), attribute("role", role), policy("policy", document)].concat();
        self.resource("aws_iam_role_policy", label, &format!("{role}:{name}"), &body);
    }
}

fn schedule_body(schedule: &Schedule) -> String {
    let mut body = String::new();
    let texts = [
        ("name", "Name"),
        ("group_name", "GroupName"),
        ("description", "Description"),
        ("schedule_expression", "ScheduleExpression"),
        ("schedule_expression_timezone", "ScheduleExpressionTimezone"),
        ("state", "State"),
        ("kms_key_arn", "KmsKeyArn"),
    ];
    for (name, member) in texts {
        if let Some(text) = schedule.text(member).filter(|text| !text.is_empty()) {
            body += &attribute(name, text);
        }
    }
    let window = schedule.0.get("FlexibleTimeWindow").cloned().unwrap_or_default();
    body += "\n  flexible_time_window {\n";
    body += &nested("mode", &quoted(window["Mode"].as_str().unwrap_or("OFF")));
    if let Some(minutes) = window["MaximumWindowInMinutes"].as_u64() {
        body += &nested("maximum_window_in_minutes", &minutes.to_string());
    }
    body += "  }\n\n  target {\n";
    body += &nested("arn", &quoted(schedule.target_text("Arn").unwrap_or_default()));
    body += &nested("role_arn", &quoted(schedule.target_text("RoleArn").unwrap_or_default()));
    // A literal string: jsonencode would escape the angle brackets, and Scheduler would never fill in the time.
    body += &nested("input", &quoted(schedule.input().unwrap_or_default()));
    let target = schedule.0.get("Target").cloned().unwrap_or_default();
    if let Some(queue) = target["DeadLetterConfig"]["Arn"].as_str() {
        body += &format!("\n    dead_letter_config {{\n      arn = {}\n    }}\n", quoted(queue));
    }
    let retry = &target["RetryPolicy"];
    if let (Some(age), Some(tries)) =
        (retry["MaximumEventAgeInSeconds"].as_u64(), retry["MaximumRetryAttempts"].as_u64())
    {
        body += &format!(
            "\n    retry_policy {{\n      maximum_event_age_in_seconds = {age}\n      maximum_retry_attempts       = {tries}\n    }}\n"
        );
    }
    body + "  }\n"
}

/// As `terraform fmt` has it: in neighbouring lines, the equals signs stand below each other.
fn aligned(hcl: &str) -> String {
    let split = |line: &str| {
        let (name, _) = line.split_once(" = ").filter(|(name, _)| !name.starts_with('#') && !line.ends_with('{'))?;
        Some((name.len() - name.trim_start().len(), name.len()))
    };
    let lines: Vec<_> = hcl.lines().collect();
    let mut out = String::new();
    let mut i = 0;
    while i < lines.len() {
        let indent = split(lines[i]).map(|(indent, _)| indent);
        let run = lines[i..].iter().take_while(|line| split(line).map(|(indent, _)| indent) == indent).count();
        let widest = lines[i..i + run].iter().filter_map(|line| split(line)).map(|(_, width)| width).max();
        for line in &lines[i..i + run] {
            let _ = match (widest, line.split_once(" = ")) {
                (Some(widest), Some((name, value))) => writeln!(out, "{name:<widest$} = {value}"),
                _ => writeln!(out, "{line}"),
            };
        }
        i += run;
    }
    out
}

fn attribute(name: &str, text: &str) -> String {
    format!("  {name} = {}\n", quoted(text))
}

fn nested(name: &str, value: &str) -> String {
    format!("    {name} = {value}\n")
}

fn policy(name: &str, document: &PolicyDocument) -> String {
    let text = percent_encoding::percent_decode_str(&document.0).decode_utf8_lossy().into_owned();
    let text = serde_json::from_str::<Value>(&text).map_or(text, |policy| policy.to_string());
    attribute(name, &text)
}

/// A role's path, as its ARN says it.
fn path_of(arn: &str) -> String {
    let path = arn.split_once(":role").and_then(|(_, path)| Some(&path[..=path.rfind('/')?]));
    attribute("path", path.unwrap_or("/"))
}

fn tags_of(tags: &Tags) -> String {
    let pairs = tags.iter().map(|(key, value)| format!("    {} = {}\n", quoted(key), quoted(value)));
    format!("  tags = {{\n{}  }}\n", pairs.collect::<String>())
}

/// A string of HCL: JSON's escapes, and none of its own templates.
fn quoted(text: &str) -> String {
    Value::from(text).to_string().replace("${", "$${").replace("%{", "%%{")
}

/// A name that Terraform takes for a resource.
fn label(name: &str) -> String {
    let label: String =
        name.chars().map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '_' }).collect();
    if label.starts_with(|c: char| c.is_ascii_digit()) { format!("_{label}") } else { label }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_looks_like_a_template_stays_a_string_and_brackets_stay_brackets() {
        let text = "\"<aws.scheduler.scheduled-time>\" ${a} %{if} \\";
        assert_eq!(quoted(text), r#""\"<aws.scheduler.scheduled-time>\" $${a} %%{if} \\""#);
        assert_eq!(label("9-a.B"), "_9_a_b");
    }
}
