//! The six fields of `cron`: what is wrong with them, and the expression that they make.

use toml::Spanned;

use super::place::Place;
use crate::fire_times;

/// The expression, when its shape is right and it fires at all.
pub(super) fn expression(cron: &Spanned<String>, timezone: &str, at: &Place<'_>) -> anyhow::Result<String> {
    let (span, text) = (cron.span(), cron.get_ref().trim());
    if text.starts_with("rate(") || text.starts_with("at(") {
        let hint = "cron takes six fields, as in 0 4 * * ? * for every day at four; a rate() would fire at the moment it is enabled (and its unit is always plural, rate(1 days))";
        return Err(at.stop(Some(span), format!("cron is {text:?}"), hint));
    }
    let fields: Vec<_> = text.split_whitespace().collect();
    if let Some(fault) = cron_fault(&fields) {
        return Err(at.stop(Some(span), format!("cron is {text:?}: {fault}"), CRON_HINT));
    }
    let expression = format!("cron({})", fields.join(" "));
    // From the beginning of time: years that are over are no mistake of the file, and `disable` must still work then.
    let first = fire_times::next(&expression, timezone, jiff::Timestamp::UNIX_EPOCH, 1)
        .map_err(|error| at.stop(Some(span.clone()), error, CRON_HINT))?;
    if first.is_empty() {
        let what = format!("{expression} never fires: no year has such a day and time in {timezone}");
        return Err(at.stop(Some(span), what, CRON_HINT));
    }
    Ok(expression)
}

/// The way out of every mistake in it.
const CRON_HINT: &str =
    "the six fields are: minute hour day month weekday year; as in 0 4 1-3 * ? *, with ? as day or as weekday";

/// What is wrong with the shape of the six fields; what is inside of them is the parser's to say.
fn cron_fault(fields: &[&str]) -> Option<String> {
    match fields {
        [first, ..] if first.starts_with("cron(") => Some("it holds the fields alone, without cron(...)".to_owned()),
        [_, _, "?", _, "?", _] => Some("day and weekday are both ?; only one of them is left open".to_owned()),
        [_, _, day, _, weekday, _] if *day != "?" && *weekday != "?" => {
            Some("day and weekday are both set; one of them must be ?".to_owned())
        }
        [_, _, _, _, _, _] => None,
        other => Some(format!("it has {} fields, not six", other.len())),
    }
}
