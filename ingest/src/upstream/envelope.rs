//! From an HTTP answer to a page of items, whichever of the portal's envelopes it came in.
//!
//! Two are in use (with and without a `response` around header and body), items come as an array, as `{"item": [...]}`, as one
//! object, or as nothing in five spellings, and numbers may be strings. Rows stay raw until they are read one by one, so that one bad
//! value costs a row and not a page.

use std::collections::BTreeMap;

use serde::de::{Deserializer, Error as _, SeqAccess, Visitor};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::errors::{Class, Fault, from_text, from_xml, spoken};

/// A published row as it came: field name to value.
pub type Item = BTreeMap<String, Field>;

/// One published value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Field {
    /// A string, or a number in its own spelling; null is the empty string.
    #[serde(rename = "t")]
    Text(String),
    /// Something that is no text: an object, a lone surrogate. The raw JSON.
    #[serde(rename = "u")]
    Unreadable(String),
}

impl Field {
    fn read(raw: &RawValue) -> Field {
        let json = raw.get();
        match json.as_bytes()[0] {
            b'"' => serde_json::from_str(json).map_or_else(|_| Field::Unreadable(json.to_owned()), Field::Text),
            b'n' => Field::Text(String::new()),
            b'-' | b'0'..=b'9' => Field::Text(json.to_owned()),
            _ => Field::Unreadable(json.to_owned()),
        }
    }
}

/// What the portal answered when it answered well.
#[derive(Debug, PartialEq, Eq)]
pub enum Answer {
    /// Rows, and how many there are in all.
    Page {
        /// `totalCount`.
        total: u64,
        /// The rows of this page; none past the end.
        items: Vec<Item>,
    },
    /// Result code 03: there is nothing here.
    NoData,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shell {
    header: Option<Header>,
    body: Option<Box<RawValue>>,
    #[serde(rename = "cmmMsgHeader")]
    error: Option<ErrorHeader>,
    result_code: Option<Scalar>,
    result_msg: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Header {
    result_code: Option<Scalar>,
    result_msg: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ErrorHeader {
    err_msg: Option<String>,
    return_auth_msg: Option<String>,
    return_reason_code: Option<Scalar>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Body {
    items: Option<Box<RawValue>>,
    total_count: Option<Scalar>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Scalar {
    Text(String),
    Number(u64),
}

impl Scalar {
    fn text(&self) -> String {
        match self {
            Scalar::Text(text) => text.trim().to_owned(),
            Scalar::Number(number) => number.to_string(),
        }
    }
}

/// Reads one HTTP answer to a request for at most `limit` rows.
pub fn read(status: u16, body: &str, limit: u64) -> Result<Answer, Fault> {
    let text = body.trim_start_matches('\u{feff}').trim();
    match text.chars().next() {
        Some('{') => read_json(status, text, limit).or_else(|fault| match without_trailing_commas(text) {
            // This API has published for months with a comma after the last member of every row. Nothing is lost with it.
            Some(strict) => read_json(status, &strict, limit),
            None => Err(fault),
        }),
        Some('<') => Err(from_xml(text).unwrap_or_else(|| from_text(status, text))),
        _ => Err(from_text(status, text)),
    }
}

/// The text without commas that nothing follows; `None` when there are none. What stands in strings stays.
fn without_trailing_commas(text: &str) -> Option<String> {
    let mut strict = String::with_capacity(text.len());
    let (mut in_string, mut escaped, mut comma) = (false, false, None);
    let mut removed = false;
    for c in text.chars() {
        match c {
            _ if in_string => {
                in_string = escaped || c != '"';
                escaped = !escaped && c == '\\';
            }
            ',' => comma = Some(strict.len()),
            '}' | ']' if comma.is_some() => {
                strict.remove(comma.take().expect("there is one"));
                removed = true;
            }
            _ if c.is_whitespace() => {}
            _ => {
                in_string = c == '"';
                comma = None;
            }
        }
        strict.push(c);
    }
    removed.then_some(strict)
}

fn read_json(status: u16, text: &str, limit: u64) -> Result<Answer, Fault> {
    let broken = |error: serde_json::Error| match status {
        200 => Fault::new(Class::RetryableFew, format!("JSON that cannot be read: {error}")),
        _ => from_text(status, text),
    };
    let shell = parse_shell(text).map_err(broken)?;
    if let Some(error) = &shell.error {
        let code = error.return_reason_code.as_ref().map(Scalar::text);
        let words = [&error.return_auth_msg, &error.err_msg].map(|word| word.as_deref().unwrap_or_default());
        return Err(spoken(code.as_deref(), &words));
    }
    let (code, message) = match &shell.header {
        Some(header) => (&header.result_code, &header.result_msg),
        None => (&shell.result_code, &shell.result_msg),
    };
    let Some(code) = code.as_ref().map(Scalar::text) else {
        return Err(Fault::new(Class::RetryableFew, format!("HTTP {status} with JSON that has no resultCode")));
    };
    match code.as_str() {
        "00" | "0" => read_body(shell.body.as_deref(), limit),
        "03" | "3" => Ok(Answer::NoData),
        code => Err(spoken(Some(code), &[message.as_deref().unwrap_or_default()])),
    }
}

/// The shell is `response`, or the error tree, or the answer itself. (Raw values cannot be read through `serde(flatten)`.)
fn parse_shell(text: &str) -> Result<Shell, serde_json::Error> {
    #[derive(Deserialize)]
    struct Wrapped {
        response: Option<Shell>,
        #[serde(rename = "OpenAPI_ServiceResponse")]
        service: Option<Shell>,
    }
    let wrapped: Wrapped = serde_json::from_str(text)?;
    match wrapped.response.or(wrapped.service) {
        Some(shell) => Ok(shell),
        None => serde_json::from_str(text),
    }
}

fn read_body(body: Option<&RawValue>, limit: u64) -> Result<Answer, Fault> {
    let odd = |what: &str| Fault::new(Class::RetryableFew, format!("a normal answer {what}"));
    let body = body.ok_or_else(|| odd("without a body"))?;
    let body: Body = serde_json::from_str(body.get()).map_err(|error| odd(&format!("with a broken body: {error}")))?;
    let total = body.total_count.ok_or_else(|| odd("without totalCount"))?.text();
    let total = total.parse().map_err(|_| odd(&format!("whose totalCount is {total:?}")))?;
    let items = match body.items {
        Some(items) => rows(&items, limit).map_err(|error| odd(&format!("with broken items: {error}")))?,
        None => Vec::new(),
    };
    Ok(Answer::Page { total, items })
}

/// `[rows]`, `{"item": [rows]}`, `{"item": row}`, `{row}`, and nothing as `[]`, `{}`, `""` or null. An `item` in an `item` is no
/// further list, so every byte is read a fixed number of times however deep a page is nested.
fn rows(items: &RawValue, limit: u64) -> Result<Vec<Item>, serde_json::Error> {
    let Some(object) = object(items)? else { return list(items, limit) };
    let row = match object.get("item") {
        Some(inner) => match self::object(inner)? {
            Some(row) => row,
            None => return list(inner, limit),
        },
        None => object,
    };
    Ok(if row.is_empty() { Vec::new() } else { vec![item(row)] })
}

fn object(value: &RawValue) -> Result<Option<RawItem>, serde_json::Error> {
    if value.get().starts_with('{') { serde_json::from_str(value.get()).map(Some) } else { Ok(None) }
}

/// `[rows]`, and nothing as `[]`, `""` or null.
fn list(items: &RawValue, limit: u64) -> Result<Vec<Item>, serde_json::Error> {
    match items.get().as_bytes()[0] {
        b'[' => serde_json::Deserializer::from_str(items.get()).deserialize_seq(AtMost(limit)),
        b'n' => Ok(Vec::new()),
        // A string can only be the empty one; anything else is an error that names what it is.
        _ => match serde_json::from_str::<&str>(items.get())?.trim() {
            "" => Ok(Vec::new()),
            _ => serde_json::from_str::<Vec<RawItem>>(items.get()).map(|_| Vec::new()),
        },
    }
}

/// Reads so many rows and not one more: a page is not kept, or even read, beyond what was asked for.
struct AtMost(u64);

impl<'de> Visitor<'de> for AtMost {
    type Value = Vec<Item>;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "at most {} rows", self.0)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut rows: A) -> Result<Vec<Item>, A::Error> {
        let mut items = Vec::new();
        while let Some(row) = rows.next_element::<&RawValue>()? {
            if items.len() as u64 == self.0 {
                return Err(A::Error::custom(format_args!("more rows than the {} that were asked for", self.0)));
            }
            items.push(any_item(row));
        }
        Ok(items)
    }
}

/// A row that is stored as JSON.
pub fn stored(json: &str) -> Item {
    serde_json::from_str(json).map_or_else(|_| Item::new(), any_item)
}

/// A row that is no object, or has a name that cannot be read, is still one row: it is set aside, and its page is not lost.
fn any_item(row: &RawValue) -> Item {
    match serde_json::from_str::<RawItem>(row.get()) {
        Ok(row) => item(row),
        Err(_) => Item::from([(String::new(), Field::Unreadable(row.get().to_owned()))]),
    }
}

type RawItem = BTreeMap<String, Box<RawValue>>;

fn item(row: RawItem) -> Item {
    row.into_iter().map(|(name, value)| (name, Field::read(&value))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(body: &str) -> (u64, usize) {
        match read(200, body, 1000) {
            Ok(Answer::Page { total, items }) => (total, items.len()),
            other => panic!("{body}: {other:?}"),
        }
    }

    #[test]
    fn both_envelopes_and_every_spelling_of_items() {
        let header = r#""header":{"resultCode":"00","resultMsg":"NORMAL_SERVICE"}"#;
        for (items, rows) in [
            (r#"[{"lbrryNm":"a"},{"lbrryNm":"b"}]"#, 2),
            (r#"{"item":[{"lbrryNm":"a"},{"lbrryNm":"b"}]}"#, 2),
            (r#"{"item":{"lbrryNm":"a"}}"#, 1),
            (r#"{"lbrryNm":"a"}"#, 1),
            (r#"{"item":""}"#, 0),
            (r#""""#, 0),
            ("{}", 0),
            ("[]", 0),
            ("null", 0),
        ] {
            for total in ["2", "\"2\""] {
                let inner = format!(r#"{header},"body":{{"items":{items},"totalCount":{total},"pageNo":"1"}}"#);
                assert_eq!(page(&format!(r#"{{"response":{{{inner}}}}}"#)), (2, rows), "{items}");
                assert_eq!(page(&format!("\u{feff} {{{inner}}}")), (2, rows), "{items}");
            }
        }
        assert_eq!(page(&format!(r#"{{{header},"body":{{"totalCount":0}}}}"#)), (0, 0));
    }

    #[test]
    fn more_rows_than_were_asked_for_are_no_page() {
        for (rows, asked, fine) in [(3, 3, true), (4, 3, false), (400_000, 1000, false)] {
            let rows = vec!["{\"a\":1}"; rows].join(",");
            let body = format!(r#"{{"header":{{"resultCode":"00"}},"body":{{"items":[{rows}],"totalCount":3555}}}}"#);
            let read = read(200, &body, asked);
            assert_eq!(read.is_ok(), fine, "{asked}");
            let refused = |fault: &Fault| fault.class == Class::RetryableFew && fault.said.contains("asked for");
            assert!(read.as_ref().err().is_none_or(refused), "{read:?}");
        }
    }

    #[test]
    fn a_page_is_unwrapped_once_however_deep_it_is_nested() {
        let depth = 5_000;
        let items = format!("{}[]{}", "{\"item\":".repeat(depth), "}".repeat(depth));
        let body = format!(r#"{{"header":{{"resultCode":"00"}},"body":{{"items":{items},"totalCount":1}}}}"#);
        // A row without a field that is known: it will be set aside. Unwrapped level by level, it would be no row, at a quadratic price.
        let Ok(Answer::Page { items, .. }) = read(200, &body, 1000) else { panic!() };
        assert!(matches!(&items[..], [item] if matches!(item.get("item"), Some(Field::Unreadable(_)))));
    }

    #[test]
    fn no_data_has_no_body() {
        let body = r#"{"response":{"header":{"resultCode":"03","resultMsg":"NODATA_ERROR"}}}"#;
        assert_eq!(read(200, body, 1000), Ok(Answer::NoData));
    }

    #[test]
    fn one_bad_value_costs_no_page() {
        let body = r#"{"header":{"resultCode":0},"body":{"totalCount":1,"items":[
            {"a":"\ud800","b":1.50,"c":null,"d":{"e":1},"f":"\u0000","g":"\ud55c"}]}}"#;
        let Ok(Answer::Page { items, .. }) = read(200, body, 1000) else { panic!() };
        let text = |t: &str| Field::Text(t.to_owned());
        let raw = |t: &str| Field::Unreadable(t.to_owned());
        let values: Vec<_> = items[0].values().cloned().collect();
        let expected = [raw("\"\\ud800\""), text("1.50"), text(""), raw("{\"e\":1}"), text("\0"), text("한")];
        assert_eq!(values, expected);
    }

    #[test]
    fn a_row_that_is_none_costs_no_page() {
        let body = r#"{"header":{"resultCode":0},"body":{"totalCount":4,"items":[{"a":"b"},null,{"\ud800":"x"},7]}}"#;
        let Ok(Answer::Page { items, .. }) = read(200, body, 1000) else { panic!() };
        let set_aside = items.iter().filter(|item| matches!(item.get(""), Some(Field::Unreadable(_)))).count();
        assert_eq!((items.len(), set_aside), (4, 3));
    }

    #[test]
    fn commas_that_nothing_follows_are_passed_over() {
        let strict =
            r#"{"header":{"resultCode":"00"},"body":{"items":[{"a":"b,}","c":"\",]"},{"a":"1"}],"totalCount":2}}"#;
        let loose = strict.replace("\"}", "\" ,\n}").replace("}]", "},]").replace("2}}", "2,},}");
        assert_ne!(strict, loose);
        assert_eq!(read(200, &loose, 1000), read(200, strict, 1000));
        assert!(read(200, strict, 1000).is_ok());
        assert_eq!(without_trailing_commas(strict), None);
    }

    #[test]
    fn errors_in_every_json_shape() {
        for (status, body, class) in [
            (200, r#"{"response":{"header":{"resultCode":"01","resultMsg":"APPLICATION_ERROR"}}}"#, Class::Retryable),
            (200, r#"{"header":{"resultCode":"31","resultMsg":"DEADLINE"}}"#, Class::Key),
            (
                200,
                r#"{"responseTime":"t","resultCode":"10","resultMsg":"INVALID_REQUEST_PARAMETER_ERROR"}"#,
                Class::Fatal,
            ),
            (
                403,
                r#"{"OpenAPI_ServiceResponse":{"cmmMsgHeader":{"errMsg":"SERVICE_KEY_IS_NOT_REGISTERED_ERROR",
                "returnAuthMsg":"등록되지 않은 서비스키","returnReasonCode":30}}}"#,
                Class::Key,
            ),
            (200, r#"{"cmmMsgHeader":{"errMsg":"LIMITED_NUMBER_OF_SERVICE_REQUESTS_EXCEEDS_ERROR"}}"#, Class::Quota),
            (
                200,
                r#"{"header":{"resultCode":"00"},"body":{"items":[{"a":"b",,}],"totalCount":1}}"#,
                Class::RetryableFew,
            ),
            (200, r#"{"header":{"resultCode":"00"},"body":{"items":"rows","totalCount":1}}"#, Class::RetryableFew),
            (200, r#"{"header":{"resultCode":"00"}}"#, Class::RetryableFew),
            (200, r#"{"message":"hello"}"#, Class::RetryableFew),
            (502, r#"{"cut":"#, Class::Retryable),
            (200, "<response><header><resultCode>22</resultCode></header></response>", Class::Quota),
        ] {
            let fault = read(status, body, 1000).unwrap_err();
            assert_eq!(fault.class, class, "{body}: {fault}");
        }
    }
}
