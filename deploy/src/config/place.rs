//! Where we are in the file, for errors: each names its line and the way out.

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use toml::Spanned;

use crate::exit::Stop;
use crate::templates;

/// The file that is being read.
pub(super) struct Place<'a> {
    pub(super) text: &'a str,
    pub(super) path: &'a Path,
}

/// What the whole file is for, which every ARN in it must fit.
pub(super) struct Here<'a> {
    pub(super) account: &'a str,
    pub(super) region: &'a str,
    pub(super) app: &'a str,
}

impl Here<'_> {
    /// Where an ARN lies, when that is not here. What it leaves empty is the same everywhere.
    fn elsewhere(&self, arn: &str) -> Option<String> {
        let [_, partition, _, region, account, _] = arn.splitn(6, ':').collect::<Vec<_>>()[..] else { return None };
        let fits = |is: &str, here: &str| is.is_empty() || here.is_empty() || is == here;
        let here =
            partition == super::partition(self.region) && fits(region, self.region) && fits(account, self.account);
        (!here).then(|| place([partition, account, region]))
    }

    /// The same, where the account does not matter.
    pub(super) fn of_any_account(&self) -> Here<'_> {
        Here { account: "", ..*self }
    }

    /// Whether `deploy` itself keeps something under that name: what it knows of proven runs.
    pub(super) fn keeps(&self, parameter: &str) -> bool {
        let ours = parameter.strip_prefix('/').and_then(|path| path.strip_prefix(self.app)?.strip_prefix('/'));
        ours.and_then(|tail| tail.split_once('/')).is_some_and(|(_, name)| KEPT.contains(&name))
    }
}

/// The last parts of the names of the parameters that `deploy` keeps for each job.
const KEPT: [&str; 2] = ["verified-run", "scheduled-path"];

fn place(parts: [&str; 3]) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/")
}

impl Place<'_> {
    /// As [`Place::check`], for what may be an ARN: one of another account, region or partition would never work from here.
    pub(super) fn check_here(
        &self,
        value: Spanned<String>,
        key: &str,
        legal: &str,
        here: &Here<'_>,
        is_legal: impl FnOnce(&String) -> bool,
    ) -> anyhow::Result<String> {
        let span = value.span();
        let value = self.check(value, key, legal, is_legal)?;
        match here.elsewhere(&value) {
            None => Ok(value),
            Some(other) => {
                let ours = place([super::partition(here.region), here.account, here.region]);
                let what = format!("{key} is {value:?}, which lies in {other}; this file is for {ours}");
                Err(self.stop(Some(span), what, "name one that lies here, or correct `account` and `region`"))
            }
        }
    }

    pub(super) fn stop(
        &self,
        span: Option<Range<usize>>,
        what: impl fmt::Display,
        hint: impl Into<String>,
    ) -> anyhow::Error {
        let file = self.path.display();
        let what = match span {
            Some(span) => format!("{file}:{}: {what}", self.text[..span.start].matches('\n').count() + 1),
            None => format!("{file}: {what}"),
        };
        Stop::usage(what, hint).into()
    }

    pub(super) fn syntax(&self, error: &toml::de::Error) -> anyhow::Error {
        let said = without_rust(error.message().trim().replace('\n', ", "));
        let hint = syntax_hint(&said);
        self.stop(error.span(), said, hint)
    }

    pub(super) fn check<T: fmt::Debug>(
        &self,
        value: Spanned<T>,
        key: &str,
        legal: &str,
        is_legal: impl FnOnce(&T) -> bool,
    ) -> anyhow::Result<T> {
        if is_legal(value.get_ref()) {
            return Ok(value.into_inner());
        }
        let what = format!("{key} is {:?}, which is not {legal}", value.get_ref());
        Err(self.stop(Some(value.span()), what, sample_line(key)))
    }

    /// As [`Place::check`], for what may be a secret that was pasted into the wrong line: the value is not repeated.
    pub(super) fn check_unseen(
        &self,
        value: Spanned<String>,
        key: &str,
        legal: &str,
        is_legal: impl FnOnce(&str) -> bool,
    ) -> anyhow::Result<String> {
        if is_legal(value.get_ref()) {
            return Ok(value.into_inner());
        }
        let what = format!("what {key} says is not {legal}; it is not repeated here, in case it is a secret");
        Err(self.stop(Some(value.span()), what, sample_line(key)))
    }

    pub(super) fn duration(&self, text: Spanned<String>, key: &str) -> anyhow::Result<Duration> {
        let parsed = || {
            let (number, unit) = text.get_ref().split_at_checked(text.get_ref().len().checked_sub(1)?)?;
            let seconds = match unit {
                "m" => 60,
                "h" => 3600,
                "d" => 86_400,
                _ => return None,
            };
            number.parse::<u32>().ok().map(|n| Duration::from_secs(u64::from(n) * seconds))
        };
        let what = || format!("{key} is {:?}, which is not a number with m, h or d behind it", text.get_ref());
        parsed().ok_or_else(|| self.stop(Some(text.span()), what(), sample_line(key)))
    }
}

/// The parser's words for kinds of values, as TOML calls them.
fn without_rust(said: String) -> String {
    let Some((found, expected)) = said.rsplit_once(", expected ") else { return said };
    let expected = match expected {
        "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number, 0 or more",
        "a sequence" => "a list",
        "a map" => "a table",
        one if one.starts_with("struct ") => "a table",
        other => other,
    };
    let found = found.replacen("invalid type: sequence", "invalid type: list", 1);
    let found = found.replacen("invalid type: map", "invalid type: table", 1);
    format!("{found}, expected {expected}")
}

/// The way out of what TOML itself does not take. Whoever reads it may have only the program, and no folder of samples beside it.
fn syntax_hint(said: &str) -> String {
    let quoted: Vec<&str> = said.split('`').skip(1).step_by(2).collect();
    match quoted.as_slice() {
        [unknown, known @ ..] if said.starts_with("unknown field") || said.starts_with("unknown variant") => {
            let near = known.iter().map(|known| (strsim::damerau_levenshtein(unknown, known), known)).min();
            match near {
                Some((distance, known)) if distance <= 2 => format!("did you mean `{known}`?"),
                _ => format!("what can stand here: {}", known.join(", ")),
            }
        }
        [missing] if said.starts_with("missing field") => sample_line(missing),
        [number] if said.starts_with("invalid type: integer") && said.ends_with("a string") => {
            format!("write it in quotes: \"{number}\"")
        }
        _ => "the file is TOML: KEY = \"TEXT\", KEY = 3, KEY = true, KEY = [\"A\", \"B\"], and a table begins with [NAME]".to_owned(),
    }
}

/// How the sample says this key, with its meaning.
fn sample_line(key: &str) -> String {
    if key == "the job's name" {
        return "write it as in: [job.library-sync]".to_owned();
    }
    let says = |line: &&str| line.split_once(" = ").is_some_and(|(name, _)| name == key);
    match templates::CONFIGURATION.lines().map(|line| line.trim_start_matches("# ")).find(says) {
        Some(line) => format!("write it as in: {}", line.split_whitespace().collect::<Vec<_>>().join(" ")),
        None => "change it there; nothing was done".to_owned(),
    }
}

/// Letters, digits and `more`, up to `longest` of them.
pub(super) fn is_name(text: &str, more: &str, longest: usize) -> bool {
    (1..=longest).contains(&text.len()) && text.chars().all(|c| c.is_ascii_alphanumeric() || more.contains(c))
}

/// The name of an environment variable.
pub(super) fn is_variable(text: &str) -> bool {
    is_name(text, "_", 255) && !text.starts_with(|c: char| c.is_ascii_digit())
}
