//! The same with the program itself.

use serde_json::json;

use super::stage::Counts;
use crate::scene;

/// A small generator: the same sequences every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// The same with the program itself, against the local AWS: some sequences, each from an applied job on.
pub fn on_the_local_aws(sequences: usize) {
    let scene = scene::Scene::applied();
    let (mut dice, mut counts) = (Dice(5), Counts::default());
    // Whether the newest run is proven, and nothing has moved since.
    let mut proven = false;
    let (mut variant, mut secret, mut argument) = (0, 0, "\"--all\"]".to_owned());
    let is_on = || scene.schedule()["State"] == "ENABLED";
    let run = |arguments: &[&str]| scene.deploy(arguments).output().expect("deploy runs").status.code();
    for _ in 0..sequences {
        counts.sequences += 1;
        run(&["apply", "--disabled", "--yes"]);
        let mut warranted = false;
        assert!(!is_on(), "after apply --disabled");
        for _ in 0..5 {
            counts.moves += 1;
            let was_on = is_on();
            let rolled = dice.roll(12);
            match rolled {
                0..=2 => {
                    let good = dice.roll(3) > 0;
                    let line = scene::report().to_line();
                    let (says, code) = if good { (line.as_str(), 0) } else { ("trying", 70) };
                    scene.next_run(&[says], code);
                    match run(&["trigger-now"]) {
                        Some(0) => (proven, counts.proven) = (true, counts.proven + 1),
                        Some(4) => proven = false,
                        _ => {} // It was refused, and the proof is the one that it was.
                    }
                }
                3..=5 => {
                    let done = run(&["enable"]) == Some(0);
                    counts.refused += usize::from(!done);
                    assert!(!done || proven || was_on, "enable, without a proof");
                    if done && !was_on {
                        (warranted, counts.on_by_proof) = (true, counts.on_by_proof + 1);
                    }
                }
                6 => {
                    if run(&["enable", "--without-receipt", "--reason=random"]) == Some(0) && is_on() && !was_on {
                        warranted = true;
                        counts.on_by_word += usize::from(!proven);
                    }
                }
                7 => drop(run(&["disable"])),
                8 => drop(run(&["apply", "--yes"])),
                9 => drop(run(&["apply", "--disabled", "--latest", "--adopt", "--yes"])),
                10 => {
                    // Another command: the plan is not empty until it is applied, and then the Input has moved.
                    let next = format!("\"--all-{variant}\"]");
                    scene.edit_config(|config| *config = config.replace(&argument, &next));
                    argument = next;
                    (variant, proven) = (variant + 1, false);
                }
                _ => {
                    secret += 1;
                    let value = json!({ "Name": "/geuneul/api_key", "Value": format!("v{secret}"), "Type": "SecureString", "Overwrite": true });
                    scene.call("ssm", "PutParameter", &value);
                    proven = false;
                }
            }
            let now_on = is_on();
            assert!(!now_on || was_on || (3..=6).contains(&rolled), "move {rolled} switched it on");
            warranted &= now_on;
            assert!(!now_on || warranted, "ENABLED after move {rolled}, and nothing says that it may be");
        }
    }
    println!("{counts:?}, 0 violations");
    assert!(counts.refused > 0 && counts.proven > 0, "{counts:?}");
}
