//! `status`: what a person reads, and the code that a monitor reads.

use geuneul::Outcome;

use crate::scene::{Scene, report, snapshot};

#[test]
fn status_says_what_the_schedule_itself_has_done() {
    let scene = Scene::set();
    snapshot!(scene, ["status"]);
    scene.expect(&["apply", "--disabled", "--yes"], 0);
    scene.expect(&["trigger-now"], 0);
    scene.expect(&["enable"], 0);
    snapshot!(scene, ["status"]);

    let scheduled = geuneul::RunReport {
        trigger: geuneul::Trigger::Scheduled,
        started_at: "2099-12-01T04:00:03Z".into(),
        ..report()
    };
    scene.next_run(&[&scheduled.to_line()], 0);
    scene.fire();
    snapshot!(scene, ["status"]);

    // What may not be looked at is said, and is no good news.
    scene.aws.deny("logs:DescribeLogStreams").unwrap();
    scene.aws.deny("ssm:GetParameters").unwrap();
    snapshot!(scene, ["status"]);
    scene.aws.clear_faults().unwrap();

    let failed =
        geuneul::RunReport { outcome: Outcome::DatabaseLost, started_at: "2099-12-31T04:00:03Z".into(), ..scheduled };
    scene.next_run(&[&failed.to_line()], 74);
    scene.fire();
    snapshot!(scene, ["status"]);
}
