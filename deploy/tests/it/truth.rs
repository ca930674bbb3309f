//! What is said is true: the next command works, a note holds, a cause is the cause.

use geuneul::{Outcome, RunError, RunReport, Trigger};
use rehearsal::local_aws::Fault;
use serde_json::json;

use crate::scene::{Scene, report};

fn said(scene: &Scene, arguments: &[&str], code: i32) -> String {
    let output = scene.expect(arguments, code);
    [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat()
}

#[test]
fn the_next_command_is_one_that_works() {
    let scene = Scene::applied();
    scene.expect(&["trigger-now"], 0);
    assert!(said(&scene, &["apply"], 0).contains("next: deploy enable"));
    // When it runs is no part of the proof; what it runs is.
    scene.edit_config(|config| *config = config.replace("0 4 1 * ? *", "0 5 1 * ? *"));
    let plan = said(&scene, &["plan"], 0);
    assert!(!plan.contains("will not count"), "{plan}");
    assert!(said(&scene, &["apply", "--yes"], 0).contains("next: deploy enable"));
    scene.edit_config(|config| *config = config.replace("--all", "--some"));
    let plan = said(&scene, &["plan"], 0);
    assert!(plan.contains("will not count after this: the schedule's Input will have moved"), "{plan}");
    assert!(said(&scene, &["apply", "--yes"], 0).contains("next: deploy trigger-now"));
    scene.refusal(&["enable"]);
    // Back to what was proven, or made anew as it was: the proof counts.
    scene.edit_config(|config| *config = config.replace("--some", "--all"));
    let plan = said(&scene, &["plan"], 0);
    assert!(!plan.contains("will not count"), "{plan}");
    assert!(said(&scene, &["apply", "--yes"], 0).contains("next: deploy enable"));
    scene.expect(&["disable", "--delete"], 0);
    let applied = said(&scene, &["apply", "--disabled", "--yes"], 0);
    assert!(!applied.contains("will not count") && applied.contains("next: deploy enable"), "{applied}");
    // Another value of the secret is another thing.
    let rotated = said(&scene, &["apply", "--rotate", "API_KEY", "--yes"], 0);
    assert!(rotated.contains("will not count after this: the version of a secret"), "{rotated}");
    assert!(rotated.contains("next: deploy trigger-now"), "{rotated}");
}

#[test]
fn an_enabled_job_may_be_given_other_hours_and_nothing_else() {
    let scene = Scene::applied();
    scene.expect(&["trigger-now"], 0);
    scene.expect(&["enable"], 0);
    scene.edit_config(|config| *config = config.replace("0 4 1 * ? *", "0 5 1 * ? *"));
    let applied = said(&scene, &["apply", "--yes"], 0);
    assert!(applied.contains("ENABLED (kept)\n") && applied.contains("this moves when it runs"), "{applied}");
    assert_eq!(scene.schedule()["State"], "ENABLED");
    assert_eq!(scene.schedule()["ScheduleExpression"], "cron(0 5 1 * ? *)");
    scene.expect(&["enable"], 0);
    scene.edit_config(|config| *config = config.replace("--all", "--some"));
    assert!(said(&scene, &["apply", "--yes"], 3).contains("would move what it runs"));
    // The declarative stop is said wherever somebody asks.
    scene.edit_config(|config| {
        *config = config.replace("--some", "--all").replace("container = ", "stopped = true\ncontainer = ")
    });
    assert!(said(&scene, &["enable"], 3).contains("to switch it off as it says: deploy apply\n"));
    scene.expect(&["apply", "--yes"], 0);
    let status = said(&scene, &["status"], 0);
    assert!(status.contains("gate      closed: the configuration says stopped = true"), "{status}");
    assert!(said(&scene, &["enable"], 3).contains("take that line out, then: deploy apply, deploy enable"));
}

#[test]
fn status_remembers_the_schedule_s_own_run_behind_many_others() {
    let scene = Scene::applied();
    scene.expect(&["trigger-now"], 0);
    scene.expect(&["enable"], 0);
    let scheduled = RunReport { trigger: Trigger::Scheduled, started_at: "2099-12-01T04:00:03Z".into(), ..report() };
    scene.next_run(&[&scheduled.to_line()], 0);
    scene.fire();
    for _ in 0..6 {
        scene.next_run(&[&report().to_line()], 0);
        scene.expect(&["trigger-now"], 0);
    }
    let status = said(&scene, &["status"], 0);
    let proven = status.split("the scheduled path is proven ").nth(1).unwrap_or_else(|| panic!("{status}"));
    assert!(proven.lines().next().is_some_and(|line| line.ends_with(" by the schedule")), "{status}");
}

#[test]
fn a_run_that_failed_says_its_own_cause_and_what_to_do() {
    let scene = Scene::applied();
    let message = "DATA_GO_KR_SERVICE_KEY is not registered".to_owned();
    let error = Some(RunError { code: "key".into(), message });
    let broken = RunReport { outcome: Outcome::Misconfigured, error, ..report() };
    scene.next_run(&[&broken.to_line()], 78);
    scene.expect(&["trigger-now"], 4);
    let status = said(&scene, &["status"], 5);
    let status = status.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(status.contains("ended misconfigured: DATA_GO_KR_SERVICE_KEY is not registered; look at"), "{status}");
}

#[test]
fn a_plan_with_a_refusal_ends_with_3_and_counts_it() {
    let scene = Scene::set();
    let container = format!("container = {:?}", scene.world.container);
    scene.edit_config(|config| *config = config.replace(&container, "container = \"nobody\""));
    let plan = said(&scene, &["plan"], 3);
    assert!(plan.contains("! task definition") && plan.contains("has no container \"nobody\""), "{plan}");
    assert!(plan.contains("1 blocked"), "{plan}");
    scene.edit_config(|config| *config = config.replace("container = \"nobody\"", &container));

    let cluster = format!("cluster = {:?}", scene.world.cluster);
    scene.edit_config(|config| *config = config.replace(&cluster, "cluster = \"nowhere\""));
    let plan = said(&scene, &["plan"], 3);
    assert!(plan.contains("refused: cluster nowhere is not found"), "{plan}");
    scene.edit_config(|config| *config = config.replace("cluster = \"nowhere\"", &cluster));
    scene.aws.deny("ecs:DescribeClusters").unwrap();
    let plan = said(&scene, &["plan"], 0);
    assert!(plan.contains("? cluster") && plan.contains("ecs:DescribeClusters denied"), "{plan}");
}

#[test]
fn a_secret_that_moves_is_not_called_missing() {
    let scene = Scene::applied();
    scene.edit_config(|config| *config = config.replace("/geuneul/api_key", "/geuneul/other_key"));
    let plan = said(&scene, &["plan"], 0);
    assert!(plan.contains("secret API_KEY points elsewhere"), "{plan}");
    assert!(plan.contains("/geuneul/api_key -> /geuneul/other_key"), "{plan}");
    assert!(plan.contains("note: secret API_KEY was read from /geuneul/api_key, which stays as it is"), "{plan}");
}

#[test]
fn what_was_set_wrongly_is_named_in_one_sentence() {
    let scene = Scene::set();
    let ended = |arguments: &[&str], change: &dyn Fn(&mut std::process::Command)| {
        let mut command = scene.deploy(arguments);
        change(&mut command);
        let output = command.output().unwrap();
        (output.status.code(), String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or_default().to_owned())
    };
    // An explicit profile wins over the keys in the environment, or fails.
    let (code, line) = ended(&["plan", "--profile", "nope"], &|_| ());
    assert!(code == Some(1) && line.contains("`nope`") && line.len() < 200, "{line}");
    let (code, line) = ended(&["plan"], &|command| {
        command.env("AWS_ENDPOINT_URL", "bogus");
    });
    assert_eq!((code, line.as_str()), (Some(64), "error: AWS_ENDPOINT_URL is \"bogus\", which is no address"));
    // A variable of CI that was never filled in says nothing.
    let (code, line) = ended(&["plan"], &|command| {
        command.env("AWS_REGION", "");
    });
    assert_eq!((code, line.as_str()), (Some(0), ""));
    // What was asked for and could not be written is no success.
    let (code, line) = ended(&["iam", "--for", "plan"], &|command| {
        command.stdout(std::fs::File::create("/dev/full").unwrap());
    });
    assert!(code == Some(1) && line.starts_with("error: stdout could not be written: "), "{line}");
    // The next command is of the same file.
    std::fs::copy(scene.path().join("deploy.toml"), scene.path().join("another file.toml")).unwrap();
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    let said = scene.transcript(&["--config=another file.toml", "destroy"]);
    assert!(said.contains(": deploy --config 'another file.toml' destroy --yes\n"), "{said}");
    // The SDK takes nothing for an address as well, and panics; of one service no less than of all.
    for name in ["AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_ECS"] {
        let (code, line) = ended(&["disable", "--schedule=library-sync/library-sync"], &|command| {
            command.env(name, "");
        });
        assert_eq!((code, line), (Some(64), format!("error: {name} is \"\", which is no address")));
    }
    let set = scene.path().join("aws-config");
    for url in ["", "bogus"] {
        std::fs::write(&set, format!("[default]\nendpoint_url = {url}\n")).unwrap();
        let (code, line) = ended(&["plan"], &|command| {
            command.env("AWS_CONFIG_FILE", &set).env_remove("AWS_ENDPOINT_URL");
        });
        assert_eq!(
            (code, line),
            (Some(64), format!("error: endpoint_url of the profile is {url:?}, which is no address"))
        );
    }
    let (code, line) = ended(&["plan"], &|command| {
        command.env("AWS_ENDPOINT_URL", "http://127.0.0.1:9");
    });
    assert!(code == Some(1) && line.starts_with("error: AWS was not reached: Connection refused"), "{line}");
    let (code, line) = ended(&["plan"], &|command| {
        let nobody = command.env_remove("AWS_ACCESS_KEY_ID").env_remove("AWS_SECRET_ACCESS_KEY");
        nobody.env("AWS_EC2_METADATA_DISABLED", "true");
    });
    assert!(code == Some(1) && line.starts_with("error: there are no AWS credentials"), "{line}");
}

/// What other programs take, and the SDK panics at, is no reason for a job to fire on.
#[test]
fn how_often_a_call_is_tried_is_not_set_from_outside() {
    let scene = Scene::applied();
    let set = scene.path().join("aws-config");
    std::fs::write(&set, "[default]\nretry_mode = legacy\nmax_attempts = none\n").unwrap();
    let set = set.to_str().unwrap();
    for (name, value) in [("AWS_RETRY_MODE", "legacy"), ("AWS_MAX_ATTEMPTS", "0"), ("AWS_CONFIG_FILE", set)] {
        let output = scene.deploy(&["disable"]).env(name, value).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn a_lost_answer_is_not_taken_for_the_opposite() {
    let scene = Scene::applied();
    scene.expect(&["trigger-now"], 0);
    let lost =
        || scene.aws.fault(&Fault::after("scheduler", "UpdateSchedule").error(400, "ValidationException", "lost"));
    lost().unwrap();
    scene.expect(&["enable"], 0);
    assert_eq!(scene.schedule()["State"], "ENABLED");
    lost().unwrap();
    // And the emergency switch works when the group cannot be looked at.
    let blind = Fault::before("scheduler", "ListTagsForResource").error(400, "ValidationException", "blind");
    scene.aws.fault(&blind).unwrap();
    scene.expect(&["disable"], 0);
    assert_eq!(scene.schedule()["State"], "DISABLED");
}

#[test]
fn a_key_that_stands_twice_in_the_input_is_seen() {
    let scene = Scene::applied();
    let mut schedule = scene.schedule();
    let input = schedule["Target"]["Input"].as_str().unwrap().replace("\"Count\":1", "\"Count\":1,\"Count\":1");
    schedule["Target"]["Input"] = json!(input);
    scene.put_schedule(&schedule);
    let plan = said(&scene, &["plan", "--detailed-exitcode"], 2);
    assert!(plan.contains("duplicate field `Count`"), "{plan}");
    scene.expect(&["apply", "--yes"], 0);
    scene.expect(&["plan", "--detailed-exitcode"], 0);
}
