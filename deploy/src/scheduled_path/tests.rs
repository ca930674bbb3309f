use super::*;
use crate::sealed::Flaw;

fn owner() -> Owner {
    Owner { job: "library-sync".to_owned(), account: "123456789012".to_owned(), region: "ap-northeast-2".to_owned() }
}

/// A fingerprint in which the named fields have another value.
fn fingerprint(other: &[&str]) -> Fingerprint {
    let fields = ["target", "role", "input", "revision", "content", "image", "secrets"];
    let hash = |field: &str| if other.contains(&field) { "cd".repeat(32) } else { "ab".repeat(32) };
    let hashes: serde_json::Map<_, _> = fields.iter().map(|name| ((*name).to_owned(), hash(name).into())).collect();
    serde_json::from_value(hashes.into()).unwrap()
}

fn record() -> ScheduledPath {
    let at = "2026-11-29T03:00:00.7Z".parse().unwrap();
    ScheduledPath::new(How::ViaScheduler, "arn:task", &fingerprint(&[]), at, "arn:aws:iam::123456789012:user/{{kim}}")
}

#[test]
fn what_is_written_is_read_back_and_fits() {
    let text = record().to_text(&owner());
    insta::assert_snapshot!(text);
    assert_eq!(ScheduledPath::read(&text, &owner()), Ok(record()));
    assert!(!text.contains("{{") && text.len() < 2048, "{text}");
}

#[test]
fn it_counts_until_the_way_to_the_task_moves() {
    let moved = |fields: &[&str]| record().proven_for(&fingerprint(fields));
    assert_eq!(moved(&[]), Ok(()));
    // What the container does is the receipt's business.
    assert_eq!(moved(&["content", "image", "secrets"]), Ok(()));
    assert_eq!(moved(&["role"]), Err(vec![Field::Role]));
    let all = [Field::Target, Field::Role, Field::Input, Field::Revision];
    assert_eq!(moved(&["target", "role", "input", "revision"]), Err(all.to_vec()));
}

#[test]
fn a_record_of_anything_else_is_refused() {
    let text = record().to_text(&owner());
    for other in [
        Owner { job: "other".to_owned(), ..owner() },
        Owner { account: "210987654321".to_owned(), ..owner() },
        Owner { region: "us-east-1".to_owned(), ..owner() },
    ] {
        assert_eq!(ScheduledPath::read(&text, &other).unwrap_err().flaw, Flaw::OtherJob(owner()));
    }
    let read = |text: &str| ScheduledPath::read(text, &owner()).unwrap_err().to_string();
    let edited = text.replace("2026-11-29", "2027-11-29");
    let later = text.replace("scheduled-path/1", "scheduled-path/2");
    let receipt = text.replace("scheduled-path/1", "verified-run/1");
    let all = [&edited, &later, &receipt, &text[..text.len() / 2], "by hand", ""].map(read);
    insta::assert_snapshot!(all.join("\n"));
}
