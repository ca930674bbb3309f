//! Who must never know what.

use std::process::Command;

fn sources() -> Vec<(String, String)> {
    let mut folders = vec![std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src")];
    let mut sources = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()) {
            if entry.is_dir() {
                folders.push(entry);
            } else if entry.extension().is_some_and(|extension| extension == "rs") {
                let name = entry.strip_prefix(env!("CARGO_MANIFEST_DIR")).unwrap().display().to_string();
                sources.push((name, std::fs::read_to_string(entry).unwrap()));
            }
        }
    }
    assert!(sources.len() > 20);
    sources
}

#[test]
fn no_aws_and_one_crypto_library() {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let tree = Command::new(cargo)
        .args(["tree", "--package=ingest", "--edges=normal,build", "--prefix=none", "--offline", "--locked"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let tree = String::from_utf8(tree.stdout).unwrap();
    assert!(tree.contains("tokio-postgres v") && tree.contains("ring v"));
    for absent in ["aws-", "openssl v", "openssl-sys", "native-tls", "deadpool", "bb8", "sqlx", "tracing-log"] {
        assert!(!tree.lines().any(|line| line.starts_with(absent)), "{absent} is below ingest");
    }
}

#[test]
fn pure_rooms_are_pure() {
    let pure = [
        "src/plan.rs",
        "src/plan/changes.rs",
        "src/plan/guards.rs",
        "src/identity.rs",
        "src/identity/clusters.rs",
        "src/identity/keys.rs",
        "src/identity/likeness.rs",
        "src/identity/mend.rs",
        "src/identity/outcome.rs",
        "src/identity/succession.rs",
        "src/record.rs",
        "src/source/library.rs",
        "src/upstream/envelope.rs",
        "src/upstream/errors.rs",
    ];
    let sources = sources();
    for name in pure {
        let (_, text) = sources.iter().find(|(source, _)| source == name).unwrap_or_else(|| panic!("{name} is gone"));
        for word in ["async ", ".await", "tokio", "reqwest", "std::time", "std::env", "tracing::", "println!"] {
            assert!(!text.contains(word), "{name} knows {word:?}");
        }
    }
}

#[test]
fn the_key_meets_a_url_in_one_place_and_files_stay_short() {
    for (name, text) in sources() {
        if name.ends_with("tests.rs") {
            continue;
        }
        let program = text.split("#[cfg(test)]").next().unwrap();
        assert!(text.lines().count() <= 420, "{name} is too long");
        assert_eq!(program.contains("serviceKey="), name == "src/upstream/mod.rs", "{name}");
        assert!(!program.contains("env::var") || name == "src/lib.rs", "{name} reads the environment");
    }
}
