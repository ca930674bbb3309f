//! What `--help` says, every verb in one text, and what a shell gets to complete it.

use std::process::Command;

fn deploy(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_deploy")).args(arguments).env_clear().output().expect("deploy runs");
    assert_eq!(output.status.code(), Some(0), "deploy {arguments:?}");
    String::from_utf8(output.stdout).expect("text")
}

fn verbs() -> Vec<String> {
    let help = deploy(&["--help"]);
    let list = help.split("Commands:\n").nth(1).expect("a list of verbs").split("\n\n").next().unwrap_or_default();
    let named = list.lines().filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')));
    let words = named.filter_map(|line| Some(line.split_whitespace().next()?.to_owned()));
    words.filter(|verb| verb != "help").collect()
}

#[test]
fn every_verb_says_what_it_does() {
    insta::with_settings!({ omit_expression => true }, {
        insta::assert_snapshot!("help", deploy(&["--help"]));
        for verb in verbs() {
            insta::assert_snapshot!(format!("help_{verb}"), deploy(&[&verb, "--help"]));
        }
    });
}

#[test]
fn every_shell_can_complete_every_verb() {
    let verbs = verbs();
    assert!(verbs.len() >= 12, "{verbs:?}");
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = deploy(&["completions", shell]);
        for verb in &verbs {
            assert!(script.contains(verb.as_str()), "{shell} does not know {verb}");
        }
    }
}
