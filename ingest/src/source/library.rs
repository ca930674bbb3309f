//! 전국도서관표준데이터 (data.go.kr 15013109): every public library of the country.

use sha2::{Digest as _, Sha256};

use crate::record::{BadValue, Handle, Note, Record, Reject, Row, clean, count, date, decimal, position, time};
use crate::upstream::{Field, Item};

/// The API's path.
pub const PATH: &str = "/openapi/tn_pubr_public_lbrry_api";

/// The attribute that has a library's telephone.
const TELEPHONE: &str = "phoneNumber";

/// No library's name is longer (the longest seen has 34). It is part of the key, and an index entry of PostgreSQL has to have
/// room for it: 200 characters are at most 800 bytes of the 2,700 that there are.
const MAX_NAME_CHARS: usize = 200;

/// Part of every digest: a change of the rules below is a change of every row, and has to be made on purpose.
const DIGEST_VERSION: &[u8] = b"library:v1";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A text that no library is without.
    Required,
    /// Any text.
    Text,
    /// The code of the publishing institution.
    Code,
    /// A whole number.
    Count,
    /// A non-negative decimal number.
    Area,
    /// HH:MM.
    Time,
    /// YYYY-MM-DD.
    Date,
    /// A coordinate; checked as a pair.
    Degree,
}

/// The 28 published fields, in the API's spelling (three misspellings are the publisher's).
const FIELDS: [(&str, Kind); 28] = [
    ("lbrryNm", Kind::Required),
    ("ctprvnNm", Kind::Text),
    ("signguNm", Kind::Text),
    ("lbrrySe", Kind::Text),
    ("closeDay", Kind::Text),
    ("weekdayOperOpenHhmm", Kind::Time),
    ("weekdayOperColseHhmm", Kind::Time),
    ("satOperOperOpenHhmm", Kind::Time),
    ("satOperCloseHhmm", Kind::Time),
    ("holidayOperOpenHhmm", Kind::Time),
    ("holidayCloseOpenHhmm", Kind::Time),
    ("seatCo", Kind::Count),
    ("bookCo", Kind::Count),
    ("pblictnCo", Kind::Count),
    ("noneBookCo", Kind::Count),
    ("lonCo", Kind::Count),
    ("lonDaycnt", Kind::Count),
    ("rdnmadr", Kind::Text),
    ("operInstitutionNm", Kind::Text),
    ("phoneNumber", Kind::Text),
    ("plotAr", Kind::Area),
    ("buldAr", Kind::Area),
    ("homepageUrl", Kind::Text),
    ("latitude", Kind::Degree),
    ("longitude", Kind::Degree),
    ("referenceDate", Kind::Date),
    ("insttCode", Kind::Code),
    ("insttNm", Kind::Text),
];

/// A field of that name is one of the 28.
pub fn is_field(name: &str) -> bool {
    FIELDS.iter().any(|(field, _)| *field == name)
}

/// Reads one row. Every field is looked at: the first bad one sets the row aside.
pub fn read(item: &Item) -> Row {
    let handle = handle(item);
    // Whatever else is wrong with a row, what it can be recognised by is kept.
    let readable = |name, kind| read_field(item, name, kind).ok().flatten();
    let reject = |column, reason| {
        let degrees = ["latitude", "longitude"].map(|name| readable(name, Kind::Degree));
        let position = position(degrees[0].as_deref(), degrees[1].as_deref()).map_or(None, |(position, _)| position);
        Row::Bad(Reject {
            column,
            reason,
            handle: handle.clone(),
            position,
            telephone: readable(TELEPHONE, Kind::Text),
        })
    };
    let mut values: [Option<String>; FIELDS.len()] = [const { None }; FIELDS.len()];
    for (value, (name, kind)) in values.iter_mut().zip(FIELDS) {
        match read_field(item, name, kind) {
            Ok(read) => *value = read,
            Err(reason) => return reject(name, reason),
        }
    }
    let value = |name: &str| values[index_of(name)].clone();
    let (position, swapped) = match position(value("latitude").as_deref(), value("longitude").as_deref()) {
        Ok(position) => position,
        Err((in_latitude, reason)) => return reject(if in_latitude { "latitude" } else { "longitude" }, reason),
    };
    let ends_of_day =
        values.iter().zip(FIELDS).filter(|(value, (_, kind))| *kind == Kind::Time && value.as_deref() == Some("24:00"));
    let notes = swapped.into_iter().chain(ends_of_day.map(|_| Note::EndOfDay)).collect();
    let Some(handle) = handle else { return reject("insttCode", BadValue::Empty) };
    let (category, province, district, telephone) =
        (value("lbrrySe"), value("ctprvnNm"), value("signguNm"), value(TELEPHONE));
    if swapped.is_some() {
        values.swap(index_of("latitude"), index_of("longitude"));
    }
    let attributes = attributes(&values);
    let digest = Sha256::new().chain_update(DIGEST_VERSION).chain_update(&attributes).finalize().into();
    Row::Good(Record { handle, category, province, district, telephone, position, attributes, digest, notes })
}

/// What the row is recognised by, if that much can be read, whatever else is wrong with it.
fn handle(item: &Item) -> Option<Handle> {
    Some(Handle {
        institution: read_field(item, "insttCode", Kind::Code).ok()??,
        name: read_field(item, "lbrryNm", Kind::Required).ok()??,
        address: read_field(item, "rdnmadr", Kind::Text).ok().flatten(),
    })
}

fn read_field(item: &Item, name: &str, kind: Kind) -> Result<Option<String>, BadValue> {
    let text = match item.get(name) {
        None => return Err(BadValue::Missing),
        Some(Field::Unreadable(_)) => return Err(BadValue::NoText),
        Some(Field::Text(text)) => text,
    };
    let Some(text) = clean(text)? else {
        return if matches!(kind, Kind::Required | Kind::Code) { Err(BadValue::Empty) } else { Ok(None) };
    };
    let read = match kind {
        Kind::Required if text.chars().count() > MAX_NAME_CHARS => return Err(BadValue::TooLong),
        Kind::Required | Kind::Text => text,
        Kind::Code if text.len() <= 20 && text.bytes().all(|byte| byte.is_ascii_alphanumeric()) => text,
        Kind::Code => return Err(BadValue::NoCode),
        Kind::Count => count(&text)?,
        Kind::Area => decimal(&text).filter(|area| *area >= 0.0).ok_or(BadValue::NoDecimal)?.to_string(),
        Kind::Time => time(&text)?,
        Kind::Date => date(&text).map(|()| text)?,
        Kind::Degree => decimal(&text).ok_or(BadValue::NoDegree)?.to_string(),
    };
    Ok(Some(read))
}

/// All fields as one JSON object, in the order of [`FIELDS`]: numbers as numbers, nothing as null.
fn attributes(values: &[Option<String>; FIELDS.len()]) -> String {
    let members = FIELDS.iter().zip(values).map(|((name, kind), value)| match (value, kind) {
        (None, _) => format!("{name:?}:null"),
        (Some(number), Kind::Count | Kind::Area | Kind::Degree) => format!("{name:?}:{number}"),
        (Some(text), _) => format!("{name:?}:{}", serde_json::Value::from(text.as_str())),
    });
    format!("{{{}}}", members.collect::<Vec<_>>().join(","))
}

fn index_of(name: &str) -> usize {
    FIELDS.iter().position(|(field, _)| *field == name).expect("a name from the table")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn library() -> Item {
        let json = r#"{"lbrryNm":"금호도서관","ctprvnNm":"경상북도","signguNm":"영천시　","lbrrySe":"공공도서관","closeDay":"월요일",
            "weekdayOperOpenHhmm":"9:00","weekdayOperColseHhmm":"22:00","satOperOperOpenHhmm":"09:00","satOperCloseHhmm":"22:00",
            "holidayOperOpenHhmm":"00:00","holidayCloseOpenHhmm":"00:00","seatCo":"204","bookCo":"071017","pblictnCo":"164",
            "noneBookCo":"2733","lonCo":"7","lonDaycnt":"14","rdnmadr":"경상북도 영천시 금호읍 금호로 173","operInstitutionNm":"",
            "phoneNumber":"054-338-2124","plotAr":"990.50","buldAr":"","homepageUrl":"http://example.kr/\"a\"",
            "latitude":"35.934370","longitude":"128.879848","referenceDate":"2026-06-16","insttCode":"8821000","insttNm":"교육청"}"#;
        let fields: std::collections::BTreeMap<String, String> = serde_json::from_str(json).unwrap();
        fields.into_iter().map(|(name, value)| (name, Field::Text(value))).collect()
    }

    fn with(name: &str, value: &str) -> Item {
        let mut item = library();
        item.insert(name.to_owned(), Field::Text(value.to_owned()));
        item
    }

    fn good(item: &Item) -> Record {
        match read(item) {
            Row::Good(record) => record,
            Row::Bad(reject) => panic!("{reject:?}"),
        }
    }

    fn bad(item: &Item) -> (&'static str, BadValue, bool) {
        match read(item) {
            Row::Good(record) => panic!("{record:?}"),
            Row::Bad(reject) => (reject.column, reject.reason, reject.handle.is_some()),
        }
    }

    #[test]
    fn a_row_becomes_a_record() {
        insta::assert_debug_snapshot!(good(&library()));
        let attributes: serde_json::Value = serde_json::from_str(&good(&library()).attributes).unwrap();
        assert_eq!(attributes.as_object().unwrap().len(), 28);
    }

    #[test]
    fn spelling_is_no_change_and_content_is() {
        let digest = good(&library()).digest;
        for (name, value) in
            [("bookCo", "71017"), ("signguNm", "영천시"), ("plotAr", "990.5"), ("latitude", "35.93437")]
        {
            assert_eq!(good(&with(name, value)).digest, digest, "{name}");
        }
        for (name, kind) in FIELDS {
            let other = match kind {
                Kind::Count | Kind::Area => "5",
                Kind::Time => "11:11",
                Kind::Date => "2020-02-02",
                Kind::Degree if name == "latitude" => "36",
                Kind::Degree => "127",
                Kind::Code => "B553558",
                Kind::Required | Kind::Text => "다른",
            };
            assert_ne!(good(&with(name, other)).digest, digest, "{name}");
        }
    }

    #[test]
    fn odd_values_are_stored_with_a_note() {
        let mut item = with("latitude", "128.879848");
        item.insert("longitude".to_owned(), Field::Text("35.934370".to_owned()));
        let record = good(&item);
        assert_eq!(record.notes, [Note::SwappedPosition]);
        assert_eq!(record.digest, good(&library()).digest, "the right way round");
        let record = good(&with("satOperCloseHhmm", "24:00"));
        assert_eq!(record.notes, [Note::EndOfDay]);
        assert!(record.attributes.contains("\"24:00\""));
    }

    #[test]
    fn bad_values_name_their_column() {
        assert_eq!(bad(&with("bookCo", "47148+559")), ("bookCo", BadValue::NoCount, true));
        assert_eq!(bad(&with("referenceDate", "2024-02-30")), ("referenceDate", BadValue::NoDate, true));
        assert_eq!(bad(&with("latitude", "NaN")), ("latitude", BadValue::NoDegree, true));
        assert_eq!(bad(&with("latitude", "128.87")), ("latitude", BadValue::OutsideKorea, true));
        assert_eq!(bad(&with("bookCo", "99999999999999999999")), ("bookCo", BadValue::NoCount, true));
        assert_eq!(bad(&with("homepageUrl", &"가".repeat(1 << 20))), ("homepageUrl", BadValue::TooLong, true));
        assert_eq!(bad(&with("longitude", "")), ("longitude", BadValue::HalfPosition, true));
        assert_eq!(bad(&with("plotAr", "-1")), ("plotAr", BadValue::NoDecimal, true));
        assert_eq!(bad(&with("closeDay", "a\0b")), ("closeDay", BadValue::Control, true));
        assert_eq!(bad(&with("rdnmadr", "a\0b")), ("rdnmadr", BadValue::Control, true));
        assert_eq!(bad(&with("lbrryNm", "\u{3000}")), ("lbrryNm", BadValue::Empty, false));
        assert_eq!(good(&with("lbrryNm", &"관".repeat(200))).handle.name.chars().count(), 200);
        assert_eq!(bad(&with("lbrryNm", &"관".repeat(201))), ("lbrryNm", BadValue::TooLong, false));
        assert_eq!(bad(&with("insttCode", &"1".repeat(21))), ("insttCode", BadValue::NoCode, false));
        assert_eq!(bad(&with("insttCode", "12-34")), ("insttCode", BadValue::NoCode, false));
        let mut item = library();
        item.insert("seatCo".to_owned(), Field::Unreadable("{}".to_owned()));
        assert_eq!(bad(&item), ("seatCo", BadValue::NoText, true));
        item.remove("seatCo");
        assert_eq!(bad(&item), ("seatCo", BadValue::Missing, true));
    }

    proptest! {
        #[test]
        fn any_text_in_any_field_is_stored_or_set_aside(field in 0usize..28, value in "\\PC{0,8}|[\0-\u{7f}]{0,8}|[0-9:.-]{1,10}") {
            let (name, _) = FIELDS[field];
            match read(&with(name, &value)) {
                Row::Good(record) => {
                    let attributes: serde_json::Value = serde_json::from_str(&record.attributes).unwrap();
                    prop_assert_eq!(attributes.as_object().unwrap().len(), 28);
                    prop_assert!(!record.attributes.contains("\\u0000"));
                    // What is stored, read as if it were published, is the same: that is how an edit by hand is found.
                    let Row::Good(again) = read(&crate::upstream::item(&record.attributes)) else { panic!("{record:?}") };
                    prop_assert_eq!(Record { notes: Vec::new(), ..again }, Record { notes: Vec::new(), ..record });
                }
                Row::Bad(reject) => prop_assert!(reject.column == name || matches!(reject.column, "latitude" | "longitude")),
            }
        }
    }
}
