//! The world in memory, what was done to it, and what the oracle remembers: the parts of the world that a run ran with. It knows
//! nothing of fingerprints and receipts.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use deploy::apply::{Patience, apply};
use deploy::config::Config;
use deploy::desired::{Desired, SCHEDULER_POLICY_NAME};
use deploy::fingerprint::Fingerprint;
use deploy::fire_times::timetable::Timetable;
use deploy::gate;
use deploy::guard::Guard;
use deploy::model::run_task::{Occurrence, RunTask};
use deploy::model::{Live, PolicyDocument, Schedule, State, Tags};
use deploy::normalise::Normalisers;
use deploy::observe::observe;
use deploy::plan::{Plan, Wish, plan};
use deploy::receipt::{self, Receipt, VerifiedRun, Void};
use deploy::run::judge::judge;
use deploy::scheduled_path::{How, ScheduledPath};
use deploy::secret::{SecretValue, Values};
use deploy::standing::path::shown_by;
use deploy::standing::runs::PastRun;
use deploy::switch;
use geuneul::{RunReport, Trigger};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::moves::{Drift, Ends, Move};
use super::things::{beginning, report, task};
use crate::memory::{self, ACCOUNT, Memory, World};
use crate::{inside, scene};

/// The job, its schedule, its group.
pub const JOB: &str = "library-sync";
const MAX_AGE_HOURS: i64 = 48;
const NO_PATIENCE: Patience = Patience { limit: Duration::ZERO, pause: Duration::ZERO };

/// Configurations that were parsed already.
pub type Known = RefCell<BTreeMap<(u8, bool, bool), Desired>>;

/// What a run ran with, as far as the next one depends on it.
#[derive(Debug, Clone, PartialEq)]
struct Essence {
    way: (Value, Option<(String, String)>, BTreeMap<String, String>),
    what: (Value, BTreeMap<String, i64>),
}

pub struct Stage<'a> {
    known: &'a Known,
    memory: Memory,
    variant: u8,
    stopped: bool,
    path: bool,
    clock: Timestamp,
    /// The newest run, if it is proven, and what it ran with.
    proven: Option<(Timestamp, Essence)>,
    /// What Scheduler was last seen to start.
    went: Option<Essence>,
    /// What the log remembers of the schedule's own runs, newest first.
    runs: Vec<PastRun>,
    /// It may be on.
    warranted: bool,
    /// What was done, and what came of it.
    pub counts: Counts,
}

#[derive(Debug, Default, Clone, Copy)]
pub struct Counts {
    pub sequences: usize,
    pub moves: usize,
    pub on_by_proof: usize,
    pub on_by_word: usize,
    pub refused: usize,
    pub proven: usize,
    pub fired: usize,
    /// Of `on_by_proof`, where the gate asked for the scheduled path.
    pub on_by_path: usize,
}

impl Stage<'_> {
    /// Nothing was done yet; whether somebody's schedule fires already, and whether the gate asks for the scheduled path.
    pub fn set(known: &Known, adopted: bool, path: bool) -> Stage<'_> {
        Stage {
            known,
            memory: Memory::new(beginning(adopted), None),
            variant: 0,
            stopped: false,
            path,
            clock: "2026-11-29T03:00:00Z".parse().expect("a time"),
            proven: None,
            went: None,
            runs: Vec::new(),
            warranted: adopted,
            counts: Counts::default(),
        }
    }

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

    fn schedule(&self) -> Option<Schedule> {
        self.memory.world().schedules.get(&(JOB.into(), JOB.into())).cloned()
    }

    fn state(&self) -> Option<State> {
        self.schedule().as_ref().map(Schedule::state)
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
        let policies = world.policies.iter().filter(|((of, _), _)| *of == role);
        let policies = policies.map(|((_, name), policy)| (name.clone(), policy.0.clone())).collect();
        let pinned = schedule.and_then(deploy::plan::pinned_revision);
        let revision = world.families["geuneul"].iter().find(|one| one.reference() == pinned);
        let revision = revision.map(|one| Value::Object(one.members.clone())).unwrap_or_default();
        let keys = world.parameters.iter().map(|(name, one)| (name.clone(), one.version)).collect();
        Essence { way: (target, trust, policies), what: (revision, keys) }
    }

    /// Does it, and holds the result against what may be.
    pub fn play(&mut self, step: &Move) {
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
            Move::Fire => self.fire(),
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
        self.keep_scheduled(&desired, &live, &fingerprint);
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

    /// The schedule starts the job under its role, as long as all of that is what the newest proof was of: of what moves and moves
    /// back between two looks, nobody knows.
    fn fire(&mut self) {
        let (schedule, essence) = (self.schedule(), self.essence());
        let is_proven = self.proven.as_ref().is_some_and(|(_, ran_with)| *ran_with == essence);
        let Some(schedule) = schedule.filter(|one| is_proven && one.state() == State::Enabled) else { return };
        let next = Timetable::of(&schedule).next(self.clock, 1).expect("a cron");
        let occurrence = Some(format!("{JOB}@{:.0}", next[0].timestamp()));
        let (trigger, started_at) = (Trigger::Scheduled, format!("{:.0}", self.clock));
        let report = RunReport { trigger, started_at, occurrence, ..scene::report() };
        self.runs.insert(0, PastRun { task: "f".repeat(32), report });
        self.went = Some(essence);
        self.clock += SignedDuration::from_secs(60);
        self.counts.fired += 1;
    }

    /// As the verb does before it voids the receipt.
    fn keep_scheduled(&self, desired: &Desired, live: &Live, now: &Fingerprint) {
        let is_on = live.schedule.present().is_some_and(|schedule| schedule.state() == State::Enabled);
        let Some((run, began)) = shown_by(live, now, &self.runs).filter(|_| is_on) else { return };
        let went = self.went.as_ref().expect("recorded that the schedule started the job, and it has not");
        assert_eq!(went.way, self.essence().way, "recorded that the schedule went a way that it has not gone");
        let text = ScheduledPath::new(How::Scheduled, &run.task, now, began, "arn:user").to_text(&desired.owner);
        self.change(|world| drop(world.texts.insert(desired.scheduled_path_parameter.clone(), text)));
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
            self.counts.on_by_path += 1;
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
            Drift::OtherPolicy => {
                let role = format!("{JOB}-scheduler");
                let number = world.policies.len();
                let deny =
                    json!({ "Statement": [{ "Effect": "Deny", "Action": "*", "Resource": number.to_string() }] });
                if world.roles.contains_key(&role) {
                    world.policies.insert((role, format!("stop-{number}")), PolicyDocument(deny.to_string()));
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
