use std::time::Duration;

use geuneul::{RunError, Skip, SkipReason, Withheld, WithheldReason};

use super::*;
use crate::model::log::NoLog;
use crate::model::run_task::{Launch, Network, Occurrence, Parts, RunTask};
use crate::model::task::{ContainerOverride, Failure};
use sample::report;

#[path = "sample.rs"]
mod sample;

fn asked() -> Run {
    let request = RunTask::new(Parts {
        job: "library-sync".to_owned(),
        cluster: "geuneul".to_owned(),
        task_definition: "arn:aws:ecs:ap-northeast-2:123456789012:task-definition/geuneul:77".parse().unwrap(),
        launch: Launch::Fargate,
        platform_version: None,
        network: Network {
            subnets: ["subnet-a".to_owned(), "subnet-b".to_owned()].into(),
            security_groups: ["sg-1".to_owned()].into(),
            assign_public_ip: true,
        },
        container: "ingest".to_owned(),
        command: vec!["--ingest.source=library".to_owned()],
        environment: [("MODE".to_owned(), "monthly".to_owned())].into(),
    })
    .unwrap();
    request.manual(Occurrence { id: "0123456789abcdef".to_owned(), time: "2026-11-29T03:00:00Z".to_owned() })
}

/// The task exactly as asked for, exit code 0; beside it a proxy that was killed at the end, as side containers are.
fn task() -> Task {
    let asked = asked();
    Task {
        arn: "arn:aws:ecs:ap-northeast-2:123456789012:task/geuneul/0123456789abcdef".to_owned(),
        cluster: "arn:aws:ecs:ap-northeast-2:123456789012:cluster/geuneul".to_owned(),
        task_definition: asked.task().task_definition.arn().to_owned(),
        started_by: Some(asked.started_by().to_owned()),
        launch_type: Some("FARGATE".to_owned()),
        capacity_provider: None,
        platform_version: Some("1.4.0".to_owned()),
        status: "STOPPED".to_owned(),
        stop_code: Some("EssentialContainerExited".to_owned()),
        stopped_reason: Some("Essential container in task exited".to_owned()),
        containers: vec![container("proxy", Some(137)), container("ingest", Some(0))],
        overrides: vec![
            ContainerOverride { name: "proxy".to_owned(), ..ContainerOverride::default() },
            ContainerOverride {
                name: "ingest".to_owned(),
                command: asked.task().command.clone(),
                environment: asked.environment(),
            },
        ],
        subnet: Some("subnet-b".to_owned()),
        created_at: Some(1_795_921_200),
        stopped_at: Some(1_795_921_260),
        events: Vec::new(),
    }
}

fn container(name: &str, exit_code: Option<i32>) -> Container {
    Container { name: name.to_owned(), exit_code, reason: None, image_digest: Some("sha256:ab".to_owned()) }
}

fn found(report: RunReport) -> Report {
    Report::Found(Box::new(report))
}

#[test]
fn a_run_as_asked_with_rows_is_proven() {
    let proven = judge(&asked(), &task(), &found(report()), Proof::RunReport).unwrap();
    assert_eq!(proven.report(), Some(&report()));
    assert_eq!(proven.image_digest(), Some("sha256:ab"));
    assert_eq!(proven.task(), &task());
    // A foreign job prints no report, and needs none.
    let foreign = judge(&asked(), &task(), &Report::Missing, Proof::ExitCode).unwrap();
    assert_eq!(foreign.report(), None);
}

#[test]
fn what_deactivates_needs_a_complete_snapshot() {
    let asked = |argument: &str| {
        let mut parts = asked().task().clone();
        parts.command = vec![argument.to_owned()];
        let occurrence = Occurrence { id: "0123456789abcdef".to_owned(), time: "2026-11-29T03:00:00Z".to_owned() };
        RunTask::new(parts).unwrap().manual(occurrence)
    };
    let judged = |argument: &str| {
        let mut task = task();
        task.overrides[1].command = vec![argument.to_owned()];
        let report = found(RunReport { complete: false, ..report() });
        judge(&asked(argument), &task, &report, Proof::RunReport).map(|_| ())
    };
    assert_eq!(judged("--ingest.deactivate-stale=true"), Err(Ending::Incomplete));
    assert_eq!(judged("--ingest.deactivate-stale=false"), Ok(()));
}

type Change = Box<dyn Fn(&mut Task)>;

/// Every way to end without a proof: what AWS shows, what the log holds, what a person reads.
#[test]
fn every_other_ending_says_what_happened_and_what_to_do() {
    let unchanged = || -> Change { Box::new(|_| {}) };
    let exits = |code: i32| -> Change { Box::new(move |task| task.containers[1].exit_code = Some(code)) };
    let never_started = |reason: &'static str| -> Change {
        Box::new(move |task| {
            task.stop_code = Some("TaskFailedToStart".to_owned());
            task.stopped_reason = Some(reason.to_owned());
            task.containers.iter_mut().for_each(|container| container.exit_code = None);
            task.subnet = None;
        })
    };
    let overrides =
        |change: fn(&mut ContainerOverride)| -> Change { Box::new(move |task| change(&mut task.overrides[1])) };
    let skip = Skip {
        reason: SkipReason::Locked,
        holder_pid: Some(4711),
        holder_application: None,
        holder_run_id: Some("00000000-1111-4222-8333-944445555666".parse().unwrap()),
        holder_age_s: Some(4),
        holder_heartbeat_age_s: Some(1),
        consecutive_skips: 1,
        last_success_age_s: Some(2_592_000),
    };
    let failed = |outcome, error: &str| RunReport {
        outcome,
        error: Some(RunError { code: "code".to_owned(), message: error.to_owned() }),
        ..report()
    };
    let elsewhere = NoLog::AnotherRegion { container: "ingest".to_owned(), region: "us-east-1".to_owned() };
    let judged: Vec<(&str, Change, Report)> = vec![
        (
            "secret denied",
            never_started(
                "ResourceInitializationError: unable to pull secrets or registry auth: AccessDeniedException",
            ),
            Report::Missing,
        ),
        (
            "secret missing",
            never_started(
                "ResourceInitializationError: unable to retrieve secrets from ssm: invalid ssm parameters: /a/b",
            ),
            Report::Missing,
        ),
        (
            "no way out of the subnet",
            never_started("ResourceInitializationError: context deadline exceeded"),
            Report::Missing,
        ),
        ("no image", never_started("CannotPullContainerError: failed to resolve ref x:1: not found"), Report::Missing),
        ("container not in the task", Box::new(|task| drop(task.containers.pop())), found(report())),
        (
            "no exit code",
            Box::new(|task| {
                task.containers[1] =
                    Container { reason: Some("CannotStartContainerError".to_owned()), ..container("ingest", None) }
            }),
            Report::Missing,
        ),
        (
            "stopped by a person",
            Box::new(|task| {
                task.stop_code = Some("UserInitiated".to_owned());
                task.stopped_reason = Some("Task stopped by user".to_owned());
                task.containers[1].exit_code = Some(143);
            }),
            found(failed(Outcome::Interrupted, "SIGTERM")),
        ),
        (
            "spot",
            Box::new(|task| {
                task.stop_code = Some("SpotInterruption".to_owned());
                task.stopped_reason = Some("Your Spot Task was interrupted.".to_owned());
                task.containers[1].exit_code = Some(143);
            }),
            Report::Missing,
        ),
        ("dropped command", overrides(|o| o.command.clear()), found(report())),
        (
            "dropped overrides, and so a usage error",
            Box::new(|task| {
                task.overrides.clear();
                task.containers[1].exit_code = Some(64)
            }),
            Report::Missing,
        ),
        (
            "a variable lost, changed and added",
            overrides(|o| {
                o.environment.remove("MODE");
                o.environment.insert("INGEST_TRIGGER".to_owned(), "scheduled".to_owned());
                o.environment.insert("EXTRA".to_owned(), String::new());
            }),
            found(report()),
        ),
        (
            "a placeholder of Scheduler's",
            overrides(|o| {
                let literal = "<aws.scheduler.scheduled-time>".to_owned();
                o.environment.insert("INGEST_OCCURRENCE".to_owned(), literal);
            }),
            found(report()),
        ),
        ("another revision", Box::new(|task| task.task_definition.push('8')), found(report())),
        ("another starter", Box::new(|task| task.started_by = None), found(report())),
        ("another network", Box::new(|task| task.subnet = Some("subnet-z".to_owned())), found(report())),
        (
            "another container is overridden",
            Box::new(|task| task.overrides[0].command = vec!["true".to_owned()]),
            found(report()),
        ),
        (
            "out of memory",
            Box::new(|task| {
                task.containers[1].exit_code = Some(137);
                task.containers[1].reason = Some("OutOfMemoryError: Container killed due to memory usage".to_owned());
            }),
            Report::Missing,
        ),
        ("killed", exits(137), Report::Missing),
        (
            "killed because another container ended",
            Box::new(|task| (task.containers[0].exit_code, task.containers[1].exit_code) = (Some(9), Some(143))),
            Report::Missing,
        ),
        ("usage", exits(64), Report::Missing),
        ("upstream, without a report", exits(69), Report::Missing),
        (
            "upstream, as the report says",
            exits(69),
            found(failed(Outcome::UpstreamFailed, "page 3: 504 after 5 tries")),
        ),
        ("withheld, without a report", exits(65), Report::Missing),
        (
            "withheld",
            exits(65),
            found(RunReport {
                outcome: Outcome::Withheld,
                withheld: Some(Withheld { deactivations: 240, reason: WithheldReason::OverCap }),
                ..report()
            }),
        ),
        ("dry run", unchanged(), found(RunReport { outcome: Outcome::DryRun, ..report() })),
        ("too soon", unchanged(), found(RunReport { outcome: Outcome::Skipped, ..report() })),
        ("misconfigured", exits(78), found(failed(Outcome::Misconfigured, "the key is not registered"))),
        ("killed after its report", exits(137), found(report())),
        ("log not read", unchanged(), Report::NotRead("logs:GetLogEvents denied".to_owned())),
        ("log of another region", unchanged(), Report::NotRead(elsewhere.to_string())),
        (
            "log deleted",
            unchanged(),
            Report::NotRead("app/app/1 in /ecs/app was deleted before it was read to its end".to_owned()),
        ),
        ("no report", unchanged(), Report::Missing),
        ("unreadable report", unchanged(), Report::Unreadable("missing field `fetched`".to_owned())),
        ("a scheduled run's report", unchanged(), found(RunReport { trigger: Trigger::Scheduled, ..report() })),
        ("counts that do not add up", unchanged(), found(RunReport { unchanged: 1, ..report() })),
        ("skipped", unchanged(), found(RunReport { outcome: Outcome::Skipped, skip: Some(skip), ..report() })),
        ("code and report disagree", unchanged(), found(failed(Outcome::DatabaseLost, "session gone"))),
        (
            "the report of last month",
            unchanged(),
            found(RunReport { started_at: "2026-10-29T03:00:00Z".to_owned(), ..report() }),
        ),
        (
            "the report of a time to come",
            unchanged(),
            found(RunReport { started_at: "2099-11-29T03:00:00Z".to_owned(), ..report() }),
        ),
        (
            "the report of another occurrence",
            unchanged(),
            found(RunReport { occurrence: Some("other-job@2026-11-29T03:00:00Z".to_owned()), ..report() }),
        ),
        ("a report without a time", unchanged(), found(RunReport { started_at: "yesterday".to_owned(), ..report() })),
        (
            "every row rejected",
            unchanged(),
            found(RunReport { inserted: 0, unchanged: 0, upserted: 0, rejected: 3555, ..report() }),
        ),
        ("no rows", unchanged(), found(RunReport { fetched: 0, inserted: 0, unchanged: 0, upserted: 0, ..report() })),
    ];
    let mut endings: Vec<(&str, Ending)> = vec![
        (
            "no capacity",
            Ending::NotPlaced(vec![Failure {
                reason:
                    "Capacity is unavailable at this time. Please try again later or in a different availability zone"
                        .to_owned(),
                detail: None,
            }]),
        ),
        (
            "agent",
            Ending::NotPlaced(vec![Failure { reason: "AGENT".to_owned(), detail: Some("disconnected".to_owned()) }]),
        ),
        ("vanished", Ending::Vanished),
        ("Ctrl-C", Ending::Detached { task: "0123".to_owned() }),
        (
            "timed out",
            Ending::TimedOut {
                status: "PENDING".to_owned(),
                waited: Duration::from_secs(930),
                task: "0123".to_owned(),
            },
        ),
    ];
    for (case, change, report) in judged {
        let mut task = task();
        change(&mut task);
        endings.push((case, judge(&asked(), &task, &report, Proof::RunReport).expect_err(case)));
    }
    let table: Vec<_> = endings
        .iter()
        .map(|(case, ending)| {
            format!("{case}\n    {ending}\n    hint: {}\n", ending.hint("deploy").replace('\n', "\n    hint: "))
        })
        .collect();
    insta::assert_snapshot!(table.join(""));
}
