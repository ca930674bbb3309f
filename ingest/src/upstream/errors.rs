//! What the portal says when it does not send a page.
//!
//! The same failure arrives as XML, as JSON in three shapes, as plain text, as HTML or as nothing, with any HTTP status. So the body's
//! shape decides first, and the status only where the body says nothing.

use std::fmt;

use super::paging::Flaw;

/// What can be done about a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
    /// It passes: ask again until the page's deadline.
    Retryable,
    /// It may pass: ask a few times more.
    RetryableFew,
    /// Asking again gives the same answer.
    Fatal,
    /// Today's quota is used up; it returns at midnight in Korea.
    Quota,
    /// The portal does not accept the service key.
    Key,
}

/// One answer that is no page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// What can be done about it.
    pub class: Class,
    /// What the other side said, in one short line without the key.
    pub said: String,
}

impl Fault {
    /// The same without what the other side said, of which only a status or a result code is kept.
    pub fn unsaid(self) -> Self {
        let mut words = self.said.split_whitespace();
        let known = match (words.next(), words.next()) {
            (Some(kind @ ("HTTP" | "code")), Some(number))
                if number.len() <= 3 && number.bytes().all(|byte| byte.is_ascii_digit()) =>
            {
                format!("{kind} {number}; ")
            }
            _ => String::new(),
        };
        Fault::new(self.class, format!("{known}the rest is not shown: it repeats a part of the service key"))
    }

    /// A fault of the given class.
    pub fn new(class: Class, said: impl Into<String>) -> Self {
        Fault { class, said: one_line(&said.into()) }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.said)
    }
}

/// The upstream did not give a page.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UpstreamError {
    /// The service key is refused.
    #[error("data.go.kr refuses the service key on page {page}: {fault}")]
    Key {
        /// The page asked for.
        page: u32,
        /// What it said.
        fault: Fault,
    },
    /// The day's quota is used up.
    #[error("data.go.kr's quota for this key is used up (page {page}): {fault}")]
    Quota {
        /// The page asked for.
        page: u32,
        /// What it said.
        fault: Fault,
    },
    /// An answer that asking again does not change.
    #[error("data.go.kr answered page {page} with an error: {fault}")]
    Fatal {
        /// The page asked for.
        page: u32,
        /// What it said.
        fault: Fault,
    },
    /// Every attempt failed.
    #[error("data.go.kr gave no page {page} in {attempts} attempts within {seconds} s; last: {fault}")]
    Exhausted {
        /// The page asked for.
        page: u32,
        /// How often it was asked for.
        attempts: u32,
        /// For how long.
        seconds: u64,
        /// What it said last.
        fault: Fault,
    },
    /// The listing has no end.
    #[error("data.go.kr's listing does not end: {pages} pages, and still no total reached")]
    Endless {
        /// Pages read.
        pages: u32,
    },
    /// The listing is not of a size that this program is made for.
    #[error("the listing of data.go.kr is too large: more than {mib} MiB in {rows} rows")]
    TooLarge {
        /// Rows read.
        rows: u64,
        /// As many MiB as there may be.
        mib: u64,
    },
    /// No crawl made sense.
    #[error("data.go.kr contradicted itself in each of {crawls} crawls; in the last one {flaw}")]
    Flawed {
        /// How many crawls were made.
        crawls: u32,
        /// What was wrong with the last one.
        flaw: Flaw,
    },
}

/// The portal's result codes (its official table, and the ones that only old or sibling services send).
pub fn class_of_code(code: &str) -> Class {
    match code.trim_start_matches('0') {
        "1" | "2" | "5" | "23" => Class::Retryable,
        "4" | "99" => Class::RetryableFew,
        "22" => Class::Quota,
        "20" | "21" | "30" | "31" | "32" | "33" => Class::Key,
        _ => Class::Fatal,
    }
}

/// The same, for answers that carry only the name.
fn class_of_name(text: &str) -> Option<Class> {
    let names = [
        ("SERVICETIMEOUT", Class::Retryable),
        ("PER_SECOND", Class::Retryable),
        ("APPLICATION_ERROR", Class::Retryable),
        ("DB_ERROR", Class::Retryable),
        ("HTTP_ERROR", Class::RetryableFew),
        ("UNKNOWN_ERROR", Class::RetryableFew),
        ("LIMITED_NUMBER_OF_SERVICE_REQUESTS_EXCEEDS", Class::Quota),
        ("SERVICE_KEY", Class::Key),
        ("ACCESS_DENIED", Class::Key),
        ("PERMISSION_DENIED", Class::Key),
        ("DEADLINE_HAS_EXPIRED", Class::Key),
        ("UNREGISTERED_IP", Class::Key),
        ("UNSIGNED_CALL", Class::Key),
    ];
    names.into_iter().find(|(name, _)| text.contains(name)).map(|(_, class)| class)
}

/// An answer in the portal's own words: a code, a name, or both.
pub fn spoken(code: Option<&str>, words: &[&str]) -> Fault {
    let words: Vec<&str> = words.iter().copied().filter(|word| !word.trim().is_empty()).collect();
    let class = match code.map(str::trim).filter(|code| !code.is_empty()) {
        Some(code) => class_of_code(code),
        None => words.iter().find_map(|word| class_of_name(word)).unwrap_or(Class::Fatal),
    };
    let code = code.map_or_else(String::new, |code| format!("code {} ", code.trim()));
    Fault::new(class, format!("{code}{}", words.join(", ")))
}

/// The error tree as XML, which arrives even when JSON was asked for. `None` when the text is no such tree.
pub fn from_xml(body: &str) -> Option<Fault> {
    let tag = |name: &str| {
        let (_, rest) = body.split_once(&format!("<{name}>"))?;
        Some(rest.split_once("</")?.0.trim())
    };
    let code = tag("returnReasonCode").or_else(|| tag("resultCode"));
    let words = [tag("returnAuthMsg"), tag("errMsg"), tag("resultMsg")].map(Option::unwrap_or_default);
    (code.is_some() || words.iter().any(|word| !word.is_empty())).then(|| spoken(code, &words))
}

/// The gateway's plain sentences, and HTML, and nothing at all: judged by what is known of them, then by the status.
pub fn from_text(status: u16, body: &str) -> Fault {
    let text = body.trim();
    let said = match text.chars().next() {
        None => format!("HTTP {status} with an empty body"),
        Some('<') => format!("HTTP {status} with a page of HTML or XML"),
        Some(_) => format!("HTTP {status} {text:?}"),
    };
    let sentences = [
        ("API token quota exceeded", Class::Quota),
        ("API rate limit exceeded", Class::Retryable),
        ("Error forwarding request to backend server", Class::Retryable),
        ("Error receiving response from backend server", Class::Retryable),
        ("Unexpected error", Class::Retryable),
        ("Unauthorized", Class::Key),
        ("Forbidden", Class::Key),
        ("API not found", Class::Fatal),
    ];
    let known = sentences.into_iter().find(|(sentence, _)| text.starts_with(sentence)).map(|(_, class)| class);
    let class = known.unwrap_or_else(|| match status {
        // The portal's own words about a key are never a web page: this is from a firewall in front of it.
        401 | 403 if text.starts_with('<') => Class::Fatal,
        _ => class_of_status(status),
    });
    Fault::new(class, said)
}

/// What a status means when the body does not say.
fn class_of_status(status: u16) -> Class {
    match status {
        401 | 403 => Class::Key,
        408 | 425 | 429 | 500..=599 => Class::Retryable,
        200..=299 => Class::RetryableFew,
        _ => Class::Fatal,
    }
}

/// One line of at most 200 characters, fit for a log.
fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line = words.join(" ");
    match line.char_indices().nth(200) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_told_apart() {
        for (code, class) in [
            ("01", Class::Retryable),
            ("1", Class::Retryable),
            ("05", Class::Retryable),
            ("23", Class::Retryable),
            ("04", Class::RetryableFew),
            ("99", Class::RetryableFew),
            ("10", Class::Fatal),
            ("12", Class::Fatal),
            ("29", Class::Fatal),
            ("77", Class::Fatal),
            ("22", Class::Quota),
            ("20", Class::Key),
            ("30", Class::Key),
            ("31", Class::Key),
        ] {
            assert_eq!(class_of_code(code), class, "{code}");
        }
    }

    #[test]
    fn the_xml_tree_is_read() {
        let body = "<OpenAPI_ServiceResponse>\n<cmmMsgHeader><errMsg>SERVICE ERROR</errMsg><returnAuthMsg>\
            SERVICE_KEY_IS_NOT_REGISTERED_ERROR</returnAuthMsg><returnReasonCode>30</returnReasonCode></cmmMsgHeader>\
            </OpenAPI_ServiceResponse>";
        let fault = from_xml(body).unwrap();
        assert_eq!(fault.class, Class::Key);
        assert_eq!(fault.said, "code 30 SERVICE_KEY_IS_NOT_REGISTERED_ERROR, SERVICE ERROR");
        assert_eq!(from_xml("<html><body>502 Bad Gateway</body></html>"), None);
    }

    #[test]
    fn a_name_without_a_code_is_enough() {
        assert_eq!(spoken(None, &["DEADLINE_HAS_EXPIRED_ERROR"]).class, Class::Key);
        assert_eq!(spoken(None, &["SERVICETIMEOUT_ERROR"]).class, Class::Retryable);
        assert_eq!(spoken(None, &["새로운 오류"]).class, Class::Fatal);
    }

    #[test]
    fn text_html_and_silence_are_judged_by_what_is_known_of_them() {
        for (status, body, class) in [
            (401, "Unauthorized", Class::Key),
            (403, "Forbidden", Class::Key),
            (404, "API not found", Class::Fatal),
            (502, "Error forwarding request to backend server", Class::Retryable),
            (200, "Error receiving response from backend server", Class::Retryable),
            (429, "API rate limit exceeded", Class::Retryable),
            (429, "API token quota exceeded", Class::Quota),
            (200, "API token quota exceeded", Class::Quota),
            (500, "Unexpected errors", Class::Retryable),
            (502, "<html>502 Bad Gateway</html>", Class::Retryable),
            (400, "<html>Request Blocked</html>", Class::Fatal),
            (401, "<html>Authentication Required</html>", Class::Fatal),
            (403, "<!DOCTYPE html><html>Access Denied</html>", Class::Fatal),
            (301, "", Class::Fatal),
            (200, "", Class::RetryableFew),
            (504, "", Class::Retryable),
        ] {
            assert_eq!(from_text(status, body).class, class, "{status} {body}");
        }
    }

    #[test]
    fn what_the_other_side_said_is_one_short_line() {
        let fault = from_text(500, &"말\n".repeat(5_000));
        assert!(fault.said.chars().count() <= 201 && !fault.said.contains('\n'), "{}", fault.said);
    }
}
