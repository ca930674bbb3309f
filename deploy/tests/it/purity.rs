//! Who must not know what, read from the imports.

use std::fs;
use std::path::{Path, PathBuf};

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            found.push(path);
        }
    }
}

/// The code without its comments.
fn code(path: &Path) -> String {
    let text = fs::read_to_string(path).unwrap();
    text.lines().filter(|line| !line.trim_start().starts_with("//")).map(|line| format!("{line}\n")).collect()
}

#[test]
fn the_sdk_is_imported_only_by_the_cloud() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    let inside = files.iter().filter(|path| path.starts_with(src.join("cloud")));
    assert!(inside.clone().any(|path| code(path).contains("aws_sdk_")), "the test looks for the wrong word");
    for path in files.iter().filter(|path| !path.starts_with(src.join("cloud"))) {
        for word in ["aws_sdk_", "aws_config::", "aws_smithy_types::", "aws_smithy_http_client::"] {
            assert!(!code(path).contains(word), "{} knows {word}", path.display());
        }
    }
}

#[test]
fn what_decides_has_no_io_no_async_and_no_clock() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files: Vec<_> = [
        "desired.rs",
        "check.rs",
        "document.rs",
        "requests.rs",
        "saved.rs",
        "leak.rs",
        "normalise.rs",
        "render.rs",
        "explain.rs",
        "fingerprint.rs",
        "fire_times.rs",
        "fire_times/timetable.rs",
        "columns.rs",
        "gate.rs",
        "import.rs",
        "one_off.rs",
        "permissions.rs",
        "removal.rs",
        "terraform.rs",
        "receipt.rs",
        "scheduled_path.rs",
        "sealed.rs",
        "run/judge.rs",
        "run/ending.rs",
        "run/readable.rs",
    ]
    .map(|name| src.join(name))
    .into();
    sources(&src.join("plan"), &mut files);
    sources(&src.join("model"), &mut files);
    sources(&src.join("verify"), &mut files);
    sources(&src.join("standing"), &mut files);
    assert!(files.len() > 10);
    let forbidden = [
        "async ",
        ".await",
        "tokio",
        "aws_sdk_",
        "SystemTime",
        "Instant::now",
        "Timestamp::now",
        "Zoned::now",
        "std::fs",
        "std::env",
        "std::io",
        "std::net",
        "std::process",
        "println!",
        "print!",
        "out!(",
        "err!(",
    ];
    for path in files.iter().filter(|path| !path.ends_with("tests.rs")) {
        let code = code(path);
        for word in forbidden {
            assert!(!code.contains(word), "{} knows {word}", path.display());
        }
    }
}

#[test]
fn a_file_is_an_idea_and_not_longer_than_four_hundred_lines() {
    let crate_root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut files = Vec::new();
    sources(&crate_root.join("src"), &mut files);
    for path in files {
        let lines = fs::read_to_string(&path).unwrap().lines().count();
        assert!(lines <= 400, "{} has {lines} lines", path.display());
    }
}

#[test]
fn only_one_file_writes_to_stdout_and_stderr() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    sources(&src, &mut files);
    for path in files.iter().filter(|path| !path.ends_with("out.rs")) {
        for word in ["println!", "print!", "stdout().lock", "stderr().lock"] {
            assert!(!code(path).contains(word), "{} knows {word}", path.display());
        }
    }
}
