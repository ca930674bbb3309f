//! `destroy`: everything of ours goes, nothing else does, and a broken run goes on where it stopped.

use deploy::cloud::{Parameters, Roles, Schedules, TaskDefinitions};
use deploy::model::{Schedule, tags};
use rehearsal::local_aws::Fault;
use serde_json::{Value, json};

use crate::inside;
use crate::scene::{JOB, Scene, snapshot};

/// Everything that `apply` could have made, by table.
fn world(scene: &Scene) -> Value {
    let mut state: Value = serde_json::from_str(&scene.aws.state().unwrap()).unwrap();
    let tables = ["roles", "parameters", "parameter_tags", "schedules", "schedule_groups", "schedule_tags"];
    assert!(tables.iter().all(|table| state[*table].is_object()), "a table is missing");
    state.as_object_mut().unwrap().retain(|table, _| tables.contains(&table.as_str()));
    state
}

#[test]
fn what_apply_made_goes_and_the_rest_stays_as_it_was() {
    let scene = Scene::set();
    let before = world(&scene);
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    scene.expect(&["trigger-now"], 0);
    let refused = scene.refusal(&["destroy"]);
    assert!(refused.contains("nobody is here"), "{refused}");
    assert_ne!(world(&scene), before);
    snapshot!(scene, ["destroy", "--yes"]);
    assert_eq!(world(&scene), before);
    snapshot!(scene, ["destroy", "--yes"]);
}

#[test]
fn what_is_not_ours_stays_and_is_named() {
    let scene = Scene::set();
    inside::run(async {
        let cloud = inside::cloud(&scene).await;
        let somebody = tags::ours("another-job");
        cloud.create_group(JOB, &somebody).await.unwrap();
    });
    let group_only = scene.transcript(&["destroy", "--yes"]);
    assert!(group_only.contains("= schedule group library-sync: not ours"), "{group_only}");
    assert!(group_only.contains("nothing of ours is there"), "{group_only}");

    let scene = Scene::applied();
    scene.put_role_policy(
        &format!("{JOB}-scheduler"),
        "more",
        &json!({ "Effect": "Allow", "Action": "s3:GetObject", "Resource": "*" }),
    );
    inside::run(async {
        let cloud = inside::cloud(&scene).await;
        let mut other = cloud.schedule(JOB, JOB).await.unwrap().0;
        other.insert("Name".into(), json!("somebody-elses"));
        cloud.create_schedule(&Schedule(other)).await.unwrap();
        scene.call(
            "ssm",
            "RemoveTagsFromResource",
            &json!({
                "ResourceType": "Parameter", "ResourceId": "/geuneul/api_key", "TagKeys": ["managed-by"]
            }),
        );
    });
    snapshot!(scene, ["destroy", "--yes"]);
    inside::run(async {
        let cloud = inside::cloud(&scene).await;
        assert!(cloud.schedule(JOB, "somebody-elses").await.is_ok());
        assert!(cloud.parameter("/geuneul/api_key").await.is_ok());
        assert!(cloud.task_definition("geuneul:2").await.is_ok());
    });
}

/// A second job in the file, with the same secret and the scheduler's role of the first one.
fn with_another_job(scene: &Scene) {
    let role = format!("arn:aws:iam::{}:role/{JOB}-scheduler", scene.world.account);
    scene.edit_config(|config| {
        let at = config.find(&format!("[job.{JOB}]")).unwrap();
        let other = config[at..].replace(JOB, "other").replace("cron = ", &format!("role = \"{role}\"\ncron = "));
        config.push_str(&other);
    });
}

#[test]
fn what_another_job_of_the_file_needs_stays_and_is_named() {
    let scene = Scene::applied();
    with_another_job(&scene);
    snapshot!(scene, ["--job", JOB, "destroy", "--yes"]);
    inside::run(async {
        let cloud = inside::cloud(&scene).await;
        assert!(cloud.parameter("/geuneul/api_key").await.is_ok());
        assert!(cloud.role(&format!("{JOB}-scheduler")).await.is_ok());
        assert!(cloud.schedule(JOB, JOB).await.is_err());
    });
}

#[test]
fn a_parameter_that_another_policy_lets_the_execution_role_read_stays() {
    let scene = Scene::applied();
    let arn = format!("arn:aws:ssm:{}:{}:parameter/geuneul/*", scene.world.region, scene.world.account);
    let reads = json!({ "Effect": "Allow", "Action": "ssm:Get*", "Resource": arn });
    scene.put_role_policy("geuneul-execution", "geuneul-deploy-other", &reads);
    let said = scene.transcript(&["destroy", "--yes"]);
    assert!(said.contains("= parameter /geuneul/api_key: policy geuneul-deploy-other lets others read it"), "{said}");
    assert!(said.contains("- role library-sync-scheduler"), "{said}");
    // Who may not look cannot know, and what is deleted cannot be restored.
    let scene = Scene::applied();
    scene.put_role_policy("geuneul-execution", "geuneul-deploy-other", &reads);
    scene.aws.deny("iam:ListRolePolicies").unwrap();
    let said = scene.transcript(&["destroy", "--yes"]);
    assert!(said.contains("? parameter /geuneul/api_key: could not look: whether another job reads it"), "{said}");
    assert!(said.contains("exit code: 1\n"), "{said}");
}

#[test]
fn what_cannot_be_seen_stays_and_is_a_failure() {
    let scene = Scene::applied();
    scene.aws.deny("scheduler:ListTagsForResource").unwrap();
    scene.aws.deny("ssm:ListTagsForResource").unwrap();
    snapshot!(scene, ["destroy", "--yes"]);
    scene.aws.clear_faults().unwrap();
    scene.expect(&["destroy", "--yes"], 0);
}

#[test]
fn a_run_that_breaks_off_anywhere_goes_on_from_there() {
    let scene = Scene::set();
    let before = world(&scene);
    let deletions = [
        ("scheduler", "DeleteSchedule"),
        ("scheduler", "DeleteScheduleGroup"),
        ("iam", "DeleteRolePolicy"),
        ("iam", "DeleteRole"),
        ("ssm", "DeleteParameter"),
    ];
    for (service, action) in deletions {
        for fault in [Fault::before(service, action), Fault::after(service, action)] {
            scene.expect(&["apply", "--disabled", "--yes"], 0);
            scene.aws.fault(&fault.error(400, "SomethingElse", "the rehearsal made this call fail")).unwrap();
            let broken = scene.expect(&["destroy", "--yes"], 1);
            let said = String::from_utf8_lossy(&broken.stderr).into_owned();
            assert!(said.contains("1 failed") && said.contains("deploy destroy"), "{said}");
            scene.expect(&["destroy", "--yes"], 0);
            assert_eq!(world(&scene), before, "{service}:{action}");
        }
    }
}
