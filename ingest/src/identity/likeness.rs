//! When two rows are one library.

use std::fmt;

use unicode_normalization::UnicodeNormalization;

use crate::record::Position;

/// Rows of one library lie at most this far apart, in metres; institutions measure one building within three.
const NEAR_METRES: f64 = 150.0;

/// What a row is compared by, in a form in which spelling does not matter.
#[derive(Debug, Clone, PartialEq)]
pub struct Likeness {
    name: String,
    address: Option<Address>,
    position: Option<Position>,
    telephone: Option<String>,
}

/// Why two rows are one library. All of them need the same name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// The same address.
    Address,
    /// At most 150 metres apart.
    Near,
    /// The same telephone. It only helps a library whose row vanished to be found again; rows that are listed side by side may be two
    /// branches behind one number.
    Telephone,
}

impl Rule {
    /// The word for reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Rule::Address => "same name and address",
            Rule::Near => "same name within 150 m",
            Rule::Telephone => "same name and telephone",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Likeness {
    /// Of published values.
    pub fn new(name: &str, address: Option<&str>, position: Option<Position>, telephone: Option<&str>) -> Self {
        Likeness {
            name: bare(name),
            address: address.and_then(Address::of),
            position,
            telephone: telephone.and_then(bare_telephone),
        }
    }

    /// The normalised name: rows that differ in it are never one library.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// It has coordinates.
    pub fn is_located(&self) -> bool {
        self.position.is_some()
    }

    /// Both rows are one library, wherever they are listed.
    pub fn same(&self, other: &Likeness) -> Option<Rule> {
        if self.name != other.name {
            None
        } else if self.address.as_ref().zip(other.address.as_ref()).is_some_and(|(a, b)| a.same(b)) {
            Some(Rule::Address)
        } else {
            let near = self.position.zip(other.position).is_some_and(|(a, b)| metres(a, b) <= NEAR_METRES);
            near.then_some(Rule::Near)
        }
    }

    /// `other` is the library whose row vanished.
    pub fn again(&self, other: &Likeness) -> Option<Rule> {
        let same_telephone =
            || self.name == other.name && self.telephone.is_some() && self.telephone == other.telephone;
        self.same(other).or_else(|| same_telephone().then_some(Rule::Telephone))
    }
}

/// NFKC without white space and what cannot be seen; of the dots that look alike there is one.
fn bare(text: &str) -> String {
    let seen = text.nfkc().filter(|c| !c.is_whitespace() && !is_invisible(*c));
    seen.map(|c| if DOTS.contains(&c) { '·' } else { c }).collect()
}

/// U+318D, which is usual in Korean names, is U+119E in NFKC.
const DOTS: [char; 7] = ['\u{119e}', '\u{318d}', '\u{2022}', '\u{2027}', '\u{2219}', '\u{22c5}', '\u{30fb}'];

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
}

/// Without commas and what stands in parentheses; one that is never closed reaches to the end, if a number stands before it.
fn bare_address(text: &str) -> String {
    let bare = bare(text);
    let mut depth = 0_usize;
    let mut address = String::new();
    for (at, c) in bare.char_indices() {
        match c {
            '(' if depth > 0 || bare[at..].contains(')') || address.chars().any(|c| c.is_ascii_digit()) => depth += 1,
            '(' => {}
            ')' => depth = depth.saturating_sub(1),
            ',' => {}
            _ if depth == 0 => address.push(c),
            _ => {}
        }
    }
    address
}

/// What publishers write where there is no address.
const PLACEHOLDERS: [&str; 8] = ["없음", "미정", "미상", "해당없음", "해당사항없음", "주소없음", "확인중", "추후입력"];

/// An address in two parts, as a province that is reformed changes only the first.
#[derive(Debug, Clone, PartialEq)]
struct Address {
    /// One bit for each of the old provinces that its name has in it.
    provinces: u32,
    /// The rest.
    local: String,
}

/// The provinces by the words that their names, old, new and short, are made of.
const PROVINCES: [&[&str]; 17] = [
    &["서울"],
    &["부산"],
    &["대구"],
    &["인천"],
    &["광주"],
    &["대전"],
    &["울산"],
    &["세종"],
    &["경기"],
    &["강원"],
    &["충청북", "충북"],
    &["충청남", "충남"],
    &["전라북", "전북"],
    &["전라남", "전남"],
    &["경상북", "경북"],
    &["경상남", "경남"],
    &["제주"],
];

/// What may follow them, the longest first.
const KINDS: [&str; 7] = ["통합특별자치도", "통합특별시", "특별자치도", "특별자치시", "특별시", "광역시", "도"];

impl Address {
    fn of(text: &str) -> Option<Address> {
        let bare = bare_address(text);
        let says_nothing = !bare.chars().any(char::is_alphanumeric) || PLACEHOLDERS.contains(&bare.as_str());
        let (provinces, local) = split_province(&bare);
        (!says_nothing).then(|| Address { provinces, local: local.to_owned() })
    }

    /// The same but for a province that has another name now: 인천광역시 and 인천특별자치시, 광주광역시 and 전남광주통합특별시.
    fn same(&self, other: &Address) -> bool {
        let provinces = self.provinces == other.provinces || self.provinces & other.provinces != 0;
        provinces && self.local == other.local
    }
}

fn split_province(address: &str) -> (u32, &str) {
    let (mut provinces, mut rest) = (0, address);
    while let Some((bit, after)) = PROVINCES
        .iter()
        .enumerate()
        .find_map(|(bit, words)| Some((bit, words.iter().find_map(|word| rest.strip_prefix(word))?)))
    {
        provinces |= 1 << bit;
        rest = after;
    }
    let kind = KINDS.iter().find_map(|kind| rest.strip_prefix(kind));
    // 광주시 is a town, and no province without its kind.
    match kind {
        Some(local) if provinces != 0 && !local.is_empty() => (provinces, local),
        _ => (0, address),
    }
}

/// The digits. Placeholders (032-000-0000) are no telephone: all zeros but for the area code.
fn bare_telephone(text: &str) -> Option<String> {
    let digits: String = text.nfkc().filter(char::is_ascii_digit).collect();
    let subscriber = digits.len().checked_sub(7)?;
    digits[subscriber..].bytes().any(|digit| digit != b'0').then_some(digits)
}

/// Along the great circle, on a sphere: good to half a percent.
fn metres(a: Position, b: Position) -> f64 {
    let (north, south) = (a.latitude.to_radians(), b.latitude.to_radians());
    let half = |angle: f64| (angle / 2.0).sin().powi(2);
    let east = (a.longitude - b.longitude).to_radians();
    2.0 * 6_371_008.8 * (half(north - south) + north.cos() * south.cos() * half(east)).sqrt().min(1.0).asin()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(latitude: f64, longitude: f64) -> Option<Position> {
        Some(Position { latitude, longitude })
    }

    fn like(name: &str, address: &str, position: Option<Position>, telephone: &str) -> Likeness {
        Likeness::new(name, Some(address), position, Some(telephone))
    }

    #[test]
    fn spelling_is_no_difference() {
        let one = like("판암 도서관", "대전광역시 동구 옥천로 180번길 20 (판암동)", None, "");
        for (name, address) in [
            ("판암도서관", "대전광역시 동구 옥천로180번길 20"),
            ("판암\u{3000}도서관", "대전광역시 동구 옥천로 180번길, 20（판암동, 2층）"),
            ("판암도서관", "대전광역시 동구 옥천로 180번길 20(판암동"),
        ] {
            assert_eq!(one.same(&like(name, address, None, "")), Some(Rule::Address), "{name} {address}");
        }
        assert_eq!(one.same(&like("판암도서관(어린이)", "대전광역시 동구 옥천로180번길 20", None, "")), None);
    }

    #[test]
    fn a_province_with_a_new_name_is_the_same_and_another_one_is_not() {
        let at = |address| like("관", address, None, "");
        for (one, other, same) in [
            ("인천광역시 계양구 계양산로 18", "인천특별자치시 계양구 계양산로 18", true),
            ("전라북도 전주시 가길 1", "전북특별자치도 전주시 가길 1", true),
            ("광주광역시 북구 가길 1", "전남광주통합특별시 북구 가길 1", true),
            ("전라남도 목포시 가길 1", "전남광주통합특별시 목포시 가길 1", true),
            ("대전광역시 중구 중앙로 1", "서울특별시 중구 중앙로 1", false),
            ("광주광역시 북구 가길 1", "전라남도 북구 가길 1", false),
            ("경기도 광주시 가길 1", "광주시 가길 1", false),
            ("인천광역시 계양구 계양산로 18", "인천특별자치시 계양구 계양산로 19", false),
        ] {
            assert_eq!(at(one).same(&at(other)).is_some(), same, "{one} {other}");
            assert_eq!(at(other).same(&at(one)).is_some(), same, "{one} {other}");
        }
    }

    #[test]
    fn what_cannot_be_seen_is_no_difference() {
        let one = like("한·빛도서관", "가길 1", None, "");
        for name in ["한ㆍ빛도서관", "한\u{200b}·빛도서관", "한・빛도서관\u{feff}"] {
            assert_eq!(one.same(&like(name, "\u{feff}가길\u{200b} 1", None, "")), Some(Rule::Address), "{name}");
        }
        assert_eq!(one.same(&like("한빛도서관", "가길 1", None, "")), None);
    }

    #[test]
    fn no_address_is_like_no_other() {
        for nothing in ["-", ".", "(2층)", "없음", "해당 없음", "미정", "", "——"] {
            assert_eq!(like("관", nothing, None, "").same(&like("관", nothing, None, "")), None, "{nothing}");
        }
        let never_closed = |rest| like("관", &format!("경기도 수원시 ({rest}"), None, "");
        assert_eq!(never_closed("장안구 가로 1").same(&never_closed("권선구 나로 9")), None);
    }

    #[test]
    fn a_name_alone_is_nothing() {
        let nowhere = || Likeness::new("중앙도서관", None, None, None);
        assert_eq!(nowhere().again(&nowhere()), None);
        let only_brackets = || like("중앙도서관", "(2층)", None, "");
        assert_eq!(only_brackets().again(&only_brackets()), None);
    }

    #[test]
    fn near_ends_at_150_metres() {
        let from = |position| like("관", "가", position, "");
        let here = from(at(37.0, 127.0));
        // One degree of latitude is 111,195 m on this sphere.
        assert_eq!(here.same(&like("관", "나", at(37.0 + 149.9 / 111_195.0, 127.0), "")), Some(Rule::Near));
        assert_eq!(here.same(&like("관", "나", at(37.0 + 150.1 / 111_195.0, 127.0), "")), None);
        assert_eq!(here.same(&like("관", "나", None, "")), None);
    }

    #[test]
    fn a_telephone_finds_again_and_merges_nothing() {
        let (one, other) = (like("관", "가", None, "02-123-4567"), like("관", "나", None, "02)123 4567"));
        assert_eq!((one.same(&other), one.again(&other)), (None, Some(Rule::Telephone)));
        for placeholder in ["032-000-0000", "00-000-0000", "000-000-0000", "000-0000-0000", "02-0000-0000", "-", ""] {
            assert_eq!(
                like("관", "가", None, placeholder).again(&like("관", "나", None, placeholder)),
                None,
                "{placeholder}"
            );
        }
    }
}
