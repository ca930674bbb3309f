//! One row of a snapshot after it was read at the edge: a place's published values and their digest, or the reason why not.

use std::borrow::Cow;
use std::fmt;

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick};

/// SHA-256 of a place's normalised content: two are equal exactly when nothing that was published differs.
pub type Digest = [u8; 32];

/// What a place is recognised by, within one snapshot; see [`crate::identity`].
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Handle {
    /// Code of the institution that publishes the row.
    pub institution: String,
    /// The place's name.
    pub name: String,
    /// Its address; tells apart what one institution lists under one name.
    pub address: Option<String>,
}

/// A place as it was published, normalised.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// What it is recognised by.
    pub handle: Handle,
    /// Its kind, in the publisher's words.
    pub category: Option<String>,
    /// Province or metropolitan city.
    pub province: Option<String>,
    /// City, county or district.
    pub district: Option<String>,
    /// Its telephone; a place whose row vanished may be recognised by it.
    pub telephone: Option<String>,
    /// WGS 84; both coordinates or none.
    pub position: Option<Position>,
    /// Every published field as a JSON object.
    pub attributes: String,
    /// Of everything above.
    pub digest: Digest,
    /// What is odd about it and was stored all the same.
    pub notes: Vec<Note>,
}

/// A published value that is odd, and whose meaning is clear.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Note {
    /// Latitude and longitude stood in each other's field, and were exchanged: there is no degree in Korea that could be both.
    SwappedPosition,
    /// `24:00`, the end of a day; stored as it is.
    EndOfDay,
}

impl Note {
    /// The word for logs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Note::SwappedPosition => "latitude and longitude were exchanged",
            Note::EndOfDay => "24:00 was stored as it is",
        }
    }
}

/// WGS 84, in degrees.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Position {
    /// North.
    pub latitude: f64,
    /// East.
    pub longitude: f64,
}

/// A row that cannot be stored. It is set aside, and it counts as present.
#[derive(Debug, Clone, PartialEq)]
pub struct Reject {
    /// The published field that is bad.
    pub column: &'static str,
    /// What is wrong with it; never the value itself.
    pub reason: BadValue,
    /// What the row is recognised by, when that much of it can be read.
    pub handle: Option<Handle>,
    /// Where it is, when that can be read.
    pub position: Option<Position>,
    /// Its telephone, when that can be read.
    pub telephone: Option<String>,
}

/// A row, read.
#[derive(Debug, Clone, PartialEq)]
pub enum Row {
    /// Fit to be stored.
    Good(Record),
    /// Set aside.
    Bad(Reject),
}

impl Row {
    /// What the row is recognised by.
    pub fn handle(&self) -> Option<&Handle> {
        match self {
            Row::Good(record) => Some(&record.handle),
            Row::Bad(reject) => reject.handle.as_ref(),
        }
    }

    /// Where it is, and its telephone, as far as they are known.
    pub fn marks(&self) -> (Option<Position>, Option<&str>) {
        match self {
            Row::Good(Record { position, telephone, .. }) | Row::Bad(Reject { position, telephone, .. }) => {
                (*position, telephone.as_deref())
            }
        }
    }
}

/// Why a value cannot be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BadValue {
    /// The field is not there at all.
    Missing,
    /// It is empty, and a place cannot be without it.
    Empty,
    /// Not a text: an object, or characters that JSON cannot carry.
    NoText,
    /// Bytes that are no UTF-8 (or U+FFFD, which stands for them).
    Encoding,
    /// A NUL or another control character.
    Control,
    /// Longer than any real value.
    TooLong,
    /// Not a whole number from 0 to 2^53.
    NoCount,
    /// Not a plain non-negative decimal number.
    NoDecimal,
    /// Not HH:MM.
    NoTime,
    /// Not a day of the calendar in YYYY-MM-DD.
    NoDate,
    /// Not an institution code: letters and digits.
    NoCode,
    /// Not a decimal degree.
    NoDegree,
    /// A degree that is nowhere in Korea.
    OutsideKorea,
    /// One coordinate without the other.
    HalfPosition,
    /// Nothing is wrong with this row: it may be the place that another row of its name is, in which the column is bad.
    Indistinct,
    /// Nothing is wrong with this row: it may be another reading of the one before it, and no proof says that there are two.
    Unproven,
}

impl BadValue {
    /// One clause for the ledger.
    pub const fn as_str(self) -> &'static str {
        match self {
            BadValue::Missing => "the field is missing",
            BadValue::Empty => "is empty",
            BadValue::NoText => "is no text",
            BadValue::Encoding => "contains bytes that are no UTF-8",
            BadValue::Control => "contains a control character",
            BadValue::TooLong => "is longer than any real value",
            BadValue::NoCount => "is no count",
            BadValue::NoDecimal => "is no decimal number",
            BadValue::NoTime => "is no time of day",
            BadValue::NoDate => "is no calendar date",
            BadValue::NoCode => "is no institution code",
            BadValue::NoDegree => "is no decimal degree",
            BadValue::OutsideKorea => "lies outside Korea",
            BadValue::HalfPosition => "one coordinate without the other",
            BadValue::Indistinct => "is bad in another row of this name, and nobody can tell which place is which",
            BadValue::Unproven => {
                "is that of another row too, in a listing that is not proven: it may be one row, read twice"
            }
        }
    }
}

impl fmt::Display for BadValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// No real value is longer (the longest seen has 115 characters).
const MAX_CHARS: usize = 4_000;

/// A character that has no shape of its own: Unicode's default-ignorable ones, the fillers of Hangul included.
pub const fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
        | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}' | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}')
}

/// A published text in its one normal form: NFC, nothing invisible in it, no white space around it (U+3000 included), and never empty.
pub fn clean(text: &str) -> Result<Option<String>, BadValue> {
    let visible = match text.contains(is_invisible) {
        true => Cow::Owned(text.chars().filter(|c| !is_invisible(*c)).collect()),
        false => Cow::Borrowed(text),
    };
    let text = visible.trim();
    if text.is_empty() {
        return Ok(None);
    }
    if text.len() > MAX_CHARS * 4 || text.chars().count() > MAX_CHARS {
        return Err(BadValue::TooLong);
    }
    if text.contains('\u{fffd}') {
        return Err(BadValue::Encoding);
    }
    if text.chars().any(|c| c.is_control() && !matches!(c, '\t' | '\n' | '\r')) {
        return Err(BadValue::Control);
    }
    match is_nfc_quick(text.chars()) {
        IsNormalized::Yes => Ok(Some(text.to_owned())),
        _ => Ok(Some(text.nfc().collect())),
    }
}

/// A whole number in its shortest spelling.
pub fn count(text: &str) -> Result<String, BadValue> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse::<u64>() {
        Ok(number) if digits && number <= 1 << 53 => Ok(number.to_string()),
        _ => Err(BadValue::NoCount),
    }
}

/// A plain decimal number (no exponent, no NaN), if it is one.
pub fn decimal(text: &str) -> Option<f64> {
    let plain = text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'-'));
    text.parse::<f64>().ok().filter(|number| plain && number.is_finite()).map(|number| number + 0.0)
}

/// A time of day as HH:MM; `9:00` gets its zero, `24:00` stays (the end of a day).
pub fn time(text: &str) -> Result<String, BadValue> {
    let parse = |part: &str, most: u8| {
        let digits = matches!(part.len(), 1 | 2) && part.bytes().all(|byte| byte.is_ascii_digit());
        part.parse::<u8>().ok().filter(|number| digits && *number <= most)
    };
    let (hour, minute) = text.split_once(':').ok_or(BadValue::NoTime)?;
    match (parse(hour, 24), parse(minute, 59), minute.len()) {
        (Some(24), Some(1..), _) => Err(BadValue::NoTime),
        (Some(hour), Some(minute), 2) => Ok(format!("{hour:02}:{minute:02}")),
        _ => Err(BadValue::NoTime),
    }
}

/// A day of the Gregorian calendar, as YYYY-MM-DD, in a year in which such data can have been written.
pub fn date(text: &str) -> Result<(), BadValue> {
    let parts: Vec<&str> = text.split('-').collect();
    let number = |part: &str, width: usize| {
        (part.len() == width && part.bytes().all(|byte| byte.is_ascii_digit())).then(|| part.parse::<u32>().ok())?
    };
    let [year, month, day] = parts[..] else { return Err(BadValue::NoDate) };
    let (Some(year), Some(month), Some(day)) = (number(year, 4), number(month, 2), number(day, 2)) else {
        return Err(BadValue::NoDate);
    };
    let leap = year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let days = match month {
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        1..=12 => 31,
        _ => return Err(BadValue::NoDate),
    };
    if (1900..=2100).contains(&year) && (1..=days).contains(&day) { Ok(()) } else { Err(BadValue::NoDate) }
}

/// Both degrees, or none. The box has every island of the country; a latitude and longitude that were exchanged are outside of it, and
/// are read the right way round with a note.
pub fn position(
    latitude: Option<&str>,
    longitude: Option<&str>,
) -> Result<(Option<Position>, Option<Note>), (bool, BadValue)> {
    let (latitude, longitude) = match (latitude, longitude) {
        (None, None) => return Ok((None, None)),
        (Some(latitude), Some(longitude)) => (latitude, longitude),
        (latitude, _) => return Err((latitude.is_none(), BadValue::HalfPosition)),
    };
    let degree = |text| decimal(text).ok_or(BadValue::NoDegree);
    let (latitude, longitude) =
        (degree(latitude).map_err(|bad| (true, bad))?, degree(longitude).map_err(|bad| (false, bad))?);
    let (north, east) = (32.0..=39.5, 123.5..=132.5);
    match (north.contains(&latitude), east.contains(&longitude)) {
        (true, true) => Ok((Some(Position { latitude, longitude }), None)),
        _ if north.contains(&longitude) && east.contains(&latitude) => {
            Ok((Some(Position { latitude: longitude, longitude: latitude }), Some(Note::SwappedPosition)))
        }
        (inside, _) => Err((!inside, BadValue::OutsideKorea)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn texts_have_one_normal_form() {
        assert_eq!(clean(" 노원구\u{3000}").unwrap().as_deref(), Some("노원구"));
        assert_eq!(clean("\u{feff} 별\u{200b}빛\u{3164} 관 \u{200b}").unwrap().as_deref(), Some("별빛 관"));
        assert_eq!(clean("\u{1112}\u{1161}\u{11ab}").unwrap().as_deref(), Some("한"));
        for blank in ["", " \u{3000}\t", "\u{feff}", "\u{200b} \u{200b}"] {
            assert_eq!(clean(blank), Ok(None));
        }
        assert_eq!(clean("a\0b"), Err(BadValue::Control));
        assert_eq!(clean("a\u{fffd}b"), Err(BadValue::Encoding));
        assert_eq!(clean(&"가".repeat(1 << 20)), Err(BadValue::TooLong));
    }

    #[test]
    fn numbers_have_one_spelling() {
        assert_eq!(count("007").as_deref(), Ok("7"));
        for bad in ["", "-1", "+1", "1.5", "1,000", "47148+559", "99999999999999999999", "9007199254740993"] {
            assert_eq!(count(bad), Err(BadValue::NoCount), "{bad}");
        }
        assert_eq!(decimal("0990.50").map(|n| n.to_string()).as_deref(), Some("990.5"));
        assert_eq!(decimal("-0").map(|n| n.to_string()).as_deref(), Some("0"));
        for bad in ["", "NaN", "inf", "Infinity", "1e3", "1,5", "-"] {
            assert_eq!(decimal(bad), None, "{bad}");
        }
    }

    #[test]
    fn times_and_dates_exist() {
        assert_eq!(time("9:00").as_deref(), Ok("09:00"));
        assert_eq!(time("24:00").as_deref(), Ok("24:00"));
        for bad in ["24:01", "25:00", "12:60", "12", "1:2", "ab:cd", "12:000", "+1:00"] {
            assert_eq!(time(bad), Err(BadValue::NoTime), "{bad}");
        }
        assert_eq!(date("2024-02-29"), Ok(()));
        for bad in ["2023-02-29", "2024-02-30", "2024-13-01", "0000-00-00", "2024-2-3", "9999-01-01", "2024-01-00", "x"]
        {
            assert_eq!(date(bad), Err(BadValue::NoDate), "{bad}");
        }
    }

    #[test]
    fn positions_are_whole_and_in_korea() {
        assert_eq!(position(None, None), Ok((None, None)));
        let dokdo = Some(Position { latitude: 37.24, longitude: 131.87 });
        assert_eq!(position(Some("37.24"), Some("131.87")), Ok((dokdo, None)));
        assert_eq!(position(Some("131.87"), Some("37.24")), Ok((dokdo, Some(Note::SwappedPosition))));
        assert_eq!(position(Some("127.0"), Some("127.5")), Err((true, BadValue::OutsideKorea)));
        assert_eq!(position(Some("37.5"), Some("0")), Err((false, BadValue::OutsideKorea)));
        assert_eq!(position(Some("NaN"), Some("127")), Err((true, BadValue::NoDegree)));
        assert_eq!(position(Some("37.5"), None), Err((false, BadValue::HalfPosition)));
        assert_eq!(position(None, Some("127")), Err((true, BadValue::HalfPosition)));
    }

    proptest! {
        #[test]
        fn cleaning_twice_changes_nothing(text in "[\\PC\u{200b}\u{3164}]{0,20}|[ \u{3000}\u{1100}-\u{11ff}]{0,6}") {
            if let Ok(Some(once)) = clean(&text) {
                prop_assert_eq!(clean(&once), Ok(Some(once.clone())));
            }
        }

        #[test]
        fn a_date_is_what_the_calendar_says(year in 1900u32..2101, month in 0u32..15, day in 0u32..33) {
            let exists = humantime::parse_rfc3339(&format!("{year:04}-{month:02}-{day:02}T00:00:00Z")).is_ok();
            // humantime's own calendar begins in 1970.
            prop_assume!(year >= 1970);
            prop_assert_eq!(date(&format!("{year:04}-{month:02}-{day:02}")).is_ok(), exists);
        }
    }
}
