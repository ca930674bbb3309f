//! Who must never know what, read from the dependency tree.

use std::process::Command;

/// Names of the packages that `cargo tree` shows for these arguments.
fn tree(arguments: &[&str]) -> Vec<String> {
    let output = Command::new(env!("CARGO"))
        .args(["tree", "--offline", "--locked", "--prefix", "none", "--format", "{p}"])
        .args(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("cargo tree runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("cargo prints UTF-8");
    text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}

#[test]
fn the_vocabulary_knows_serde_and_nothing_that_does_anything() {
    let mut direct = tree(&["--package", "geuneul", "--edges", "normal", "--depth", "1"]);
    direct.sort();
    assert_eq!(direct, ["geuneul", "serde", "serde_json", "thiserror"]);
}

#[test]
fn only_deploy_knows_aws() {
    for package in ["geuneul", "ingest", "rehearsal"] {
        let aws: Vec<_> =
            tree(&["--package", package, "--edges", "all"]).into_iter().filter(|p| p.starts_with("aws-")).collect();
        assert!(aws.is_empty(), "{package}: {aws:?}");
    }
    assert!(tree(&["--package", "deploy", "--edges", "normal"]).iter().any(|p| p == "aws-sdk-scheduler"));
}

#[test]
fn there_is_one_tls_provider() {
    let all = tree(&["--workspace", "--edges", "all"]);
    assert!(all.iter().any(|package| package == "ring"));
    let others: Vec<_> =
        all.iter().filter(|package| package.starts_with("aws-lc") || *package == "native-tls").collect();
    assert!(others.is_empty(), "{others:?}");
}
