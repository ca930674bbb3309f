//! What holds in every world: a plan that was carried out is empty, whatever was there before and wherever it broke off.

use std::path::Path;
use std::time::Duration;

use deploy::apply::{Patience, apply};
use deploy::config::Config;
use deploy::desired::{Desired, SCHEDULER_POLICY_NAME};
use deploy::guard::Guard;
use deploy::model::{Parameter, ParameterType, PolicyDocument, Role, RunTask, Schedule, State, Tags, tags};
use deploy::normalise::Normalisers;
use deploy::observe::observe;
use deploy::plan::{Plan, Sign, Step, Wish, plan};
use deploy::secret::{SecretValue, Values};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::inside;
use crate::memory::{self, ACCOUNT, Memory, World};

const JOB: &str = "library-sync";
const EXECUTION_ROLE: &str = "arn:aws:iam::123456789012:role/app/execution";
const ON: Wish = Wish { disabled: true, adopt: true, latest: true, rotate: Vec::new() };
const NO_PATIENCE: Patience = Patience { limit: Duration::ZERO, pause: Duration::ZERO };

fn desired() -> Desired {
    let text = r#"
        account = "123456789012"
        region = "ap-northeast-2"
        [job.library-sync]
        cluster = "geuneul"
        family = "geuneul"
        container = "app"
        ingest = { source = "library", deactivate_stale = true }
        subnets = ["subnet-2", "subnet-1"]
        [job.library-sync.schedule]
        cron = "0 4 1-3 * ? *"
        timezone = "Asia/Seoul"
        [[job.library-sync.secret]]
        env = "KEY_A"
        parameter = "/app/a"
        from = "prompt"
        [[job.library-sync.secret]]
        env = "KEY_B"
        parameter = "/app/b"
        from = "prompt"
    "#;
    let config = Config::parse(text, Path::new("deploy.toml")).expect("a good configuration");
    Desired::new(&config, config.job(None).expect("one job"))
}

fn values() -> Values {
    let value = || match SecretValue::new(b"value".to_vec()) {
        Ok((value, _)) => value,
        Err(error) => panic!("{error}"),
    };
    Values::from([("KEY_A".to_owned(), value()), ("KEY_B".to_owned(), value())])
}

/// The plan for a world.
fn planned(world: &World, wish: Wish) -> Plan {
    let (desired, memory) = (desired(), Memory::new(world.clone(), None));
    inside::run(async {
        plan(&desired, &observe(&memory, &desired).await.expect("observed"), &wish, Normalisers::default())
    })
}

/// The world after a plan was carried out, as far as it came.
fn carried_out(world: &World, plan: &Plan, break_at: Option<usize>) -> World {
    let memory = Memory::new(world.clone(), break_at);
    let desired = desired();
    let outcome = inside::run(async {
        let live = observe(&Memory::new(world.clone(), None), &desired).await.expect("observed");
        let guard = Guard::of(&desired, &live, plan);
        apply(&memory, guard, plan, &values(), NO_PATIENCE, &mut |_| ()).await
    });
    assert_eq!(outcome.is_err(), break_at.is_some_and(|at| at < plan.steps().count()), "{outcome:?}");
    memory.world()
}

/// Whose a thing is.
fn owner() -> impl Strategy<Value = Tags> {
    let theirs = Tags::from([("team".to_owned(), "other".to_owned())]);
    let mut both = tags::ours(JOB);
    both.extend(theirs.clone());
    prop_oneof![Just(tags::ours(JOB)), Just(theirs), Just(both), Just(Tags::new()), Just(tags::ours("other-job"))]
}

fn parameter(name: &'static str) -> impl Strategy<Value = Option<Parameter>> {
    let kind = ParameterType::SecureString;
    let found = (1..9_i64, proptest::option::of(owner())).prop_map(move |(version, tags)| Parameter {
        name: name.into(),
        kind: kind.clone(),
        key: None,
        version,
        written_ms: None,
        tags,
    });
    proptest::option::of(found)
}

/// How an existing revision names a secret, if it does.
fn secret(env: &'static str, name: &'static str) -> impl Strategy<Value = Option<Value>> {
    let arn = format!("arn:aws:ssm:ap-northeast-2:{ACCOUNT}:parameter{name}");
    proptest::option::of(prop_oneof![
        Just(json!({ "name": env, "valueFrom": name })),
        Just(json!({ "name": env, "valueFrom": arn })),
        Just(json!({ "name": env, "valueFrom": "/somewhere/else" })),
    ])
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
    prop_oneof![
        Just(right),
        Just(PolicyDocument(listed.to_string())),
        Just(PolicyDocument(wrong)),
        Just(PolicyDocument(r#"{"Version":"2012-10-17","Statement":[]}"#.into())),
    ]
    .prop_map(|document| memory::encoded(&document))
}

fn family() -> impl Strategy<Value = Vec<deploy::model::TaskDefinition>> {
    let parts = (secret("KEY_A", "/app/a"), secret("KEY_B", "/app/b"), any::<[bool; 4]>(), owner());
    parts.prop_map(|(a, b, [reversed, sidecar_first, task_role, other], tags)| {
        let mut secrets: Vec<_> = [a, b].into_iter().flatten().collect();
        secrets.extend(other.then(|| json!({ "name": "OTHER", "valueFrom": "/other" })));
        if reversed {
            secrets.reverse();
        }
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
        vec![memory::revision(members.as_object().expect("an object"), &tags, 1)]
    })
}

fn schedule() -> impl Strategy<Value = Schedule> {
    let desired = desired();
    let right = desired.revision(1).map(|revision| desired.run_task(revision)).expect("a revision");
    let right = RunTask::new(right).expect("a request").scheduler_input();
    let parsed: Value = serde_json::from_str(&right).expect("JSON");
    let inputs = prop_oneof![
        Just(right.clone()),
        Just(serde_json::to_string_pretty(&parsed).expect("JSON")),
        Just(right.replace("library", "other")),
        Just("not json".to_owned()),
    ];
    let expressions = prop_oneof![Just("cron(0 4 1-3 * ? *)"), Just("rate(1 days)")];
    (inputs, expressions, any::<[bool; 4]>()).prop_map(move |(input, expression, [enabled, key, dates, state])| {
        let mut members = json!({
            "Name": JOB, "GroupName": JOB, "ScheduleExpression": expression, "ScheduleExpressionTimezone": "Asia/Seoul",
            "FlexibleTimeWindow": { "Mode": "OFF" },
            "Target": {
                "Arn": desired.target_arn(), "RoleArn": desired.role.arn, "Input": input,
                "RetryPolicy": { "MaximumEventAgeInSeconds": 3600, "MaximumRetryAttempts": 3 },
            },
        });
        if state {
            members["State"] = json!(if enabled { "ENABLED" } else { "DISABLED" });
        }
        if key {
            members["KmsKeyArn"] = json!("arn:aws:kms:...");
        }
        if dates {
            members["EndDate"] = json!(1_700_000_000.0);
        }
        memory::stored(&Schedule(members.as_object().expect("an object").clone()))
    })
}

fn world() -> impl Strategy<Value = World> {
    let desired = desired();
    let members = json!({ "executionRoleArn": EXECUTION_ROLE });
    let scheduler_policy = desired.scheduler_policy(members.as_object().expect("an object"));
    let role = (document(desired.trust()), owner());
    let there = (
        parameter("/app/a"),
        parameter("/app/b"),
        family(),
        proptest::option::of(document(desired.execution_policy())),
        proptest::option::of((role, proptest::option::of(document(scheduler_policy)))),
        proptest::option::of((owner(), proptest::option::of(schedule()))),
    );
    there.prop_map(move |(a, b, family, execution_policy, role, group)| {
        let mut world = World::default();
        world.parameters.extend([a, b].into_iter().flatten().map(|found| (found.name.clone(), found)));
        world.families.insert("geuneul".into(), family);
        if let Some(document) = execution_policy {
            world.policies.insert(("execution".into(), desired.execution_policy_name()), document);
        }
        if let Some(((trust, tags), policy)) = role {
            world
                .roles
                .insert(desired.role.name.clone(), Role { arn: desired.role.arn.clone(), trust, boundary: None, tags });
            let key = (desired.role.name.clone(), SCHEDULER_POLICY_NAME.to_owned());
            world.policies.extend(policy.map(|policy| (key, policy)));
        }
        if let Some((tags, schedule)) = group {
            world.groups.insert(JOB.into(), tags);
            world.schedules.extend(schedule.map(|schedule| ((JOB.into(), JOB.into()), schedule)));
        }
        world
    })
}

fn state(world: &World) -> Option<State> {
    world.schedules.get(&(JOB.into(), JOB.into())).map(Schedule::state)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 128, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_plan_that_was_carried_out_is_empty(world in world()) {
        let before = planned(&world, ON);
        prop_assert!(before.refusals.is_empty(), "{:#?}", before.refusals);
        let after = carried_out(&world, &before, None);
        for wish in [ON, Wish::default()] {
            let plan = planned(&after, wish);
            prop_assert!(plan.is_empty() && plan.refusals.is_empty(), "{:#?}", plan);
        }
        prop_assert_eq!(state(&after), Some(State::Disabled));
        // Whatever this program has never heard of is still there.
        let newest = after.families["geuneul"].last().unwrap();
        prop_assert_eq!(&newest.members["memberOfTheFuture"], &json!({ "kept": true }));
        if let Some(found) = world.schedules.values().next() {
            prop_assert_eq!(found.text("KmsKeyArn"), after.schedules.values().next().unwrap().text("KmsKeyArn"));
        }
    }

    #[test]
    fn wherever_it_breaks_off_it_can_go_on(world in world(), at in 0..12_usize) {
        let half = carried_out(&world, &planned(&world, ON), Some(at));
        let rest = planned(&half, ON);
        prop_assert!(rest.refusals.is_empty(), "{:#?}", rest.refusals);
        let whole = carried_out(&half, &rest, None);
        prop_assert!(planned(&whole, ON).is_empty());
    }

    #[test]
    fn what_is_not_ours_stays_as_it_is(world in world(), disabled in any::<bool>()) {
        let plan = planned(&world, Wish { disabled, ..Wish::default() });
        if plan.refusals.is_empty() {
            let after = carried_out(&world, &plan, None);
            for (name, role) in &world.roles {
                prop_assert!(tags::are_ours(&role.tags, JOB) || after.roles[name] == *role);
            }
            for (name, tags) in &world.groups {
                prop_assert!(tags::are_ours(tags, JOB) || after.groups[name] == *tags);
            }
            // Never switched on, and switched off only when that was said.
            let expected = if disabled { Some(State::Disabled) } else { state(&world) };
            prop_assert_eq!(state(&after), expected);
        }
        // What is written is switched off, or fires already and only its hours move.
        let found = world.schedules.values().next();
        for step in plan.steps() {
            if let Step::CreateSchedule(step) | Step::UpdateSchedule(step) = step {
                let stays = found.is_some_and(|found| {
                    found.state() == State::Enabled && found.target_text("RoleArn") == step.schedule.target_text("RoleArn")
                });
                prop_assert!(step.schedule.state() == State::Disabled || !plan.refusals.is_empty() || stays);
            }
        }
        // An item that is blocked has a refusal, and no step.
        for item in plan.items.iter().filter(|item| item.sign == Sign::Blocked) {
            prop_assert!(item.steps.is_empty() && !plan.refusals.is_empty());
        }
    }

    #[test]
    fn the_order_of_lists_means_nothing(world in world()) {
        let mut turned = world.clone();
        for revision in turned.families.values_mut().flatten() {
            let containers = revision.members["containerDefinitions"].as_array_mut().unwrap();
            containers.reverse();
            for container in containers {
                for list in ["secrets", "environment"] {
                    if let Some(list) = container.get_mut(list).and_then(Value::as_array_mut) {
                        list.reverse();
                    }
                }
            }
        }
        let signs = |plan: Plan| plan.items.into_iter().map(|item| (item.name, item.sign, item.why)).collect::<Vec<_>>();
        prop_assert_eq!(signs(planned(&world, ON)), signs(planned(&turned, ON)));
    }
}
