//! `trigger-now --via-scheduler`: the run that Scheduler starts, under its own role, by a schedule that fires once.

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rehearsal::local_aws::Invocation;
use serde_json::{Value, json};

use crate::scene::{JOB, Scene};

const VERB: [&str; 2] = ["trigger-now", "--via-scheduler"];

/// The full name of the one-off schedule.
fn one_off() -> String {
    format!("{JOB}/once.{JOB}")
}

/// A verb that waits for Scheduler while the test moves Scheduler's clock.
struct Waiting<'a> {
    scene: &'a Scene,
    deploy: Child,
}

impl Waiting<'_> {
    /// Starts the verb; the one-off schedule has been made when this returns.
    fn begin<'a>(scene: &'a Scene, arguments: &[&str]) -> Waiting<'a> {
        let deploy = scene.deploy(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut waiting = Waiting { scene, deploy };
        while stored(scene).is_none() {
            assert!(waiting.deploy.try_wait().unwrap().is_none(), "{}", waiting.end());
        }
        waiting
    }

    /// Moves the clock to the moment at which the one-off schedule is due.
    fn fire(&self) -> Invocation {
        let [fired] = self.scene.aws.advance_to_next_fire(&one_off()).unwrap().try_into().unwrap();
        fired
    }

    /// Everything that a person and a script see of it, when it has ended.
    fn end(self) -> String {
        let output = self.deploy.wait_with_output().unwrap();
        let [out, err] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        format!("exit code: {:?}\n--- stderr\n{err}--- stdout\n{out}", output.status.code())
    }
}

/// The one-off schedule as it is stored.
fn stored(scene: &Scene) -> Option<Value> {
    let state: Value = serde_json::from_str(&scene.aws.state().unwrap()).unwrap();
    state["schedules"].as_object()?.values().find(|one| one["Name"] == format!("once.{JOB}")).cloned()
}

/// The text of the record of the scheduled path, if there is one.
fn record(scene: &Scene) -> Option<String> {
    let state = scene.aws.state().unwrap();
    state.contains("/scheduled-path").then(|| {
        let name = format!("/geuneul-deploy/{JOB}/scheduled-path");
        let found = scene.call("ssm", "GetParameter", &json!({ "Name": name }));
        found["Parameter"]["Value"].as_str().unwrap().to_owned()
    })
}

macro_rules! snapshot {
    ($said:expr) => {
        let mut filters = Scene::filters();
        filters.push((r"\d\d:\d\d:\d\d UTC", "[time]"));
        insta::with_settings!({ filters => filters, omit_expression => true }, { insta::assert_snapshot!($said) })
    };
}

#[test]
fn a_run_that_scheduler_starts_earns_the_receipt_and_proves_the_path() {
    let scene = Scene::applied();
    let waiting = Waiting::begin(&scene, &VERB);
    // Before it starts, no proof counts.
    assert!(scene.receipt().contains(r#""void":{"#), "{}", scene.receipt());
    let (job, made) = (scene.schedule(), stored(&scene).unwrap());
    for member in ["Arn", "RoleArn"] {
        assert_eq!(made["Target"][member], job["Target"][member]);
    }
    assert_eq!(made["ActionAfterCompletion"], "DELETE");
    assert_eq!(made["Target"]["RetryPolicy"]["MaximumRetryAttempts"], 0);
    let fired = waiting.fire();
    assert!(fired.delivered, "{fired:?}");
    snapshot!(waiting.end());

    let verified = scene.receipt();
    assert!(verified.contains(r#""path":"scheduler""#), "{verified}");
    let record = record(&scene).unwrap();
    assert!(record.contains(r#""how":"via-scheduler""#) && record.contains(&fired.tasks[0]), "{record}");
    assert_eq!(stored(&scene), None);
    scene.expect(&["enable"], 0);

    // The same occurrence once more: Scheduler delivers at least once.
    let again = scene.aws.deliver_again(&one_off()).unwrap();
    assert_eq!((again.delivered, &again.tasks), (true, &fired.tasks));
    assert_eq!(tasks(&scene), 1);
}

/// How many tasks the cluster knows.
fn tasks(scene: &Scene) -> usize {
    let count = |status: &str| {
        let listed =
            scene.call("ecs", "ListTasks", &json!({ "cluster": scene.world.cluster, "desiredStatus": status }));
        listed["taskArns"].as_array().unwrap().len()
    };
    count("RUNNING") + count("STOPPED")
}
