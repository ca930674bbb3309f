use super::*;
use crate::sealed::Owner;

const FIELDS: [&str; 7] = ["target", "role", "input", "revision", "content", "image", "secrets"];

/// A fingerprint in which the named fields have another value.
fn fingerprint(other: &[&str]) -> Fingerprint {
    let hash = |field: &&str| if other.contains(field) { "cd".repeat(32) } else { "ab".repeat(32) };
    let hashes: serde_json::Map<_, _> = FIELDS.iter().map(|field| ((*field).to_owned(), hash(field).into())).collect();
    serde_json::from_value(hashes.into()).unwrap()
}

fn receipt(proof: Proof) -> Seen<Result<Receipt, Unreadable>> {
    let run = serde_json::json!({
        "path": "direct", "proof": proof, "at": "2026-11-29T03:00:00Z", "by": "arn:aws:iam::123456789012:user/kim",
        "task": "arn:task", "task_definition": "arn:td", "image_digest": null, "report": null, "fingerprint": fingerprint(&[]),
    });
    Seen::Present(Ok(Receipt::Verified(Box::new(serde_json::from_value(run).unwrap()))))
}

fn gate(proof: Proof) -> Gate {
    Gate { proof, max_age: Duration::from_secs(7 * 24 * 3600), path: Path::Direct }
}

fn reasons(receipt: &Seen<Result<Receipt, Unreadable>>, now: &Fingerprint, proof: Proof, clock: &str) -> String {
    match open(receipt, &Seen::Absent, now, &gate(proof), clock.parse().unwrap()) {
        Ok(_) => "open".to_owned(),
        Err(closed) => closed.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"),
    }
}

#[test]
fn only_a_young_proof_of_this_very_world_opens() {
    use Proof::{ExitCode, RunReport};
    let same = fingerprint(&[]);
    let soon = "2026-11-29T04:00:00Z";
    assert_eq!(reasons(&receipt(RunReport), &same, RunReport, soon), "open");
    assert_eq!(reasons(&receipt(RunReport), &same, ExitCode, soon), "open", "more than was asked for");
    assert_eq!(
        reasons(&receipt(RunReport), &same, RunReport, "2026-11-29T02:59:00Z"),
        "open",
        "clocks differ a little"
    );
    assert_eq!(reasons(&receipt(RunReport), &same, RunReport, "2026-12-06T03:00:00Z"), "open", "the last moment");

    let mut table = String::new();
    let mut row = |reasons: String| table.push_str(&format!("{reasons}\n"));
    let void = |ending: Option<&str>| {
        let by = "arn:aws:iam::123456789012:user/kim".to_owned();
        Void {
            since: soon.parse().unwrap(),
            by,
            ending: ending.map(str::to_owned),
            via_scheduler: false,
            overridden: None,
        }
    };
    let owner = Owner { job: "a".to_owned(), account: "b".to_owned(), region: "c".to_owned() };
    for receipt in [
        Seen::Absent,
        Seen::Hidden { why: "ssm:GetParameters denied".to_owned() },
        Seen::Present(Receipt::read("by hand", &owner)),
        Seen::Present(Ok(Receipt::Void(void(None)))),
        Seen::Present(Ok(Receipt::Void(void(Some("container ingest ended with exit code 70"))))),
    ] {
        row(reasons(&receipt, &same, RunReport, soon));
    }
    row(reasons(&receipt(RunReport), &same, RunReport, "2026-12-06T03:00:01Z"));
    row(reasons(&receipt(RunReport), &same, RunReport, "2026-11-28T03:00:00Z"));
    row(reasons(&receipt(ExitCode), &same, RunReport, soon));
    for field in FIELDS {
        row(reasons(&receipt(RunReport), &fingerprint(&[field]), RunReport, soon));
    }
    row(reasons(&receipt(ExitCode), &fingerprint(&["input", "secrets"]), RunReport, "2027-11-29T03:00:00Z"));
    insta::assert_snapshot!(table);
}

fn path_reasons(path: &Seen<Result<ScheduledPath, Unreadable>>, now: &Fingerprint) -> String {
    let gate = Gate { path: Path::Scheduler, ..gate(Proof::RunReport) };
    let clock = "2026-11-29T04:00:00Z".parse().unwrap();
    match open(&receipt(Proof::RunReport), path, now, &gate, clock) {
        Ok(_) => "open".to_owned(),
        Err(closed) => {
            assert!(closed.iter().all(|one| one.is_about_the_path() || matches!(one, Closed::Moved { .. })));
            closed.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        }
    }
}

#[test]
fn a_gate_that_asks_for_the_scheduled_path_is_opened_by_it() {
    use crate::scheduled_path::How;
    let at = "2025-01-29T03:00:00Z".parse().unwrap();
    let record = |other: &[&str]| {
        let record = ScheduledPath::new(How::ViaScheduler, "arn:task", &fingerprint(other), at, "arn:user");
        Seen::Present(Ok(record))
    };
    let same = fingerprint(&[]);
    assert_eq!(path_reasons(&record(&[]), &same), "open", "however old");
    assert_eq!(path_reasons(&record(&["image", "secrets", "content"]), &same), "open", "they are no part of the way");
    let owner = Owner { job: "a".to_owned(), account: "b".to_owned(), region: "c".to_owned() };
    let rows = [
        path_reasons(&Seen::Absent, &same),
        path_reasons(&Seen::Hidden { why: "ssm:GetParameter denied".to_owned() }, &same),
        path_reasons(&Seen::Present(ScheduledPath::read("by hand", &owner)), &same),
        path_reasons(&record(&["role"]), &same),
        path_reasons(&record(&["role"]), &fingerprint(&["input"])),
    ];
    insta::assert_snapshot!(rows.join("\n"));
}

#[test]
fn only_a_closed_gate_can_be_overruled_and_a_word_counts_once() {
    let at: Timestamp = "2026-11-29T04:00:00.5Z".parse().unwrap();
    let overrule = |refused: Refused| super::overrule(&refused, "원본 점검 중", "arn:user", at);
    assert_eq!(overrule(Refused::Stopped), None);
    assert_eq!(overrule(Refused::Unsettled(vec!["schedule".to_owned()])), None);
    assert_eq!(overrule(Refused::NeverAgain("cron".to_owned())), None);
    assert_eq!(overrule(Refused::NoFingerprint(NoFingerprint::Absent("schedule"))), None);
    let warrant = overrule(Refused::Closed(vec![Closed::NoReceipt])).unwrap();
    let Ground::Overridden(word) = warrant.ground() else { panic!("{warrant:?}") };
    assert_eq!((word.closed.as_str(), word.at.subsec_nanosecond()), ("there is no verified run", 0));
    let receipt = Seen::Present(Ok(Receipt::Overridden(word.clone())));
    let said = reasons(&receipt, &fingerprint(&[]), Proof::RunReport, "2026-11-29T04:00:01Z");
    assert_eq!(
        said,
        "there is no verified run: arn:user gave a word in place of one on 2026-11-29T04:00:00Z, and a word counts once"
    );
}
