//! Whatever call fails, before or after its effect: nothing is switched on, and the same command goes on from there.

use std::time::Duration;

use deploy::apply::{Patience, apply, settle};
use deploy::cloud::{Aws, CloudError, ErrorKind, Schedules, TaskDefinitions};
use deploy::config::Config;
use deploy::desired::Desired;
use deploy::guard::Guard;
use deploy::model::{Schedule, State};
use deploy::normalise::Normalisers;
use deploy::observe::observe;
use deploy::plan::{Plan, Wish, plan};
use deploy::secret::{SecretValue, Values};
use rehearsal::local_aws::Fault;
use serde_json::json;

use crate::inside;
use crate::scene::{JOB, Scene};

const PATIENCE: Patience = Patience { limit: Duration::ZERO, pause: Duration::ZERO };

/// One more job of the same kind beside the scene's own, with a family of its own.
async fn job(scene: &Scene, cloud: &Aws, name: &str) -> Desired {
    let mut members = cloud.task_definition(&scene.world.family).await.unwrap().writable();
    members.insert("family".into(), json!(name));
    cloud.register(&members, &Default::default()).await.unwrap();
    let text = std::fs::read_to_string(scene.path().join("deploy.toml")).unwrap();
    let text = text
        .replace(&format!("job.{JOB}"), &format!("job.{name}"))
        .replace(&format!("family = \"{}\"", scene.world.family), &format!("family = \"{name}\""))
        .replace("/geuneul/api_key", &format!("/{name}/api_key"));
    let config = Config::parse(&text, std::path::Path::new("deploy.toml")).unwrap();
    Desired::new(&config, config.job(Some(name)).unwrap())
}

fn values() -> Values {
    let Ok((value, _)) = SecretValue::new(b"value".to_vec()) else { panic!("a good value") };
    Values::from([("API_KEY".to_owned(), value)])
}

/// What `deploy apply` does: look, plan, carry out, read back.
async fn attempt(cloud: &Aws, desired: &Desired, wish: &Wish) -> Result<Plan, String> {
    let live = observe(cloud, desired).await.map_err(|error| error.to_string())?;
    let wanted = plan(desired, &live, wish, Normalisers::default());
    assert!(wanted.refusals.is_empty(), "{:#?}", wanted.refusals);
    let guard = Guard::of(desired, &live, &wanted);
    apply(cloud, guard, &wanted, &values(), PATIENCE, &mut |_| ())
        .await
        .map_err(|failure| failure.error.to_string())?;
    settle(cloud, desired, wish, PATIENCE).await.map(|(_, plan)| plan).map_err(|error| error.to_string())
}

async fn state(cloud: &Aws, desired: &Desired) -> Option<State> {
    let name = &desired.job.name;
    cloud.schedule(name, name).await.ok().as_ref().map(Schedule::state)
}

/// Fails every call of a way from one world to another, before and after its effect; `expected` are the states in which the schedule may be.
fn every_call(
    way: &str,
    wish: Wish,
    begin: impl AsyncFn(&Scene, &Aws, &str) -> Desired,
    expected: &[Option<State>],
) -> usize {
    let scene = Scene::set();
    inside::run(async {
        let cloud = inside::cloud(&scene).await;
        let desired = begin(&scene, &cloud, &format!("{way}-whole")).await;
        scene.aws.forget_calls().unwrap();
        attempt(&cloud, &desired, &wish).await.unwrap();
        let seen = scene.aws.calls().unwrap();
        let calls = seen.len();
        let (mut points, mut unseen) = (0, 0);
        for (n, call) in seen.iter().enumerate() {
            // A read whose answer is lost is a read that failed: only a write has an effect to be lost track of.
            let is_read = ["Get", "Describe", "List"].iter().any(|word| call.action.starts_with(word));
            let faults = [("before", Fault::before("*", "*")), ("after", Fault::after("*", "*"))];
            for (word, fault) in faults.into_iter().take(if is_read { 1 } else { 2 }) {
                let desired = begin(&scene, &cloud, &format!("{way}-{word}-{n}")).await;
                scene
                    .aws
                    .fault(&fault.skip(u32::try_from(n).unwrap()).error(400, "ValidationException", "made to fail"))
                    .unwrap();
                let broken = attempt(&cloud, &desired, &wish).await;
                scene.aws.clear_faults().unwrap();
                // Only a read that another answer made needless (the tags of a thing that is not there) may fail unseen.
                unseen += usize::from(broken.is_ok_and(|after| after.is_empty()));
                let now = state(&cloud, &desired).await;
                assert!(expected.contains(&now), "call {n} of {calls}, {word}: the schedule is {now:?}");
                let after = attempt(&cloud, &desired, &wish).await;
                let after =
                    after.unwrap_or_else(|error| panic!("call {n} of {calls}, {word}: does not go on: {error}"));
                assert!(after.is_empty(), "call {n} of {calls}, {word}: {after:#?}");
                assert_eq!(state(&cloud, &desired).await, *expected.last().unwrap());
                points += 1;
            }
        }
        assert!(unseen <= 6, "{unseen} failures were not seen");
        points
    })
}

#[test]
fn from_nothing_to_a_disabled_schedule() {
    let wish = Wish { disabled: true, ..Wish::default() };
    let points = every_call("new", wish, job, &[None, Some(State::Disabled)]);
    // Every read once, every write before and after its effect.
    assert!(points >= 40, "only {points} points");
    eprintln!("{points} fault points injected and converged");
}

#[test]
fn an_enabled_schedule_stays_enabled_while_its_secret_is_rotated() {
    let begin = async |scene: &Scene, cloud: &Aws, name: &str| {
        let desired = job(scene, cloud, name).await;
        attempt(cloud, &desired, &Wish { disabled: true, ..Wish::default() }).await.unwrap();
        let found = cloud.schedule(name, name).await.unwrap();
        cloud.update_schedule(&found.with_state(State::Enabled)).await.unwrap();
        desired
    };
    let wish = Wish { rotate: vec!["API_KEY".to_owned()], ..Wish::default() };
    let points = every_call("rotate", wish, begin, &[Some(State::Enabled)]);
    eprintln!("{points} fault points injected and converged");
}

#[test]
fn of_two_operators_the_second_is_told_of_the_first() {
    let scene = Scene::applied();
    let moved = |edit: &str, wish: &Wish, behind: &dyn Fn(Schedule) -> Schedule| -> CloudError {
        scene.edit_config(|config| *config = config.replace("cron = \"0 4", edit));
        inside::run(async {
            let (cloud, desired) = (inside::cloud(&scene).await, inside::desired(&scene));
            let live = observe(&cloud, &desired).await.unwrap();
            let mine = plan(&desired, &live, wish, Normalisers::default());
            assert!(mine.steps().count() == 1, "{mine:#?}");
            // The other one writes between my plan and my first step.
            let found = cloud.schedule(JOB, JOB).await.unwrap();
            cloud.update_schedule(&behind(found)).await.unwrap();
            let before = cloud.schedule(JOB, JOB).await.unwrap();
            let guard = Guard::of(&desired, &live, &mine);
            let failure = apply(&cloud, guard, &mine, &values(), PATIENCE, &mut |_| ()).await.unwrap_err();
            assert_eq!(cloud.schedule(JOB, JOB).await.unwrap(), before, "the other's work was overwritten");
            failure.error
        })
    };
    let wish = Wish { disabled: true, ..Wish::default() };
    let error = moved("cron = \"5 4", &wish, &|found| found.with_state(State::Enabled));
    assert_eq!(error.kind, ErrorKind::Moved);
    assert!(error.said.contains("State is ENABLED, was DISABLED"), "{error}");
}
