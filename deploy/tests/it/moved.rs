//! What moves between a look and a write, or between a proof and `enable`, without anybody having told `deploy`.

use deploy::cloud::TaskDefinitions;
use rehearsal::local_aws::Fault;
use serde_json::json;

use crate::inside;
use crate::proxy::between;
use crate::scene::{JOB, Scene};

#[test]
fn a_secret_that_the_family_reads_besides_is_a_part_of_what_was_proven() {
    let scene = Scene::set();
    // One with a slash before its name, and one without.
    let names = ["/db/password", "DB_USER"];
    let put = |name: &str, value: &str| {
        let value = json!({ "Name": name, "Value": value, "Type": "SecureString", "Overwrite": true });
        scene.call("ssm", "PutParameter", &value);
    };
    names.iter().for_each(|name| put(name, "one"));
    let reads = json!({ "Effect": "Allow", "Action": "ssm:GetParameters", "Resource": "*" });
    scene.put_role_policy("geuneul-execution", "theirs", &reads);
    inside::run(async {
        let cloud = inside::cloud(&scene).await;
        let mut members = cloud.task_definition(&scene.world.family).await.unwrap().writable();
        let arn = format!("arn:aws:ssm:{}:{}:parameter/DB_USER", scene.world.region, scene.world.account);
        members["containerDefinitions"][0]["secrets"] =
            json!([{ "name": "DB_PASSWORD", "valueFrom": "/db/password" }, { "name": "DB_USER", "valueFrom": arn }]);
        cloud.register(&members, &Default::default()).await.unwrap();
    });
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    for name in names {
        scene.expect(&["trigger-now"], 0);
        put(name, "two");
        let said = scene.refusal(&["enable"]);
        assert!(said.contains("the version of a secret moved since"), "{name}: {said}");
    }
    scene.expect(&["trigger-now"], 0);
    scene.expect(&["enable"], 0);
}

#[test]
fn what_moves_while_it_is_switched_on_switches_it_off_again() {
    let scene = Scene::applied();
    scene.expect(&["trigger-now"], 0);
    let mut once = true;
    let output = between(&scene, &["enable"], |call| {
        if call == "PUT /schedules/library-sync" && std::mem::take(&mut once) {
            let value =
                json!({ "Name": "/geuneul/api_key", "Value": "another", "Type": "SecureString", "Overwrite": true });
            scene.call("ssm", "PutParameter", &value);
        }
    });
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("it was switched on and is DISABLED again") && said.contains("secret"), "{said}");
    assert_eq!(scene.schedule()["State"], "DISABLED");
}

#[test]
fn a_start_that_aws_failed_to_answer_may_have_been_one() {
    let scene = Scene::applied();
    scene.next_script("sleep 600");
    scene.aws.fault(&Fault::after("ecs", "RunTask").times(9)).unwrap();
    for arguments in [&["run", "--", "look"][..], &["trigger-now"]] {
        let output = scene.deploy(arguments).output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{said}");
        assert!(said.contains("whether a task was started is not known"), "{said}");
        assert!(said.contains("hint: then see whether one runs: deploy logs"), "{said}");
        scene.expect(&["disable", "--stop-running"], 0);
    }
}

#[test]
fn a_role_that_scheduler_may_not_assume_is_no_reason_to_stay_on() {
    let scene = Scene::applied();
    let role = format!("{JOB}-scheduler");
    let enabled = || {
        scene.expect(&["trigger-now"], 0);
        scene.expect(&["enable"], 0);
        scene.trust_ecs(&role);
    };
    enabled();
    // Nothing that runs would be moved: no need to switch it off.
    let said = scene.transcript(&["trigger-now"]);
    assert!(said.contains("hint: look, then make it so: deploy plan, deploy apply\n"), "{said}");
    scene.expect(&["apply", "--yes"], 0);
    assert_eq!(scene.schedule()["State"], "ENABLED");

    enabled();
    scene.edit_config(|config| *config = config.replace("--all", "--some"));
    let said = scene.transcript(&["status"]);
    assert!(said.contains("first: deploy\n            plan, deploy apply --disabled\n"), "{said}");
    scene.expect(&["apply", "--yes"], 3);
    // Scheduler takes no schedule whose role it may not assume, not even to switch it off.
    let done = scene.transcript(&["apply", "--disabled", "--yes"]);
    let at = |words: &str| done.find(words).unwrap_or_else(|| panic!("{words} in {done}"));
    assert!(done.contains("exit code: 0\n") && at("done: write who may assume") < at("done: switch"), "{done}");
    assert_eq!(scene.schedule()["State"], "DISABLED");
}
