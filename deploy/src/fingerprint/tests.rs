use std::collections::BTreeMap;

use serde_json::{Map, json};

use super::*;
use crate::model::run_task::{Launch, Network, Parts};
use crate::model::{Group, Identity, Parameter, ParameterType, Role, Schedule, TaskDefinition, tags};

const REVISION: &str = "arn:aws:ecs:ap-northeast-2:123456789012:task-definition/geuneul:77";

fn object(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

fn parts() -> Parts {
    Parts {
        job: "library-sync".to_owned(),
        cluster: "geuneul".to_owned(),
        task_definition: REVISION.parse().unwrap(),
        launch: Launch::Fargate,
        platform_version: None,
        network: Network {
            subnets: ["subnet-a".to_owned()].into(),
            security_groups: ["sg-1".to_owned()].into(),
            assign_public_ip: true,
        },
        container: "ingest".to_owned(),
        command: vec!["--all".to_owned()],
        environment: [("MODE".to_owned(), "monthly".to_owned())].into(),
    }
}

fn with_input(live: &mut Live, parts: Parts) {
    let input = RunTask::new(parts).unwrap().scheduler_input();
    let Seen::Present(Schedule(schedule)) = &mut live.schedule else { unreachable!() };
    schedule["Target"]["Input"] = input.into();
}

fn live() -> Live {
    let definition = json!({
        "taskDefinitionArn": REVISION, "family": "geuneul", "revision": 77, "status": "ACTIVE",
        "registeredAt": 1, "containerDefinitions": [{ "name": "ingest", "image": "ingest:1", "essential": true }],
    });
    let role = "arn:aws:iam::123456789012:role/library-sync-scheduler";
    let target = json!({ "Arn": "arn:aws:scheduler:::aws-sdk:ecs:runTask", "RoleArn": role, "Input": "" });
    let schedule = json!({ "Name": "library-sync", "State": "DISABLED", "ScheduleExpression": "cron(0 4 1 * ? *)", "Target": target });
    let mut live = Live {
        identity: Identity { account: "123456789012".into(), arn: "arn:user".into(), region: "ap-northeast-2".into() },
        parameters: vec![Seen::Present(Parameter {
            key: None,
            name: "/geuneul/key".to_owned(),
            kind: ParameterType::SecureString,
            version: 3,
            written_ms: Some(1_795_921_200_000),
            tags: None,
        })],
        newest: Seen::Absent,
        behind: None,
        task_definition: Seen::Present(TaskDefinition {
            members: object(definition),
            tags: tags::ours("library-sync"),
        }),
        execution_policy: None,
        scheduler_role: Seen::Present(Role {
            boundary: None,
            arn: role.to_owned(),
            trust: PolicyDocument(r#"{"Statement":[{"Effect":"Allow"}]}"#.to_owned()),
            tags: tags::ours("library-sync"),
        }),
        scheduler_policy: Seen::Present(PolicyDocument(r#"{"Statement":[]}"#.to_owned())),
        scheduler_role_policies: Seen::Absent,
        scheduler_role_others: Vec::new(),
        scheduler_role_managed: BTreeMap::new(),
        other_secrets: Seen::Absent,
        group: Seen::Present(Group { name: "library-sync".to_owned(), tags: tags::ours("library-sync") }),
        schedule: Seen::Present(Schedule(object(schedule))),
        elsewhere: Seen::Absent,
        cluster: Seen::Present("ACTIVE".to_owned()),
        log_group: None,
        receipt: Seen::Absent,
        scheduled_path: Seen::Absent,
    };
    with_input(&mut live, parts());
    live
}

fn definition(live: &mut Live) -> &mut Map<String, Value> {
    let Seen::Present(definition) = &mut live.task_definition else { unreachable!() };
    &mut definition.members
}

fn schedule(live: &mut Live) -> &mut Map<String, Value> {
    let Seen::Present(Schedule(schedule)) = &mut live.schedule else { unreachable!() };
    schedule
}

fn moved(change: impl Fn(&mut Live)) -> Vec<Field> {
    let (before, mut after) = (live(), live());
    change(&mut after);
    Fingerprint::of(&before).unwrap().moved(&Fingerprint::of(&after).unwrap())
}

#[test]
fn each_field_is_moved_by_what_it_is_about_and_by_nothing_else() {
    assert_eq!(moved(|live| schedule(live)["Target"]["Arn"] = json!("arn:other")), [Field::Target]);
    assert_eq!(moved(|live| schedule(live)["Target"]["RoleArn"] = json!("arn:other")), [Field::Role]);
    let policy = |text: &str| Seen::Present(PolicyDocument(text.to_owned()));
    assert_eq!(moved(|live| live.scheduler_policy = policy(r#"{"Statement":[1]}"#)), [Field::Role]);
    assert_eq!(moved(|live| live.scheduler_policy = Seen::Absent), [Field::Role]);
    for change in [
        |parts: &mut Parts| parts.command.push("--more".to_owned()),
        |parts: &mut Parts| parts.cluster.push('2'),
        |parts: &mut Parts| drop(parts.network.security_groups.pop_first()),
        |parts: &mut Parts| drop(parts.environment.pop_first()),
    ] {
        let mut changed = parts();
        change(&mut changed);
        assert_eq!(moved(|live| with_input(live, changed.clone())), [Field::Input]);
    }
    let image = |live: &mut Live| definition(live)["containerDefinitions"][0]["image"] = json!("ingest:2");
    assert_eq!(moved(image), [Field::Content, Field::Image]);
    assert_eq!(moved(|live| drop(definition(live).insert("cpu".to_owned(), json!("512")))), [Field::Content]);
    let next = REVISION.replace(":77", ":78");
    let revision = moved(|live| {
        definition(live)["taskDefinitionArn"] = json!(next);
        with_input(live, Parts { task_definition: next.parse().unwrap(), ..parts() });
    });
    assert_eq!(revision, [Field::Input, Field::Revision]);
    let version = |live: &mut Live| {
        let Seen::Present(parameter) = &mut live.parameters[0] else { unreachable!() };
        parameter.version += 1;
    };
    assert_eq!(moved(version), [Field::Secrets]);
}

#[test]
fn what_does_not_change_the_run_does_not_move() {
    assert_eq!(moved(|live| schedule(live)["State"] = json!("ENABLED")), []);
    assert_eq!(moved(|live| schedule(live)["ScheduleExpression"] = json!("cron(0 5 1 * ? *)")), []);
    assert_eq!(moved(|live| drop(definition(live).insert("registeredAt".to_owned(), json!(2)))), []);
    // IAM returns documents percent-encoded, and in its own spelling.
    let encoded = "%7B%20%22Statement%22%3A%20%5B%5D%20%7D";
    assert_eq!(moved(|live| live.scheduler_policy = Seen::Present(PolicyDocument(encoded.to_owned()))), []);
}

#[test]
fn a_world_that_was_not_seen_whole_has_no_fingerprint() {
    let error = |change: &dyn Fn(&mut Live)| {
        let mut live = live();
        change(&mut live);
        Fingerprint::of(&live).unwrap_err().to_string()
    };
    assert_eq!(error(&|live| live.schedule = Seen::Absent), "there is no schedule");
    assert_eq!(
        error(&|live| live.scheduler_role = Seen::Hidden { why: "iam:GetRole denied".to_owned() }),
        "the scheduler's role could not be looked at: iam:GetRole denied"
    );
    assert_eq!(error(&|live| live.parameters.push(Seen::Absent)), "there is no parameter of a secret");
    let newer = error(&|live| definition(live)["taskDefinitionArn"] = json!(REVISION.replace(":77", ":78")));
    assert!(newer.starts_with("the schedule runs ") && newer.ends_with("geuneul:78"), "{newer}");
    assert!(error(&|live| schedule(live)["Target"]["Input"] = json!("{}")).contains("the Input cannot be read"));
}
