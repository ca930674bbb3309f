//! `deploy.toml`: every mistake has one line, with the place and the way out; the sample in `templates/` is none.

use std::path::Path;

use deploy::config::Config;
use deploy::exit::Stop;
use serde_json::{Value, json};

const SAMPLE: &str = include_str!("../../../templates/deploy.toml");

fn said(text: &str) -> String {
    let error = match Config::parse(text, Path::new("deploy.toml")) {
        Err(error) => error,
        // The file that it names is judged where it is needed.
        Ok(config) => match &config.job(None).expect("one job").task_definition {
            Some(Err(unusable)) => Stop::from(unusable).into(),
            other => panic!("no mistake: {other:?}"),
        },
    };
    let stop = error.downcast_ref::<Stop>().expect("a usage error");
    assert_eq!(stop.exit.code(), 64);
    format!("{stop}\n    hint: {}\n", stop.hint)
}

#[test]
fn the_sample_is_right_and_shows_the_defaults() {
    let config = Config::parse(SAMPLE, Path::new("deploy.toml")).expect("a good sample");
    // What stands behind a # is the default, word for word: with it, nothing changes.
    let is_default = |line: &str| {
        line.starts_with("# ") && line.contains(" = ") && !line.contains("...") && !line.contains("in place of")
    };
    let lines = SAMPLE.lines().map(|line| if is_default(line) { &line[2..] } else { line });
    let spelt_out: String = lines.map(|line| format!("{line}\n")).collect();
    assert_ne!(spelt_out, SAMPLE);
    assert_eq!(Config::parse(&spelt_out, Path::new("deploy.toml")).expect("good defaults"), config);
}

#[test]
fn every_mistake_names_its_line_and_the_way_out() {
    let mistakes = [
        ("timezone = ", "timezon = "),
        ("family = \"geuneul\"", ""),
        ("\"123456789012\"", "\"123\""),
        ("\"123456789012\"", "123456789012"),
        ("cluster = ", "clutser = "),
        ("cluster = ", "zone = "),
        ("\"ap-northeast-2\"", "\"seoul\""),
        ("0 4 1-3 * ? *", "0 4 1-3 * *"),
        ("0 4 1-3 * ? *", "0 4 1-3 * * *"),
        ("0 4 1-3 * ? *", "0 4 ? * ? *"),
        ("0 4 1-3 * ? *", "cron(0 4 1-3 * ? *)"),
        ("0 4 1-3 * ? *", "99 4 1-3 * ? *"),
        ("0 4 1-3 * ? *", "0 4 31 2 ? *"),
        ("Asia/Seoul", "Asia/Soul"),
        ("source = \"library\"", "source = \"librry\""),
        ("\"subnet-0a1b2c3d\", \"subnet-4e5f6a7b\"", ""),
        ("from = \"env:DATA_GO_KR_SERVICE_KEY\"", "from = \"pasted+secret==\""),
        ("/geuneul/datago_service_key", "arn:aws:ssm:ap-northeast-2:123456789012:parameter/a"),
        ("env = \"DATA_GO_KR_SERVICE_KEY\"", "env = \"DATA-GO\""),
        ("ingest = {", "command = [\"a\"]\ningest = {"),
        ("# retries = 3 ", "retries = 200 "),
        ("# retries = 3 ", "retries = -1 "),
        ("# retries = 3 ", "retries = \"three\" "),
        ("subnets = [", "security_groups = \"sg-1\"\nsubnets = ["),
        ("ingest = {", "tags = { Job = \"x\" }\ningest = {"),
        ("ingest = {", "tags = { MANAGED-BY = \"x\" }\ningest = {"),
        ("ingest = {", "tags = { region = \"seoul\" }\ningest = {"),
        ("ingest = {", "tags = { team = \"a\", Team = \"b\" }\ningest = {"),
        ("# retries = 3 ", "role_path = \"//\" "),
        ("# retries = 3 ", "permissions_boundary = \"arn:aws:iam::999999999999:policy/bound\" "),
        ("# retries = 3 ", "dead_letter_queue = \"arn:aws:sqs:ap-northeast-2:1234:letters\" "),
        ("# retry_for = \"1h\"", "retry_for = \"2d\""),
        ("# max_age = \"7d\"", "max_age = \"a week\""),
        ("# environment = {}", "environment = { DATA_GO_KR_SERVICE_KEY = \"plain\" }"),
        ("# task_definition = ", "task_definition = "),
    ];
    let mut all = String::new();
    for (right, wrong) in mistakes {
        let text = SAMPLE.replacen(right, wrong, 1);
        assert_ne!(text, SAMPLE, "{right}");
        all.push_str(&said(&text));
    }
    all.push_str(&said("account = 12"));
    assert!(!all.contains("pasted+secret"));
    insta::assert_snapshot!(all);
}

#[test]
fn the_sample_task_definition_is_one() {
    let sample: Value = serde_json::from_str(include_str!("../../../templates/task-definition.json")).expect("JSON");
    assert_eq!(sample["networkMode"], "awsvpc");
    assert_eq!(sample["containerDefinitions"][0]["logConfiguration"]["options"]["mode"], json!("blocking"));
}
