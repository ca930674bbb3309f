//! Generated configurations, and generated worlds for them: everything that can be said is said or left out, and everything that can be
//! there is there, or is somebody else's, or is wrong.

use std::path::Path;

use deploy::config::Config;
use deploy::desired::{Desired, SCHEDULER_POLICY_NAME};
use deploy::model::{Parameter, ParameterType, PolicyDocument, Role, RunTask, Schedule, Tags, TaskDefinition, tags};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::memory::{self, ACCOUNT, World};

/// The job that is planned.
pub const JOB: &str = "library-sync";
/// Another job of the same file, which shares family and execution role.
pub const OTHER: &str = "other-job";
const EXECUTION_ROLE: &str = "arn:aws:iam::123456789012:role/app/execution";
const GIVEN_ROLE: &str = "arn:aws:iam::123456789012:role/given/theirs";
const KEY: &str = "arn:aws:kms:ap-northeast-2:123456789012:key/0a1b2c3d-0000-4000-8000-000000000000";
const BOUNDARY: &str = "arn:aws:iam::123456789012:policy/limit";
const QUEUE: &str = "arn:aws:sqs:ap-northeast-2:123456789012:undelivered";

/// What a configuration wants of the job, and of the other one when there is one.
#[derive(Debug, Clone)]
pub struct Wanted {
    pub desired: Desired,
    pub other: Option<Desired>,
}

/// A configuration and a world.
#[derive(Debug, Clone)]
pub struct Case {
    pub wanted: Wanted,
    pub world: World,
}

/// A line or none.
fn maybe(line: &'static str) -> impl Strategy<Value = &'static str> {
    prop_oneof![Just(""), Just(line)]
}

fn wanted() -> impl Strategy<Value = Wanted> {
    let of_the_job = (
        maybe("capacity_providers = [{ name = \"FARGATE_SPOT\", weight = 2, base = 1 }, { name = \"FARGATE\" }]\n"),
        maybe("platform_version = \"1.4.0\"\n"),
        maybe("tags = { team = \"library\" }\n"),
        maybe("revision = \"latest\"\n"),
        maybe("environment = { MODE = \"monthly\" }\n"),
        maybe("security_groups = [\"sg-2\", \"sg-1\"]\n"),
    );
    let of_the_role = prop_oneof![
        Just(String::new()),
        Just(format!("role = \"{GIVEN_ROLE}\"\n")),
        Just(format!("role_path = \"/jobs/\"\npermissions_boundary = \"{BOUNDARY}\"\n")),
    ];
    let of_the_schedule = (
        of_the_role,
        prop_oneof![Just(String::new()), Just(format!("dead_letter_queue = \"{QUEUE}\"\n"))],
        maybe("flexible_window = \"15m\"\n"),
    );
    let key = prop_oneof![
        Just(String::new()),
        Just(format!("kms_key = \"{KEY}\"\n")),
        Just("kms_key = \"alias/app\"\n".to_owned())
    ];
    (of_the_job, of_the_schedule, (0..=3_usize, key), any::<bool>()).prop_map(|(job, schedule, (secrets, key), two)| {
        let (a, b, c, d, e, f) = job;
        let (role, queue, window) = schedule;
        let table = |name: &str, job: &str, schedule: &str, secrets: usize| {
            let mut text = format!(
                "[job.{name}]\ncluster = \"geuneul\"\nfamily = \"geuneul\"\ncontainer = \"app\"\nsubnets = [\"subnet-2\", \"subnet-1\"]\n\
                 ingest = {{ source = \"library\", deactivate_stale = true }}\n{job}\
                 [job.{name}.schedule]\ncron = \"0 4 1-3 * ? *\"\ntimezone = \"Asia/Seoul\"\n{schedule}"
            );
            for letter in ["A", "B", "C"].iter().take(secrets) {
                let key = if *letter == "A" { key.as_str() } else { "" };
                let parameter = format!("/{name}/{}", letter.to_lowercase());
                text += &format!("[[job.{name}.secret]]\nenv = \"KEY_{letter}\"\nparameter = \"{parameter}\"\nfrom = \"prompt\"\n{key}");
            }
            text
        };
        let mut text = format!("account = \"{ACCOUNT}\"\nregion = \"{}\"\n", memory::REGION);
        text += &table(JOB, &[a, b, c, d, e, f].concat(), &[role.as_str(), &queue, window].concat(), secrets);
        if two {
            text += &table(OTHER, "", "", 0);
        }
        let config = Config::parse(&text, Path::new("deploy.toml")).expect("a good configuration");
        let desired = |name: &str| config.job(Some(name)).ok().map(|job| Desired::new(&config, job));
        Wanted { desired: desired(JOB).expect("the job"), other: desired(OTHER) }
    })
}

/// Whose a thing is.
fn owner() -> impl Strategy<Value = Tags> {
    let theirs = Tags::from([("team".to_owned(), "other".to_owned())]);
    let mut both = tags::ours(JOB);
    both.extend(theirs.clone());
    prop_oneof![Just(tags::ours(JOB)), Just(theirs), Just(both), Just(Tags::new()), Just(tags::ours("a-third"))]
}

fn parameter(name: String) -> impl Strategy<Value = Option<Parameter>> {
    let keys = prop_oneof![
        Just(None),
        Just(Some("alias/aws/ssm".to_owned())),
        Just(Some(KEY.to_owned())),
        Just(Some("alias/theirs".to_owned()))
    ];
    let found = (1..9_i64, proptest::option::of(owner()), keys).prop_map(move |(version, tags, key)| Parameter {
        name: name.clone(),
        kind: ParameterType::SecureString,
        key,
        version,
        written_ms: None,
        tags,
    });
    proptest::option::of(found)
}

/// A document that is right, or right in other words, or wrong, or somebody else's.
fn document(right: PolicyDocument) -> impl Strategy<Value = PolicyDocument> {
    let mut listed: Value = serde_json::from_str(&right.0).expect("JSON");
    for statement in listed["Statement"].as_array_mut().expect("statements") {
        let action = statement["Action"].take();
        statement["Action"] = json!([action]);
    }
    listed["Statement"].as_array_mut().expect("statements").reverse();
    let wrong = right.0.replace("Allow", "Deny");
    let empty = PolicyDocument(r#"{"Version":"2012-10-17","Statement":[]}"#.into());
    prop_oneof![Just(right), Just(PolicyDocument(listed.to_string())), Just(PolicyDocument(wrong)), Just(empty)]
        .prop_map(|document| memory::encoded(&document))
}

/// Our policy on the execution role, or one that still grants what a secret of former days needed.
fn execution_policy(desired: &Desired) -> impl Strategy<Value = PolicyDocument> + use<> {
    let statement = json!({ "Sid": "GeuneulDeployReadsSecrets", "Effect": "Allow", "Action": "ssm:GetParameters",
        "Resource": desired.parameter_arn("/former/key") });
    let former = PolicyDocument(json!({ "Version": "2012-10-17", "Statement": [statement] }).to_string());
    prop_oneof![3 => document(desired.execution_policy()), 1 => Just(memory::encoded(&former))]
}

/// How an existing revision names the secrets, if it does.
fn secrets(desired: &Desired) -> impl Strategy<Value = Vec<Value>> + use<> {
    let one = |parameter: &deploy::desired::WantedParameter| {
        let (env, name, arn) = (parameter.env.clone(), parameter.name.clone(), parameter.arn.clone());
        proptest::option::of(prop_oneof![
            Just(json!({ "name": env, "valueFrom": name })),
            Just(json!({ "name": env, "valueFrom": arn })),
            Just(json!({ "name": env, "valueFrom": "/somewhere/else" })),
        ])
    };
    let more =
        [json!({ "name": "OTHER", "valueFrom": "/other" }), json!({ "name": "FORMER", "valueFrom": "/former/key" })];
    let known: Vec<_> = desired.parameters.iter().map(one).collect();
    let more: Vec<_> = more.map(|secret| proptest::option::of(Just(secret))).into();
    (known, more, any::<bool>()).prop_map(|(known, more, reversed)| {
        let mut secrets: Vec<_> = known.into_iter().chain(more).flatten().collect();
        if reversed {
            secrets.reverse();
        }
        secrets
    })
}

/// One to three revisions; the older ones may be INACTIVE.
fn family(desired: &Desired) -> impl Strategy<Value = Vec<TaskDefinition>> + use<> {
    let revision = (secrets(desired), any::<[bool; 3]>(), owner()).prop_map(|(secrets, [sidecar_first, task_role, inactive], tags)| {
        let app = json!({ "name": "app", "image": "app:1", "secrets": secrets, "environment": [{ "name": "Z", "value": "" }] });
        let mut containers = vec![app, json!({ "name": "sidecar", "image": "s:1", "essential": false })];
        if sidecar_first {
            containers.reverse();
        }
        let mut members = json!({
            "family": "geuneul", "networkMode": "awsvpc", "executionRoleArn": EXECUTION_ROLE, "containerDefinitions": containers,
            "memberOfTheFuture": { "kept": true },
        });
        if task_role {
            members["taskRoleArn"] = json!("arn:aws:iam::123456789012:role/task");
        }
        (members, tags, inactive)
    });
    proptest::collection::vec(revision, 1..=3).prop_map(|revisions| {
        let newest = revisions.len();
        let numbered = revisions.into_iter().enumerate().map(|(i, (members, tags, inactive))| {
            let mut made = memory::revision(members.as_object().expect("an object"), &tags, i + 1);
            if inactive && i + 1 < newest {
                made.members.insert("status".into(), json!("INACTIVE"));
            }
            made
        });
        numbered.collect()
    })
}

fn schedule(desired: &Desired) -> impl Strategy<Value = Schedule> + use<> {
    let desired = desired.clone();
    let parts = (1..=3_u32, 0..4_usize, any::<[bool; 7]>());
    parts.prop_map(move |(revision, kind, [enabled, key, dates, state, rate, bare, role])| {
        let run = desired.revision(revision).map(|revision| desired.run_task(revision)).expect("a revision");
        let right = RunTask::new(run).expect("a request").scheduler_input();
        let parsed: Value = serde_json::from_str(&right).expect("JSON");
        let input = match kind {
            0 => right,
            1 => serde_json::to_string_pretty(&parsed).expect("JSON"),
            2 => right.replace("library", "other"),
            _ => "not json".to_owned(),
        };
        let mut members = json!({
            "Name": JOB, "GroupName": JOB, "ScheduleExpression": if rate { "rate(1 days)" } else { "cron(0 4 1-3 * ? *)" },
            "ScheduleExpressionTimezone": "Asia/Seoul",
            "FlexibleTimeWindow": match desired.timing().flexible_window {
                Some(minutes) => json!({ "Mode": "FLEXIBLE", "MaximumWindowInMinutes": minutes }),
                None => json!({ "Mode": "OFF" }),
            },
            "Target": { "Arn": desired.target_arn(), "RoleArn": desired.role.arn, "Input": input },
        });
        if !bare {
            members["Target"]["RetryPolicy"] = json!({ "MaximumEventAgeInSeconds": 3600, "MaximumRetryAttempts": 3 });
            if let Some(queue) = &desired.timing().dead_letter_queue {
                members["Target"]["DeadLetterConfig"] = json!({ "Arn": queue });
            }
        }
        if role {
            members["Target"]["RoleArn"] = json!("arn:aws:iam::123456789012:role/somebody");
        }
        if state {
            members["State"] = json!(if enabled { "ENABLED" } else { "DISABLED" });
        }
        if key {
            members["KmsKeyArn"] = json!(KEY);
        }
        if dates {
            members["EndDate"] = json!(1_700_000_000.0);
        }
        memory::stored(&Schedule(members.as_object().expect("an object").clone()))
    })
}

fn world(wanted: Wanted) -> impl Strategy<Value = Case> {
    let desired = &wanted.desired;
    let parameters: Vec<_> = desired.parameters.iter().map(|wanted| parameter(wanted.name.clone())).collect();
    let members = json!({ "executionRoleArn": EXECUTION_ROLE });
    let scheduler_policy = desired.scheduler_policy(members.as_object().expect("an object"));
    let boundary = prop_oneof![
        Just(None),
        Just(Some(BOUNDARY.to_owned())),
        Just(Some("arn:aws:iam::aws:policy/Other".to_owned()))
    ];
    let role = (document(desired.trust()), owner(), boundary);
    let there = (
        parameters,
        family(desired),
        proptest::option::of(execution_policy(desired)),
        proptest::option::of((role, proptest::option::of(document(scheduler_policy)), any::<bool>())),
        proptest::option::of((owner(), proptest::option::of(schedule(desired)))),
    );
    there.prop_map(move |(parameters, family, execution_policy, role, group)| {
        let desired = wanted.desired.clone();
        let mut world = World::default();
        world.parameters.extend(parameters.into_iter().flatten().map(|found| (found.name.clone(), found)));
        world.families.insert("geuneul".into(), family);
        if let Some(document) = execution_policy {
            world.policies.insert(("execution".into(), desired.execution_policy_name()), document);
        }
        match role {
            // A given role has to be there, and to trust Scheduler.
            _ if !desired.role.ours => {
                let (arn, trust) = (GIVEN_ROLE.to_owned(), memory::encoded(&desired.trust()));
                let theirs = Role { arn, trust, boundary: None, tags: Tags::new() };
                world.roles.insert(desired.role.name.clone(), theirs);
            }
            None => {}
            Some(((trust, tags, boundary), policy, extra)) => {
                let (arn, name) = (desired.role.arn.clone(), desired.role.name.clone());
                world.roles.insert(name.clone(), Role { arn, trust, boundary, tags });
                world.policies.extend(policy.map(|policy| ((name.clone(), SCHEDULER_POLICY_NAME.to_owned()), policy)));
                if extra {
                    world.policies.insert((name, "of-somebody".into()), PolicyDocument("{}".into()));
                }
            }
        }
        if let Some((tags, schedule)) = group {
            world.groups.insert(JOB.into(), tags);
            world.schedules.extend(schedule.map(|schedule| ((JOB.into(), JOB.into()), schedule)));
        }
        Case { wanted: wanted.clone(), world }
    })
}

/// A configuration, and a world for it.
pub fn case() -> impl Strategy<Value = Case> {
    wanted().prop_flat_map(world)
}
