//! `trigger-now --via-scheduler`: the run that Scheduler starts, under its own role, by a schedule that fires once.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::time::Duration;

use deploy::cloud::{Receipts, Roles, Schedules};
use deploy::model::{PolicyDocument, State};
use geuneul::{RunReport, Trigger};
use rehearsal::local_aws::{Failure, Invocation};
use serde_json::{Value, json};

use crate::inside;
use crate::proxy::Proxy;
use crate::scene::{JOB, Scene, report, snapshot};

const VERB: [&str; 2] = ["trigger-now", "--via-scheduler"];

/// The full name of the one-off schedule.
fn one_off() -> String {
    format!("{JOB}/once.{JOB}")
}

/// A verb that waits for Scheduler while the test moves Scheduler's clock.
struct Waiting<'a> {
    scene: &'a Scene,
    deploy: Child,
    stderr: BufReader<ChildStderr>,
    said: String,
}

impl Waiting<'_> {
    /// Starts the verb; it has made the one-off schedule and waits for it when this returns.
    fn begin<'a>(scene: &'a Scene, arguments: &[&str]) -> Waiting<'a> {
        Waiting::of(scene, scene.deploy(arguments))
    }

    fn of(scene: &Scene, mut command: Command) -> Waiting<'_> {
        let mut deploy = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(deploy.stderr.take().unwrap());
        let mut waiting = Waiting { scene, deploy, stderr, said: String::new() };
        while !waiting.said.contains("task due from Scheduler") {
            assert_ne!(waiting.stderr.read_line(&mut waiting.said).unwrap(), 0, "it ended: {}", waiting.said);
        }
        waiting
    }

    /// Moves the clock to the moment at which the one-off schedule is due.
    fn fire(&self) -> Invocation {
        let fired = self.scene.aws.advance_to_next_fire(&one_off());
        // On a machine that is slow enough, its twenty seconds were over.
        let fired = fired.or_else(|_gone| self.scene.aws.invocations()).unwrap();
        fired.into_iter().rfind(|fired| fired.schedule == one_off()).expect("it has fired")
    }

    /// Moves the clock on until nothing can come any more.
    fn let_time_pass(&self) {
        self.scene.aws.advance(Duration::from_secs(180)).unwrap();
    }

    /// Sends it a signal.
    fn signal(&self, signal: &str) {
        let id = self.deploy.id().to_string();
        assert!(Command::new("kill").args([signal, &id]).status().unwrap().success());
    }

    /// Everything that a person and a script see of it, when it has ended.
    fn end(mut self) -> String {
        self.stderr.read_to_string(&mut self.said).unwrap();
        let output = self.deploy.wait_with_output().unwrap();
        let out = String::from_utf8_lossy(&output.stdout);
        format!("exit code: {:?}\n--- stderr\n{}--- stdout\n{out}", output.status.code(), self.said)
    }
}

/// The one-off schedule as it is stored.
fn stored(scene: &Scene) -> Option<Value> {
    let state: Value = serde_json::from_str(&scene.aws.state().unwrap()).unwrap();
    state["schedules"].as_object()?.values().find(|one| one["Name"] == format!("once.{JOB}")).cloned()
}

/// The text of the record of the scheduled path, if there is one.
fn record(scene: &Scene) -> Option<String> {
    let name = format!("/geuneul-deploy/{JOB}/scheduled-path");
    inside::run(async { inside::cloud(scene).await.receipt(&name).await }).ok()
}

macro_rules! said {
    ($said:expr) => {
        let mut filters = Scene::filters();
        filters.push((r"\d\d:\d\d:\d\d UTC", "[time]"));
        filters.push((r"(?m)^task fired by Scheduler, not seen yet\n", ""));
        filters.push((r"assumed-role/\S+", "assumed-role/[role]"));
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
    said!(waiting.end());

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

#[test]
fn a_record_that_is_somebody_elses_is_met_before_anything_is_begun() {
    let scene = Scene::applied();
    let name = format!("/geuneul-deploy/{JOB}/scheduled-path");
    scene.call("ssm", "PutParameter", &json!({ "Name": name, "Value": "theirs", "Type": "String" }));
    let said = scene.refusal(&VERB);
    assert_eq!(
        said,
        format!("error: the parameter {name} exists and is not this job's: it does not carry the tags of deploy")
    );
    assert_eq!((stored(&scene), record(&scene).as_deref()), (None, Some("theirs")));
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

/// What was changed with the one-off schedule by somebody beside `deploy`.
fn switch_off(scene: &Scene) {
    inside::run(async {
        let cloud = inside::cloud(scene).await;
        let one_off = cloud.schedule(JOB, &format!("once.{JOB}")).await.unwrap().with_state(State::Disabled);
        cloud.update_schedule(&one_off).await.unwrap();
    });
}

/// The scheduler's role may do this and nothing else.
fn may(scene: &Scene, statements: Value) {
    let document = PolicyDocument(json!({ "Version": "2012-10-17", "Statement": statements }).to_string());
    let role = format!("{JOB}-scheduler");
    inside::run(async { inside::cloud(scene).await.put_role_policy(&role, "run-task", &document).await }).unwrap();
}

#[test]
fn when_nothing_starts_it_says_what_stands_in_the_way() {
    let scene = Scene::applied();
    let role = format!("{JOB}-scheduler");
    let mut table = String::new();
    let mut case = |name: &str, break_it: &dyn Fn(), fires: bool| {
        let waiting = Waiting::begin(&scene, &VERB);
        break_it();
        if fires {
            waiting.fire();
        }
        waiting.let_time_pass();
        let said = waiting.end();
        assert!(said.starts_with("exit code: Some(4)"), "{name}: {said}");
        let from = ["what stands between", "error: "].iter().find_map(|words| said.find(words)).unwrap();
        let said = said[from..].split_once("--- stdout").unwrap().0;
        table += &format!("--- {name}\n{said}\n");
        assert_eq!(stored(&scene), None, "{name}");
        assert!(scene.receipt().contains("Scheduler started no task"), "{name}: {}", scene.receipt());
        // Whatever it was, `apply` puts it right.
        scene.expect(&["apply", "--disabled", "--yes"], 0);
    };
    let trust = |statement: Value| scene.put_trust(&role, &statement);
    let scheduler = |condition: Value| {
        trust(json!({
            "Effect": "Allow", "Principal": { "Service": "scheduler.amazonaws.com" }, "Action": "sts:AssumeRole",
            "Condition": condition,
        }));
    };
    case("the role trusts somebody else", &|| scene.trust_ecs(&role), true);
    let elsewhere = "arn:aws:scheduler:ap-northeast-2:123456789012:schedule-group/other";
    case("the trust names another group", &|| scheduler(json!({ "ArnLike": { "aws:SourceArn": elsewhere } })), true);
    let delete = || {
        inside::run(async {
            let cloud = inside::cloud(&scene).await;
            cloud.delete_role_policy(&role, "run-task").await.unwrap();
            cloud.delete_role(&role).await.unwrap();
        });
    };
    case("the role is gone", &delete, true);
    let run_task = json!([{ "Effect": "Allow", "Action": "ecs:RunTask", "Resource": "*" }]);
    case("the role may not pass roles", &|| may(&scene, run_task.clone()), true);
    let pass_role = json!([{ "Effect": "Allow", "Action": "iam:PassRole", "Resource": "*" }]);
    case("the role may not run the task", &|| may(&scene, pass_role.clone()), true);
    let deny = json!({ "Effect": "Deny", "Action": "*", "Resource": "*" });
    case("somebody else's policy denies it", &|| scene.put_role_policy(&role, "stop", &deny), true);
    inside::run(async { inside::cloud(&scene).await.delete_role_policy(&role, "stop").await }).unwrap();
    let full = Failure { arn: None, reason: "Capacity is unavailable at this time.".into(), detail: None };
    case("RunTask answers with failures", &|| scene.aws.fail_run_task(std::slice::from_ref(&full)).unwrap(), true);
    case("somebody switched it off", &|| switch_off(&scene), false);
    said!(table);
    assert_eq!((tasks(&scene), record(&scene)), (0, None));
}

#[test]
fn what_scheduler_was_told_is_read_from_the_dead_letter_queue() {
    let scene = Scene::set();
    scene.call("sqs", "CreateQueue", &json!({ "QueueName": "dead" }));
    let queue = "dead_letter_queue = \"arn:aws:sqs:ap-northeast-2:123456789012:dead\"";
    scene.edit_config(|config| *config = config.replace("timezone =", &format!("{queue}\ntimezone =")));
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    let waiting = Waiting::begin(&scene, &VERB);
    may(&scene, json!([{ "Effect": "Allow", "Action": ["ecs:RunTask", "sqs:SendMessage"], "Resource": "*" }]));
    assert!(waiting.fire().dead_lettered);
    waiting.let_time_pass();
    said!(waiting.end());
}

#[test]
fn a_schedule_that_is_refused_starts_nothing_and_a_slow_iam_is_waited_for() {
    let scene = Scene::applied();
    scene.expect(&["trigger-now"], 0);
    let proven = scene.receipt();
    scene.aws.deny("iam:PassRole").unwrap();
    snapshot!(scene, ["trigger-now", "--via-scheduler"]);
    assert_eq!(scene.receipt(), proven, "what was not begun costs no proof");
    scene.aws.allow("iam:PassRole").unwrap();

    let role = format!("{JOB}-scheduler");
    inside::run(async {
        let cloud = inside::cloud(&scene).await;
        let trust = cloud.role(&role).await.unwrap().trust;
        let trust = percent_encoding::percent_decode_str(&trust.0).decode_utf8().unwrap().into_owned();
        scene.aws.delay_iam(2).unwrap();
        cloud.update_trust(&role, &PolicyDocument(trust)).await.unwrap();
    });
    scene.aws.forget_calls().unwrap();
    let waiting = Waiting::begin(&scene, &VERB);
    waiting.fire();
    let said = waiting.end();
    assert!(said.contains("Scheduler cannot assume its role yet; waiting up to 2 minutes for IAM\n"), "{said}");
    assert!(said.contains("the run is proven"), "{said}");
    assert_eq!(scene.aws.counts().unwrap()["scheduler:CreateSchedule"], 3);
}

#[test]
fn a_run_of_the_schedule_itself_is_recorded_before_a_new_run_begins() {
    let scene = Scene::applied();
    scene.expect(&["trigger-now"], 0);
    scene.expect(&["enable"], 0);
    assert_eq!(record(&scene), None);
    let later = jiff::Timestamp::now() + Duration::from_secs(60);
    let scheduled = RunReport { trigger: Trigger::Scheduled, started_at: format!("{later:.0}"), ..report() };
    scene.next_run(&[&scheduled.to_line()], 0);
    scene.fire();
    scene.next_run(&["bye"], 69);
    let output = scene.expect(&["trigger-now"], 4);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("the schedule itself has run the job as it is now"), "{said}");
    let record = record(&scene).unwrap();
    assert!(record.contains(r#""how":"scheduled""#) && record.contains(":task/geuneul/"), "{record}");
    assert!(scene.receipt().contains(r#""void":{"#), "{}", scene.receipt());
}

/// The same command as from a terminal, also when these tests were started by `nohup`, whose children go on after a hangup.
fn heeding_hangups(command: Command) -> Command {
    let exec =
        "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])";
    let mut python = Command::new("/usr/bin/env");
    python.args(["python3", "-c", exec]).arg(command.get_program()).args(command.get_args()).env_clear();
    python.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    python.env("PATH", std::env::var_os("PATH").unwrap_or_default());
    if let Some(folder) = command.get_current_dir() {
        python.current_dir(folder);
    }
    python
}

#[test]
fn an_interrupted_wait_leaves_nothing_that_fires() {
    let scene = Scene::applied();
    for signal in ["-TERM", "-HUP", "-INT"] {
        let waiting = Waiting::of(&scene, heeding_hangups(scene.deploy(&VERB)));
        waiting.signal(signal);
        let said = waiting.end();
        assert!(said.starts_with("exit code: Some(4)"), "{signal}: {said}");
        assert_eq!(stored(&scene), None, "{signal}");
        if signal == "-INT" {
            said!(said);
        }
    }
    assert!(scene.aws.advance(Duration::from_secs(180)).unwrap().is_empty());
    assert!(scene.receipt().contains("interrupted"), "{}", scene.receipt());
}

#[test]
fn whether_it_started_something_is_said_as_far_as_it_was_seen() {
    let scene = Scene::applied();
    scene.next_script("exec sleep 600");
    let waiting = Waiting::begin(&scene, &VERB);
    scene.aws.deny("ecs:DescribeTasks").unwrap();
    let task = waiting.fire().tasks.remove(0);
    let said = waiting.end();
    let id = task.rsplit('/').next().unwrap();
    assert!(said.starts_with("exit code: Some(4)"), "{said}");
    assert!(said.contains(&format!("goes on: ecs:DescribeTasks {task}: AccessDenied")), "{said}");
    assert!(
        said.contains(&format!("hint: looking needs ecs:DescribeTasks; when the cause is gone: deploy attach {id}\n"))
    );
    assert!(scene.receipt().contains("can no longer be watched, and goes on"), "{}", scene.receipt());
    scene.aws.clear_faults().unwrap();
    scene.expect(&["stop", id], 0);

    let waiting = Waiting::begin(&scene, &[&VERB[..], &["--json"]].concat());
    scene.aws.deny("ecs:ListTasks").unwrap();
    let said = waiting.end();
    assert!(said.starts_with("exit code: Some(4)"), "{said}");
    assert!(
        said.contains("error: the run is not proven: whether Scheduler started a task was not seen: ecs:ListTasks")
    );
    assert!(
        said.contains("hint: allow ecs:ListTasks on geuneul to the caller\nhint: see whether a task of it runs: "),
        "{said}"
    );
    assert!(said.contains(r#""ending": "start-not-seen""#), "{said}");
    assert_eq!(stored(&scene), None);
    assert!(scene.receipt().contains("was not seen: ecs:ListTasks"), "{}", scene.receipt());
}

#[test]
fn what_a_killed_run_leaves_behind_is_nobodys_drift_and_is_removed() {
    let scene = Scene::applied();
    let leave_one_behind = || {
        let waiting = Waiting::begin(&scene, &VERB);
        waiting.signal("-KILL");
        waiting.end();
    };
    leave_one_behind();
    // It may be somebody else's, who waits for it.
    snapshot!(scene, ["trigger-now", "--via-scheduler"]);
    let refused = scene.refusal(&["trigger-now"]);
    assert!(refused.contains("is still to fire"), "{refused}");
    let refused = scene.refusal(&["enable"]);
    assert!(refused.contains("is still to fire"), "{refused}");
    let said = scene.transcript(&["status"]);
    assert!(said.contains("  one-off   library-sync/once.library-sync starts a task"), "{said}");
    scene.expect(&["plan", "--detailed-exitcode"], 0);
    let said = scene.transcript(&["apply", "--yes"]);
    assert!(
        said.contains("note: the one-off schedule library-sync/once.library-sync starts a task within three minutes")
    );
    assert!(stored(&scene).is_some(), "apply leaves alone what is still to fire");
    // Whoever says that it is to be off means that nothing starts.
    let said = scene.transcript(&["apply", "--disabled", "--yes"]);
    assert!(said.contains("deleted the one-off schedule library-sync/once.library-sync"), "{said}");
    assert_eq!(stored(&scene), None);
    leave_one_behind();
    scene.aws.deny("scheduler:DeleteSchedule").unwrap();
    let said = scene.transcript(&["apply", "--disabled", "--yes"]);
    assert!(said.contains("starts a task within three minutes, and stays: scheduler:DeleteSchedule"), "{said}");
    let said = String::from_utf8(scene.expect(&["disable"], 1).stderr).unwrap();
    assert!(
        said.contains("error: a one-off schedule library-sync/once.library-sync, if there is one, stays"),
        "{said}"
    );
    scene.aws.clear_faults().unwrap();
    // It will never fire: that is what a crash has left.
    switch_off(&scene);
    scene.expect(&["plan", "--detailed-exitcode"], 0);
    snapshot!(scene, ["apply", "--disabled", "--yes"]);
    assert_eq!(stored(&scene), None);

    leave_one_behind();
    switch_off(&scene);
    let waiting = Waiting::begin(&scene, &VERB);
    waiting.fire();
    let said = waiting.end();
    assert!(said.contains("removed the one-off schedule library-sync/once.library-sync"), "{said}");

    // The stop control stops it too.
    leave_one_behind();
    snapshot!(scene, ["disable"]);
    assert_eq!(stored(&scene), None);

    leave_one_behind();
    snapshot!(scene, ["destroy", "--yes"]);
    assert_eq!((stored(&scene), record(&scene)), (None, None));
}

#[test]
fn a_placeholder_that_scheduler_does_not_know_is_not_proven() {
    let scene = Scene::applied();
    // Between us and AWS somebody encodes the angle brackets, as Terraform does.
    let encoder = Proxy::of(scene.aws.endpoint(), "POST /schedules/", |request| {
        let input = request["Target"]["Input"].as_str().unwrap().replace('<', r"\u003c").replace('>', r"\u003e");
        request["Target"]["Input"] = json!(input);
    });
    let mut command = scene.deploy(&VERB);
    command.env("AWS_ENDPOINT_URL", encoder.url());
    let waiting = Waiting::of(&scene, command);
    waiting.fire();
    let said = waiting.end();
    let error = said.lines().find(|line| line.starts_with("error: ")).unwrap();
    assert!(error.contains("<aws.scheduler.") && said.starts_with("exit code: Some(4)"), "{said}");
    assert!(record(&scene).is_none() && scene.receipt().contains(r#""void":{"#), "{}", scene.receipt());
}
