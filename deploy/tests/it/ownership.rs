//! What is not ours is left alone until it is taken over, and what was taken over is not thereby proven.

use deploy::cloud::{Roles, Schedules};
use deploy::model::{NewRole, Tags, tags};

use crate::inside;
use crate::plan::refused;
use crate::scene::{JOB, Scene};

#[test]
fn what_is_not_ours_is_refused_and_taken_over_only_when_told() {
    let scene = Scene::set();
    let desired = inside::desired(&scene);
    inside::run(async {
        let cloud = inside::cloud(&scene).await;
        let theirs = Tags::from([("team".to_owned(), "other".to_owned())]);
        let role = NewRole {
            name: desired.role.name.clone(),
            path: "/".into(),
            trust: desired.trust(),
            boundary: None,
            tags: theirs.clone(),
        };
        cloud.create_role(&role).await.unwrap();
        cloud.create_group(JOB, &theirs).await.unwrap();
    });
    let said = refused(&scene, &["apply", "--disabled", "--yes"]);
    assert!(said.contains("role library-sync-scheduler is there and not ours"), "{said}");
    assert!(said.contains("schedule group library-sync is there and not ours"), "{said}");
    assert!(said.contains("--adopt"), "{said}");
    scene.expect(&["apply", "--disabled", "--adopt", "--yes"], 0);
    scene.expect(&["plan", "--detailed-exitcode"], 0);
    let tags = inside::run(async { inside::cloud(&scene).await.role(&desired.role.name).await.unwrap().tags });
    assert!(tags::are_ours(&tags, JOB) && tags["team"] == "other");
}

#[test]
fn what_is_taken_over_enabled_stays_on_and_is_called_unproven() {
    let scene = Scene::applied();
    scene.expect(&["trigger-now"], 0);
    scene.expect(&["enable"], 0);
    // Somebody else's, by its tags, and nobody here knows of a run.
    let foreign = tags::ours("somebody-elses");
    inside::run(async {
        let (cloud, desired) = (inside::cloud(&scene).await, inside::desired(&scene));
        cloud.tag_group(&desired.group_arn(), &foreign).await.unwrap();
        cloud.tag_role(&desired.role.name, &foreign).await.unwrap();
        cloud.delete_parameter(&scene.receipt_parameter()).await.unwrap();
    });
    refused(&scene, &["apply", "--yes"]);
    let said = scene.transcript(&["plan", "--adopt"]);
    assert!(said.contains("exit code: 0") && said.contains("is taken over ENABLED and stays so, UNPROVEN"), "{said}");
    scene.expect(&["apply", "--adopt", "--yes"], 0);
    assert_eq!(scene.schedule()["State"], "ENABLED");
    scene.expect(&["plan", "--detailed-exitcode"], 0);
    let said = String::from_utf8(scene.expect(&["status"], 5).stdout).unwrap();
    assert!(said.contains("ENABLED") && said.contains("needs a person: what fires is not proven"), "{said}");
    // What it runs is not moved under it, adopted or not.
    scene.edit_config(|config| *config = config.replace("--all", "--some"));
    assert!(refused(&scene, &["apply", "--adopt", "--yes"]).contains("is ENABLED, and this would move what it runs"));
    scene.edit_config(|config| *config = config.replace("--some", "--all"));
    scene.expect(&["trigger-now"], 0);
    scene.expect(&["status"], 0);
    assert_eq!(scene.schedule()["State"], "ENABLED");
}
