//! The local AWS behaves as AWS does where `deploy` could notice.

mod aws;
mod ending;
mod faults;
mod schedules;
mod task_definitions;
mod tasks;

use std::process::Command;
use std::sync::LazyLock;

use rehearsal::local_aws::{Image, Images, LocalAws, World, WorldSpec};

use aws::Aws;

/// An image that runs whatever shell script it is given as its command.
const SHELL: &str = "local/shell:1";

/// A local AWS of this test's own, with the world that was there before.
struct Stage {
    local: LocalAws,
    world: World,
    aws: Aws,
}

fn stage() -> Stage {
    let shell = Image {
        entrypoint: vec!["/bin/sh".into(), "-c".into()],
        env: [("FROM_IMAGE".into(), "image".into())].into(),
        ..Image::default()
    };
    let local = LocalAws::start(Images::from([(SHELL.to_owned(), shell)])).unwrap();
    let mut spec = WorldSpec::new(SHELL);
    spec.environment.insert("DB_HOST".into(), "db.internal".into());
    let world = local.world(&spec).unwrap();
    let aws = Aws::new(&local);
    Stage { local, world, aws }
}

/// One for all tests that tell it nothing from behind the stage and leave each other's revisions alone. It ends with this process.
fn shared() -> &'static Stage {
    static STAGE: LazyLock<Stage> = LazyLock::new(stage);
    &STAGE
}

/// The parts that are plain functions have tests in Python.
#[test]
fn its_own_tests_pass() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/local-aws");
    let output = Command::new(rehearsal::toolbox().unwrap().python().unwrap())
        .args(["-B", "-m", "unittest", "discover", "--start-directory", "tests", "--top-level-directory", "."])
        .current_dir(folder)
        .output()
        .unwrap();
    let report = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !report.contains("Ran 0 tests"), "{report}");
}

#[test]
fn a_program_that_does_not_start_says_why() {
    let tools = rehearsal::toolbox().unwrap();
    let output = Command::new(tools.python().unwrap())
        .args([
            "-B",
            "-c",
            "from localaws import seam; seam.NAMES['ministack.services.ecs'].append('_gone'); seam._load()",
        ])
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/local-aws"))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success());
    assert!(said.contains("ministack 1.5.33") && said.contains("not there: ministack.services.ecs._gone"), "{said}");
}
