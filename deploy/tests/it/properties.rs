//! What holds in every world and for every configuration: a plan that was carried out is empty, whatever was there before and wherever
//! it broke off, and what is somebody else's stays as it was.

use std::time::Duration;

use deploy::apply::{Patience, apply};
use deploy::desired::Desired;
use deploy::guard::Guard;
use deploy::model::{Schedule, State, tags};
use deploy::normalise::Normalisers;
use deploy::observe::observe;
use deploy::plan::{Plan, Sign, Step, Wish, plan};
use deploy::secret::{SecretValue, Values};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::inside;
use crate::memory::{Memory, World};
use crate::worlds::{Case, JOB, case};

const ON: Wish = Wish { disabled: true, adopt: true, latest: false, rotate: Vec::new() };
const NO_PATIENCE: Patience = Patience { limit: Duration::ZERO, pause: Duration::ZERO };

fn values() -> Values {
    let value = || match SecretValue::new(b"value".to_vec()) {
        Ok((value, _)) => value,
        Err(error) => panic!("{error}"),
    };
    ["KEY_A", "KEY_B", "KEY_C"].map(|env| (env.to_owned(), value())).into()
}

/// The plan for a world.
fn planned(desired: &Desired, world: &World, wish: Wish) -> Plan {
    let memory = Memory::new(world.clone(), None);
    inside::run(async {
        plan(desired, &observe(&memory, desired).await.expect("observed"), &wish, Normalisers::default())
    })
}

/// The world after a plan was carried out, as far as it came.
fn carried_out(desired: &Desired, world: &World, plan: &Plan, break_at: Option<usize>) -> World {
    let memory = Memory::new(world.clone(), break_at);
    let outcome = inside::run(async {
        let live = observe(&Memory::new(world.clone(), None), desired).await.expect("observed");
        let guard = Guard::of(desired, &live, plan);
        apply(&memory, guard, plan, &values(), NO_PATIENCE, &mut |_| ()).await
    });
    assert_eq!(outcome.is_err(), break_at.is_some_and(|at| at < plan.steps().count()), "{outcome:?}");
    memory.world()
}

fn state(world: &World) -> Option<State> {
    world.schedules.get(&(JOB.into(), JOB.into())).map(Schedule::state)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_plan_that_was_carried_out_is_empty(Case { wanted, world } in case()) {
        let desired = &wanted.desired;
        let before = planned(desired, &world, ON);
        prop_assert!(before.refusals.is_empty(), "{:#?}", before.refusals);
        let after = carried_out(desired, &world, &before, None);
        for wish in [ON, Wish::default()] {
            let plan = planned(desired, &after, wish);
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
    fn wherever_it_breaks_off_it_can_go_on(Case { wanted, world } in case(), at in 0..14_usize) {
        let desired = &wanted.desired;
        let half = carried_out(desired, &world, &planned(desired, &world, ON), Some(at));
        let rest = planned(desired, &half, ON);
        prop_assert!(rest.refusals.is_empty(), "{:#?}", rest.refusals);
        let whole = carried_out(desired, &half, &rest, None);
        prop_assert!(planned(desired, &whole, ON).is_empty());
    }

    #[test]
    fn what_is_not_ours_stays_as_it_is(Case { wanted, mut world } in case(), disabled in any::<bool>(), adopt in any::<bool>()) {
        let desired = &wanted.desired;
        // The other job of the file is at peace already.
        if let Some(other) = &wanted.other {
            let first = planned(other, &world, ON);
            world = carried_out(other, &world, &first, None);
        }
        let plan = planned(desired, &world, Wish { disabled, adopt, ..Wish::default() });
        if plan.refusals.is_empty() {
            let after = carried_out(desired, &world, &plan, None);
            if let Some(other) = &wanted.other {
                let then = planned(other, &after, Wish::default());
                prop_assert!(then.is_empty(), "{:#?}", then);
            }
            let ours = |tags: &_| adopt || tags::are_ours(tags, JOB);
            for (name, role) in &world.roles {
                let kept = ours(&role.tags) && *name == desired.role.name && desired.role.ours;
                prop_assert!(kept || after.roles[name] == *role);
            }
            for (name, tags) in &world.groups {
                prop_assert!((ours(tags) && name == JOB) || after.groups[name] == *tags);
            }
            for ((role, name), document) in &world.policies {
                let kept = *name == desired.execution_policy_name() || *role == desired.role.name && name == "run-task";
                prop_assert!(kept || after.policies[&(role.clone(), name.clone())] == *document);
            }
            for (name, found) in &world.parameters {
                prop_assert!(found.tags.as_ref().is_some_and(ours) || adopt || after.parameters[name] == *found);
            }
            // Revisions are added, and never changed.
            let (then, now) = (&world.families["geuneul"], &after.families["geuneul"]);
            prop_assert_eq!(then[..].to_vec(), now[..then.len()].to_vec());
            // Never switched on, and switched off only when that was said.
            let expected = if disabled { Some(State::Disabled) } else { state(&world) };
            prop_assert_eq!(state(&after), expected);
        }
        // What is written is switched off, or fires already and only its hours move.
        let found = world.schedules.get(&(JOB.to_owned(), JOB.to_owned()));
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
    fn the_order_of_lists_means_nothing(Case { wanted, world } in case()) {
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
        let [one, other] = [&world, &turned].map(|world| signs(planned(&wanted.desired, world, ON)));
        prop_assert_eq!(one, other);
    }
}
