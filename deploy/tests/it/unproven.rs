//! Nothing unproven runs while a schedule is ENABLED: not by a change, not by a race, not by a line that somebody forged.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use deploy::config::Config;
use deploy::desired::Desired;
use deploy::model::{Seen, tags};
use deploy::plan::{Step, Wish, plan};

use deploy::receipt::{Receipt, Void};
use deploy::removal::{Beside, removals};
use deploy::sealed::Owner;
use rehearsal::local_aws::Fault;
use serde_json::json;

use crate::inside;
use crate::memory::{self, Memory, World};
use crate::plan::{refused, writes};
use crate::proxy::between;
use crate::scene::{JOB, Scene, report};
use crate::terminal::{on_a_terminal, read_until};

const OTHER_SECRET: &str = r#"
[[job.library-sync.secret]]
env = "API_ID"
parameter = "/geuneul/api_id"
from = "env:API_KEY"
"#;

/// Applied, proven, and switched on.
fn enabled() -> Scene {
    let scene = Scene::applied();
    prove_and_enable(&scene);
    scene
}

fn prove_and_enable(scene: &Scene) {
    scene.expect(&["trigger-now"], 0);
    scene.expect(&["enable"], 0);
}

/// The names of the secrets of the family's newest revision, sorted.
fn secrets(scene: &Scene) -> Vec<String> {
    let found = scene.call("ecs", "DescribeTaskDefinition", &json!({ "taskDefinition": scene.world.family }));
    let list = found["taskDefinition"]["containerDefinitions"][0]["secrets"].as_array().cloned().unwrap_or_default();
    let mut names: Vec<_> = list.iter().map(|secret| secret["name"].as_str().unwrap().to_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_secret_that_is_taken_out_of_the_configuration_is_taken_out_of_everything_of_ours() {
    let scene = Scene::set();
    // A secret of somebody else's, which stays.
    let found = scene.call("ecs", "DescribeTaskDefinition", &json!({ "taskDefinition": scene.world.family }));
    let mut definition = found["taskDefinition"].clone();
    for read_only in deploy::model::TaskDefinition::READ_ONLY {
        definition.as_object_mut().unwrap().remove(read_only);
    }
    definition["containerDefinitions"][0]["secrets"] = json!([{ "name": "THEIRS", "valueFrom": "/theirs" }]);
    scene.call("ecs", "RegisterTaskDefinition", &definition);
    scene.call("ssm", "PutParameter", &json!({ "Name": "/theirs", "Value": "x", "Type": "SecureString" }));
    let reads = json!({ "Effect": "Allow", "Action": "ssm:GetParameters", "Resource": "*" });
    scene.put_role_policy("geuneul-execution", "theirs", &reads);
    scene.edit_config(|config| config.push_str(OTHER_SECRET));
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    prove_and_enable(&scene);
    assert_eq!(secrets(&scene), ["API_ID", "API_KEY", "THEIRS"]);

    scene.edit_config(|config| *config = config.replace(OTHER_SECRET, ""));
    let said = refused(&scene, &["apply", "--yes"]);
    assert!(said.contains("ENABLED"), "{said}");
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    // First off, then the revision that no longer reads it, and only then the right to read it.
    let order =
        ["scheduler:UpdateSchedule", "ecs:RegisterTaskDefinition", "iam:PutRolePolicy", "scheduler:UpdateSchedule"];
    assert_eq!(writes(&scene), order);
    assert_eq!(secrets(&scene), ["API_KEY", "THEIRS"]);
    scene.expect(&["plan", "--detailed-exitcode"], 0);
    scene.expect(&["trigger-now"], 0);

    // The last one as well; and the policy with it.
    scene.edit_config(|config| config.truncate(config.find("[[job").unwrap()));
    scene.aws.forget_calls().unwrap();
    scene.expect(&["apply", "--yes"], 0);
    assert_eq!(writes(&scene), ["ecs:RegisterTaskDefinition", "iam:DeleteRolePolicy", "scheduler:UpdateSchedule"]);
    assert_eq!(secrets(&scene), ["THEIRS"]);
    scene.expect(&["plan", "--detailed-exitcode"], 0);
    scene.expect(&["trigger-now"], 0);
}

#[test]
fn a_given_document_that_still_reads_it_is_refused() {
    let scene = Scene::applied();
    let found = scene.call("ecs", "DescribeTaskDefinition", &json!({ "taskDefinition": scene.world.family }));
    let mut definition = found["taskDefinition"].clone();
    for read_only in deploy::model::TaskDefinition::READ_ONLY {
        definition.as_object_mut().unwrap().remove(read_only);
    }
    std::fs::write(scene.path().join("task.json"), definition.to_string()).unwrap();
    scene.edit_config(|config| {
        config.truncate(config.find("[[job").unwrap());
        *config = config.replace("container = ", "task_definition = \"task.json\"\ncontainer = ");
    });
    let said = refused(&scene, &["apply", "--disabled", "--yes"]);
    assert!(said.contains("container app still reads") && said.contains("as API_KEY"), "{said}");
}

#[test]
fn a_value_that_never_ran_opens_nothing() {
    let scene = Scene::applied();
    scene.expect(&["trigger-now"], 0);
    scene.call("ssm", "DeleteParameter", &json!({ "Name": "/geuneul/api_key" }));
    // Its version is 1 once more.
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    let said = scene.refusal(&["enable"]);
    assert!(said.contains("the version of a secret moved"), "{said}");
    prove_and_enable(&scene);
    scene.call("ssm", "DeleteParameter", &json!({ "Name": "/geuneul/api_key" }));
    let said = refused(&scene, &["apply", "--yes"]);
    assert!(said.contains("a new value of API_KEY would move what it runs"), "{said}");
}

#[test]
fn what_cannot_be_switched_off_is_not_changed_either() {
    let scene = enabled();
    scene.edit_config(|config| config.push_str(OTHER_SECRET));
    scene.aws.deny("scheduler:UpdateSchedule").unwrap();
    scene.aws.forget_calls().unwrap();
    scene.expect(&["apply", "--disabled", "--rotate", "API_KEY", "--yes"], 1);
    assert_eq!(writes(&scene), ["scheduler:UpdateSchedule"]);
    scene.aws.allow("scheduler:UpdateSchedule").unwrap();
    // A start date of long ago, which AWS may refuse, does not stand in the way of switching off.
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    assert_eq!(scene.schedule()["State"], "DISABLED");
}

#[test]
fn the_job_of_the_same_name_in_another_region_is_left_alone() {
    let scene = enabled();
    scene.edit_config(|config| *config = config.replace("region = \"ap-northeast-2\"", "region = \"us-east-1\""));
    scene.aws.forget_calls().unwrap();
    let mut there = scene.deploy(&["apply", "--disabled", "--adopt", "--yes"]);
    let output = there.env("AWS_REGION", "us-east-1").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("role library-sync-scheduler is of the job of the same name in ap-northeast-2"), "{said}");
    assert_eq!(writes(&scene), Vec::<String>::new());
    let mut gone = scene.deploy(&["destroy", "--yes"]);
    gone.env("AWS_REGION", "us-east-1").output().unwrap();
    assert_eq!(writes(&scene), Vec::<String>::new(), "destroy there took the role from here");

    assert!(!String::from_utf8(gone.output().unwrap().stdout).unwrap().contains("  - "));

    // The policy on an execution role that both regions use has no tags; what it grants tells.
    let desired = |region: &str| {
        let text = std::fs::read_to_string(scene.path().join("deploy.toml")).unwrap().replace("us-east-1", region);
        let config = Config::parse(&text, Path::new("deploy.toml")).unwrap();
        Desired::new(&config, config.job(None).unwrap())
    };
    let (here, there) = (desired(memory::REGION), desired("us-east-1"));
    let members = json!({ "family": "geuneul", "networkMode": "awsvpc", "executionRoleArn": "arn:aws:iam::123456789012:role/execution", "containerDefinitions": [{ "name": "app" }] });
    let revision = memory::revision(members.as_object().unwrap(), &tags::ours(JOB), 1);
    let mut world = World::default();
    world.families.insert("geuneul".into(), vec![revision]);
    let key = ("execution".to_owned(), here.execution_policy_name());
    world.policies.insert(key, memory::encoded(&there.execution_policy()));
    let wish = Wish { disabled: true, adopt: true, ..Wish::default() };
    let live = inside::run(deploy::observe::observe(&Memory::new(world, None), &here)).unwrap();
    let plan = plan(&here, &live, &wish, Default::default());
    assert!(plan.refusals.iter().any(|one| one.what.contains("same name in us-east-1")), "{:#?}", plan.refusals);
    assert!(!plan.steps().any(|step| matches!(step, Step::PutRolePolicy { role, .. } if role == "execution")));
    let (jobs, policies) = (Vec::new(), Seen::Absent);
    let beside =
        Beside { jobs, policies, schedules: Seen::Absent, receipt: Seen::Absent, scheduled_path: Seen::Absent };
    let removals = removals(&here, &live, &beside);
    assert_eq!(removals.steps, [], "destroy here took the policy from there");
    assert!(removals.left.iter().any(|left| left.why == "of the job of the same name in us-east-1"), "{removals:#?}");
}

/// A receipt as another person's `trigger-now` leaves it when it begins.
fn voided(scene: &Scene) -> String {
    let owner = Owner { job: JOB.into(), account: scene.world.account.clone(), region: scene.world.region.clone() };
    let since = "2026-11-29T03:00:00Z".parse().unwrap();
    Receipt::Void(Void { since, by: "somebody else".into(), ending: None, via_scheduler: false, overridden: None })
        .to_text(&owner)
        .unwrap()
}

#[test]
fn of_two_runs_at_once_the_older_one_proves_nothing() {
    let scene = Scene::applied();
    // The other one begins while ours runs, or in the moment between our last look and our receipt.
    for (moment, nth) in [("AmazonEC2ContainerServiceV20141113.RunTask", 1), ("AmazonSSM.GetParameters", 3)] {
        let mut seen = 0;
        let output = between(&scene, &["trigger-now"], |call| {
            seen += usize::from(call == moment);
            if call == moment && seen == nth {
                scene.put_receipt(&voided(&scene));
            }
        });
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(4), "{moment}: {said}");
        assert!(said.contains("another run was begun while this one ran"), "{said}");
        assert!(scene.receipt().contains("\"void\":{"), "{moment}: {}", scene.receipt());
        scene.refusal(&["enable"]);
    }
}

#[test]
fn enable_does_not_open_on_a_receipt_that_is_voided_meanwhile() {
    let scene = Scene::applied();
    for (moment, switched) in [("AmazonSSM.GetParameters", false), ("PUT /schedules/library-sync", true)] {
        scene.expect(&["trigger-now"], 0);
        scene.aws.forget_calls().unwrap();
        let mut once = true;
        let output = between(&scene, &["enable"], |call| {
            if call == moment && std::mem::take(&mut once) {
                scene.put_receipt(&voided(&scene));
            }
        });
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(3), "{moment}: {said}");
        assert!(said.contains("somebody began another run in the meantime"), "{said}");
        assert_eq!(scene.schedule()["State"], "DISABLED");
        assert_eq!(scene.aws.counts().unwrap().contains_key("scheduler:UpdateSchedule"), switched);
    }
}

#[test]
fn a_schedule_in_another_group_is_seen_and_can_be_switched_off() {
    let scene = enabled();
    scene.edit_config(|config| *config = config.replace("cron = ", "group = \"monthly\"\ncron = "));
    let said = refused(&scene, &["apply", "--disabled", "--yes"]);
    assert!(said.contains("has a schedule already: library-sync/library-sync (ENABLED)"), "{said}");
    let said = String::from_utf8(scene.expect(&["status"], 5).stdout).unwrap();
    assert!(said.contains("ENABLED, in group library-sync"), "{said}");
    let output = scene.expect(&["disable"], 0);
    let said = [output.stderr, output.stdout].map(|text| String::from_utf8(text).unwrap()).concat();
    assert!(said.contains("its schedule is in group library-sync") && said.contains("ENABLED -> DISABLED"), "{said}");
    assert_eq!(scene.schedule()["State"], "DISABLED");
    // And so the group can be changed after all.
    scene.expect(&["disable", "--delete"], 0);
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    assert_eq!(scene.schedule()["GroupName"], "monthly");
}

#[test]
fn what_changes_while_somebody_decides_is_not_undone() {
    let scene = Scene::applied();
    scene.expect(&["trigger-now"], 0);
    scene.edit_config(|config| *config = config.replace("0 4 1", "0 5 1"));
    scene.aws.forget_calls().unwrap();
    let mut apply = on_a_terminal(&scene, &["apply"]);
    let mut screen = apply.stdout.take().unwrap();
    let mut said = read_until(&mut screen, "[y/N] ").into_bytes();
    let mut changed = scene.schedule();
    changed["State"] = "ENABLED".into();
    scene.put_schedule(&changed);
    let mut keyboard = apply.stdin.take().unwrap();
    keyboard.write_all(b"y\n").unwrap();
    screen.read_to_end(&mut said).unwrap();
    drop(keyboard);
    let said = String::from_utf8_lossy(&said).into_owned();
    assert_eq!(apply.wait().unwrap().code(), Some(3), "{said}");
    assert!(said.contains("the world changed while you decided"), "{said}");
    assert_eq!(scene.schedule()["State"], "ENABLED");
    assert_eq!(scene.schedule()["ScheduleExpression"], "cron(0 4 1 * ? *)");
}

#[test]
fn a_report_of_another_run_does_not_count() {
    let scene = Scene::applied();
    // The container prints the line of last month, every month.
    let last_month = geuneul::RunReport { started_at: "2026-10-29T03:00:00Z".into(), ..report() };
    scene.next_run(&[&last_month.to_line()], 0);
    let said = String::from_utf8(scene.expect(&["trigger-now"], 4).stderr).unwrap();
    assert!(said.contains("its report is not of this run: it started at 2026-10-29T03:00:00Z"), "{said}");
}

#[test]
fn a_lost_answer_to_the_receipt_is_no_other_run() {
    let scene = Scene::applied();
    scene.expect(&["trigger-now"], 0);
    // The receipt is voided with two calls and kept with two more, the last of which takes effect; the SDK says it again, or not.
    let lost = || Fault::after("ssm", "PutParameter").skip(3);
    for fault in [lost(), lost().times(2), lost().times(3), lost().error(400, "ValidationException", "made to fail")] {
        scene.aws.fault(&fault).unwrap();
        scene.expect(&["trigger-now"], 0);
        scene.expect(&["enable"], 0);
        scene.expect(&["disable"], 0);
    }
    // Nothing of it hides a run that did begin.
    let mut looks = 0;
    let output = between(&scene, &["trigger-now"], |call| {
        looks += u32::from(call == "AmazonSSM.GetParameters");
        if looks == 3 {
            looks += 1;
            scene.put_receipt(&voided(&scene));
            scene.aws.fault(&lost().skip(1)).unwrap();
        }
    });
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(4), "{said}");
    assert!(said.contains("another run was begun while this one ran"), "{said}");
    scene.refusal(&["enable"]);
}

#[test]
fn a_log_that_is_away_for_a_moment_ends_no_proof() {
    let scene = Scene::applied();
    scene.aws.fault(&Fault::before("logs", "GetLogEvents").times(3)).unwrap();
    scene.expect(&["trigger-now"], 0);
}

#[test]
fn the_verdict_is_told_whatever_becomes_of_the_receipt() {
    let scene = Scene::applied();
    // What the Parameter Store would take for a reference.
    let braces = geuneul::RunReport {
        outcome: geuneul::Outcome::UpstreamFailed,
        error: Some(geuneul::RunError { code: "template".into(), message: "{{x}} was answered".into() }),
        ..report()
    };
    scene.next_run(&[&braces.to_line()], 69);
    scene.expect(&["trigger-now"], 4);
    assert!(scene.receipt().contains(r"{\u007bx}} was answered"), "{}", scene.receipt());

    // The receipt is voided with two calls, since it is there already; the third one would keep the verdict.
    let full = || Fault::before("ssm", "PutParameter").skip(2).error(400, "ValidationException", "made to fail");
    scene.aws.fault(&full()).unwrap();
    let said = String::from_utf8(scene.expect(&["trigger-now"], 4).stderr).unwrap();
    assert!(said.contains("{{x}} was answered") && said.contains("how it ended could not be kept"), "{said}");
    scene.next_run(&[&report().to_line()], 0);
    scene.aws.fault(&full()).unwrap();
    let output = scene.expect(&["trigger-now"], 1);
    let [said, why] = [output.stdout, output.stderr].map(|text| String::from_utf8(text).unwrap());
    assert!(said.contains("the run is proven") && why.contains("its receipt is missing"), "{said}{why}");
    scene.refusal(&["enable"]);

    scene.aws.deny("ecs:DescribeTasks").unwrap();
    let said = String::from_utf8(scene.expect(&["trigger-now"], 4).stderr).unwrap();
    assert!(said.contains("the task can no longer be watched, and goes on"), "{said}");
    assert!(scene.receipt().contains("can no longer be watched"), "{}", scene.receipt());
}

#[test]
fn a_role_that_is_given_must_be_that_very_role() {
    let scene = Scene::applied();
    let role = format!("arn:aws:iam::{}:role/elsewhere/library-sync-scheduler", scene.world.account);
    scene.edit_config(|config| *config = config.replace("cron = ", &format!("role = \"{role}\"\ncron = ")));
    let said = refused(&scene, &["apply", "--disabled", "--yes"]);
    assert!(said.contains(&format!("role {role} is not there")), "{said}");
    scene.edit_config(|config| *config = config.replace("role/elsewhere/", "role/"));
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    scene.put_trust(
        "library-sync-scheduler",
        &json!({ "Effect": "Deny", "Principal": { "Service": "scheduler.amazonaws.com" }, "Action": "sts:AssumeRole" }),
    );
    let said = refused(&scene, &["apply", "--disabled", "--yes"]);
    assert!(said.contains("does not trust scheduler.amazonaws.com for this job"), "{said}");
}

#[test]
fn ctrl_c_while_iam_is_waited_for_says_what_is_done() {
    let interrupted = |scene: &Scene, arguments: &[&str], waiting: &str, code: i32| {
        let mut deploy = scene.deploy(arguments).stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(deploy.stderr.take().unwrap()).lines().map(Result::unwrap);
        assert!(lines.any(|line| line.starts_with(waiting)));
        assert!(Command::new("kill").args(["-INT", &deploy.id().to_string()]).status().unwrap().success());
        let said: Vec<_> = lines.collect();
        assert_eq!(deploy.wait().unwrap().code(), Some(code), "{said:?}");
        said.join("\n")
    };
    let scene = Scene::set();
    scene.aws.hold_iam().unwrap();
    let said = interrupted(&scene, &["apply", "--disabled", "--yes"], "waiting: IAM", 1);
    assert!(said.contains("interrupted with Ctrl-C") && said.contains("6 done, 1 failed, 0 not attempted"), "{said}");
    scene.aws.release_iam().unwrap();
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    scene.aws.hold_iam().unwrap();
    scene.trust_ecs("geuneul-execution");
    let said = interrupted(&scene, &["trigger-now"], "ECS cannot assume", 4);
    assert!(said.contains("interrupted before anything was started"), "{said}");
    assert!(scene.receipt().contains("interrupted before anything was started"), "{}", scene.receipt());
}
