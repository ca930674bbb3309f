use super::*;
use crate::sealed::Flaw;

fn owner() -> Owner {
    Owner { job: "library-sync".to_owned(), account: "123456789012".to_owned(), region: "ap-northeast-2".to_owned() }
}

fn hashes() -> serde_json::Value {
    let fields = ["target", "role", "input", "revision", "content", "image", "secrets"];
    let hash = || serde_json::Value::from("ab".repeat(32));
    fields.iter().map(|field| ((*field).to_owned(), hash())).collect()
}

/// A receipt is made from a proven run only, so that a test reads one.
fn verified() -> Receipt {
    let run = serde_json::json!({
        "path": "direct",
        "proof": "run-report",
        "at": "2026-11-29T03:00:00Z",
        "by": "arn:aws:sts::123456789012:assumed-role/operator/kim",
        "task": "arn:aws:ecs:ap-northeast-2:123456789012:task/geuneul/0123456789abcdef",
        "task_definition": "arn:aws:ecs:ap-northeast-2:123456789012:task-definition/geuneul:77",
        "image_digest": "sha256:ab",
        "parameters": {"DATA_GO_KR_SERVICE_KEY": 3},
        "report": {"run_id": "7b0b1f3e-1111-4222-8333-944445555666", "fetched": 3555, "upserted": 12, "deactivated": 3},
        "fingerprint": hashes(),
    });
    Receipt::Verified(Box::new(serde_json::from_value(run).unwrap()))
}

fn void() -> Receipt {
    let since = "2026-11-29T03:00:00Z".parse().unwrap();
    let by = "arn:aws:iam::123456789012:user/kim".to_owned();
    Receipt::Void(Void { since, by, ending: None, via_scheduler: false, overridden: None })
}

fn overridden() -> Overridden {
    Overridden {
        at: "2026-11-29T03:00:00Z".parse().unwrap(),
        by: "arn:aws:iam::123456789012:user/kim".to_owned(),
        reason: "원본 서버 점검 중".to_owned(),
        closed: "there is no verified run".to_owned(),
    }
}

#[test]
fn what_is_written_is_read_back() {
    let Receipt::Void(after) = void() else { unreachable!() };
    let after = Receipt::Void(Void { overridden: Some(overridden()), ..after });
    assert_eq!(after.overridden(), Some(&overridden()), "a run that fails does not hide it");
    assert_eq!(verified().overridden(), None);
    for receipt in [verified(), void(), Receipt::Overridden(overridden()), after] {
        let text = receipt.to_text(&owner()).unwrap();
        assert_eq!(Receipt::read(&text, &owner()), Ok(receipt));
    }
    // The Parameter Store refuses two braces, which what a container says may hold.
    let Receipt::Void(void) = void() else { unreachable!() };
    let braces = Receipt::Void(Void { ending: Some("{{x}} {{{{y}}".to_owned()), ..void });
    let text = braces.to_text(&owner()).unwrap();
    assert!(!text.contains("{{"), "{text}");
    assert_eq!(Receipt::read(&text, &owner()), Ok(braces));
    let text = verified().to_text(&owner()).unwrap();
    assert!(text.starts_with(r#"{"geuneul":"verified-run/1","job":"library-sync","account":"123456789012""#), "{text}");
    assert!(text.len() < MAX_BYTES / 2, "{}", text.len());
}

/// Why a text is no receipt.
fn flaw(text: &str, owner: &Owner) -> Flaw {
    Receipt::read(text, owner).unwrap_err().flaw
}

#[test]
fn a_receipt_of_anything_else_is_refused() {
    let text = verified().to_text(&owner()).unwrap();
    for other in [
        Owner { job: "other".to_owned(), ..owner() },
        Owner { account: "210987654321".to_owned(), ..owner() },
        Owner { region: "us-east-1".to_owned(), ..owner() },
    ] {
        assert_eq!(flaw(&text, &other), Flaw::OtherJob(owner()));
    }
    // Renaming the job inside it is an edit like any other.
    let edits = [
        ("\"library-sync\"", "\"other\""),
        ("2026-11-29T03:00:00Z", "2027-11-29T03:00:00Z"),
        ("\"fetched\":3555", "\"fetched\":3556"),
        ("\"path\":\"direct\"", "\"path\":\"direct\",\"path\":\"direct\""),
    ];
    for (from, to) in edits {
        assert!(text.contains(from), "{from}");
        let flaw = flaw(&text.replacen(from, to, 1), &owner());
        assert!(matches!(flaw, Flaw::Edited | Flaw::Shape(_)), "{from}: {flaw}");
    }
    assert_eq!(flaw(&text.replacen("fetched\":3555", "fetched\":1", 1), &owner()), Flaw::Edited);
    let next = text.replace("verified-run/1", "verified-run/2").replace("\"path\"", "\"way\"");
    let version = Flaw::Version { found: "verified-run/2".to_owned(), known: "verified-run/1" };
    assert_eq!(flaw(&next, &owner()), version);
    let both = text.replacen(r#"{"verified""#, r#"{"void":null,"verified""#, 1);
    assert!(both != text && matches!(flaw(&both, &owner()), Flaw::Shape(_)));
    let cut = &text[..text.len() - 2];
    assert_eq!(flaw(cut, &owner()), Flaw::Truncated(cut.len()));
    for shape in ["", "{}", "[]", "null", "3 minutes ago", r#"{"geuneul":"verified-run/1"}"#] {
        assert!(matches!(flaw(shape, &owner()), Flaw::Shape(_)), "{shape}");
    }
    let grown = text.replacen(r#""seal""#, r#""later":1,"seal""#, 1);
    assert!(matches!(flaw(&grown, &owner()), Flaw::Shape(_)));
}

#[test]
fn a_receipt_fits_a_standard_parameter_or_says_so() {
    let Receipt::Verified(run) = verified() else { unreachable!() };
    let long = Receipt::Verified(Box::new(VerifiedRun { by: "x".repeat(MAX_BYTES), ..*run }));
    assert!(matches!(long.to_text(&owner()), Err(TooLong(length)) if length > MAX_BYTES));
    // What is said twice is left out first.
    let Receipt::Verified(run) = verified() else { unreachable!() };
    let parameters = (0..60).map(|i| (format!("{i:0>60}"), 1)).collect();
    let text = Receipt::Verified(Box::new(VerifiedRun { parameters, ..*run })).to_text(&owner()).unwrap();
    let Ok(Receipt::Verified(run)) = Receipt::read(&text, &owner()) else { panic!("{text}") };
    assert!(run.parameters().is_empty() && text.len() <= MAX_BYTES);
}
