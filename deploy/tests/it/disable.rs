//! `disable`: the whole schedule goes back, switched off; and when AWS refuses, there is another way out.

use deploy::cloud::{ErrorKind, Schedules};
use deploy::model::State;
use rehearsal::local_aws::Fault;
use serde_json::json;

use crate::inside;
use crate::scene::{JOB, Scene};

fn enabled() -> Scene {
    let scene = Scene::applied();
    inside::run(async {
        let cloud = inside::cloud(&scene).await;
        let mut schedule = cloud.schedule(JOB, JOB).await.unwrap().with_state(State::Enabled);
        // What `deploy` knows nothing of must come back as it was.
        schedule.0.insert("Description".into(), json!("매월 도서관"));
        schedule.0.insert("StartDate".into(), json!(4_000_000_000.0));
        cloud.update_schedule(&schedule).await.unwrap();
    });
    scene
}

#[test]
fn everything_else_comes_back_as_it_was() {
    let scene = enabled();
    let before = scene.schedule();
    scene.expect(&["disable"], 0);
    let mut after = scene.schedule();
    assert_eq!(after["State"], "DISABLED");
    after["State"] = json!("ENABLED");
    for read_only in ["LastModificationDate", "CreationDate"] {
        after[read_only] = before[read_only].clone();
    }
    assert_eq!(after, before);
    let said = String::from_utf8(scene.expect(&["disable"], 0).stdout).unwrap();
    assert!(said.contains("DISABLED already"), "{said}");
}

#[test]
fn a_one_off_schedule_that_is_not_there_need_not_be_deleted() {
    let scene = enabled();
    scene.aws.deny("scheduler:DeleteSchedule").unwrap();
    let output = scene.expect(&["disable"], 0);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert_eq!(scene.schedule()["State"], "DISABLED");
}

#[test]
fn an_old_start_date_does_not_keep_it_on() {
    let scene = enabled();
    let words = "The StartDate you specify cannot be earlier than 5 minutes ago.";
    scene.aws.fault(&Fault::before("scheduler", "UpdateSchedule").error(400, "ValidationException", words)).unwrap();
    scene.expect(&["disable"], 0);
    assert_eq!(scene.schedule()["State"], "DISABLED");
    assert_eq!(scene.schedule().get("StartDate"), None);
}

#[test]
fn when_aws_refuses_the_schedule_is_saved_and_can_be_deleted() {
    let scene = enabled();
    scene.aws.deny("iam:PassRole").unwrap();
    insta::with_settings!({ filters => Scene::filters(), omit_expression => true }, {
        insta::assert_snapshot!("disable_without_pass_role", scene.transcript(&["disable"]));
    });
    assert_eq!(scene.schedule()["State"], "ENABLED");
    scene.expect(&["disable", "--delete"], 0);
    let gone = inside::run(async { inside::cloud(&scene).await.schedule(JOB, JOB).await });
    assert_eq!(gone.unwrap_err().kind, ErrorKind::NotFound);
    for file in ["library-sync.schedule.json", "library-sync.schedule-2.json"] {
        let saved = std::fs::read_to_string(scene.path().join(file)).unwrap();
        assert!(saved.contains("매월 도서관") && saved.contains("ENABLED"), "{saved}");
    }
    let said = String::from_utf8(scene.expect(&["disable"], 0).stdout).unwrap();
    assert!(said.contains("there is no schedule"), "{said}");
}

#[test]
fn neither_a_broken_file_nor_a_folder_that_takes_none_keeps_it_on() {
    let scene = Scene::applied();
    let text = std::fs::read_to_string(scene.path().join("deploy.toml")).unwrap();
    std::fs::write(scene.path().join("deploy.toml"), text.replace("cron = ", "corn = ")).unwrap();
    let said = scene.transcript(&["disable"]);
    assert!(said.contains("exit code: 64\n") && said.contains(": deploy disable --schedule GROUP/NAME\n"), "{said}");
    std::fs::write(scene.path().join("deploy.toml"), text).unwrap();
    // What the environment has against it, it has against both.
    let mut command = scene.deploy(&["disable"]);
    command.env("AWS_ENDPOINT_URL", "");
    let said = scene.transcript_of(command);
    assert!(said.contains("exit code: 64\n") && !said.contains("--schedule"), "{said}");
    let config = scene.path().join("deploy.toml");
    let mut command = scene.deploy(&["disable", "--delete", "--config", config.to_str().unwrap()]);
    let said = scene.transcript_of({
        command.current_dir("/proc");
        command
    });
    assert!(
        said.contains("exit code: 0\n") && said.contains("\"ScheduleExpression\": \"cron(0 4 1 * ? *)\""),
        "{said}"
    );
    assert!(said.contains("library-sync: deleted\n"), "{said}");
}

#[test]
fn a_document_that_is_gone_keeps_nobody_from_looking_or_switching_off() {
    let scene = Scene::applied();
    scene.expect(&["trigger-now"], 0);
    scene.expect(&["enable"], 0);
    scene.edit_config(|config| {
        *config = config.replace("container = ", "task_definition = \"gone.json\"\ncontainer = ")
    });
    for verb in
        [&["plan"][..], &["apply", "--yes"], &["trigger-now"], &["enable"], &["verify"], &["export", "--terraform"]]
    {
        let said = String::from_utf8(scene.expect(verb, 64).stderr).unwrap();
        assert!(said.starts_with("error: cannot use gone.json: No such file"), "{said}");
    }
    // What fires is not what deploy.toml says, as far as anybody can tell.
    let said = String::from_utf8(scene.expect(&["status"], 5).stdout).unwrap();
    assert!(said.contains("ENABLED, cron(0 4 1 * ? *)") && said.contains("(cannot use gone.json: "), "{said}");
    scene.expect(&["disable"], 0);
    assert_eq!(scene.schedule()["State"], "DISABLED");
    let said = String::from_utf8(scene.expect(&["destroy", "--yes"], 0).stdout).unwrap();
    assert!(said.contains("policy geuneul-execution/geuneul-deploy-library-sync"), "{said}");
}

/// Everything that a person sees when AWS takes no update, and that deleting works all the same.
fn only_deleting_helps(case: &str, scene: &Scene) -> String {
    let said = scene.transcript(&["disable"]);
    assert_eq!(scene.schedule()["State"], "ENABLED", "{case}");
    scene.expect(&["disable", "--delete"], 0);
    let gone = inside::run(async { inside::cloud(scene).await.schedule(JOB, JOB).await });
    assert_eq!(gone.unwrap_err().kind, ErrorKind::NotFound, "{case}");
    format!("{case}\n{said}\n")
}

#[test]
fn with_the_role_gone_or_its_trust_broken_it_is_saved_and_can_be_deleted() {
    let role = format!("{JOB}-scheduler");
    let mut said = String::new();
    let scene = enabled();
    inside::run(async {
        let cloud = inside::cloud(&scene).await;
        cloud.delete_role_policy(&role, "run-task").await.unwrap();
        cloud.delete_role(&role).await.unwrap();
    });
    said += &only_deleting_helps("the role is deleted", &scene);
    let scene = enabled();
    scene.trust_ecs(&role);
    said += &only_deleting_helps("the role trusts somebody else", &scene);
    insta::with_settings!({ filters => Scene::filters(), omit_expression => true }, { insta::assert_snapshot!(said) });
}

#[test]
fn without_a_configuration_it_needs_a_name_and_a_region() {
    let scene = enabled();
    std::fs::remove_file(scene.path().join("deploy.toml")).unwrap();
    let before = scene.schedule();
    scene.expect(&["disable"], 64);
    let mut nowhere = scene.deploy(&["disable", "--schedule=library-sync/library-sync"]);
    nowhere.env_remove("AWS_REGION");
    let nowhere = nowhere.output().unwrap();
    let said = String::from_utf8(nowhere.stderr).unwrap();
    assert_eq!(nowhere.status.code(), Some(64), "{said}");
    assert!(said.starts_with("error: no region is set"), "{said}");
    let mut said = String::new();
    said += &scene.transcript(&["disable", "--schedule=library-sync/libary-sync"]);
    assert_eq!(scene.schedule(), before);
    scene.aws.deny("iam:PassRole").unwrap();
    said += &scene.transcript(&["disable", "--schedule=library-sync/library-sync"]);
    scene.aws.clear_faults().unwrap();
    said += &scene.transcript(&["disable", "--schedule=library-sync/library-sync", "--stop-running"]);
    assert_eq!(scene.schedule()["State"], "DISABLED");
    // Somebody else's is left alone.
    inside::run(async {
        let cloud = inside::cloud(&scene).await;
        cloud.create_group("theirs", &Default::default()).await.unwrap();
        let mut theirs = cloud.schedule(JOB, JOB).await.unwrap().with_state(State::Enabled);
        theirs.0.insert("GroupName".into(), json!("theirs"));
        let trust = format!("arn:aws:scheduler:{}:{}:schedule-group/*", scene.world.region, scene.world.account);
        scene.put_trust(&format!("{JOB}-scheduler"), &json!({ "Effect": "Allow", "Action": "sts:AssumeRole",
            "Principal": { "Service": "scheduler.amazonaws.com" }, "Condition": { "ArnLike": { "aws:SourceArn": trust } } }));
        cloud.create_schedule(&theirs).await.unwrap();
    });
    said += &scene.transcript(&["disable", "--schedule=theirs/library-sync"]);
    insta::with_settings!({ filters => Scene::filters(), omit_expression => true }, { insta::assert_snapshot!(said) });
}
