//! Every end that a run can have, each from a real run: what a person reads, and with which code. `docs/endings.md` is made of these
//! snapshots.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use deploy::model::log::NoLog;
use deploy::model::run_task::{Occurrence, RunTask};
use deploy::run::ending::Ending;
use deploy::run::follow::{Watch, follow};
use deploy::run::progress::Lines;
use deploy::run::start::start;
use geuneul::{Outcome, RunError, RunReport, Skip, SkipReason, Withheld, WithheldReason};
use rehearsal::local_aws::{Failure, Fate};
use serde_json::{Value, json};

use crate::inside;
use crate::proxy::Proxy;
use crate::scene::{JOB, Scene, report};

const TRIGGER: [&str; 1] = ["trigger-now"];
/// The ends that only a run by Scheduler can have.
const VIA_SCHEDULER: [&str; 2] = ["nothing-started", "start-not-seen"];

/// Keeps what was said as the snapshot of one ending: `failed`, or `failed__by_a_signal` where it can come about in several ways.
fn keep(name: &str, said: &str) {
    let mut filters = Scene::filters();
    filters.push((r"assumed-role/\S+", "assumed-role/[role]"));
    insta::with_settings!({ filters => filters, omit_expression => true }, {
        insta::assert_snapshot!(name, said);
    });
}

/// Triggers the job, and keeps the end.
fn ends(scene: &Scene, name: &str) {
    keep(name, &scene.transcript(&TRIGGER));
    if !name.starts_with("proven") {
        assert!(scene.receipt().contains(r#""void":{"#), "{name} left a receipt: {}", scene.receipt());
    }
}

/// The same, where the test does something once a line of stderr begins so.
fn ends_while(scene: &Scene, name: &str, arguments: &[&str], line: &str, act: impl FnOnce(u32)) {
    let mut command = scene.deploy(arguments);
    let mut deploy = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut screen = BufReader::new(deploy.stderr.take().unwrap());
    let mut said = String::new();
    loop {
        let begun = said.len();
        assert!(screen.read_line(&mut said).unwrap() > 0, "{said}");
        if said[begun..].starts_with(line) {
            break;
        }
    }
    act(deploy.id());
    screen.read_to_string(&mut said).unwrap();
    let output = deploy.wait_with_output().unwrap();
    let (code, out) = (output.status.code().unwrap(), String::from_utf8(output.stdout).unwrap());
    keep(name, &format!("$ deploy {}\nexit code: {code}\n--- stderr\n{said}--- stdout\n{out}", arguments.join(" ")));
}

/// What `trigger-now` says of an end that was brought about in this process, because the program is more patient than a test.
fn ends_here(name: &str, ending: &Ending) {
    let mut said = format!("$ deploy trigger-now\nexit code: 4\n--- stderr\nerror: the run is not proven: {ending}\n");
    for line in ending.hint("deploy").lines() {
        writeln!(said, "hint: {line}").unwrap();
    }
    keep(name, &said);
}

fn interrupt(id: u32) {
    assert!(Command::new("kill").args(["-INT", &id.to_string()]).status().unwrap().success());
}

/// The next container reports this and ends with that code.
fn reports(scene: &Scene, report: &RunReport, code: i32) {
    scene.next_run(&[&report.to_line()], code);
}

#[test]
fn what_never_runs() {
    let scene = Scene::applied();
    for (name, reason) in [
        (
            "not-placed__no_capacity",
            "Capacity is unavailable at this time. Please try again later or in a different availability zone",
        ),
        ("not-placed__no_room", "RESOURCE:MEMORY"),
    ] {
        scene.aws.fail_run_task(&[Failure { arn: None, reason: reason.into(), detail: None }]).unwrap();
        ends(&scene, name);
    }
    scene.aws.deny("ecs:RunTask").unwrap();
    ends(&scene, "refused__denied");
    scene.aws.clear_faults().unwrap();

    let init = "ResourceInitializationError: unable to pull secrets or registry auth: execution resource retrieval failed: unable \
                to retrieve secrets from ssm: service call has been retried 3 time(s):";
    let never = |name: &str, reason: String| {
        scene.aws.next_task(&Fate::NoStart { reason }).unwrap();
        ends(&scene, name);
    };
    never(
        "never-started__no_way_out",
        format!("{init} RequestCanceled: request context canceled caused by: context deadline exceeded"),
    );
    never("never-started__no_capacity", "Capacity is unavailable at this time.".to_owned());
    scene.aws.next_task(&Fate::Lost { reason: "Task failed for a reason of ECS's own".into() }).unwrap();
    ends(&scene, "no-exit-code");

    // IAM has not told ECS of the role yet.
    scene.aws.hold_iam().unwrap();
    scene.trust_ecs("geuneul-execution");
    ends_while(&scene, "interrupted", &TRIGGER, "ECS cannot assume", interrupt);
    inside::run(async {
        let (aws, run) = (inside::cloud(&scene).await, scheduled(&scene).manual(once()));
        let refused = start(&aws, &run, Duration::ZERO).await.unwrap().unwrap_err();
        ends_here("refused__role_not_assumable", &refused);
        scene.aws.release_iam().unwrap();
        // ECS answers, and knows nothing of what it started.
        scene.next_script("sleep 600");
        let task = start(&aws, &run, Duration::ZERO).await.unwrap().unwrap();
        scene.aws.hide_tasks(100).unwrap();
        let watch = Watch {
            aws: &aws,
            cluster: &run.task().cluster,
            container: &run.task().container,
            stream: Err(NoLog::Elsewhere("app".into())),
            awaits_report: false,
            timeout: Duration::MAX,
            patience: Duration::from_millis(500),
            lines: Lines::Beside,
        };
        let Err(vanished) = follow(watch, task).await else { panic!("it is hidden") };
        ends_here("vanished", &vanished);
    });
}

fn once() -> Occurrence {
    Occurrence { id: uuid::Uuid::new_v4().simple().to_string(), time: "2026-11-29T03:00:00Z".into() }
}

fn scheduled(scene: &Scene) -> RunTask {
    RunTask::from_scheduler_input(scene.schedule()["Target"]["Input"].as_str().unwrap()).unwrap()
}

/// The family's newest revision after a change of its container, taken by the schedule.
fn with_container(change: impl Fn(&Scene, &mut Value)) -> Scene {
    let scene = Scene::set();
    let found = scene.call("ecs", "DescribeTaskDefinition", &json!({ "taskDefinition": scene.world.family }));
    let mut definition = found["taskDefinition"].clone();
    for read_only in deploy::model::TaskDefinition::READ_ONLY {
        definition.as_object_mut().unwrap().remove(read_only);
    }
    change(&scene, &mut definition["containerDefinitions"]);
    scene.call("ecs", "RegisterTaskDefinition", &definition);
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    scene
}

#[test]
fn what_lacks_something_to_start_with() {
    let image = "123456789012.dkr.ecr.ap-northeast-2.amazonaws.com/job:gone";
    ends(&with_container(|_, containers| containers[0]["image"] = json!(image)), "never-started__no_image");

    let scene = with_container(|_, containers| {
        containers[0]["secrets"] = json!([{ "name": "OTHER", "valueFrom": "/geuneul/other" }])
    });
    let reads = |effect: &str| json!({ "Effect": effect, "Action": "ssm:GetParameters", "Resource": "*" });
    scene.put_role_policy("geuneul-execution", "other", &reads("Allow"));
    ends(&scene, "never-started__no_secret");
    scene.call("ssm", "PutParameter", &json!({ "Name": "/geuneul/other", "Value": "x", "Type": "SecureString" }));
    scene.put_role_policy("geuneul-execution", "other", &reads("Deny"));
    ends(&scene, "never-started__secret_denied");
    scene.put_role_policy("geuneul-execution", "other", &reads("Allow"));
    let writes = json!({ "Effect": "Deny", "Action": "logs:CreateLogStream", "Resource": "*" });
    scene.put_role_policy("geuneul-execution", "no-logs", &writes);
    ends(&scene, "never-started__log_denied");
    scene.put_role_policy("geuneul-execution", "no-logs", &reads("Allow"));
    scene.call("logs", "DeleteLogGroup", &json!({ "logGroupName": scene.world.log_group }));
    // Who sees that it is gone starts nothing.
    scene.aws.deny("logs:DescribeLogGroups").unwrap();
    ends(&scene, "never-started__no_log_group");
}

#[test]
fn a_run_that_was_not_alone_proves_nothing() {
    let scene = Scene::applied();
    let go = scene.path().join("go");
    // Whoever was started without the schedule's overrides goes on and on.
    scene.next_script(&format!(
        "[ -n \"$INGEST_TRIGGER\" ] || exec sleep 600\nuntil [ -e {} ]; do sleep 0.1; done\nprintf '%s\\n' '{}'\n",
        go.display(),
        report().to_line().replace(&report().started_at, r#"'"$(date -u +%Y-%m-%dT%H:%M:%SZ)"'"#)
    ));
    ends_while(&scene, "beside", &TRIGGER, "task RUNNING", |_| {
        let network = json!({ "awsvpcConfiguration": { "subnets": scene.world.subnets } });
        let request = json!({
            "cluster": scene.world.cluster, "taskDefinition": scene.world.family, "launchType": "FARGATE",
            "networkConfiguration": network, "startedBy": format!("geuneul-deploy/scheduled/{JOB}"),
        });
        let answer = scene.call("ecs", "RunTask", &request);
        assert_eq!(answer["tasks"].as_array().map(Vec::len), Some(1), "{answer}");
        std::fs::write(&go, "").unwrap();
    });
    assert!(scene.receipt().contains(r#""void":{"#), "{}", scene.receipt());
    // And whether it was alone must be seen.
    scene.call("ecs", "StopTask", &json!({ "cluster": scene.world.cluster, "task": running(&scene) }));
    std::fs::remove_file(&go).unwrap();
    ends_while(&scene, "beside-not-seen", &TRIGGER, "task RUNNING", |_| {
        scene.aws.deny("ecs:ListTasks").unwrap();
        std::fs::write(&go, "").unwrap();
    });
    assert!(scene.receipt().contains("the run ended well, and whether another task"), "{}", scene.receipt());
}

/// The id of the task that runs.
fn running(scene: &Scene) -> String {
    let running = scene.call("ecs", "ListTasks", &json!({ "cluster": scene.world.cluster }));
    running["taskArns"][0].as_str().unwrap().rsplit('/').next().unwrap().to_owned()
}

#[test]
fn what_is_ended_from_outside() {
    let scene = Scene::applied();
    scene.next_script("echo crawling; exec sleep 600");
    scene.aws.next_task(&Fate::OutOfMemory).unwrap();
    ends(&scene, "out-of-memory");
    scene.aws.next_task(&Fate::SpotInterruption).unwrap();
    ends(&scene, "taken-away__spot");
    scene.aws.next_task(&Fate::HostLost).unwrap();
    ends(&scene, "taken-away__host");
    let task = || running(&scene);
    let stop = |_| {
        let output = scene.expect(&["stop", &task(), "--reason=the portal is down"], 0);
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.ends_with("has stopped; container app ended with exit code 143\n"), "{said}");
    };
    ends_while(&scene, "stopped-by-person", &TRIGGER, "  | crawling", stop);

    // The task goes on; another run beside it is refused until it is stopped.
    ends_while(&scene, "detached", &TRIGGER, "  | crawling", interrupt);
    let refused = scene.refusal(&TRIGGER);
    assert!(refused.starts_with("error: a task of library-sync is running already: arn:aws:ecs:"), "{refused}");
    scene.expect(&["stop", &task()], 0);
    keep("timed-out", &scene.transcript(&["trigger-now", "--timeout=1s"]));
    scene.expect(&["stop", &task()], 0);
    ends_while(&scene, "unwatched", &TRIGGER, "  | crawling", |_| scene.aws.deny("ecs:DescribeTasks").unwrap());
    assert!(scene.receipt().contains("can no longer be watched"), "{}", scene.receipt());
}

#[test]
fn what_fails_by_itself() {
    let scene = Scene::applied();
    scene.next_run(&["no such option: --all"], 3);
    ends(&scene, "failed__exit_code");
    scene.next_script("kill -9 $$");
    ends(&scene, "failed__killed");
    let error = RunError { code: "http_504".into(), message: "page 3: 504 after 5 tries".into() };
    reports(&scene, &RunReport { outcome: Outcome::UpstreamFailed, error: Some(error), ..report() }, 69);
    ends(&scene, "failed__with_a_report");
    let withheld = Withheld { deactivations: 240, reason: WithheldReason::OverCap };
    reports(
        &scene,
        &RunReport { outcome: Outcome::Withheld, withheld: Some(withheld), deactivated: 0, ..report() },
        65,
    );
    ends(&scene, "withheld");
    let skip = Skip {
        reason: SkipReason::Locked,
        holder_pid: Some(4711),
        holder_application: None,
        holder_run_id: Some("00000000-1111-4222-8333-944445555666".parse().unwrap()),
        holder_age_s: Some(4),
        holder_heartbeat_age_s: Some(1),
        consecutive_skips: 1,
        last_success_age_s: None,
    };
    reports(&scene, &RunReport { outcome: Outcome::Skipped, skip: Some(skip), ..report() }, 0);
    ends(&scene, "skipped");
    reports(&scene, &RunReport { outcome: Outcome::DryRun, ..report() }, 0);
    ends(&scene, "unsuccessful");
    reports(&scene, &RunReport { fetched: 0, inserted: 0, unchanged: 0, upserted: 0, ..report() }, 0);
    ends(&scene, "no-rows");
    reports(&scene, &RunReport { inserted: 0, unchanged: 0, upserted: 0, rejected: 3555, ..report() }, 0);
    ends(&scene, "all-rejected");
    reports(&scene, &RunReport { started_at: "2026-10-29T03:00:00Z".into(), ..report() }, 0);
    ends(&scene, "of-another-run");
    reports(&scene, &RunReport { unchanged: 1, ..report() }, 0);
    ends(&scene, "unreadable-report");
}

#[test]
fn what_cannot_be_seen_or_is_something_else() {
    let scene = Scene::applied();
    scene.next_run(&["bye"], 0);
    ends(&scene, "no-report");
    scene.aws.deny("logs:GetLogEvents").unwrap();
    reports(&scene, &report(), 0);
    ends(&scene, "log-not-read__denied");
    scene.aws.clear_faults().unwrap();
    scene.aws.hide_streams(1_000_000).unwrap();
    ends(&scene, "log-not-read__no_stream");
    scene.aws.clear_faults().unwrap();

    let dropped = |change: fn(&mut Value)| {
        let forgetful = Proxy::start(scene.aws.endpoint(), change);
        let mut deploy = scene.deploy(&TRIGGER);
        deploy.env("AWS_ENDPOINT_URL", forgetful.url());
        scene.transcript_of(deploy)
    };
    let said = dropped(|request| drop(request.as_object_mut().unwrap().remove("overrides")));
    keep("not-as-asked__dropped_overrides", &said);
    keep("not-as-asked__another_revision", &dropped(|request| request["taskDefinition"] = json!("geuneul:1")));
    ends(&scene, "proven");

    scene.edit_config(|config| {
        *config = config
            .replace(r#"command = ["--once", "--all"]"#, r#"ingest = { source = "library", deactivate_stale = true }"#);
    });
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    reports(&scene, &RunReport { complete: false, ..report() }, 0);
    ends(&scene, "incomplete");
}

#[test]
fn what_another_container_brings_about() {
    let scene = with_container(|_, containers| {
        let mut proxy = containers[0].clone();
        proxy["name"] = json!("proxy");
        proxy["secrets"] = json!([]);
        proxy["environment"] = json!([{ "name": "ROLE", "value": "proxy" }]);
        proxy["portMappings"] = json!([]);
        containers.as_array_mut().unwrap().push(proxy);
    });
    // The job is right, and its proxy is killed with it, as always.
    let report = report().to_line().replace("2026-11-29T03:00:00Z", r#"'"$(date -u +%Y-%m-%dT%H:%M:%SZ)"'"#);
    let both =
        |proxy: &str, job: &str| scene.next_script(&format!("if test \"$ROLE\" = proxy; then {proxy}\nelse {job}\nfi"));
    both("exec sleep 600", &format!("printf '%s\\n' '{report}'"));
    ends(&scene, "proven__beside_another_container");
    // The proxy fails, and takes the job along.
    both("until test -e ../job; do :; done; exit 9", "touch ../job; exec sleep 600");
    ends(&scene, "failed__for_another_container");
}

#[test]
fn what_scheduler_did_not_fill_in() {
    let scene = Scene::applied();
    let mut schedule = scene.schedule();
    let input = schedule["Target"]["Input"].as_str().unwrap().replace("<aws.", "\\u003caws.");
    schedule["Target"]["Input"] = json!(input);
    schedule["State"] = json!("ENABLED");
    scene.put_schedule(&schedule);
    let fired = scene.aws.advance_to_next_fire(&format!("{JOB}/{JOB}")).unwrap();
    let task = fired[0].tasks[0].rsplit('/').next().unwrap();
    keep("not-replaced", &scene.transcript(&["attach", task]));
}

/// The table that a reader gets: of each snapshot its command, its exit code and the first line that says what happened.
#[test]
fn the_table_of_endings_is_complete_and_in_the_docs() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/snapshots");
    let mut rows = Vec::new();
    for entry in std::fs::read_dir(&folder).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        let Some(name) = name.strip_prefix("it__endings__").and_then(|name| name.strip_suffix(".snap")) else {
            continue;
        };
        let text = std::fs::read_to_string(folder.join(format!("it__endings__{name}.snap"))).unwrap();
        let find = |before: &str| text.lines().find_map(|line| line.strip_prefix(before)).unwrap_or_default();
        let (kind, way) = name.split_once("__").unwrap_or((name, ""));
        let line = match find("error: ") {
            "" => text.lines().find(|line| line.ends_with("the run is proven")).unwrap_or_default(),
            line => line,
        };
        let short: String = line.chars().take(160).collect();
        let line = if short == line { short } else { format!("{}…", short.trim_end()) };
        let [code, hint] = [find("exit code: "), find("hint: ")].map(str::to_owned);
        rows.push((kind.to_owned(), way.replace('_', " "), code, line, hint));
    }
    rows.sort();
    for name in Ending::NAMES.iter().filter(|name| !VIA_SCHEDULER.contains(name)).chain(&["proven"]) {
        assert!(rows.iter().any(|(kind, ..)| kind == name), "no run ends {name}");
    }
    let mut table = String::from(
        "# How a run can end\n\n\
         Each row is from a real run of `deploy trigger-now` (a placeholder that Scheduler did not fill in: of `deploy attach`) on the local\n\
         AWS, and was written by its test. Only *proven* leaves a receipt. Not listed: `--via-scheduler` may also end with `nothing-started`, and then says what stands between Scheduler and the\n\
         task, or with `start-not-seen`, when AWS did not let it look.\n\n\
         | ending | how it came about | exit code | first line | first hint |\n|---|---|---|---|---|\n",
    );
    for (kind, way, code, line, hint) in &rows {
        writeln!(table, "| `{kind}` | {way} | {code} | {line} | {hint} |").unwrap();
    }
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/endings.md");
    if std::env::var("INSTA_UPDATE").as_deref() == Ok("always") {
        std::fs::write(&docs, &table).unwrap();
    }
    let written = std::fs::read_to_string(&docs).unwrap_or_default();
    assert_eq!(written, table, "write docs/endings.md anew with INSTA_UPDATE=always");
}
