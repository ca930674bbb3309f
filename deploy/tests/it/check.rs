//! Every cross-check before anything is sent: what is said, and the fix in it. One table, one snapshot.

use std::fmt::Write as _;
use std::path::Path;

use deploy::config::Config;
use deploy::desired::Desired;
use deploy::exit::Stop;
use deploy::model::{PolicyDocument, Role, Tags, tags};
use deploy::observe::observe;
use deploy::plan::{Wish, plan};
use deploy::secret::SecretValue;
use serde_json::{Map, Value, json};

use crate::inside;
use crate::memory::{self, Memory, World};

const FILE: &str = r#"
account = "123456789012"
region = "ap-northeast-2"
[job.library-sync]
cluster = "geuneul"
family = "geuneul"
container = "app"
command = ["--all"]
subnets = ["subnet-1"]
[job.library-sync.schedule]
cron = "0 4 1 * ? *"
timezone = "Asia/Seoul"
[[job.library-sync.secret]]
env = "API_KEY"
parameter = "/app/key"
from = "prompt"
"#;

fn definition() -> Value {
    json!({
        "family": "geuneul", "networkMode": "awsvpc", "requiresCompatibilities": ["FARGATE"], "cpu": "256", "memory": "512",
        "executionRoleArn": "arn:aws:iam::123456789012:role/execution",
        "containerDefinitions": [{ "name": "app", "image": format!("app@sha256:{}", "0".repeat(64)) }],
    })
}

/// What a configuration and a family lead to: what is refused and how, and what is noted.
fn said(file: &str, definition: &Value, roles: &[Role]) -> String {
    let mut out = String::new();
    let config = match Config::parse(file, Path::new("deploy.toml")) {
        Ok(config) => config,
        Err(error) => {
            let stop = error.downcast_ref::<Stop>().expect("a usage error");
            writeln!(out, "  {}: {stop}\n      hint: {}", stop.exit.code(), stop.hint).unwrap();
            return out;
        }
    };
    let desired = Desired::new(&config, config.job(None).expect("one job"));
    let mut world = World::default();
    let revision = memory::revision(definition.as_object().expect("an object"), &tags::ours("library-sync"), 1);
    world.families.insert("geuneul".into(), vec![revision]);
    world.roles.extend(roles.iter().map(|role| (role.arn.rsplit('/').next().unwrap().to_owned(), role.clone())));
    let wish = Wish { disabled: true, ..Wish::default() };
    let live = inside::run(observe(&Memory::new(world, None), &desired)).expect("observed");
    let plan = plan(&desired, &live, &wish, Default::default());
    for refusal in &plan.refusals {
        // Eight thousand characters are no good reading.
        let what: String = refusal.what.chars().take(300).collect();
        writeln!(out, "  3: {what}\n      hint: {}", refusal.hint).unwrap();
    }
    for note in &plan.notes {
        writeln!(out, "  note: {note}").unwrap();
    }
    out
}

fn edited(from: &str, to: &str) -> String {
    assert!(FILE.contains(from), "{from}");
    said(&FILE.replacen(from, to, 1), &definition(), &[])
}

fn with_definition(file: &str, edit: impl FnOnce(&mut Value)) -> String {
    let mut definition = definition();
    edit(&mut definition);
    said(file, &definition, &[])
}

#[test]
fn every_check_names_the_fix() {
    assert_eq!(said(FILE, &definition(), &[]), "", "the sample itself is well");
    let job = |line: &str| edited("command = ", &format!("{line}\ncommand = "));
    let schedule = |line: &str| edited("cron = ", &format!("{line}\ncron = "));
    let cron = |fields: &str| edited("0 4 1 * ? *", fields);
    let secret = |lines: &str| {
        said(&format!("{FILE}\n[[job.library-sync.secret]]\n{lines}\nfrom = \"prompt\"\n"), &definition(), &[])
    };
    let container =
        |member: &str, value: Value| with_definition(FILE, |d| d["containerDefinitions"][0][member] = value);
    let given = |arn: &str| {
        let scheduler = json!({ "Service": "scheduler.amazonaws.com" });
        let condition = json!({ "ArnLike": { "aws:SourceArn": arn } });
        let trust = json!({ "Statement": [{ "Effect": "Allow", "Principal": scheduler, "Action": "sts:AssumeRole", "Condition": condition }] });
        let trust = PolicyDocument(trust.to_string());
        let role =
            Role { arn: "arn:aws:iam::123456789012:role/theirs".into(), trust, boundary: None, tags: Tags::new() };
        let file = FILE.replace("cron = ", "role = \"arn:aws:iam::123456789012:role/theirs\"\ncron = ");
        said(&file, &definition(), &[role])
    };
    let in_this_group = "arn:aws:scheduler:ap-northeast-2:123456789012:schedule-group/library-sync";
    assert_eq!(given(in_this_group), "");
    let braces = SecretValue::new(b"a{{b}}".to_vec()).err().expect("refused").to_string();

    let table = [
        ("a secret and a variable of the job share a name", job(r#"environment = { API_KEY = "x" }"#)),
        (
            "a secret and a variable of the family share a name",
            container("environment", json!([{ "name": "API_KEY", "value": "x" }])),
        ),
        ("a variable of the job is a secret of the family", {
            let file = FILE.replace("command = ", "environment = { THEIRS = \"x\" }\ncommand = ");
            with_definition(&file, |d| {
                d["containerDefinitions"][0]["secrets"] = json!([{ "name": "THEIRS", "valueFrom": "/theirs" }])
            })
        }),
        ("two secrets share a variable", secret("env = \"API_KEY\"\nparameter = \"/app/other\"")),
        ("two secrets share a parameter", secret("env = \"OTHER\"\nparameter = \"/app/key\"")),
        ("a secret takes the place of the receipt", edited("/app/key", "/geuneul-deploy/library-sync/verified-run")),
        (
            "a secret takes the place of another job's record",
            edited("/app/key", "/geuneul-deploy/other/scheduled-path"),
        ),
        ("overrides over 8,192 characters", edited("--all", &"x".repeat(8_192))),
        (
            "a job's name that StartedBy cannot carry",
            said(&FILE.replace("library-sync", "\"library.sync\""), &definition(), &[]),
        ),
        (
            "a job's name too long for ClientToken and role",
            said(&FILE.replace("library-sync", &"x".repeat(41)), &definition(), &[]),
        ),
        ("a family with its revision", edited("family = \"geuneul\"", "family = \"geuneul:7\"")),
        ("a group that is none", schedule("group = \"a/b\"")),
        ("the group of everybody", schedule("group = \"default\"")),
        ("a job of its name", said(&FILE.replace("library-sync", "default"), &definition(), &[])),
        ("who started it", edited("--all", "--ingest.trigger=scheduled")),
        ("a parameter's name that is none", edited("/app/key", "/aws/key")),
        ("too many security groups", job(r#"security_groups = ["sg-1", "sg-2", "sg-3", "sg-4", "sg-5", "sg-6"]"#)),
        (
            "a cluster of another account",
            edited("cluster = \"geuneul\"", "cluster = \"arn:aws:ecs:ap-northeast-2:999999999999:cluster/geuneul\""),
        ),
        (
            "a cluster of another region",
            edited("cluster = \"geuneul\"", "cluster = \"arn:aws:ecs:us-east-1:123456789012:cluster/geuneul\""),
        ),
        ("a role of another account", schedule("role = \"arn:aws:iam::999999999999:role/theirs\"")),
        (
            "a key of another region",
            edited("parameter = ", "kms_key = \"arn:aws:kms:us-east-1:999999999999:key/0a1b\"\nparameter = "),
        ),
        ("a container that is not there", edited("container = \"app\"", "container = \"apq\"")),
        ("a size that Fargate does not have", with_definition(FILE, |d| d["memory"] = json!("4096"))),
        ("a family for EC2 alone", with_definition(FILE, |d| d["requiresCompatibilities"] = json!(["EC2"]))),
        (
            "secrets without an execution role",
            with_definition(FILE, |d| drop(d.as_object_mut().unwrap().remove("executionRoleArn"))),
        ),
        ("a network that Fargate does not have", with_definition(FILE, |d| d["networkMode"] = json!("bridge"))),
        ("an image named by a tag", container("image", json!("app:1"))),
        ("five fields", cron("0 4 1 * *")),
        ("two stars", cron("0 4 * * * *")),
        ("two question marks", cron("0 4 ? * ? *")),
        ("a rate, and a singular at that", cron("rate(1 day)")),
        ("never", cron("0 4 31 2 ? *")),
        ("a weekday as a number", cron("0 4 ? * 2 *")),
        ("a day that some months lack", cron("0 4 31 * ? *")),
        (
            "a moment that the clocks skip",
            said(
                &FILE.replace("0 4 1 * ? *", "30 2 * * ? *").replace("Asia/Seoul", "Europe/Berlin"),
                &definition(),
                &[],
            ),
        ),
        ("a time zone that is none", edited("Asia/Seoul", "Seoul")),
        ("a value with {{", format!("  3: {braces}\n")),
        ("a variable that deploy sets", job(r#"environment = { INGEST_TRIGGER = "x" }"#)),
        ("a placeholder of Scheduler", edited("--all", "--at=<aws.scheduler.scheduled-time>")),
        (
            "a given role that trusts a schedule",
            given("arn:aws:scheduler:ap-northeast-2:123456789012:schedule/library-sync/*"),
        ),
        (
            "a given role that trusts another group",
            given("arn:aws:scheduler:ap-northeast-2:123456789012:schedule-group/default"),
        ),
        ("a fixed source", edited("--all", "--ingest.sha256=0a1b")),
        (
            "a proof that is never young enough",
            said(&format!("{FILE}\n[job.library-sync.gate]\nmax_age = \"0d\"\n"), &definition(), &[]),
        ),
        ("two jobs share a group", {
            let other = FILE[FILE.find("[job").unwrap()..]
                .replace("library-sync", "other")
                .replace("cron", "group = \"library-sync\"\ncron");
            said(&format!("{FILE}\n{other}"), &definition(), &[])
        }),
    ];
    let mut all = String::new();
    for (name, said) in &table {
        assert!(!said.is_empty(), "nothing is said of: {name}");
        write!(all, "{name}\n{said}").unwrap();
    }
    insta::assert_snapshot!(all);
}

#[test]
fn a_given_document_is_one_that_ecs_takes_and_gives_back() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = FILE.replace("container = ", "task_definition = \"task.json\"\ncontainer = ");
    let judged = |document: &str| {
        std::fs::write(folder.path().join("task.json"), document).expect("task.json is written");
        let config =
            Config::parse(&file, &folder.path().join("deploy.toml")).expect("the configuration itself is well");
        config.job(None).expect("one job").task_definition.clone().expect("a document")
    };
    let with = |member: &str, value: Value| {
        let mut document = definition();
        document[member] = value;
        document.to_string()
    };
    assert!(judged(&definition().to_string()).is_ok());
    let mut all = String::new();
    let null = json!([{ "name": "app", "image": "app:1", "logConfiguration": { "options": null } }]);
    let read_only: Map<String, Value> = definition()
        .as_object()
        .unwrap()
        .clone()
        .into_iter()
        .chain([("revision".to_owned(), json!(3)), ("status".to_owned(), json!("ACTIVE"))])
        .collect();
    for document in [
        "{".to_owned(),
        "[]".to_owned(),
        with("tags", json!([{ "key": "a", "value": "b" }])),
        with("family", json!("another")),
        with("taskRoleArn", Value::Null),
        with("containerDefinitions", null),
        Value::Object(read_only).to_string(),
    ] {
        let unusable = judged(&document).expect_err("unusable");
        writeln!(all, "{}\n    hint: {}", unusable.what, unusable.hint).unwrap();
    }
    let all = all.replace(&folder.path().display().to_string(), "[folder]");
    insta::assert_snapshot!(all);
}

/// AWS's table, as it is printed: CPU units, then memory in GB.
const FARGATE: [(u32, &[f64]); 4] = [
    (256, &[0.5, 1.0, 2.0]),
    (512, &[1.0, 2.0, 3.0, 4.0]),
    (8192, &[16.0, 20.0, 24.0, 28.0, 32.0, 36.0, 40.0, 44.0, 48.0, 52.0, 56.0, 60.0]),
    (16_384, &[32.0, 40.0, 48.0, 56.0, 64.0, 72.0, 80.0, 88.0, 96.0, 104.0, 112.0, 120.0]),
];
/// "Between A GB and B GB in 1 GB increments".
const BETWEEN: [(u32, u32, u32); 3] = [(1024, 2, 8), (2048, 4, 16), (4096, 8, 30)];

#[test]
fn fargate_has_these_sizes_and_no_others() {
    let legal = |cpu: &str, memory: &str| deploy::check::fargate_has(cpu, memory).is_ok();
    let mut expected: Vec<(u32, u32)> = Vec::new();
    for (cpu, sizes) in FARGATE {
        expected.extend(sizes.iter().map(|gb| (cpu, (gb * 1024.0) as u32)));
    }
    expected.extend(BETWEEN.iter().flat_map(|(cpu, first, last)| (*first..=*last).map(|gb| (*cpu, gb * 1024))));
    expected.sort();
    let mut found = Vec::new();
    for cpu in [128, 256, 384, 512, 1024, 2048, 4096, 8192, 16_384] {
        found.extend(
            (0..=130)
                .flat_map(|gb| [gb * 1024, gb * 1024 + 512])
                .filter(|memory| legal(&cpu.to_string(), &memory.to_string()))
                .map(|memory| (cpu, memory)),
        );
    }
    assert_eq!(found, expected);
    // In words, as the console and many files have them.
    assert!(legal(".25 vCPU", "0.5 GB") && legal("1 vCPU", "2GB") && !legal("1 vCPU", "1GB") && !legal("", "512"));
}
