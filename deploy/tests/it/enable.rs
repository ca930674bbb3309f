//! `enable`: every way in which it must say no, changing nothing.

use deploy::receipt::{Owner, Receipt};
use geuneul::{Outcome, RunReport};
use serde_json::json;

use crate::scene::{JOB, Scene, report};

#[test]
fn enable_refuses_without_a_proof_of_this_very_world() {
    let scene = Scene::applied();
    let mut said = String::new();
    let mut refused = |case: &str| said.push_str(&format!("{case}\n    {}\n", scene.refusal(&["enable"])));
    let prove = || {
        scene.next_run(&[&report().to_line()], 0);
        scene.expect(&["trigger-now"], 0);
        scene.receipt()
    };
    refused("no receipt");

    scene.next_run(&["trying"], 70);
    scene.expect(&["trigger-now"], 4);
    refused("a failed run");

    // The newest run counts, also when an older one was proven.
    prove();
    scene.next_run(&[&RunReport { outcome: Outcome::Skipped, ..report() }.to_line()], 0);
    scene.expect(&["trigger-now"], 4);
    refused("a skipped run after a proven one");

    let receipt = prove();
    scene.put_receipt(&receipt.replace("\"fetched\":3555", "\"fetched\":9999"));
    refused("a receipt edited by hand");

    let owner = Owner { job: JOB.into(), account: scene.world.account.clone(), region: scene.world.region.clone() };
    let other = Owner { job: "other-job".into(), ..owner.clone() };
    scene.put_receipt(&Receipt::read(&receipt, &owner).unwrap().to_text(&other).unwrap());
    refused("the receipt of another job");
    scene.put_receipt(&receipt);

    scene.edit_config(|config| config.push_str("\n[job.library-sync.gate]\nmax_age = \"0m\"\n"));
    refused("too old");
    scene.edit_config(|config| *config = config.replace("0m", "7d"));

    scene.edit_config(|config| *config = config.replace("assign_public_ip", "stopped = true\nassign_public_ip"));
    refused("stopped in the configuration");
    scene.edit_config(|config| *config = config.replace("stopped = true\n", ""));

    // By hand, and not taken back: the plan shows it.
    let schedule = scene.schedule();
    let mut edited = schedule.clone();
    let input = edited["Target"]["Input"].as_str().unwrap().replace("--all", "--some");
    edited["Target"]["Input"] = json!(input);
    scene.put_schedule(&edited);
    refused("a schedule edited by hand");
    scene.put_schedule(&schedule);

    // Changed in the configuration and applied: the plan is empty again, and the proof is of something else.
    scene.edit_config(|config| *config = config.replace("--all", "--some"));
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    refused("a changed input");

    prove();
    scene.edit_config(|config| {
        config.push_str("\n[[job.library-sync.secret]]\nenv = \"API_ID\"\nparameter = \"/geuneul/api_id\"\nfrom = \"env:API_KEY\"\n")
    });
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    refused("another revision, with one more secret");

    prove();
    let parameter = json!({ "Name": "/geuneul/api_id", "Value": "new", "Type": "SecureString", "Overwrite": true });
    scene.call("ssm", "PutParameter", &parameter);
    refused("a rotated secret");

    // A job that prints no report can be proven by its exit code, as long as nobody asks for more.
    scene.edit_config(|config| *config = config.replace("max_age", "proof = \"exit-code\"\nmax_age"));
    scene.next_run(&["done, and no word more"], 0);
    scene.expect(&["trigger-now"], 0);
    scene.edit_config(|config| *config = config.replace("exit-code", "run-report"));
    refused("a proof by exit code only, where a report is asked for");

    // Nothing of the above has spoilt anything.
    prove();
    scene.expect(&["enable"], 0);
    assert_eq!(scene.schedule()["State"], "ENABLED");
    insta::with_settings!({ filters => Scene::filters(), omit_expression => true }, {
        insta::assert_snapshot!(said);
    });
}

#[test]
fn enable_changes_the_state_and_nothing_else() {
    let scene = Scene::applied();
    scene.expect(&["trigger-now"], 0);
    let before = scene.schedule();
    scene.expect(&["enable"], 0);
    let mut after = scene.schedule();
    assert_eq!(after["State"].take(), "ENABLED");
    let mut before = before;
    assert_eq!(before["State"].take(), "DISABLED");
    for changes in ["LastModificationDate", "CreationDate"] {
        before[changes].take();
        after[changes].take();
    }
    assert_eq!(after, before);
    // Once more is no harm, and writes nothing.
    scene.aws.forget_calls().unwrap();
    scene.expect(&["enable"], 0);
    assert_eq!(scene.aws.counts().unwrap().get("scheduler:UpdateSchedule"), None);
}
