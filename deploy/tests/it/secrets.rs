//! A secret's value moves only when it is told to, and only to its parameter.

use std::io::{Read, Write};
use std::process::{Command, Stdio};

use rehearsal::local_aws::Fault;
use serde_json::json;

use crate::plan::writes;
use crate::scene::Scene;
use crate::terminal::{on_a_terminal, read_until};

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

#[test]
fn a_value_comes_from_wherever_it_is_kept() {
    let scene = Scene::set();
    let stored = || {
        let found = scene.call("ssm", "GetParameter", &json!({ "Name": "/geuneul/api_key", "WithDecryption": true }));
        found["Parameter"]["Value"].as_str().unwrap().to_owned()
    };
    let from = |place: &str| {
        scene.edit_config(|config| {
            let begin = config.find("from = ").unwrap();
            config.truncate(begin);
            config.push_str(&format!("from = {place:?}\n"));
        });
    };
    std::fs::write(scene.path().join("key"), "of a file\r\n").unwrap();
    from("file:key");
    let said = String::from_utf8(scene.expect(&["apply", "--disabled", "--yes"], 0).stderr).unwrap();
    assert!(said.contains("one line break at the end of file:key is no part of the secret"), "{said}");
    assert_eq!(stored(), "of a file");

    let rotate = ["apply", "--rotate", "API_KEY", "--yes"];
    from("stdin");
    let mut deploy = scene.deploy(&rotate);
    let mut child = deploy.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"of stdin").unwrap();
    assert!(child.wait().unwrap().success());
    assert_eq!(stored(), "of stdin");

    from("fd:7");
    std::fs::write(scene.path().join("key"), "of a descriptor").unwrap();
    let deploy = scene.deploy(&rotate);
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", "exec 7<key; exec \"$@\"", "sh"]).arg(deploy.get_program()).args(deploy.get_args());
    shell.envs(deploy.get_envs().filter_map(|(name, value)| Some((name, value?)))).current_dir(scene.path());
    assert!(shell.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success());
    assert_eq!(stored(), "of a descriptor");

    // Nobody sees on the screen what is typed; and where there is no terminal, nothing is waited for.
    from("prompt");
    let mut child = on_a_terminal(&scene, &rotate);
    let mut screen = child.stdout.take().unwrap();
    let mut said = read_until(&mut screen, "API_KEY (not shown): ");
    let mut keyboard = child.stdin.take().unwrap();
    keyboard.write_all(b"of a person\n").unwrap();
    screen.read_to_string(&mut said).unwrap();
    assert!(child.wait().unwrap().success(), "{said}");
    assert!(!said.contains("of a person"), "{said}");
    assert_eq!(stored(), "of a person");
    let mut deploy = scene.deploy(&rotate);
    let output = deploy.stdin(Stdio::null()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.code() == Some(3) && said.contains("nobody is at the terminal"), "{said}");
}
