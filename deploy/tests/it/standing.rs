//! The screen of `status` at moments that no test can wait for: judged from a world in memory, by a clock that is brought along.

use std::path::Path;

use deploy::config::{Config, Proof};
use deploy::desired::Desired;
use deploy::exit::Exit;
use deploy::model::{Parameter, ParameterType, State, Tags, tags};
use deploy::normalise::Normalisers;
use deploy::observe::observe;
use deploy::plan::{Wish, plan};
use deploy::receipt::{Overridden, Receipt};
use deploy::standing::judge::judge;
use deploy::standing::overdue::{Log, Overdue};
use deploy::standing::runs::{Ended, PastRun, Unreported, newest_first};
use deploy::standing::{Facts, RunningTask, render};
use geuneul::{Outcome, RunReport, Trigger};
use jiff::Timestamp;
use serde_json::json;

use crate::memory::{self, Memory, World};
use crate::{inside, scene};

const JOB: &str = "library-sync";

fn desired(more: &str) -> Desired {
    let text = format!(
        r#"
        account = "123456789012"
        region = "ap-northeast-2"
        [job.{JOB}]
        cluster = "geuneul"
        family = "geuneul"
        container = "app"
        command = ["--all"]
        subnets = ["subnet-1"]
        {more}
        [job.{JOB}.schedule]
        cron = "0 4 31 * ? *"
        timezone = "Asia/Seoul"
        [[job.{JOB}.secret]]
        env = "KEY"
        parameter = "/app/key"
        from = "prompt"
        "#
    );
    let config = Config::parse(&text, Path::new("deploy.toml")).expect("a good configuration");
    Desired::new(&config, config.job(None).expect("one job"))
}

/// The world after `apply --disabled` on December 2.
fn applied() -> World {
    let mut world = World::default();
    let members = json!({
        "family": "geuneul", "networkMode": "awsvpc", "executionRoleArn": "arn:aws:iam::123456789012:role/execution",
        "containerDefinitions": [{ "name": "app", "image": "app:1" }],
    });
    let revision = memory::revision(members.as_object().expect("an object"), &Tags::new(), 1);
    world.families.insert("geuneul".into(), vec![revision]);
    let key = Parameter {
        name: "/app/key".into(),
        kind: ParameterType::SecureString,
        key: None,
        version: 1,
        written_ms: None,
        tags: Some(tags::ours(JOB)),
    };
    world.parameters.insert("/app/key".into(), key);
    let memory = Memory::new(world, None);
    let desired = desired("");
    inside::run(async {
        let live = observe(&memory, &desired).await.expect("observed");
        let wish = Wish { disabled: true, ..Wish::default() };
        let plan = plan(&desired, &live, &wish, Normalisers::default());
        assert!(plan.refusals.is_empty(), "{:#?}", plan.refusals);
        let guard = deploy::guard::Guard::of(&desired, &live, &plan);
        let patience = deploy::apply::Patience { limit: Default::default(), pause: Default::default() };
        let done = deploy::apply::apply(&memory, guard, &plan, &Default::default(), patience, &mut |_| ()).await;
        assert!(done.is_ok(), "{done:?}");
    });
    memory.change(|world| written(world, State::Disabled, "2026-12-02T00:00:00Z"));
    memory.world()
}

/// The schedule as it was written at a moment.
fn written(world: &mut World, state: State, at: &str) {
    let schedule = world.schedules.get_mut(&(JOB.into(), JOB.into())).expect("the schedule");
    *schedule = schedule.with_state(state);
    schedule.0.insert("LastModificationDate".into(), json!(moment(at).as_second()));
}

fn moment(text: &str) -> Timestamp {
    text.parse().expect("a moment")
}

fn run(started_at: &str, trigger: Trigger, outcome: Outcome) -> PastRun {
    // The schedule fires on the 31st, at 04:00 in Seoul.
    let occurrence = Some(format!("{JOB}@{}:00:00Z", &started_at[..13]));
    let report = RunReport { started_at: started_at.into(), trigger, outcome, occurrence, ..scene::report() };
    PastRun { task: "0123456789abcdef0123456789abcdef".into(), report }
}

fn facts(clock: &str) -> Facts {
    let log = Log::Read { keeps: None };
    Facts {
        clock: moment(clock),
        runs: Vec::new(),
        has_older: false,
        unreported: Vec::new(),
        shown: 5,
        log,
        running: Ok(Vec::new()),
        one_off: Ok(None),
        queue: None,
    }
}

/// The screen, and what it ends with.
fn screen(case: &str, world: &World, desired: &Desired, facts: &Facts) -> (String, Exit) {
    let live = inside::run(observe(&Memory::new(world.clone(), None), desired)).expect("observed");
    let plan = plan(desired, &live, &Wish::default(), Normalisers::default());
    let standing = judge(desired, &live, &plan, facts, "deploy");
    let lines = render::lines(&standing, "deploy").join("\n");
    (format!("=== {case}: exit code {}\n{lines}\n\n", standing.exit().code()), standing.exit())
}

#[test]
fn the_screen_at_moments_that_nobody_can_wait_for() {
    let (mut world, plain) = (applied(), desired(""));
    let mut all = String::new();
    let mut show = |case: &str, world: &World, desired: &Desired, facts: &Facts, expected: Exit| {
        let (text, exit) = screen(case, world, desired, facts);
        assert_eq!(exit, expected, "{text}");
        all += &text;
    };
    show("off since today", &world, &plain, &facts("2026-12-02T01:00:00Z"), Exit::NeedsPerson);
    show("off, and a month has gone by", &world, &plain, &facts("2027-02-02T01:00:00Z"), Exit::NeedsPerson);
    let stopped = desired("stopped = true");
    show("stopped by the configuration", &world, &stopped, &facts("2027-02-02T01:00:00Z"), Exit::Done);

    let word = Overridden {
        at: moment("2026-12-02T02:00:00Z"),
        by: "arn:aws:sts::123456789012:assumed-role/operator/김철수".into(),
        reason: "원본 점검 중".into(),
        closed: "there is no verified run".into(),
    };
    let text = Receipt::Overridden(word).to_text(&plain.owner).expect("it fits");
    world.texts.insert(plain.receipt_parameter.clone(), text);
    written(&mut world, State::Enabled, "2026-12-02T02:00:01Z");
    show("on by a word", &world, &plain, &facts("2026-12-02T03:00:00Z"), Exit::NeedsPerson);
    show("due a moment ago", &world, &plain, &facts("2026-12-30T19:05:00Z"), Exit::NeedsPerson);

    let ran = vec![
        run("2026-12-30T19:00:20Z", Trigger::Scheduled, Outcome::Succeeded),
        run("2026-12-02T01:30:00Z", Trigger::Manual, Outcome::SnapshotRefused),
    ];
    let well = Facts { runs: ran.clone(), ..facts("2027-01-05T00:00:00Z") };
    show("on by a word, and the schedule has run the job since", &world, &plain, &well, Exit::Done);
    // 30 days have no 31st: what is due in March is the 31st of January.
    let missing = Facts { runs: ran.clone(), ..facts("2027-03-05T00:00:00Z") };
    show("the run of January did not come", &world, &plain, &missing, Exit::NeedsPerson);
    let forgets =
        Facts { log: Log::Read { keeps: Some(std::time::Duration::from_secs(30 * 86_400)) }, ..missing.clone() };
    let forgets = Facts { runs: ran.clone(), ..forgets };
    show("the log forgets", &world, &plain, &forgets, Exit::Failed);
    let running =
        RunningTask { task: "arn:aws:ecs:x:1:task/geuneul/abc".into(), scheduled: true, started: "by the schedule" };
    let late = Facts { running: Ok(vec![running]), ..missing };
    show("it is late, and at work", &world, &plain, &late, Exit::Done);
    let queue = "arn:aws:sqs:ap-northeast-2:123456789012:lost".to_owned();
    let lost = Facts { queue: Some((queue, Ok(1))), ..well };
    show("something was not delivered", &world, &plain, &lost, Exit::NeedsPerson);

    for line in all.lines().filter(|line| line.starts_with("    ") || line.contains("manual")) {
        assert!(deploy::columns::width(line) <= 80, "{line}");
    }
    insta::with_settings!({ omit_expression => true }, { insta::assert_snapshot!(all) });
}

/// For about an hour ECS knows who started a task and how it ended; of a job that prints no report nothing else does.
#[test]
fn a_run_that_ecs_has_forgotten_is_no_good_news() {
    let (mut world, silent) = (applied(), desired("gate = { proof = \"exit-code\" }"));
    written(&mut world, State::Enabled, "2026-12-02T02:00:01Z");
    let word = Overridden {
        at: moment("2026-12-02T02:00:00Z"),
        by: "arn:aws:iam::123456789012:root".into(),
        reason: "first night".into(),
        closed: "there is no verified run".into(),
    };
    world.texts.insert(silent.receipt_parameter.clone(), Receipt::Overridden(word).to_text(&silent.owner).unwrap());
    let one = |ended: Ended| Unreported {
        task: "0123456789abcdef0123456789abcdef".into(),
        began: moment("2026-12-30T19:00:20Z"),
        trigger: Trigger::Scheduled,
        ended,
        proof: Proof::ExitCode,
    };
    let at = |ended: Ended| Facts { unreported: vec![one(ended)], ..facts("2026-12-30T23:00:00Z") };
    let (text, _) = screen("known", &world, &silent, &at(Ended::With(0)));
    assert!(
        text.contains("  overdue   no: what was due 2026-12-30 19:00 UTC came") && text.contains("scheduled  ran"),
        "{text}"
    );
    let (text, _) = screen("forgotten", &world, &silent, &at(Ended::Forgotten));
    insta::with_settings!({ omit_expression => true }, { insta::assert_snapshot!(text) });
    let proof = |ended| Unreported { proof: Proof::RunReport, ..one(ended) };
    assert!(one(Ended::Forgotten).is_unknown() && !proof(Ended::Forgotten).is_unknown());
}

/// A run is told its occurrence by whoever starts it; what a container's clock says moves nothing.
#[test]
fn a_clock_that_is_wrong_neither_hides_a_run_nor_makes_one_up() {
    let (mut world, plain) = (applied(), desired(""));
    written(&mut world, State::Enabled, "2026-12-02T02:00:01Z");
    let told = |due: &str, clock: &str, outcome: Outcome| {
        let found = run(due, Trigger::Scheduled, outcome);
        PastRun { report: RunReport { started_at: clock.into(), ..found.report }, ..found }
    };
    let judged = |runs: Vec<PastRun>, clock: &str| {
        let facts = Facts { runs: newest_first(runs), ..facts(clock) };
        let live = inside::run(observe(&Memory::new(world.clone(), None), &plain)).expect("observed");
        judge(&plain, &live, &plan(&plain, &live, &Wish::default(), Normalisers::default()), &facts, "deploy")
    };
    let (december, january) = ("2026-12-30T19:00:00Z", "2027-01-30T19:00:00Z");
    // Far ahead in December: the failure of January is the newest run, and a January that never came is missing.
    let ahead = || told(december, "2030-01-01T00:00:00Z", Outcome::Succeeded);
    let failed = told(january, "2027-01-30T19:00:20Z", Outcome::Internal);
    let standing = judged(vec![ahead(), failed], "2027-02-02T00:00:00Z");
    assert!(standing.needs.iter().any(|need| need.what.starts_with("the newest run ended")), "{:#?}", standing.needs);
    let standing = judged(vec![ahead()], "2027-02-02T00:00:00Z");
    assert_eq!(standing.overdue, Overdue::Overdue { due: moment(january) });
    // Late, by a window or a retry, and so behind a run by hand that was asked for meanwhile: what it says counts.
    let late = || told(january, "2027-01-30T19:40:00Z", Outcome::Internal);
    let by_hand = || run("2027-01-30T19:10:00Z", Trigger::Manual, Outcome::Succeeded);
    let standing = judged(vec![by_hand(), late()], "2027-02-02T00:00:00Z");
    assert!(standing.needs.iter().any(|need| need.what.starts_with("the newest run ended")), "{:#?}", standing.needs);
    // Behind: it has come.
    let behind = told(january, "2027-01-30T18:40:00Z", Outcome::Succeeded);
    assert!(matches!(judged(vec![behind], "2027-02-02T00:00:00Z").overdue, Overdue::Ran { .. }));
}
