//! A plan for a program, for a reviewer, and for later.

use deploy::cloud::{Roles, Schedules, TaskDefinitions};
use deploy::model::{PolicyDocument, State};
use serde_json::{Value, json};

use crate::everything::key;
use crate::inside;
use crate::plan::{refused, writes};
use crate::scene::{JOB, SECRET, Scene};

fn json_of(scene: &Scene, arguments: &[&str], code: i32) -> Value {
    serde_json::from_slice(&scene.expect(arguments, code).stdout).expect("one JSON document on stdout")
}

#[test]
fn a_plan_is_one_document_and_its_requests_are_what_is_sent() {
    let scene = Scene::set();
    key(&scene, "alias/secrets");
    scene.edit_config(|config| *config = config.replace("from = ", "kms_key = \"alias/secrets\"\nfrom = "));
    let document = json_of(&scene, &["plan", "--disabled", "--json", "--requests", "--detailed-exitcode"], 2);
    assert_eq!(document["geuneul"], "deploy-plan/1");
    assert_eq!((&document["job"], &document["empty"]), (&json!(JOB), &json!(false)));
    assert_eq!(document["next"], "deploy apply --disabled");
    let actions: Vec<_> =
        document["items"].as_array().unwrap().iter().map(|item| item["action"].as_str().unwrap()).collect();
    assert_eq!(actions, ["create", "create", "change", "create", "create", "create", "same", "same"]);
    let requests = document["requests"].as_array().unwrap();
    assert_eq!(requests[0]["request"]["Value"], "(the value of env:API_KEY)");

    assert_eq!(requests[0]["request"]["KeyId"], "alias/secrets");
    scene.aws.forget_calls().unwrap();
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    sent_as_said(&scene, requests);
    assert_eq!(json_of(&scene, &["plan", "--json", "--detailed-exitcode"], 0)["empty"], true);

    // A tier is said only of what is made: one that somebody made advanced cannot go back.
    let arguments = ["--rotate", "API_KEY"];
    let plan = ["plan", "--json", "--requests", "--detailed-exitcode"];
    let document = json_of(&scene, &[&plan[..], &arguments].concat(), 2);
    let requests = document["requests"].as_array().unwrap();
    assert_eq!((requests.len(), requests[0]["request"].get("Tier")), (1, None));
    scene.aws.forget_calls().unwrap();
    scene.expect(&[&["apply", "--yes"][..], &arguments].concat(), 0);
    sent_as_said(&scene, requests);
}

/// Every write, whole, in order.
fn sent_as_said(scene: &Scene, requests: &[Value]) {
    let calls = scene.aws.calls().unwrap();
    let reads = ["Get", "Describe", "List"];
    let sent: Vec<_> = calls.iter().filter(|call| !reads.iter().any(|read| call.action.starts_with(read))).collect();
    assert_eq!(sent.len(), requests.len());
    for (sent, said) in sent.iter().zip(requests) {
        assert_eq!(format!("{}:{}", sent.service, sent.action), said["call"].as_str().unwrap());
        let (mut is, mut said) = (sent.request.clone(), said["request"].clone());
        match sent.action.as_str() {
            "CreateSchedule" => {
                let number = inside::run(async {
                    let found = inside::cloud(scene).await.task_definition(&scene.world.family).await.unwrap();
                    found.reference().unwrap().family_and_revision().to_owned()
                });
                let input = said["Target"]["Input"].as_str().unwrap();
                let family = format!("{}:(the new revision)", scene.world.family);
                said["Target"]["Input"] = json!(input.replace(&family, &number));
            }
            // No record holds the value.
            "PutParameter" => said["Value"] = is["Value"].clone(),
            _ => {}
        }
        match sent.service.as_str() {
            "iam" => (is, said) = (opened(is), as_form(said)),
            // The name travels in the address, the token is the SDK's.
            "scheduler" => {
                said.as_object_mut().unwrap().remove("Name");
                for own in ["Name", "ClientToken"] {
                    is.as_object_mut().unwrap().remove(own);
                }
            }
            _ => {}
        }
        assert_eq!(is, said, "{}", sent.action);
    }
}

/// IAM's form without what every form has, its policy opened.
fn opened(mut form: Value) -> Value {
    let members = form.as_object_mut().unwrap();
    members.retain(|member, _| member != "Action" && member != "Version");
    for (_, text) in members.iter_mut().filter(|(member, _)| member.ends_with("PolicyDocument")) {
        *text = serde_json::from_str(text.as_str().unwrap()).unwrap();
    }
    form
}

/// A request as IAM's form has it: lists by number.
fn as_form(mut request: Value) -> Value {
    let members = request.as_object_mut().unwrap();
    let tags = members.remove("Tags").unwrap_or(json!([]));
    for (i, tag) in tags.as_array().unwrap().iter().enumerate() {
        for (member, text) in tag.as_object().unwrap() {
            members.insert(format!("Tags.member.{}.{member}", i + 1), text.clone());
        }
    }
    request
}

#[test]
fn a_saved_plan_is_applied_only_to_the_world_that_it_was_made_for() {
    let scene = Scene::set();
    scene.expect(&["plan", "--disabled", "--out", "plan.json"], 0);
    let file = std::fs::read_to_string(scene.path().join("plan.json")).unwrap();
    assert!(!file.contains(SECRET) && file.contains("saved-plan/1"), "{file}");
    // Another wish than the saved one is a contradiction.
    scene.expect(&["apply", "plan.json", "--adopt", "--yes"], 64);
    scene.expect(&["apply", "plan.json", "--yes"], 0);
    assert_eq!(scene.schedule()["State"], "DISABLED");
    let said = refused(&scene, &["apply", "plan.json", "--yes"]);
    assert!(said.contains("the world has moved since it was saved"), "{said}");

    // One thing at a time is moved, and named.
    scene.edit_config(|config| *config = config.replace("0 4 1", "5 4 1"));
    let save = || scene.expect(&["plan", "--out", "plan.json"], 0);
    save();
    inside::run(async {
        let cloud = inside::cloud(&scene).await;
        let found = cloud.schedule(JOB, JOB).await.unwrap();
        cloud.update_schedule(&found.with_state(State::Enabled)).await.unwrap();
    });
    let said = refused(&scene, &["apply", "plan.json", "--yes"]);
    assert!(said.contains("schedule library-sync: State"), "{said}");
    inside::run(async {
        let cloud = inside::cloud(&scene).await;
        let found = cloud.schedule(JOB, JOB).await.unwrap();
        cloud.update_schedule(&found.with_state(State::Disabled)).await.unwrap();
    });
    save();
    inside::run(async {
        let wide = json!({ "Version": "2012-10-17", "Statement": [{ "Effect": "Allow", "Action": "ecs:*", "Resource": "*" }] });
        let cloud = inside::cloud(&scene).await;
        let role = format!("{JOB}-scheduler");
        cloud.put_role_policy(&role, "run-task", &PolicyDocument(wide.to_string())).await.unwrap();
    });
    let said = refused(&scene, &["apply", "plan.json", "--yes"]);
    assert!(said.contains("moved since it was saved: policy of role library-sync-scheduler;"), "{said}");
    save();
    scene.edit_config(|config| *config = config.replace("5 4 1", "6 4 1"));
    let said = refused(&scene, &["apply", "plan.json", "--yes"]);
    assert!(said.contains("deploy.toml, or a file that it names, has changed since: write schedule"), "{said}");
    save();
    scene.expect(&["apply", "plan.json", "--yes"], 0);
    scene.expect(&["plan", "--detailed-exitcode"], 0);
    // What would be refused is not saved either, and what is no plan is said to be none.
    scene.edit_config(|config| *config = config.replace("container = \"app\"", "container = \"apq\""));
    scene.aws.forget_calls().unwrap();
    scene.expect(&["plan", "--out", "plan.json"], 3);
    std::fs::write(scene.path().join("plan.json"), "{}").unwrap();
    scene.expect(&["apply", "plan.json", "--yes"], 64);
    assert_eq!(writes(&scene), Vec::<String>::new());
}

#[test]
fn a_secret_that_stands_in_the_open_is_refused() {
    let scene = Scene::set();
    let argument = format!("--key={SECRET}");
    scene.edit_config(|config| *config = config.replace("\"--all\"", &format!("{argument:?}")));
    for verb in [&["plan"][..], &["apply", "--disabled", "--yes"]] {
        let said = refused(&scene, verb);
        assert!(said.contains("the value of secret API_KEY stands in the job's command"), "{said}");
    }
    scene.edit_config(|config| {
        let open = format!("assign_public_ip = true\nenvironment = {{ OTHER = {SECRET:?} }}");
        *config = config.replace(&argument, "--all").replace("assign_public_ip = true", &open)
    });
    let said = refused(&scene, &["apply", "--disabled", "--yes"]);
    assert!(said.contains("stands in the job's variable OTHER"), "{said}");
    scene.edit_config(|config| *config = config.replace(SECRET, "harmless"));
    // In the family that was there before, under another name.
    let definition = scene.call("ecs", "DescribeTaskDefinition", &json!({ "taskDefinition": scene.world.family }));
    let members = definition["taskDefinition"].as_object().unwrap().clone();
    let mut members = deploy::model::TaskDefinition { members, tags: Default::default() }.writable();
    members["containerDefinitions"][0]["environment"] = json!([{ "name": "OLD_KEY", "value": SECRET }]);
    scene.call("ecs", "RegisterTaskDefinition", &Value::Object(members));
    let said = refused(&scene, &["apply", "--disabled", "--yes"]);
    assert!(said.contains("stands in the task definition"), "{said}");
}

#[test]
fn a_schedule_stays_on_its_revision_until_it_is_told_to_move() {
    let scene = Scene::applied();
    let pinned = scene.schedule()["Target"]["Input"].clone();
    // A pipeline registers a revision that knows nothing of the secret.
    inside::run(async {
        let cloud = inside::cloud(&scene).await;
        let mut members = cloud.task_definition(&scene.world.family).await.unwrap().writable();
        members["containerDefinitions"][0].as_object_mut().unwrap().remove("secrets");
        cloud.register(&members, &Default::default()).await.unwrap();
    });
    let said = scene.transcript(&["plan", "--detailed-exitcode"]);
    assert!(said.contains("exit code: 0"), "{said}");
    assert!(said.contains("the schedule stays on revision 2") && said.contains("apply --latest moves it"), "{said}");
    assert!(said.contains("revision 3 was registered by arn:aws:") && said.contains("without API_KEY"), "{said}");
    scene.expect(&["apply", "--latest", "--yes"], 0);
    assert_ne!(scene.schedule()["Target"]["Input"], pinned);
    scene.expect(&["plan", "--detailed-exitcode"], 0);
    // A cleanup deregisters the revision that the schedule runs: it could not start any more.
    let arn = inside::run(async {
        let found = inside::cloud(&scene).await.task_definition(&scene.world.family).await.unwrap();
        found.reference().unwrap().arn().to_owned()
    });
    scene.call("ecs", "DeregisterTaskDefinition", &json!({ "taskDefinition": arn }));
    let said = scene.transcript(&["plan", "--detailed-exitcode"]);
    assert!(said.contains("exit code: 2") && said.contains("is INACTIVE or gone"), "{said}");
    scene.expect(&["apply", "--yes"], 0);
    scene.expect(&["plan", "--detailed-exitcode"], 0);
}

#[test]
fn several_jobs_share_a_file_and_nothing_else() {
    let scene = Scene::set();
    scene.edit_config(|config| {
        let other =
            config[config.find("[job.").unwrap()..].replace(JOB, "other-job").replace("/geuneul/api_key", "/other/key");
        config.push_str(&format!(
            "\n{}",
            other.replace(
                "[[job.other-job.secret]]",
                "[job.other-job.gate]\nproof = \"exit-code\"\n\n[[job.other-job.secret]]"
            )
        ));
    });
    scene.expect(&["plan"], 64);
    for job in [JOB, "other-job"] {
        scene.expect(&["apply", "--job", job, "--disabled", "--yes"], 0);
    }
    for job in [JOB, "other-job"] {
        scene.expect(&["plan", "--job", job, "--detailed-exitcode"], 0);
    }
    // A foreign job prints no report: its exit code is its proof.
    scene.next_run(&["done"], 0);
    scene.expect(&["trigger-now", "--job", "other-job"], 0);
    scene.expect(&["enable", "--job", "other-job"], 0);
    assert_eq!(scene.schedule()["State"], "DISABLED", "the other one was switched on");
}
