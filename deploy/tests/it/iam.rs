//! `iam --for VERB`: with exactly that policy the verb succeeds, and without any one of its actions it does not, or says what it misses.

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};

use deploy::cloud::{Roles, Schedules, TaskDefinitions};
use deploy::model::{PolicyDocument, State};
use deploy::one_off;
use rehearsal::local_aws::User;
use serde_json::{Value, json};

use crate::everything::say_everything;
use crate::inside;
use crate::plan::writes;
use crate::scene::{JOB, Scene};

/// The policy that `deploy iam` prints.
fn policy(scene: &Scene, whom: &str) -> Value {
    let output = scene.expect(&["iam", "--for", whom], 0);
    serde_json::from_slice(&output.stdout).expect("JSON")
}

/// Every (action, policy without it): from one statement at a time.
fn without_one(policy: &Value) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for (i, statement) in policy["Statement"].as_array().unwrap().iter().enumerate() {
        for (j, action) in statement["Action"].as_array().unwrap().iter().enumerate() {
            let mut less = policy.clone();
            let actions = less["Statement"][i]["Action"].as_array_mut().unwrap();
            actions.remove(j);
            if actions.is_empty() {
                less["Statement"].as_array_mut().unwrap().remove(i);
            }
            all.push((action.as_str().unwrap().to_owned(), less));
        }
    }
    all
}

/// What a verb of this caller ended with, and everything that it said.
fn run(scene: &Scene, caller: &User, arguments: &[&str]) -> (i32, String) {
    let output = scene.deploy(arguments).envs(scene.aws.env_of(caller)).output().unwrap();
    let said = [output.stdout, output.stderr].concat();
    (output.status.code().unwrap(), String::from_utf8(said).unwrap())
}

/// Actions that these stories do not need: what is done once in the life of a job has tests of its own.
const SELDOM: [(&str, &str); 5] = [
    ("plan", "scheduler:ListSchedules"),
    ("apply", "iam:DeleteRolePolicy"),
    // Only when the schedule is in another group than the configuration says.
    ("disable", "scheduler:ListSchedules"),
    // Only once a fire time has passed.
    ("status", "logs:FilterLogEvents"),
    // Only when others have written to many streams since.
    ("history", "logs:FilterLogEvents"),
];

/// Whether these stories get along without an action.
fn is_seldom(whom: &str, action: &str) -> bool {
    // Only when somebody has attached a managed policy to the scheduler's role.
    action == "iam:GetPolicy" || SELDOM.contains(&(whom, action))
}

/// One verb, or several in a row, that a policy is for.
struct Story<'a> {
    whom: &'a str,
    /// Puts the world into the state in which the story begins; as root.
    begin: &'a dyn Fn(&Scene),
    /// Between two commands; as root.
    meanwhile: &'a dyn Fn(&Scene),
    commands: &'a [(&'a [&'a str], i32)],
}

impl Story<'_> {
    fn is_exactly_allowed(&self, scene: &Scene) {
        self.share(scene, 0, 1);
    }

    /// What the policy has beyond another's is missed; the rest is the other's, which has a story of its own.
    fn adds_to(&self, scene: &Scene, other: &str) {
        let count = |whom: &str| without_one(&policy(scene, whom)).len();
        let other = count(other);
        assert!(other < count(self.whom), "{} adds nothing", self.whom);
        self.share(scene, other, 1);
    }

    /// Every so many-th action, from a first one on, in one world.
    fn share(&self, scene: &Scene, first: usize, step: usize) {
        let policy = policy(scene, self.whom);
        let moved = Cell::new(true);
        let tell = |policy: &Value| -> (bool, String) {
            let caller = scene.aws.user(self.whom, policy).unwrap();
            // What was refused before it wrote anything has left the world as it was.
            if moved.replace(true) {
                (self.begin)(scene);
            }
            scene.aws.forget_calls().unwrap();
            let mut all = String::new();
            for (i, (arguments, code)) in self.commands.iter().enumerate() {
                if i > 0 {
                    (self.meanwhile)(scene);
                }
                let (ended, said) = run(scene, &caller, arguments);
                all += &said;
                if ended != *code {
                    moved.set(!writes(scene).is_empty());
                    return (false, format!("deploy {arguments:?} ended with {ended}\n{all}"));
                }
            }
            (true, all)
        };
        let (succeeds, said) = tell(&policy);
        let misses =
            |said: &str| ["denied", "not authorized", "could not be seen"].iter().any(|words| said.contains(words));
        assert!(succeeds && !misses(&said), "{} with all of {policy:#}:\n{said}", self.whom);
        let all = without_one(&policy);
        let needless = all.iter().skip(first).step_by(step).filter(|(action, _)| !is_seldom(self.whom, action));
        let needless = needless.filter(|(action, less)| {
            let (succeeds, said) = tell(less);
            succeeds && !(misses(&said) && (said.contains(action) || said.contains("could not be seen")))
        });
        let needless: Vec<_> = needless.map(|(action, _)| action).collect();
        assert!(needless.is_empty(), "{} does not miss {needless:?}", self.whom);
        println!("{}: succeeds with exactly these {} actions, and misses each that was left out", self.whom, all.len());
    }
}

fn nothing(_: &Scene) {}

fn read(scene: &Scene, whom: &str, arguments: &[&str], code: i32) {
    Story { whom, begin: &nothing, meanwhile: &nothing, commands: &[(arguments, code)] }.is_exactly_allowed(scene);
}

#[test]
fn what_only_looks_is_exactly_allowed() {
    let scene = Scene::enforcing();
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    scene.expect(&["trigger-now"], 0);
    read(&scene, "plan", &["plan", "--detailed-exitcode"], 0);
    scene.expect(&["enable"], 0);
    read(&scene, "status", &["status"], 0);
    read(&scene, "history", &["history"], 0);
    read(&scene, "verify", &["verify"], 0);
}

/// With everything said that can be said: a boundary, a path, a key of one's own, a dead-letter queue.
#[test]
fn apply_is_exactly_allowed() {
    let scene = Scene::enforcing();
    say_everything(&scene);
    let begin = |scene: &Scene| {
        scene.expect(&["destroy", "--yes"], 0);
        // A revision without the secret, so that one has to be registered.
        inside::run(async {
            use deploy::cloud::TaskDefinitions;
            let cloud = inside::cloud(scene).await;
            let mut members = cloud.task_definition(&scene.world.family).await.unwrap().writable();
            members["containerDefinitions"][0].as_object_mut().unwrap().remove("secrets");
            cloud.register(&members, &Default::default()).await.unwrap();
        });
    };
    let drift = |scene: &Scene| {
        inside::run(async {
            let cloud = inside::cloud(scene).await;
            let mut schedule = cloud.schedule(JOB, JOB).await.unwrap();
            schedule.0.insert("ScheduleExpression".into(), json!("cron(0 5 2 * ? *)"));
            cloud.update_schedule(&schedule).await.unwrap();
            let anybody = json!({ "Version": "2012-10-17", "Statement": [{
                "Effect": "Allow", "Principal": { "Service": "scheduler.amazonaws.com" }, "Action": "sts:AssumeRole"
            }] });
            let role = format!("{JOB}-scheduler");
            cloud.update_trust(&role, &PolicyDocument(anybody.to_string())).await.unwrap();
            cloud.put_boundary(&role, "arn:aws:iam::aws:policy/ReadOnlyAccess").await.unwrap();
        });
        leave_a_one_off(scene);
    };
    let apply: (&[&str], i32) = (&["apply", "--disabled", "--yes"], 0);
    Story { whom: "apply", begin: &begin, meanwhile: &drift, commands: &[apply, apply] }.is_exactly_allowed(&scene);
}

fn unproven(scene: &Scene) {
    let receipt = scene.receipt_parameter();
    inside::run(async { inside::cloud(scene).await.delete_parameter(&receipt).await }).unwrap();
}

#[test]
fn trigger_now_is_exactly_allowed() {
    // A run is mostly waited for: two worlds at once, each with half of the actions.
    let half = |first: usize| {
        let scene = Scene::enforcing();
        scene.expect(&["apply", "--disabled", "--yes"], 0);
        let commands: [(&[&str], i32); 1] = [(&["trigger-now"], 0)];
        Story { whom: "trigger", begin: &unproven, meanwhile: &nothing, commands: &commands }.share(&scene, first, 2);
    };
    std::thread::scope(|scope| {
        scope.spawn(|| half(0));
        half(1);
    });
}

#[test]
fn enable_is_exactly_allowed() {
    let scene = Scene::enforcing();
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    scene.expect(&["trigger-now"], 0);
    let disabled = |scene: &Scene| drop(scene.expect(&["disable"], 0));
    let story = Story { whom: "enable", begin: &disabled, meanwhile: &nothing, commands: &[(&["enable"], 0)] };
    story.is_exactly_allowed(&scene);
    // Whoever may only do that may not go without a proof.
    let word: &[&str] = &["enable", "--without-receipt", "--reason=why"];
    let fresh = |scene: &Scene| {
        scene.expect(&["disable"], 0);
        let receipt = scene.receipt_parameter();
        drop(inside::run(async { inside::cloud(scene).await.delete_parameter(&receipt).await }));
    };
    fresh(&scene);
    let caller = scene.aws.user("enable", &policy(&scene, "enable")).unwrap();
    assert_eq!(run(&scene, &caller, word).0, 1);
    // First where there is no receipt yet, then where there is one.
    let commands = [(word, 0), (word, 0)];
    let story = Story { whom: "enable-without-receipt", begin: &fresh, meanwhile: &disabled, commands: &commands };
    story.adds_to(&scene, "enable");
}

/// What a killed run left behind: a one-off schedule that will never fire.
fn leave_a_one_off(scene: &Scene) {
    inside::run(async {
        let cloud = inside::cloud(scene).await;
        let job = cloud.schedule(JOB, JOB).await.unwrap();
        let input = job.input().unwrap().to_owned();
        let left = one_off::schedule(&job, JOB, input, "2026-01-01T00:00:00Z".parse().unwrap());
        drop(cloud.create_schedule(&left).await); // it may be there already
    });
}

#[test]
fn trigger_now_via_scheduler_is_exactly_allowed() {
    let scene = Scene::enforcing();
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    let begin = |scene: &Scene| {
        let parameters = [scene.receipt_parameter(), format!("/geuneul-deploy/{JOB}/scheduled-path")];
        inside::run(async {
            let cloud = inside::cloud(scene).await;
            for parameter in &parameters {
                cloud.delete_parameter(parameter).await.unwrap();
            }
        });
        leave_a_one_off(scene);
    };
    let commands: [(&[&str], i32); 1] = [(&["trigger-now", "--via-scheduler"], 0)];
    // Scheduler's clock is at the one-off schedule's moment as soon as there is one.
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let aws = &scene.aws;
        let over = &over;
        scope.spawn(move || {
            while !over.load(Ordering::Relaxed) {
                let _none_yet = aws.advance_to_next_fire(&format!("{JOB}/once.{JOB}"));
            }
        });
        let _ends = End(over);
        let whom = "trigger-via-scheduler";
        Story { whom, begin: &begin, meanwhile: &nothing, commands: &commands }.is_exactly_allowed(&scene);
    });
}

/// Ends the other thread, also when this one panics.
struct End<'a>(&'a AtomicBool);

impl Drop for End<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

#[test]
fn working_the_job_is_exactly_allowed() {
    let scene = Scene::enforcing();
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    scene.expect(&["trigger-now"], 0);
    let said = String::from_utf8(scene.expect(&["logs"], 0).stderr).unwrap();
    let newest = said.split_whitespace().nth(1).unwrap();
    read(&scene, "attach", &["attach", newest], 0);
    read(&scene, "run", &["run", "--", "x"], 0);
    let forgotten = |scene: &Scene| scene.aws.hide_tasks(1).unwrap();
    let commands: [(&[&str], i32); 2] = [(&["logs"], 0), (&["logs"], 0)];
    Story { whom: "logs", begin: &nothing, meanwhile: &forgotten, commands: &commands }.is_exactly_allowed(&scene);

    // A task each, so that each story has one to stop; what has stopped needs no right to stop it.
    scene.next_script("exec sleep 600");
    let whole = policy(&scene, "stop");
    let stop = |policy: &Value| {
        scene.expect(&["run", "--no-wait", "--", "x"], 0);
        let listed = scene.call("ecs", "ListTasks", &json!({ "cluster": scene.world.cluster }));
        let task = listed["taskArns"].as_array().unwrap().last().unwrap().as_str().unwrap().to_owned();
        run(&scene, &scene.aws.user("stop", policy).unwrap(), &["stop", &task])
    };
    assert_eq!(stop(&whole).0, 0);
    for (action, less) in without_one(&whole) {
        let (code, said) = stop(&less);
        assert!(code == 1 && said.contains(&action), "{action}: {said}");
    }
}

#[test]
fn disable_and_destroy_are_exactly_allowed() {
    let scene = Scene::enforcing();
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    let enabled = |scene: &Scene| {
        scene.expect(&["apply", "--disabled", "--yes"], 0);
        inside::run(async {
            let cloud = inside::cloud(scene).await;
            let schedule = cloud.schedule(JOB, JOB).await.unwrap().with_state(State::Enabled);
            cloud.update_schedule(&schedule).await.unwrap();
        });
        // Something to be ended; what an earlier story left running will do.
        drop(scene.deploy(&["trigger-now", "--no-wait"]).output().unwrap());
    };
    scene.next_script("sleep 600");
    let commands: [(&[&str], i32); 2] = [(&["disable", "--stop-running"], 0), (&["disable", "--delete"], 0)];
    Story { whom: "disable", begin: &enabled, meanwhile: &nothing, commands: &commands }.is_exactly_allowed(&scene);
    let applied = |scene: &Scene| drop(scene.expect(&["apply", "--disabled", "--yes"], 0));
    let commands: [(&[&str], i32); 1] = [(&["destroy", "--yes"], 0)];
    Story { whom: "destroy", begin: &applied, meanwhile: &nothing, commands: &commands }.is_exactly_allowed(&scene);
}

#[test]
fn disable_finds_the_schedule_with_its_own_policy_and_iam_is_of_one_account() {
    let scene = Scene::enforcing();
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    inside::run(async {
        let cloud = inside::cloud(&scene).await;
        let schedule = cloud.schedule(JOB, JOB).await.unwrap().with_state(State::Enabled);
        cloud.update_schedule(&schedule).await.unwrap();
    });
    let timezone = "timezone = \"Asia/Seoul\"";
    scene.edit_config(|config| *config = config.replace(timezone, &format!("{timezone}\ngroup = \"elsewhere\"")));
    let caller = scene.aws.user("disable", &policy(&scene, "disable")).unwrap();
    let (code, said) = run(&scene, &caller, &["disable"]);
    assert!(code == 0 && said.contains("its schedule is in group library-sync"), "{said}");
    scene.edit_config(|config| *config = config.replace("\"123456789012\"", "\"999999999999\""));
    scene.expect(&["iam", "--for", "run"], 3);
}

#[test]
fn the_schedulers_own_policy_is_the_one_that_apply_writes_and_runs_the_job() {
    let scene = Scene::enforcing();
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    let role = format!("{JOB}-scheduler");
    let written = inside::run(async { inside::cloud(&scene).await.role_policy(&role, "run-task").await }).unwrap();
    let written = percent_encoding::percent_decode_str(&written.0).decode_utf8().unwrap().into_owned();
    let policy = policy(&scene, "scheduler");
    assert_eq!(serde_json::from_str::<Value>(&written).unwrap(), policy);
    scene.expect(&["trigger-now"], 0);
    scene.expect(&["enable"], 0);
    scene.fire();
    for i in 0..policy["Statement"].as_array().unwrap().len() {
        let mut less = policy.clone();
        less["Statement"].as_array_mut().unwrap().remove(i);
        inside::run(async {
            let cloud = inside::cloud(&scene).await;
            cloud.put_role_policy(&role, "run-task", &PolicyDocument(less.to_string())).await.unwrap();
        });
        let fired = scene.aws.advance_to_next_fire(&format!("{JOB}/{JOB}")).unwrap();
        assert!(matches!(&fired[..], [one] if !one.delivered), "without statement {i}: {fired:?}");
    }
}

#[test]
fn the_roles_of_the_schedules_revision_are_named_beside_those_of_the_newest() {
    let scene = Scene::applied();
    inside::run(async {
        let cloud = inside::cloud(&scene).await;
        let mut members = cloud.task_definition(&scene.world.family).await.unwrap().writable();
        members.insert("taskRoleArn".to_owned(), json!("arn:aws:iam::123456789012:role/newer"));
        cloud.register(&members, &Default::default()).await.unwrap();
    });
    for whom in ["trigger", "run", "apply", "scheduler"] {
        let policy = policy(&scene, whom);
        let mut statements = policy["Statement"].as_array().unwrap().iter().map(Value::to_string);
        let passes = |text: &String| text.contains("iam:PassRole") && text.contains("role/newer");
        let passed = statements.find(passes).unwrap_or_else(|| panic!("{whom}: {policy:#}"));
        assert!(passed.contains("role/geuneul-task") && passed.contains("role/geuneul-execution"), "{whom}: {passed}");
    }
}
