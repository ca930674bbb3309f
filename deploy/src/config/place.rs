//! Where we are in the file, for errors: each names its line and the way out.

use std::fmt;
use std::ops::Range;
use std::path::Path;
use std::time::Duration;

use toml::Spanned;

use super::Document;
use crate::exit::Stop;

/// The file that is being read.
pub(super) struct Place<'a> {
    pub(super) text: &'a str,
    pub(super) path: &'a Path,
}

impl Place<'_> {
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
        let hint = "templates/deploy.toml shows every key with its meaning";
        self.stop(error.span(), error.message().trim().replace('\n', ", "), hint)
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
        let what = format!("{key} is {:?}", value.get_ref());
        Err(self.stop(Some(value.span()), what, format!("{key} is {legal}")))
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
        Err(self.stop(Some(value.span()), format!("{key} is not one"), format!("{key} is {legal}")))
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
        let what = || format!("{key} is {:?}", text.get_ref());
        parsed().ok_or_else(|| self.stop(Some(text.span()), what(), "write a number and m, h or d, such as 7d"))
    }

    pub(super) fn document(&self, file: Spanned<String>) -> anyhow::Result<Document> {
        let path = self.path.parent().unwrap_or(Path::new("")).join(file.get_ref());
        let read = std::fs::read_to_string(&path).map_err(|error| error.to_string());
        let members = read.and_then(|text| serde_json::from_str(&text).map_err(|error| error.to_string()));
        match members {
            Ok(members) => Ok(Document { path, members }),
            Err(error) => {
                let what = format!("cannot use {}: {error}", path.display());
                let hint =
                    "task_definition names a JSON file, relative to this one, as in templates/task-definition.json";
                Err(self.stop(Some(file.span()), what, hint))
            }
        }
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
