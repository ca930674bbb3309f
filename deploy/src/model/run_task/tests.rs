use std::collections::BTreeSet;

use proptest::prelude::*;

use super::marks::{MAX_CLIENT_TOKEN, MAX_STARTED_BY};
use super::*;

/// Every key that RunTask has, as a universal target writes it: the members of the service's public model with a capital first
/// letter.
const LEGAL: &str = "
    Cluster TaskDefinition LaunchType Count PlatformVersion Group StartedBy ClientToken EnableECSManagedTags
    EnableExecuteCommand PropagateTags Tags[].Key Tags[].Value
    CapacityProviderStrategy[].CapacityProvider CapacityProviderStrategy[].Weight CapacityProviderStrategy[].Base
    NetworkConfiguration.AwsvpcConfiguration.Subnets[] NetworkConfiguration.AwsvpcConfiguration.SecurityGroups[]
    NetworkConfiguration.AwsvpcConfiguration.AssignPublicIp
    Overrides.Cpu Overrides.Memory Overrides.TaskRoleArn Overrides.ExecutionRoleArn Overrides.EphemeralStorage.SizeInGiB
    Overrides.ContainerOverrides[].Name Overrides.ContainerOverrides[].Command[]
    Overrides.ContainerOverrides[].Environment[].Name Overrides.ContainerOverrides[].Environment[].Value
    Overrides.ContainerOverrides[].Cpu Overrides.ContainerOverrides[].Memory
    Overrides.ContainerOverrides[].MemoryReservation
";

const GOLDEN: &str = r#"{"Cluster":"arn:aws:ecs:ap-northeast-2:123456789012:cluster/geuneul","TaskDefinition":"arn:aws:ecs:ap-northeast-2:123456789012:task-definition/geuneul:77","LaunchType":"FARGATE","Count":1,"ClientToken":"96d44242d9d8-<aws.scheduler.scheduled-time>","StartedBy":"geuneul-deploy/scheduled/library-sync","NetworkConfiguration":{"AwsvpcConfiguration":{"Subnets":["subnet-a","subnet-b"],"SecurityGroups":["sg-1"],"AssignPublicIp":"ENABLED"}},"Overrides":{"ContainerOverrides":[{"Name":"ingest","Command":["--ingest.source=library","--ingest.deactivate-stale=true","--ingest.exit-after=true"],"Environment":[{"Name":"INGEST_OCCURRENCE","Value":"library-sync@<aws.scheduler.scheduled-time>"},{"Name":"INGEST_TRIGGER","Value":"scheduled"}]}]}}"#;

fn set(items: &[&str]) -> BTreeSet<String> {
    items.iter().map(|item| (*item).to_owned()).collect()
}

fn parts() -> Parts {
    Parts {
        job: "library-sync".to_owned(),
        cluster: "arn:aws:ecs:ap-northeast-2:123456789012:cluster/geuneul".to_owned(),
        task_definition: "arn:aws:ecs:ap-northeast-2:123456789012:task-definition/geuneul:77".parse().unwrap(),
        launch: Launch::Fargate,
        platform_version: None,
        network: Network {
            subnets: set(&["subnet-b", "subnet-a"]),
            security_groups: set(&["sg-1"]),
            assign_public_ip: true,
        },
        container: "ingest".to_owned(),
        command: geuneul::JobCommand::monthly(geuneul::SourceName::Library).argv(),
        environment: BTreeMap::new(),
    }
}

fn occurrence() -> Occurrence {
    Occurrence { id: "0f".repeat(16), time: "2026-11-29T03:00:00Z".to_owned() }
}

/// Every path to a scalar: `Overrides.ContainerOverrides[].Name`.
fn paths(value: &serde_json::Value, path: &str, into: &mut BTreeSet<String>) {
    match value {
        serde_json::Value::Object(map) => map.iter().for_each(|(key, value)| {
            paths(value, &if path.is_empty() { key.clone() } else { format!("{path}.{key}") }, into);
        }),
        serde_json::Value::Array(items) => items.iter().for_each(|item| paths(item, &format!("{path}[]"), into)),
        _ => drop(into.insert(path.to_owned())),
    }
}

#[test]
fn the_input_is_what_scheduler_accepts() {
    let input = RunTask::new(parts()).unwrap().scheduler_input();
    assert_eq!(input, GOLDEN);
    assert!(!input.contains("\\u003c"));
    let mut found = BTreeSet::new();
    paths(&serde_json::from_str(&input).unwrap(), "", &mut found);
    let legal = LEGAL.split_whitespace().map(str::to_owned).collect();
    assert_eq!(found.difference(&legal).collect::<Vec<_>>(), Vec::<&String>::new());
}

#[test]
fn a_key_in_another_case_or_a_value_of_another_hand_is_refused() {
    let replaced = |from: &str, to: &str| {
        assert!(GOLDEN.contains(from));
        RunTask::from_scheduler_input(&GOLDEN.replace(from, to)).map_err(|error| error.to_string())
    };
    for (from, to, why) in [
        ("\"Cluster\"", "\"cluster\"", "unknown field `cluster`"),
        ("AwsvpcConfiguration", "AwsVpcConfiguration", "unknown field `AwsVpcConfiguration`"),
        ("\"Command\"", "\"command\"", "unknown field `command`"),
        ("\"Count\":1,", "", "missing field `Count`"),
        ("\"Count\":1", "\"Count\":2", "Count is 2; expected 1"),
        ("\"Count\":1", "\"Count\":1,\"Group\":\"x\"", "unknown field `Group`"),
        ("geuneul:77", "geuneul", "is not the ARN of a task definition with its revision"),
        ("scheduled/library-sync", "manual/library-sync", "the job's name \"\""),
        ("scheduled/library-sync", "scheduled/other", "ClientToken is \"96d44242d9d8-"),
        ("\"scheduled\"}", "\"manual\"}", "Environment[1].Value is \"manual\"; expected \"scheduled\""),
        ("-<aws.scheduler.scheduled-time>", "-fixed", "ClientToken is \"96d44242d9d8-fixed\""),
        ("--ingest.source=library", "<aws.scheduler.execution-id>", "which Scheduler replaces"),
    ] {
        let error = replaced(from, to).unwrap_err();
        assert!(error.contains(why), "{from} -> {to}: {error}");
    }
    // The order of a set is no difference; how the placeholder is written is one: Scheduler replaces text.
    assert_eq!(replaced("[\"subnet-a\",\"subnet-b\"]", "[\"subnet-b\",\"subnet-a\"]").unwrap().parts(), &parts());
    assert!(replaced("<", "\\u003c").unwrap_err().contains("replaces only the letter itself"));
    assert!(replaced("-<", "-\\u003c").unwrap_err().contains("replaces only the letter itself"));
}

#[test]
fn a_manual_run_differs_only_in_what_names_the_occurrence() {
    let task = RunTask::new(parts()).unwrap();
    let manual: serde_json::Value = serde_json::from_str(&task.manual(occurrence()).cli_json()).unwrap();
    let scheduled = camel_case(&serde_json::from_str::<serde_json::Value>(GOLDEN).unwrap());
    let differing = |pointer: &str| {
        let (a, b) = (manual.pointer(pointer), scheduled.pointer(pointer));
        (a != b).then(|| format!("{} | {}", b.unwrap(), a.unwrap()))
    };
    let environment = "/overrides/containerOverrides/0/environment";
    assert_eq!(
        ["/clientToken", "/startedBy", &format!("{environment}/0/value"), &format!("{environment}/1/value")]
            .map(|pointer| differing(pointer).unwrap()),
        [
            r#""96d44242d9d8-<aws.scheduler.scheduled-time>" | "96d44242d9d8-0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f""#,
            r#""geuneul-deploy/scheduled/library-sync" | "geuneul-deploy/manual/library-sync""#,
            r#""library-sync@<aws.scheduler.scheduled-time>" | "library-sync@2026-11-29T03:00:00Z""#,
            r#""scheduled" | "manual""#,
        ]
    );
    let unmarked = |mut value: serde_json::Value| {
        value["clientToken"].take();
        value["startedBy"].take();
        value.pointer_mut(environment).unwrap().take();
        value
    };
    assert_eq!(unmarked(manual.clone()), unmarked(scheduled.clone()));
}

#[test]
fn limits_are_checked_before_the_schedule_fires() {
    let with = |change: &dyn Fn(&mut Parts)| {
        let mut parts = parts();
        change(&mut parts);
        RunTask::new(parts).map(drop)
    };
    assert_eq!(with(&|p| p.job = "a.b".into()), Err(RunTaskError::Job("a.b".into())));
    assert_eq!(with(&|p| p.job = "x".repeat(65)), Err(RunTaskError::Job("x".repeat(65))));
    assert_eq!(with(&|p| p.network.subnets.clear()), Err(RunTaskError::Empty("list of subnets")));
    assert_eq!(
        with(&|p| drop(p.environment.insert(TRIGGER_VARIABLE.into(), "x".into()))),
        Err(RunTaskError::Reserved(TRIGGER_VARIABLE.into()))
    );
    // 8192 characters, not bytes: Korean text counts by character.
    let length = |parts: Parts| {
        let task = RunTask(parts);
        camel_case(&task.wire(&task.scheduled()).overrides).to_string().chars().count()
    };
    let room = 8192 - length(Parts { command: vec![String::new()], ..parts() });
    assert_eq!(with(&|p| p.command = vec!["가".repeat(room)]), Ok(()));
    assert_eq!(with(&|p| p.command = vec!["가".repeat(room + 1)]), Err(RunTaskError::OverridesTooLong(8193)));
    // The longest job still fits.
    let longest = RunTask::new(Parts { job: "x".repeat(64), ..parts() }).unwrap();
    let marks = longest.scheduled();
    assert!(marks.client_token.len() <= MAX_CLIENT_TOKEN && marks.started_by.len() <= MAX_STARTED_BY);
}

prop_compose! {
    fn any_parts()(
        job in "[A-Za-z0-9_-]{1,64}",
        cluster in "[a-z]{1,20}",
        revision in 1u32..,
        family in "[A-Za-z0-9_-]{1,40}",
        subnets in proptest::collection::btree_set("subnet-[a-f0-9]{1,4}", 1..=16),
        security_groups in proptest::collection::btree_set("sg-[a-f0-9]{1,4}", 0..=5),
        assign_public_ip: bool,
        container in "[a-z-]{1,20}",
        command in proptest::collection::vec("\\PC{0,20}", 0..6),
        environment in proptest::collection::btree_map("[A-Z_]{1,10}", "\\PC{0,20}", 0..6),
    ) -> Parts {
        let task_definition = format!("arn:aws:ecs:ap-northeast-2:123456789012:task-definition/{family}:{revision}");
        Parts {
            job, cluster, container, command, environment,
            task_definition: task_definition.parse().unwrap(),
            launch: Launch::Fargate,
        platform_version: None,
            network: Network { subnets, security_groups, assign_public_ip },
        }
    }
}

proptest! {
    #[test]
    fn what_is_written_is_read_back(parts in any_parts()) {
        let task = RunTask::new(parts).unwrap();
        let read = RunTask::from_scheduler_input(&task.scheduler_input()).unwrap();
        prop_assert_eq!(&read, &task);
        prop_assert_eq!(read.fingerprint_text(), task.fingerprint_text());
    }

    #[test]
    fn every_part_is_in_the_fingerprint(a in any_parts(), b in any_parts()) {
        let b = Parts { job: a.job.clone(), ..b };
        let same = a == b;
        let texts = [a, b].map(|parts| RunTask::new(parts).unwrap().fingerprint_text());
        prop_assert_eq!(texts[0] == texts[1], same);
    }
}

#[test]
fn a_one_off_schedule_sends_the_same_but_for_what_names_the_occurrence() {
    let task = RunTask::new(Parts { job: "j".repeat(64), ..parts() }).unwrap();
    let [mut scheduled, mut once]: [serde_json::Value; 2] =
        [task.scheduler_input(), task.one_off_input()].map(|input| serde_json::from_str(&input).unwrap());
    assert_ne!(scheduled["ClientToken"], once["ClientToken"], "an occurrence of the same second is another run");
    assert_ne!(scheduled["StartedBy"], once["StartedBy"]);
    for input in [&mut scheduled, &mut once] {
        let token = input["ClientToken"].take();
        let token = token.as_str().unwrap().replace(SCHEDULED_TIME, "2026-11-29T03:00:00Z");
        assert!(token.len() <= MAX_CLIENT_TOKEN, "{token}");
        assert!(input["StartedBy"].take().as_str().unwrap().len() <= MAX_STARTED_BY);
    }
    let triggers = [&mut scheduled, &mut once].map(|input| {
        let environment = input["Overrides"]["ContainerOverrides"][0]["Environment"].as_array_mut().unwrap();
        environment.iter_mut().find(|one| one["Name"] == TRIGGER_VARIABLE).unwrap()["Value"].take()
    });
    assert_eq!(triggers, ["scheduled", "manual"]);
    // The placeholder for the time is the schedule's own.
    assert_eq!(scheduled, once);
    assert!(once.to_string().contains(SCHEDULED_TIME));
    // What Scheduler makes of it is what is asked for.
    let run = task.via_scheduler("2026-11-29T03:00:00Z");
    let occurrence = format!("{}@2026-11-29T03:00:00Z", "j".repeat(64));
    assert_eq!(run.environment()[OCCURRENCE_VARIABLE], occurrence);
    assert_eq!(of_occurrence(&occurrence), Some(("j".repeat(64).as_str(), "2026-11-29T03:00:00Z")));
    assert_eq!([of_occurrence("2026-11-29T03:00:00Z"), of_occurrence("@x")], [None, None]);
    // It is not taken for the job's own Input.
    assert!(RunTask::from_scheduler_input(&task.one_off_input()).is_err());
}
