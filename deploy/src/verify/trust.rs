//! Whether a trust policy lets a service assume a role, as AWS would read it: strings or lists, and the conditions that confuse.

use serde_json::Value;

/// Whether the policy (in compared form) trusts `service`, which says `keys` about whom it acts for. The words name the reason.
pub(super) fn trusts(policy: &Value, service: &str, keys: &[(&str, &str)]) -> Result<String, String> {
    let statements = match policy.get("Statement") {
        Some(Value::Array(list)) => list.iter().collect(),
        Some(one) => vec![one],
        None => Vec::new(),
    };
    let mut nearly = None;
    for statement in statements {
        let principal = &statement["Principal"];
        let named = principal == "*" || has(principal.get("Service"), service) || has(principal.get("AWS"), "*");
        if !named || !(has(statement.get("Action"), "sts:AssumeRole") || has(statement.get("Action"), "sts:*")) {
            continue;
        }
        let unmet = unmet_condition(statement, keys);
        match (statement["Effect"].as_str(), unmet) {
            (Some("Allow"), None) => nearly = nearly.or(Some(Ok(service.to_owned()))),
            (Some("Allow"), Some(why)) => nearly = nearly.or(Some(Err(why))),
            (_, None) => return Err(format!("a statement denies {service}")),
            (_, Some(_)) => {}
        }
    }
    nearly.unwrap_or_else(|| Err(format!("{service} may not assume it")))
}

fn has(value: Option<&Value>, wanted: &str) -> bool {
    match value {
        Some(Value::String(text)) => text == wanted,
        Some(Value::Array(list)) => list.iter().any(|text| text == wanted),
        _ => false,
    }
}

/// The first condition that the keys do not meet.
fn unmet_condition(statement: &Value, keys: &[(&str, &str)]) -> Option<String> {
    let conditions = statement.get("Condition")?.as_object()?;
    for (operator, tests) in conditions {
        for (key, wanted) in tests.as_object()? {
            let known = keys.iter().find(|(known, _)| known.eq_ignore_ascii_case(key)).map(|(_, value)| *value);
            let wanted: Vec<&str> = match wanted {
                Value::Array(list) => list.iter().filter_map(Value::as_str).collect(),
                one => one.as_str().into_iter().collect(),
            };
            let wild = operator.contains("Like") || operator.starts_with("Arn");
            let met = known.is_some_and(|value| {
                wanted.iter().any(|pattern| if wild { matches(pattern, value) } else { *pattern == value })
            });
            if !met {
                let said = known.map_or_else(|| "nothing".to_owned(), |value| value.to_owned());
                return Some(format!("its condition wants {key} {}, and AWS says {said}", wanted.join(" or ")));
            }
        }
    }
    None
}

/// `*` and `?`, as IAM has them.
fn matches(pattern: &str, text: &str) -> bool {
    match pattern.split_at_checked(1) {
        None => text.is_empty(),
        Some(("*", rest)) => (0..=text.len()).any(|i| text.is_char_boundary(i) && matches(rest, &text[i..])),
        Some((first, rest)) => match text.split_at_checked(1) {
            Some((next, tail)) => (first == "?" || first == next) && matches(rest, tail),
            None => false,
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const GROUP: &str = "arn:aws:scheduler:ap-northeast-2:123456789012:schedule-group/library-sync";
    const KEYS: [(&str, &str); 2] = [("aws:sourceaccount", "123456789012"), ("aws:sourcearn", GROUP)];

    fn scheduler(principal: Value, condition: Value) -> Result<String, String> {
        let statement = json!({ "Effect": "Allow", "Principal": principal, "Action": ["sts:AssumeRole", "sts:TagSession"], "Condition": condition });
        trusts(&json!({ "Statement": statement }), "scheduler.amazonaws.com", &KEYS)
    }

    #[test]
    fn strings_and_lists_mean_the_same() {
        let both = json!({ "Service": ["ecs-tasks.amazonaws.com", "scheduler.amazonaws.com"] });
        assert!(scheduler(both, json!({})).is_ok());
        assert!(scheduler(json!({ "Service": "scheduler.amazonaws.com" }), json!({})).is_ok());
        assert!(scheduler(json!({ "Service": "ecs-tasks.amazonaws.com" }), json!({})).is_err());
    }

    #[test]
    fn the_source_is_a_group_and_never_a_schedule() {
        let service = || json!({ "Service": "scheduler.amazonaws.com" });
        let source = |arn: &str| json!({ "ArnLike": { "aws:SourceArn": arn } });
        assert!(scheduler(service(), source(GROUP)).is_ok());
        assert!(scheduler(service(), source("arn:aws:scheduler:*:*:schedule-group/*")).is_ok());
        let refused =
            scheduler(service(), source("arn:aws:scheduler:ap-northeast-2:123456789012:schedule/library-sync/*"));
        assert!(refused.unwrap_err().contains("schedule-group/library-sync"));
        let account = json!({ "StringEquals": { "aws:SourceAccount": "999999999999" } });
        assert!(scheduler(service(), account).is_err());
    }
}
