//! The portal's service key: in from the environment in either of its two forms, out exactly once, into a request's query.
//!
//! Architecture invariant: the value has no `Display`, its `Debug` is a placeholder, and only [`super::Upstream`] can read it.

use std::borrow::Cow;
use std::fmt;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

/// Everything but RFC 3986's unreserved characters; so `+` becomes `%2B`, which a query would otherwise read as a blank.
const QUERY_VALUE: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The portal's keys have 64 characters or more.
const MIN_LENGTH: usize = 16;

/// The service key of data.go.kr, decoded.
#[derive(Clone, PartialEq, Eq)]
pub struct ServiceKey(String);

/// What is wrong with the text that should be a key. The text itself is never part of the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Nothing but blanks.
    #[error("the service key is empty")]
    Empty,
    /// Shorter than any key: a placeholder, or a piece. (Its letters would also be found all over a page, see `ServiceKey::redact`.)
    #[error("the service key is shorter than any key is ({MIN_LENGTH} characters)")]
    TooShort,
    /// A `%` that is followed by no two hex digits, or bytes that are no text.
    #[error("the service key contains a broken %-sequence")]
    BrokenEscape,
    /// What remains after decoding is still encoded.
    #[error("the service key is percent-encoded twice")]
    EncodedTwice,
    /// Blanks, line breaks or other characters that no key has.
    #[error("the service key contains characters that no key has (a blank, a line break, non-ASCII text)")]
    Characters,
}

impl ServiceKey {
    /// Reads either form: the portal's Encoding form (`...%2B...%3D`) is decoded once, the Decoding form is taken as it is.
    pub fn parse(text: &str) -> Result<Self, KeyError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(KeyError::Empty);
        }
        let decoded = if text.contains('%') {
            if !escapes_are_whole(text) {
                return Err(KeyError::BrokenEscape);
            }
            percent_decode_str(text).decode_utf8().map_err(|_| KeyError::BrokenEscape)?.into_owned()
        } else {
            text.to_owned()
        };
        if decoded.contains('%') {
            return Err(KeyError::EncodedTwice);
        }
        if !decoded.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(KeyError::Characters);
        }
        if decoded.len() < MIN_LENGTH {
            return Err(KeyError::TooShort);
        }
        Ok(ServiceKey(decoded))
    }

    /// The key as a query value, encoded once.
    pub(super) fn encoded(&self) -> String {
        utf8_percent_encode(&self.0, QUERY_VALUE).to_string()
    }

    /// Takes the key out of a text from outside (a server that echoes the request), in every form that an echo may give it.
    pub(super) fn redact<'a>(&self, text: Cow<'a, str>) -> Cow<'a, str> {
        let encoded = self.encoded();
        let lower = encoded.replace("%2B", "%2b").replace("%2F", "%2f").replace("%3D", "%3d");
        let forms = [self.0.replace('/', "\\/"), self.0.clone(), lower, encoded];
        forms.iter().fold(text, |text, form| match text.contains(form.as_str()) {
            true => Cow::Owned(text.replace(form.as_str(), "[service key]")),
            false => text,
        })
    }
}

impl ServiceKey {
    /// Whether a text from outside repeats a piece of the key, however it was escaped, folded or cut on the way.
    pub(super) fn is_repeated_in(&self, text: &str) -> bool {
        let key = letters(&self.0);
        let size = PIECE.min(key.len());
        // What was escaped twice has to be read twice, and what looks like an escape may be none.
        let readings = std::iter::successors(Some(text.to_owned()), |text| Some(unescaped(text))).take(4);
        let pieces: Vec<&[u8]> = key.windows(size.max(1)).collect();
        readings.map(|text| letters(&text)).any(|said| said.windows(size.max(1)).any(|piece| pieces.contains(&piece)))
    }
}

/// So many letters and digits of a key in a row are no accident.
const PIECE: usize = 8;

/// Letters and digits only: the rest is what a server escapes, folds or drops.
fn letters(text: &str) -> Vec<u8> {
    text.bytes().filter(u8::is_ascii_alphanumeric).map(|byte| byte.to_ascii_lowercase()).collect()
}

/// The text with `%2B`, `\u002b`, `&#43;`, `&#x2B;` and `&plus;` read once. Names of characters become blanks: none is a letter or a digit.
fn unescaped(text: &str) -> String {
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(['%', '\\', '&']) {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let (character, length) = escape(rest).unwrap_or((' ', 1));
        plain.push(character);
        rest = &rest[length..];
    }
    plain + rest
}

/// The escape that the text begins with, and its length.
fn escape(text: &str) -> Option<(char, usize)> {
    let hex = |digits: &str| u32::from_str_radix(digits, 16).ok().and_then(char::from_u32);
    if text.starts_with('%') {
        return Some((hex(text.get(1..3)?)?, 3));
    }
    if text.starts_with("\\u") || text.starts_with("\\x") {
        let end = if text.starts_with("\\u") { 6 } else { 4 };
        return Some((hex(text.get(2..end)?)?, end));
    }
    let (name, _) = text.strip_prefix('&')?.split_once(';').filter(|(name, _)| name.len() <= 10)?;
    let character = match name.strip_prefix('#') {
        Some(number) => match number.strip_prefix(['x', 'X']) {
            Some(digits) => hex(digits)?,
            None => number.parse().ok().and_then(char::from_u32)?,
        },
        None if name == "amp" => '&',
        None if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric()) => ' ',
        None => return None,
    };
    Some((character, name.len() + 2))
}

fn escapes_are_whole(text: &str) -> bool {
    text.split('%').skip(1).all(|rest| rest.len() >= 2 && rest.bytes().take(2).all(|byte| byte.is_ascii_hexdigit()))
}

impl fmt::Debug for ServiceKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ServiceKey([not shown])")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn both_forms_of_the_portal_are_one_key() {
        let decoding = ServiceKey::parse("0123456789ab+c/d==\n").unwrap();
        let encoding = ServiceKey::parse(" 0123456789ab%2Bc%2Fd%3D%3D").unwrap();
        assert!(decoding == encoding);
        assert_eq!(decoding.encoded(), "0123456789ab%2Bc%2Fd%3D%3D");
        assert_eq!(format!("{decoding:?}"), "ServiceKey([not shown])");
    }

    #[test]
    fn what_is_no_key_is_refused_without_an_echo() {
        for (text, error) in [
            ("  ", KeyError::Empty),
            ("secret", KeyError::TooShort),
            ("secret%2", KeyError::BrokenEscape),
            ("secret%zz", KeyError::BrokenEscape),
            ("secret%ff", KeyError::BrokenEscape),
            ("secret%252B", KeyError::EncodedTwice),
            ("secret key", KeyError::Characters),
            ("secret\u{3000}key", KeyError::Characters),
        ] {
            assert_eq!(ServiceKey::parse(text), Err(error), "{text}");
            assert!(!error.to_string().contains("secret"));
        }
    }

    const ISSUED: &str = "Ze4/kX+9canary0Ring//B7+Sr5=wD8q0==";

    #[test]
    fn an_echo_is_known_however_it_was_escaped() {
        let key = ServiceKey::parse(ISSUED).unwrap();
        let once = key.encoded();
        for echo in [
            ISSUED.to_owned(),
            once.clone(),
            once.replace('%', "%25"),
            once.replace('%', "%25").replace('%', "%25"),
            once.to_lowercase(),
            ISSUED.replace('/', "&#x2F;").replace('+', "&#43;").replace('=', "&equals;"),
            ISSUED.replace('/', "\\/").replace('+', "\\u002b").replace('=', "\\u003D"),
            ISSUED.replace('+', " "),
            ISSUED.replace('+', "&amp;#43;"),
            ISSUED.chars().map(|c| format!("\\u{:04x}", u32::from(c))).collect(),
            ISSUED.chars().map(|c| format!("%{:02x}", u32::from(c))).collect(),
            ISSUED.chars().map(|c| format!("&#{};", u32::from(c))).collect(),
            ISSUED[5..14].to_owned(),
            format!("/login/{}", ISSUED.replace('/', "-")),
        ] {
            assert!(key.is_repeated_in(&format!("no such page: {echo}?x=1")), "{echo}");
        }
        for text in
            ["", "한글 SERVICE_KEY_IS_NOT_REGISTERED_ERROR 100% & \\", "%", "&#xfffffff;", "%가나다 \\u가나", "canary"]
        {
            assert!(!key.is_repeated_in(text), "{text}");
        }
    }

    proptest! {
        #[test]
        fn no_text_is_too_odd_to_be_looked_through(text in "[%&#;x\\\\u0-9a가+]{0,40}") {
            let key = ServiceKey::parse(ISSUED).unwrap();
            prop_assert!(!key.is_repeated_in(&text));
        }

        #[test]
        fn a_key_reaches_the_server_as_it_was_issued(issued in "[A-Za-z0-9+/]{16,80}={0,2}") {
            let key = ServiceKey::parse(&issued).unwrap();
            let encoded = key.encoded();
            prop_assert_eq!(percent_decode_str(&encoded).decode_utf8().unwrap(), issued.as_str());
            prop_assert!(ServiceKey::parse(&encoded).unwrap() == key);
            let lower = encoded.replace("%2B", "%2b").replace("%2F", "%2f").replace("%3D", "%3d");
            let echo = format!("{encoded} {lower} {issued} {}", issued.replace('/', "\\/"));
            prop_assert_eq!(key.redact(echo.into()).replace("[service key]", "-"), "- - - -");
        }
    }
}
