//! How a person writes this command again: the next command must reach the same file and job, with the same credentials.
//!
//! Whoever knows the command line says `program`; a room that does not (a plan, an ending) says `deploy VERB` in its hints, which is
//! completed where a hint is printed.

use std::borrow::Cow;
use std::sync::OnceLock;

use clap::CommandFactory as _;

use crate::cli::{Cli, Global};

static PROGRAM: OnceLock<String> = OnceLock::new();

/// `deploy`, plus the global flags that were given.
pub fn program(global: &Global) -> String {
    let mut words = vec!["deploy".to_owned()];
    if global.config != std::path::Path::new("deploy.toml") {
        words.push(format!("--config {}", word(&global.config.to_string_lossy())));
    }
    let named = [("job", &global.job), ("profile", &global.profile), ("endpoint-url", &global.endpoint_url)];
    words.extend(named.into_iter().filter_map(|(flag, value)| Some(format!("--{flag} {}", word(value.as_ref()?)))));
    words.join(" ")
}

/// Remembers it for the hints.
pub fn remember(global: &Global) {
    let _ = PROGRAM.set(program(global));
}

/// A line that is printed; the commands of a hint with the flags that this one was given.
pub fn in_full(line: &str) -> Cow<'_, str> {
    match PROGRAM.get() {
        Some(program) if line.starts_with("hint: ") && program != "deploy" => Cow::Owned(completed(line, program)),
        _ => Cow::Borrowed(line),
    }
}

fn completed(line: &str, program: &str) -> String {
    let mut line = line.to_owned();
    // `init` is for another file than this one.
    for verb in Cli::command().get_subcommands().map(clap::Command::get_name).filter(|verb| *verb != "init") {
        line = line.replace(&format!("deploy {verb}"), &format!("{program} {verb}"));
    }
    line
}

/// As a shell takes it.
fn word(text: &str) -> Cow<'_, str> {
    let is_plain = |c: char| c.is_alphanumeric() || "-_./:@%+=,".contains(c);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => Cow::Borrowed(text),
        false => Cow::Owned(format!("'{}'", text.replace('\'', r"'\''"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_command_reaches_the_same_job() {
        let program = "deploy --config 'a b.toml' --job two";
        let said = completed("hint: look with `deploy plan`; then: deploy destroy --yes", program);
        assert_eq!(said, format!("hint: look with `{program} plan`; then: {program} destroy --yes"));
        assert_eq!(completed(&said, program), said);
        assert_eq!((word("x/y.toml"), word("it's")), ("x/y.toml".into(), r"'it'\''s'".into()));
    }
}
