//! `enable`: every way in which it must say no, changing nothing.

use deploy::cloud::Roles;
use deploy::receipt::Receipt;
use deploy::sealed::Owner;
use geuneul::{Outcome, RunReport};
use serde_json::json;

use crate::inside;
use crate::scene::{JOB, Scene, report, snapshot};

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
    scene.put_receipt(&receipt[..receipt.len() - 40]);
    refused("a receipt that is cut off");
    scene.put_receipt(&receipt.replace("verified-run/1", "verified-run/2").replace("\"path\":", "\"way\":"));
    refused("a receipt of a version to come");
    scene.put_receipt("3 minutes ago, I saw it run");
    refused("no receipt at all");

    let owner = Owner { job: JOB.into(), account: scene.world.account.clone(), region: scene.world.region.clone() };
    let of = |other: Owner| Receipt::read(&receipt, &owner).unwrap().to_text(&other).unwrap();
    scene.put_receipt(&of(Owner { job: "other-job".into(), ..owner.clone() }));
    refused("the receipt of another job");
    scene.put_receipt(&of(Owner { account: "210987654321".into(), ..owner.clone() }));
    refused("the receipt of another account");
    scene.put_receipt(&of(Owner { region: "us-east-1".into(), ..owner.clone() }));
    refused("the receipt of another region");
    scene.put_receipt(&receipt);

    // The seal notices edits; it is no lock: whoever knows how can put it on anew. So an old proof needs no old clock here.
    let old = jiff::Timestamp::now() - jiff::SignedDuration::from_hours(24 * 8);
    scene.put_receipt(&resealed(&receipt, old));
    refused("too old");
    let young = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1);
    scene.put_receipt(&resealed(&receipt, young));
    refused("of a clock that is wrong");
    scene.put_receipt(&receipt);
    scene.edit_config(|config| config.push_str("\n[job.library-sync.gate]\nmax_age = \"7d\"\n"));

    scene.edit_config(|config| *config = config.replace("max_age", "path = \"scheduler\"\nmax_age"));
    refused("a scheduled path that nobody has tried");
    scene.edit_config(|config| *config = config.replace("path = \"scheduler\"\n", ""));

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

/// The receipt with another moment in it, and the seal that fits.
fn resealed(text: &str, at: jiff::Timestamp) -> String {
    use sha2::{Digest, Sha256};
    let (before, rest) = text.split_once("\"at\":\"").unwrap();
    let (_, rest) = rest.split_once('"').unwrap();
    let (rest, _) = rest.split_once("\"seal\":\"").unwrap();
    let unsealed = |seal: &str| format!("{before}\"at\":\"{at:.0}\"{rest}\"seal\":\"{seal}\"}}");
    unsealed(&hex::encode(Sha256::digest(unsealed(""))))
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

#[test]
fn without_a_receipt_it_takes_a_word_and_the_word_stays_until_a_run_is_proven() {
    let scene = Scene::applied();
    let usage = |arguments: &[&str]| drop(scene.expect(arguments, 64));
    usage(&["enable", "--without-receipt"]);
    usage(&["enable", "--reason=why"]);
    usage(&["enable", "--without-receipt", "--reason= "]);
    assert_eq!(scene.schedule()["State"], "DISABLED");
    let word = ["enable", "--without-receipt", "--reason=원본 서버 점검 중; 다음 달까지 기다릴 수 없음"];

    // A word opens the gate, and nothing else.
    scene.edit_config(|config| *config = config.replace("assign_public_ip", "stopped = true\nassign_public_ip"));
    assert_eq!(scene.refusal(&word), "error: the configuration says stopped = true");
    scene.edit_config(|config| *config = config.replace("stopped = true\n", "").replace("--all", "--some"));
    assert!(scene.refusal(&word).starts_with("error: enable needs an empty plan"));
    scene.edit_config(|config| *config = config.replace("--some", "--all"));

    // What cannot be recorded is not done.
    scene.aws.deny("ssm:PutParameter").unwrap();
    scene.expect(&word, 1);
    assert_eq!(scene.schedule()["State"], "DISABLED");
    scene.aws.clear_faults().unwrap();

    snapshot!(scene, scene.deploy(&word));
    assert_eq!(scene.schedule()["State"], "ENABLED");
    snapshot!(scene, ["status"]);
    // A run that fails does not hide it; the word counts once; a proof takes it away.
    scene.next_run(&["trying"], 70);
    scene.expect(&["trigger-now"], 4);
    let said = scene.transcript(&["status"]);
    assert!(
        said.contains("exit code: 5") && said.contains("WITHOUT A PROOF") && said.contains("다음 달까지"),
        "{said}"
    );
    scene.expect(&["disable"], 0);
    assert!(scene.refusal(&["enable"]).contains("did not prove itself"));
    scene.next_run(&[&report().to_line()], 0);
    scene.expect(&["trigger-now"], 0);
    // Nobody has to give a word where there is a proof: it stays the proof.
    scene.expect(&word, 0);
    assert!(scene.receipt().contains("\"verified\":{"), "{}", scene.receipt());
    let said = scene.transcript(&["status"]);
    assert!(said.contains("exit code: 0") && !said.contains("WITHOUT A PROOF"), "{said}");
}

#[test]
fn whatever_keeps_scheduler_or_the_task_from_starting_after_the_proof_keeps_the_gate_shut() {
    let scene = Scene::applied();
    let role = format!("{JOB}-scheduler");
    let prove = || drop(scene.expect(&["trigger-now"], 0));
    let refused = |what: &str| {
        let said = scene.refusal(&["enable"]);
        assert!(said.contains("the scheduler's role moved since"), "{what}: {said}");
    };
    let denies = |action: &str| json!({ "Effect": "Deny", "Action": action, "Resource": "*" });
    prove();
    scene.put_role_policy(&role, "x", &denies("*"));
    refused("an inline policy");
    prove();
    scene.put_role_policy(&role, "x", &denies("ecs:*"));
    refused("what an inline policy says");
    prove();
    scene.iam("CreatePolicy", "PolicyName=theirs", &json!({ "Effect": "Allow", "Action": "s3:*", "Resource": "*" }));
    let theirs = "arn:aws:iam::123456789012:policy/theirs";
    scene.attach_policy(&role, theirs);
    refused("an attached policy");
    prove();
    scene.iam("CreatePolicyVersion", &format!("PolicyArn={theirs}&SetAsDefault=true"), &denies("*"));
    refused("what an attached policy says");
    prove();
    inside::run(async {
        let boundary = "arn:aws:iam::aws:policy/ReadOnlyAccess";
        inside::cloud(&scene).await.put_boundary(&role, boundary).await.unwrap();
    });
    refused("a boundary");
    let said = scene.transcript(&["plan"]);
    assert!(said.contains("boundary  arn:aws:iam::aws:policy/ReadOnlyAccess, not ours: it stays"), "{said}");

    prove();
    let receipt = scene.receipt();
    scene.call("logs", "DeleteLogGroup", &json!({ "logGroupName": scene.world.log_group }));
    snapshot!(scene, ["plan"]);
    snapshot!(scene, ["trigger-now"]);
    let said = scene.refusal(&["enable"]);
    assert!(said.contains("log group /ecs/geuneul: not found"), "{said}");
    assert_eq!(scene.receipt(), receipt, "a run that would not start costs no proof");
}

#[test]
fn a_word_for_what_is_on_already_replaces_no_proof() {
    let scene = Scene::applied();
    scene.expect(&["trigger-now"], 0);
    scene.expect(&["enable"], 0);
    let old = resealed(&scene.receipt(), jiff::Timestamp::now() - jiff::SignedDuration::from_hours(24 * 8));
    scene.put_receipt(&old);
    snapshot!(scene, ["enable", "--without-receipt", "--reason=why"]);
    assert_eq!(scene.receipt(), old);
}
