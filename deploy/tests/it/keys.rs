//! A KMS key of one's own: granted to whoever needs it, asked about, and explained when it cannot be used.

use serde_json::{Value, json};

use crate::everything::key;
use crate::plan::refused;
use crate::scene::{Scene, snapshot};

fn with_key(scene: &Scene, name: &str) {
    scene.edit_config(|config| *config = config.replace("from = ", &format!("kms_key = {name:?}\nfrom = ")));
}

fn verified(scene: &Scene, code: i32) -> Vec<(String, String, String)> {
    let output = scene.expect(&["verify", "--json"], code);
    let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
    let word = |check: &Value, member: &str| check[member].as_str().unwrap().to_owned();
    let checks = answer["checks"].as_array().unwrap().iter();
    let decrypts = checks.filter(|check| check["name"].as_str().unwrap().contains("may decrypt"));
    decrypts.map(|check| (word(check, "name"), word(check, "verdict"), word(check, "how"))).collect()
}

#[test]
fn the_execution_role_may_decrypt_with_it_and_the_job_runs() {
    let scene = Scene::set();
    let arn = key(&scene, "alias/secrets");
    with_key(&scene, "alias/secrets");
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    // ECS really asks for the key, in the name of the execution role.
    scene.expect(&["trigger-now"], 0);
    let named = |verdict: &str, how: &str| {
        vec![("the execution role may decrypt with alias/secrets".to_owned(), verdict.to_owned(), how.to_owned())]
    };
    assert_eq!(verified(&scene, 0), named("ok", "simulated"));
    // Not named any more, it is still the parameter's key: nobody would be let to use it.
    scene.edit_config(|config| *config = config.replace("kms_key = \"alias/secrets\"\n", ""));
    let said = scene.transcript(&["plan"]);
    assert!(said.contains("say kms_key = \"alias/secrets\" in its secret"), "{said}");
    with_key(&scene, "alias/secrets");
    assert!(!scene.transcript(&["plan"]).contains("kms_key"));
    // Without our statement: whether another names the key itself is not known.
    let parameter = format!("arn:aws:ssm:{}:{}:parameter/geuneul/api_key", scene.world.region, scene.world.account);
    let reads = json!({ "Sid": "GeuneulDeployReadsSecrets", "Effect": "Allow", "Action": "ssm:GetParameters", "Resource": parameter });
    scene.put_role_policy("geuneul-execution", "geuneul-deploy-library-sync", &reads);
    assert_eq!(verified(&scene, 0), named("skip", "not-checked"));
    // By its ARN there is no doubt. The parameter has to be written anew: another name may be another key.
    scene.edit_config(|config| *config = config.replace("alias/secrets", &arn));
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    assert_eq!(verified(&scene, 0)[0].1, "ok");
    scene.expect(&["trigger-now"], 0);
    scene.put_role_policy("geuneul-execution", "geuneul-deploy-library-sync", &reads);
    assert_eq!(verified(&scene, 5)[0].1, "ng");
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    scene.call("kms", "DisableKey", &json!({ "KeyId": arn }));
    let said = String::from_utf8(scene.expect(&["trigger-now"], 4).stderr).unwrap();
    assert!(said.contains("DisabledException"), "{said}");
}

#[test]
fn a_key_that_cannot_be_used_is_explained() {
    let scene = Scene::set();
    with_key(&scene, "alias/secrets");
    // Not there, or of another region; then switched off; then as good as deleted; then not for this caller.
    snapshot!(scene, ["apply", "--disabled", "--yes"]);
    let arn = key(&scene, "alias/secrets");
    let hint = |expected: &str| {
        let said = String::from_utf8(scene.expect(&["apply", "--disabled", "--yes"], 1).stderr).unwrap();
        let hint = said.lines().find(|line| line.starts_with("hint: ")).unwrap_or_default();
        assert!(hint.contains(expected), "{said}");
    };
    scene.call("kms", "DisableKey", &json!({ "KeyId": arn }));
    hint("aws kms enable-key");
    scene.call("kms", "ScheduleKeyDeletion", &json!({ "KeyId": arn }));
    hint("aws kms cancel-key-deletion");
    scene.call("kms", "CancelKeyDeletion", &json!({ "KeyId": arn }));
    scene.call("kms", "EnableKey", &json!({ "KeyId": arn }));
    scene.aws.deny("kms:Encrypt").unwrap();
    hint("deploy iam --for apply prints the statement");
    scene.aws.allow("kms:Encrypt").unwrap();
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    // A key of another region is refused before anything is sent.
    scene
        .edit_config(|config| *config = config.replace("alias/secrets", "arn:aws:kms:us-east-1:123456789012:key/0a1b"));
    scene.expect(&["plan"], 64);
    scene
        .edit_config(|config| *config = config.replace("arn:aws:kms:us-east-1:123456789012:key/0a1b", "alias/secrets"));
    // The parameter of somebody else is not encrypted anew.
    scene.call(
        "ssm",
        "RemoveTagsFromResource",
        &json!({ "ResourceType": "Parameter", "ResourceId": "/geuneul/api_key", "TagKeys": ["job"] }),
    );
    key(&scene, "alias/other");
    scene.edit_config(|config| *config = config.replace("alias/secrets", "alias/other"));
    let said = refused(&scene, &["apply", "--disabled", "--yes"]);
    assert!(said.contains("its value would be overwritten"), "{said}");
}
