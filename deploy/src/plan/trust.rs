//! Does a role's trust policy let a service assume it: Scheduler for the schedules of one group, ECS for the tasks of one account?
//!
//! By meaning, as far as such policies are written: who, what, the conditions that the service fills in, and a Deny that goes
//! before every Allow. A condition of another kind is taken to hold: nobody here can know its value.

use serde_json::Value;

use super::roles::items;

/// Scheduler, as a principal.
pub(crate) const SCHEDULER: &str = "scheduler.amazonaws.com";

/// ECS that starts tasks, as a principal.
pub(crate) const ECS_TASKS: &str = "ecs-tasks.amazonaws.com";

/// The answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Trust {
    /// It does.
    Given,
    /// It does not, and why.
    Missing(String),
}

impl Trust {
    /// Reads a policy in compared form. The service says `keys` about whom it acts for: their names in small letters.
    pub(crate) fn of(policy: &Value, service: &str, keys: &[(&str, &str)]) -> Trust {
        let about_us: Vec<_> = items(&policy["Statement"]).filter(|s| names(s, service) && names_assume(s)).collect();
        let failing = |statement: &Value| unmet(statement, keys);
        if about_us.iter().any(|s| s["Effect"] == "Deny" && failing(s).is_none()) {
            return Trust::Missing("a statement denies it".to_owned());
        }
        let mut why = format!("no statement allows sts:AssumeRole to {service}");
        for statement in about_us.iter().filter(|s| s["Effect"] == "Allow") {
            match failing(statement) {
                None => return Trust::Given,
                Some(condition) => why = format!("it is allowed only when {condition}"),
            }
        }
        Trust::Missing(why)
    }
}

fn names(statement: &Value, service: &str) -> bool {
    let principal = &statement["Principal"];
    *principal == "*"
        || items(&principal["Service"]).any(|one| one == service)
        || items(&principal["AWS"]).any(|one| one == "*")
}

fn names_assume(statement: &Value) -> bool {
    let matches = |action: &Value| {
        let action = action.as_str().unwrap_or_default().to_ascii_lowercase();
        like(&action, "sts:assumerole")
    };
    items(&statement["Action"]).any(matches)
}

/// The condition that the service does not meet when it says these keys.
fn unmet(statement: &Value, said: &[(&str, &str)]) -> Option<String> {
    let conditions = statement.get("Condition").and_then(Value::as_object).into_iter().flatten();
    for (operator, keys) in conditions {
        for (key, wanted) in keys.as_object().into_iter().flatten() {
            let Some((_, is)) = said.iter().find(|(known, _)| key.eq_ignore_ascii_case(known)) else { continue };
            let operator = operator.trim_end_matches("IfExists");
            let any = |matches: &dyn Fn(&str) -> bool| items(wanted).filter_map(Value::as_str).any(matches);
            let met = match operator {
                "StringEquals" => any(&|one| one == *is),
                "StringEqualsIgnoreCase" => any(&|one| one.eq_ignore_ascii_case(is)),
                "StringLike" | "ArnLike" | "ArnEquals" => any(&|one| like(one, is)),
                "StringNotEquals" => !any(&|one| one == *is),
                "StringNotLike" | "ArnNotLike" | "ArnNotEquals" => !any(&|one| like(one, is)),
                _ => continue,
            };
            if !met {
                return Some(format!("{key} is {wanted} ({operator}), and here it is {is}"));
            }
        }
    }
    None
}

/// Whether a text fits a pattern of IAM: `*` is any text, `?` one character.
pub(super) fn like(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<_>, Vec<_>) = (pattern.chars().collect(), text.chars().collect());
    // Row by row: which prefixes of the text fit the pattern so far.
    let mut fits = vec![false; text.len() + 1];
    fits[0] = true;
    for &p in &pattern {
        let before = fits.clone();
        for i in 0..fits.len() {
            fits[i] = match p {
                '*' => before[i] || (i > 0 && fits[i - 1]),
                '?' => i > 0 && before[i - 1],
                c => i > 0 && before[i - 1] && text[i - 1] == c,
            };
        }
    }
    fits[text.len()]
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const GROUP: &str = "arn:aws:scheduler:ap-northeast-2:123456789012:schedule-group/library-sync";

    fn statement(effect: &str, principal: Value, action: &str, condition: Value) -> Value {
        json!({ "Effect": effect, "Principal": principal, "Action": action, "Condition": condition })
    }

    fn given(statements: &[Value]) -> bool {
        let keys = [("aws:sourceaccount", "123456789012"), ("aws:sourcearn", GROUP)];
        Trust::of(&json!({ "Statement": statements }), SCHEDULER, &keys) == Trust::Given
    }

    #[test]
    fn a_trust_policy_is_read_by_its_meaning() {
        let scheduler = json!({ "Service": SCHEDULER });
        let allow = |principal: Value, condition: Value| statement("Allow", principal, "sts:AssumeRole", condition);
        let here = |operator: &str, arn: &str| json!({ operator: { "aws:SourceArn": arn } });
        let good = [
            allow(scheduler.clone(), json!({})),
            allow(json!({ "Service": ["ecs-tasks.amazonaws.com", SCHEDULER] }), json!({})),
            statement("Allow", scheduler.clone(), "sts:*", json!({ "Bool": { "aws:SecureTransport": "true" } })),
            allow(scheduler.clone(), json!({ "StringEquals": { "aws:SourceAccount": "123456789012" } })),
            statement("Allow", scheduler.clone(), "sts:Assume*", json!({})),
            allow(scheduler.clone(), here("ArnLike", GROUP)),
            allow(scheduler.clone(), here("ArnLike", "arn:aws:scheduler:*:123456789012:schedule-group/*")),
        ];
        for one in &good {
            assert!(given(std::slice::from_ref(one)), "{one}");
        }
        let bad = [
            allow(json!({ "Service": "events.amazonaws.com" }), json!({})),
            statement("Allow", scheduler.clone(), "sts:TagSession", json!({})),
            // The words are there, and mean something else.
            statement("Deny", scheduler.clone(), "sts:AssumeRole", json!({})),
            allow(
                json!({ "Service": "events.amazonaws.com" }),
                json!({ "StringEquals": { "aws:PrincipalServiceName": SCHEDULER } }),
            ),
            allow(
                scheduler.clone(),
                json!({ "StringEquals": { "aws:SourceAccount": ["999999999999", "888888888888"] } }),
            ),
            allow(
                scheduler.clone(),
                here("ArnLike", "arn:aws:scheduler:ap-northeast-2:123456789012:schedule-group/other"),
            ),
            allow(scheduler.clone(), here("ArnEquals", "arn:aws:scheduler:*:123456789012:schedule/library-sync/*")),
        ];
        for one in &bad {
            assert!(!given(std::slice::from_ref(one)), "{one}");
        }
        // The first Allow that does not fit is not the last word.
        let elsewhere = "arn:aws:scheduler:ap-northeast-2:123456789012:schedule-group/other";
        assert!(given(&[allow(scheduler.clone(), here("ArnLike", elsewhere)), good[0].clone()]));
        // A Deny goes before every Allow; one of somebody else's group does not.
        let denied = |condition: Value| [good[0].clone(), statement("Deny", json!("*"), "sts:*", condition)];
        assert!(!given(&denied(json!({}))));
        assert!(given(&denied(here("ArnNotLike", "arn:aws:scheduler:*:*:schedule-group/library-*"))));
    }

    #[test]
    fn ecs_is_trusted_as_its_own_guide_recommends() {
        let keys =
            [("aws:sourceaccount", "123456789012"), ("aws:sourcearn", "arn:aws:ecs:ap-northeast-2:123456789012:*")];
        let trusts = |region: &str, account: &str| {
            let arn = format!("arn:aws:ecs:{region}:{account}:*");
            let condition =
                json!({ "ArnLike": { "aws:SourceArn": arn }, "StringEquals": { "aws:SourceAccount": account } });
            let policy = statement("Allow", json!({ "Service": [ECS_TASKS] }), "sts:AssumeRole", condition);
            Trust::of(&json!({ "Statement": policy }), ECS_TASKS, &keys) == Trust::Given
        };
        assert!(trusts("ap-northeast-2", "123456789012") && trusts("*", "123456789012"));
        assert!(!trusts("us-east-1", "123456789012") && !trusts("ap-northeast-2", "999999999999"));
    }
}
