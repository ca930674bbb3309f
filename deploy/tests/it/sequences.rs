//! Whatever the verbs are told and in whatever order, and whatever happens to the world in between: the schedule is ENABLED only by a
//! proof of the world as it is, by a person's recorded word, or by somebody else's hand.
//!
//! The oracle here knows nothing of fingerprints and receipts: it remembers the parts of the world that a proven run ran with.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use deploy::apply::{Patience, apply};
use deploy::config::Config;
use deploy::desired::{Desired, SCHEDULER_POLICY_NAME};
use deploy::fingerprint::Fingerprint;
use deploy::gate;
use deploy::guard::Guard;
use deploy::model::run_task::{Occurrence, Run, RunTask};
use deploy::model::task::{Container, ContainerOverride, Task};
use deploy::model::{Live, Schedule, State, Tags};
use deploy::normalise::Normalisers;
use deploy::observe::observe;
use deploy::plan::{Plan, Wish, plan};
use deploy::receipt::{self, Receipt, VerifiedRun, Void};
use deploy::run::judge::{Report, judge};
use deploy::scheduled_path::{How, ScheduledPath};
use deploy::secret::{SecretValue, Values};
use deploy::switch;
use geuneul::{Outcome, RunReport};
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::memory::{self, ACCOUNT, Memory, World};
use crate::{inside, scene};

const JOB: &str = "library-sync";
const MAX_AGE_HOURS: i64 = 48;
const NO_PATIENCE: Patience = Patience { limit: Duration::ZERO, pause: Duration::ZERO };

/// One thing that somebody does.
#[derive(Debug, Clone)]
enum Move {
    Apply { disabled: bool, adopt: bool, latest: bool, breaks: Option<usize> },
    Trigger { by_scheduler: bool, ends: Ends },
    Enable,
    EnableWithoutReceipt,
    Disable,
    Configure { variant: u8, stopped: bool, path: bool },
    Hours(i64),
    World(Drift),
}

/// How a run ends.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Ends {
    Proven,
    Failed,
    Skipped,
    WithoutCommand,
    WhileTheKeyIsRotated,
}

/// What others do.
#[derive(Debug, Clone, Copy)]
enum Drift {
    Input,
    Trust,
    Policy,
    NewRevision,
    Key,
    Tags,
    SwitchedOn,
    Deleted,
    ReceiptEdited,
    ReceiptCut,
    ReceiptOfAnotherJob,
}

fn step() -> impl Strategy<Value = Move> {
    let ends = prop_oneof![
        5 => Just(Ends::Proven), 1 => Just(Ends::Failed), 1 => Just(Ends::Skipped), 1 => Just(Ends::WithoutCommand),
        1 => Just(Ends::WhileTheKeyIsRotated)
    ];
    use Drift::{
        Deleted, Input, Key, NewRevision, Policy, ReceiptCut, ReceiptEdited, ReceiptOfAnotherJob, SwitchedOn, Tags,
        Trust,
    };
    let drift = prop::sample::select(vec![
        Input,
        Trust,
        Policy,
        NewRevision,
        Key,
        Tags,
        SwitchedOn,
        Deleted,
        ReceiptEdited,
        ReceiptCut,
        ReceiptOfAnotherJob,
    ]);
    let apply = (any::<[bool; 3]>(), prop::option::weighted(0.2, 0..8_usize));
    prop_oneof![
        6 => apply.prop_map(|([disabled, adopt, latest], breaks)| Move::Apply { disabled, adopt, latest, breaks }),
        6 => (any::<bool>(), ends).prop_map(|(by_scheduler, ends)| Move::Trigger { by_scheduler, ends }),
        6 => Just(Move::Enable),
        1 => Just(Move::EnableWithoutReceipt),
        2 => Just(Move::Disable),
        1 => (0..2_u8, prop::bool::weighted(0.2), any::<bool>())
            .prop_map(|(variant, stopped, path)| Move::Configure { variant, stopped, path }),
        1 => (0..80_i64).prop_map(Move::Hours),
        3 => drift.prop_map(Move::World),
    ]
}

/// What a run ran with, as far as the next one depends on it.
#[derive(Debug, Clone, PartialEq)]
struct Essence {
    way: (Value, Option<(String, String)>, Option<String>),
    what: (Value, BTreeMap<String, i64>),
}

struct Stage<'a> {
    known: &'a RefCell<BTreeMap<(u8, bool, bool), Desired>>,
    memory: Memory,
    variant: u8,
    stopped: bool,
    path: bool,
    clock: Timestamp,
    /// The newest run, if it is proven, and what it ran with.
    proven: Option<(Timestamp, Essence)>,
    /// What Scheduler was last seen to start.
    went: Option<Essence>,
    /// It may be on.
    warranted: bool,
    counts: Counts,
}

#[derive(Debug, Default, Clone, Copy)]
struct Counts {
    sequences: usize,
    moves: usize,
    on_by_proof: usize,
    on_by_word: usize,
    refused: usize,
    proven: usize,
}

impl Stage<'_> {
    /// Parsed once each: a file is slow to read compared with everything else here.
    fn desired(&self) -> Desired {
        let key = (self.variant, self.stopped, self.path);
        self.known.borrow_mut().entry(key).or_insert_with(|| self.parsed()).clone()
    }

    fn parsed(&self) -> Desired {
        let Stage { variant, stopped, path, .. } = self;
        let path = if *path { "scheduler" } else { "direct" };
        let text = format!(
            r#"
            account = "{ACCOUNT}"
            region = "ap-northeast-2"
            [job.{JOB}]
            cluster = "geuneul"
            family = "geuneul"
            container = "app"
            command = ["--variant={variant}"]
            subnets = ["subnet-1"]
            stopped = {stopped}
            [job.{JOB}.schedule]
            cron = "0 4 1 1 ? *"
            timezone = "Asia/Seoul"
            [[job.{JOB}.secret]]
            env = "KEY"
            parameter = "/app/key"
            from = "prompt"
            [job.{JOB}.gate]
            max_age = "{MAX_AGE_HOURS}h"
            path = "{path}"
            "#
        );
        let config = Config::parse(&text, Path::new("deploy.toml")).expect("a good configuration");
        Desired::new(&config, config.job(None).expect("one job"))
    }

    fn look(&self, wish: &Wish) -> (Desired, Live, Plan) {
        let desired = self.desired();
        let live = inside::run(observe(&self.memory, &desired)).expect("observed");
        let plan = plan(&desired, &live, wish, Normalisers::default());
        (desired, live, plan)
    }

    fn state(&self) -> Option<State> {
        self.memory.world().schedules.get(&(JOB.into(), JOB.into())).map(Schedule::state)
    }

    fn change(&self, change: impl FnOnce(&mut World)) {
        self.memory.change(change);
    }

    fn essence(&self) -> Essence {
        let (world, role) = (self.memory.world(), format!("{JOB}-scheduler"));
        let schedule = world.schedules.get(&(JOB.into(), JOB.into()));
        let mut target = schedule.and_then(|schedule| schedule.0.get("Target").cloned()).unwrap_or_default();
        target.as_object_mut().map(|target| target.remove("RetryPolicy"));
        let trust = world.roles.get(&role).map(|role| (role.arn.clone(), role.trust.0.clone()));
        let policy = world.policies.get(&(role, SCHEDULER_POLICY_NAME.to_owned())).map(|policy| policy.0.clone());
        let pinned = schedule.and_then(deploy::plan::pinned_revision);
        let revision = world.families["geuneul"].iter().find(|one| one.reference() == pinned);
        let revision = revision.map(|one| Value::Object(one.members.clone())).unwrap_or_default();
        let keys = world.parameters.iter().map(|(name, one)| (name.clone(), one.version)).collect();
        Essence { way: (target, trust, policy), what: (revision, keys) }
    }

    /// Does it, and holds the result against what may be.
    fn play(&mut self, step: &Move) {
        let before = self.state();
        self.counts.moves += 1;
        match step {
            Move::Apply { disabled, adopt, latest, breaks } => {
                self.apply(&Wish { disabled: *disabled, adopt: *adopt, latest: *latest, rotate: Vec::new() }, *breaks);
            }
            Move::Trigger { by_scheduler, ends } => self.trigger(*by_scheduler, *ends),
            Move::Enable => self.enable(false),
            Move::EnableWithoutReceipt => self.enable(true),
            Move::Disable => self.disable(),
            Move::Configure { variant, stopped, path } => {
                (self.variant, self.stopped, self.path) = (*variant, *stopped, *path);
            }
            Move::Hours(hours) => self.clock += SignedDuration::from_hours(*hours),
            Move::World(drift) => self.drift(*drift),
        }
        let after = self.state();
        if after == Some(State::Enabled) && before != Some(State::Enabled) {
            assert!(
                matches!(step, Move::Enable | Move::EnableWithoutReceipt | Move::World(Drift::SwitchedOn)),
                "{step:?} switched it on"
            );
        }
        self.warranted &= after == Some(State::Enabled);
        assert!(after != Some(State::Enabled) || self.warranted, "ENABLED, and nothing says that it may be");
    }

    fn apply(&mut self, wish: &Wish, breaks: Option<usize>) {
        let (desired, live, plan) = self.look(wish);
        if !plan.refusals.is_empty() {
            return;
        }
        let value = SecretValue::new(b"value".to_vec()).map(|(value, _)| value);
        let values = Values::from([("KEY".to_owned(), value.unwrap_or_else(|error| panic!("{error}")))]);
        let memory = self.memory.breaking(breaks);
        let guard = Guard::of(&desired, &live, &plan);
        let _ = inside::run(apply(&memory, guard, &plan, &values, NO_PATIENCE, &mut |_| ()));
        self.memory = memory.breaking(None);
    }

    /// The verb: void, run, judge, keep.
    fn trigger(&mut self, by_scheduler: bool, ends: Ends) {
        let (desired, live, plan) = self.look(&Wish::default());
        let Some(schedule) = live.schedule.present() else { return };
        if !gate::unsettled(&plan).is_empty() {
            return;
        }
        let request = RunTask::from_scheduler_input(schedule.input().unwrap_or_default()).expect("it is settled");
        let Ok(fingerprint) = Fingerprint::of(&live) else { return };
        let time = format!("{:.0}", self.clock);
        let run = match by_scheduler {
            true => request.via_scheduler(&time),
            false => request.manual(Occurrence { id: "0".repeat(32), time }),
        };
        let (since, by) = (self.clock, live.identity.arn.clone());
        let overridden = live.receipt.present().and_then(|receipt| receipt.as_ref().ok()?.overridden().cloned());
        let void = |ending: Option<String>| {
            Receipt::Void(Void { since, by: by.clone(), ending, via_scheduler: false, overridden: overridden.clone() })
        };
        self.keep(&desired.receipt_parameter, &void(None), &desired);
        (self.proven, self.clock) = (None, self.clock + SignedDuration::from_secs(60));
        let ran_with = self.essence();
        if ends == Ends::WhileTheKeyIsRotated {
            self.drift(Drift::Key);
        }
        let proof = desired.job.gate.proof;
        match judge(&run, &task(&run, ends, since), &report(&run, ends, since), proof) {
            Err(ending) => self.keep(&desired.receipt_parameter, &void(Some(ending.to_string())), &desired),
            Ok(proven) => {
                let way = if by_scheduler { receipt::Path::Scheduler } else { receipt::Path::Direct };
                let at = self.clock;
                let verified = VerifiedRun::new(way, &proven, proof, fingerprint.clone(), BTreeMap::new(), at, &by);
                self.keep(&desired.receipt_parameter, &Receipt::Verified(Box::new(verified)), &desired);
                if by_scheduler {
                    let record = ScheduledPath::new(How::ViaScheduler, &proven.task().arn, &fingerprint, at, &by);
                    let text = record.to_text(&desired.owner);
                    self.change(|world| drop(world.texts.insert(desired.scheduled_path_parameter.clone(), text)));
                    self.went = Some(ran_with.clone());
                }
                self.counts.proven += 1;
                self.proven = Some((at, ran_with));
            }
        }
    }

    fn keep(&self, name: &str, receipt: &Receipt, desired: &Desired) {
        let text = receipt.to_text(&desired.owner).expect("it fits");
        self.change(|world| drop(world.texts.insert(name.to_owned(), text)));
    }

    fn enable(&mut self, without_receipt: bool) {
        let was_on = self.state() == Some(State::Enabled);
        let (desired, live, plan) = self.look(&Wish::default());
        let Some(schedule) = live.schedule.present() else { return };
        let decided = gate::decide(&desired, &live, &plan, self.clock);
        let (warrant, by_word) = match decided {
            Ok(warrant) => (warrant, false),
            Err(refused) => {
                self.counts.refused += 1;
                if !without_receipt {
                    return;
                }
                let Some(warrant) = gate::overrule(&refused, "시험", "arn:user", self.clock) else { return };
                (warrant, true)
            }
        };
        if by_word && was_on {
            return; // A word is for switching on.
        }
        if let gate::Ground::Overridden(overridden) = warrant.ground() {
            self.keep(&desired.receipt_parameter, &Receipt::Overridden(overridden.clone()), &desired);
            self.proven = None;
        }
        if was_on {
            return;
        }
        assert!(!desired.job.stopped, "stopped = true, and it is switched on");
        inside::run(switch::on(&self.memory, schedule, &warrant, "deploy")).expect("nobody is in the way");
        self.warranted = true;
        if by_word {
            self.counts.on_by_word += 1;
            return;
        }
        // The proof is of the newest run, young, and of this very world.
        let (at, ran_with) = self.proven.as_ref().expect("switched on without a proven run");
        assert!(
            self.clock.duration_since(*at) <= SignedDuration::from_hours(MAX_AGE_HOURS),
            "switched on by an old proof"
        );
        assert_eq!(*ran_with, self.essence(), "switched on by a proof of something else");
        if desired.job.gate.path == receipt::Path::Scheduler {
            let went = self.went.as_ref().expect("gate.path = scheduler, and Scheduler has started nothing");
            assert_eq!(went.way, self.essence().way, "switched on by the proof of another path");
        }
        self.counts.on_by_proof += 1;
    }

    fn disable(&self) {
        let world = self.memory.world();
        if let Some(schedule) = world.schedules.get(&(JOB.into(), JOB.into())) {
            inside::run(switch::off(&self.memory, schedule)).expect("nobody is in the way");
            assert_eq!(self.state(), Some(State::Disabled));
        }
    }

    fn drift(&mut self, drift: Drift) {
        let key = (JOB.to_owned(), JOB.to_owned());
        let edit = |world: &mut World, edit: &dyn Fn(&str) -> String| {
            for text in world.texts.iter_mut().filter(|(name, _)| name.ends_with("verified-run")).map(|(_, text)| text)
            {
                *text = edit(text);
            }
        };
        let mut switched_on = false;
        self.change(|world| match drift {
            Drift::Input => {
                if let Some(target) = world.schedules.get_mut(&key).and_then(|schedule| schedule.0.get_mut("Target")) {
                    let input = target["Input"].as_str().unwrap_or_default().replace("variant=0", "variant=7");
                    target["Input"] = input.into();
                }
            }
            Drift::Trust => {
                for role in world.roles.values_mut() {
                    role.trust.0 = role.trust.0.replace("Allow", "Deny");
                }
            }
            Drift::Policy => world.policies.retain(|(_, policy), _| policy != SCHEDULER_POLICY_NAME),
            Drift::NewRevision => {
                let family = world.families.get_mut("geuneul").expect("the family");
                let mut members = family.last().expect("a revision").writable();
                members.insert("ephemeralStorage".into(), json!({ "sizeInGiB": 21 + family.len() }));
                family.push(memory::revision(&members, &Tags::new(), family.len() + 1));
            }
            Drift::Key => world.parameters.values_mut().for_each(|parameter| parameter.version += 1),
            Drift::Tags => world.groups.values_mut().for_each(Tags::clear),
            Drift::SwitchedOn => {
                if let Some(schedule) = world.schedules.get_mut(&key) {
                    *schedule = schedule.with_state(State::Enabled);
                    switched_on = true;
                }
            }
            Drift::Deleted => drop(world.schedules.remove(&key)),
            Drift::ReceiptEdited => edit(world, &|text| text.replace("\"fetched\":3555", "\"fetched\":1")),
            Drift::ReceiptCut => edit(world, &|text| text.chars().take(text.chars().count() / 2).collect()),
            Drift::ReceiptOfAnotherJob => edit(world, &|text| text.replace(JOB, "other-job")),
        });
        self.warranted |= switched_on;
    }
}

/// The task as AWS describes it: as it was asked for, or not quite.
fn task(run: &Run, ends: Ends, created: Timestamp) -> Task {
    let asked = run.task();
    let code = if ends == Ends::Failed { 70 } else { 0 };
    let command = if ends == Ends::WithoutCommand { Vec::new() } else { asked.command.clone() };
    Task {
        arn: format!("arn:aws:ecs:ap-northeast-2:{ACCOUNT}:task/geuneul/{}", "0".repeat(32)),
        cluster: asked.cluster.clone(),
        task_definition: asked.task_definition.arn().to_owned(),
        started_by: Some(run.started_by().to_owned()),
        launch_type: Some("FARGATE".to_owned()),
        capacity_provider: None,
        platform_version: None,
        status: "STOPPED".to_owned(),
        stop_code: Some("EssentialContainerExited".to_owned()),
        stopped_reason: None,
        containers: vec![Container { name: "app".into(), exit_code: Some(code), reason: None, image_digest: None }],
        overrides: vec![ContainerOverride { name: "app".into(), command, environment: run.environment() }],
        subnet: asked.network.subnets.first().cloned(),
        created_at: Some(created.as_second()),
        events: Vec::new(),
    }
}

fn report(run: &Run, ends: Ends, created: Timestamp) -> Report {
    let outcome = if ends == Ends::Skipped { Outcome::Skipped } else { Outcome::Succeeded };
    let (trigger, started_at) = (run.trigger(), format!("{created:.0}"));
    Report::Found(Box::new(RunReport { outcome, trigger, started_at, ..scene::report() }))
}

/// The family without the secret, and perhaps a schedule of somebody's that fires already.
fn beginning(adopted: bool) -> World {
    let members = json!({
        "family": "geuneul", "networkMode": "awsvpc", "executionRoleArn": format!("arn:aws:iam::{ACCOUNT}:role/execution"),
        "containerDefinitions": [{ "name": "app", "image": "app:1" }],
    });
    let mut world = World::default();
    let revision = memory::revision(members.as_object().expect("an object"), &Tags::new(), 1);
    world.families.insert("geuneul".into(), vec![revision]);
    if adopted {
        let target = json!({ "Arn": "arn:aws:lambda:...", "RoleArn": format!("arn:aws:iam::{ACCOUNT}:role/theirs"), "Input": "{}" });
        let theirs = json!({ "Name": JOB, "GroupName": JOB, "ScheduleExpression": "rate(1 days)", "State": "ENABLED",
            "FlexibleTimeWindow": { "Mode": "OFF" }, "Target": target });
        world.groups.insert(JOB.into(), Tags::new());
        let theirs = memory::stored(&Schedule(theirs.as_object().expect("an object").clone()));
        world.schedules.insert((JOB.into(), JOB.into()), theirs);
    }
    world
}

#[test]
fn nothing_is_enabled_without_a_proof_a_word_or_somebody_elses_hand() {
    // Fewer where this runs often, more where there is time: PROPTEST_CASES.
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(600);
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    let (total, known) = (RefCell::new(Counts::default()), RefCell::default());
    // From nothing to enabled takes three right moves in a row: half of the sequences begin with the first two.
    let sequences = (prop::bool::weighted(0.2), any::<bool>(), prop::collection::vec(step(), 1..16));
    let mut runner = proptest::test_runner::TestRunner::new(config);
    let outcome = runner.run(&sequences, |(adopted, ahead, moves)| {
        let mut stage = Stage {
            known: &known,
            memory: Memory::new(beginning(adopted), None),
            variant: 0,
            stopped: false,
            path: false,
            clock: "2026-11-29T03:00:00Z".parse().expect("a time"),
            proven: None,
            went: None,
            warranted: adopted,
            counts: Counts::default(),
        };
        if ahead {
            stage.play(&Move::Apply { disabled: true, adopt: true, latest: false, breaks: None });
        }
        moves.iter().for_each(|step| stage.play(step));
        let (mut total, counts) = (total.borrow_mut(), stage.counts);
        total.sequences += 1;
        total.moves += counts.moves;
        total.on_by_proof += counts.on_by_proof;
        total.on_by_word += counts.on_by_word;
        total.refused += counts.refused;
        total.proven += counts.proven;
        Ok(())
    });
    outcome.unwrap_or_else(|error| panic!("{error}"));
    let total = *total.borrow();
    println!("{total:?}, 0 violations");
    // A property that never comes near its subject says nothing.
    assert!(total.on_by_proof * 50 > total.sequences && total.on_by_word > 0 && total.refused > 0, "{total:?}");
}

/// A small generator: the same sequences every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % sides
    }
}

/// The same with the program itself, against the local AWS: some sequences, each from an applied job on.
fn on_the_local_aws(sequences: usize) {
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

#[test]
fn nor_with_the_program_itself_against_the_local_aws() {
    on_the_local_aws(6);
}

#[test]
#[ignore = "needs minutes"]
fn nor_in_many_more_sequences_against_the_local_aws() {
    on_the_local_aws(60);
}
