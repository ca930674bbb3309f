//! A secret's value moves only when it is told to, and only to its parameter.

use rehearsal::local_aws::Fault;
use serde_json::json;

use crate::plan::writes;
use crate::scene::Scene;

#[test]
fn a_value_moves_only_when_it_is_absent_or_told_to() {
    let scene = Scene::applied();
    let version = |scene: &Scene| {
        let filter =
            json!({ "ParameterFilters": [{ "Key": "Name", "Option": "Equals", "Values": ["/geuneul/api_key"] }] });
        scene.call("ssm", "DescribeParameters", &filter)["Parameters"][0]["Version"].as_i64().unwrap()
    };
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    assert_eq!(version(&scene), 1);
    scene.expect(&["apply", "--disabled", "--rotate", "API_KEY", "--yes"], 0);
    assert_eq!(version(&scene), 2);
    // A value that cannot be used changes nothing.
    for (value, why) in [("", "it is empty"), ("a{{b}}", "it contains {{")] {
        scene.aws.forget_calls().unwrap();
        let output = scene
            .deploy(&["apply", "--disabled", "--rotate", "API_KEY", "--yes"])
            .env("API_KEY", value)
            .output()
            .unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.code() == Some(3) && said.contains(why), "{said}");
        assert_eq!(writes(&scene), Vec::<String>::new());
    }
    assert_eq!(version(&scene), 2);
}

#[test]
fn the_secret_is_in_the_parameter_and_nowhere_else() {
    let scene = Scene::set();
    let canary = "c4n4ry+key/of=the=portal==";
    let said = |arguments: &[&str]| {
        let mut command = scene.deploy(arguments);
        let output = command.env("API_KEY", format!("{canary}\n")).env("RUST_LOG", "trace").output().unwrap();
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
    };
    let fault = Fault::before("ssm", "PutParameter").error(400, "ValidationException", "made to fail");
    scene.aws.fault(&fault).unwrap();
    let everything = [
        said(&["apply", "--disabled", "--yes"]),
        said(&["apply", "--disabled", "--yes"]),
        said(&["plan"]),
        said(&["apply", "--disabled", "--rotate", "API_KEY", "--yes"]),
        scene.aws.state().unwrap(),
        scene.aws.log().unwrap(),
    ]
    .join("\n");
    assert!(everything.contains("one line break at the end"), "{everything}");
    assert!(everything.contains("everything read back"), "{everything}");
    for form in [canary.to_owned(), canary.replace('+', "%2B"), canary.replace('/', "\\/")] {
        assert!(!everything.contains(&form), "the secret leaked");
    }
    let stored = scene.call("ssm", "GetParameter", &json!({ "Name": "/geuneul/api_key", "WithDecryption": true }));
    assert_eq!(stored["Parameter"]["Value"], canary);
}
