//! When two rows are one library.

use std::fmt;

use unicode_normalization::UnicodeNormalization;

use super::address::Address;
use crate::record::{Position, is_invisible};

/// Rows of one library lie at most this far apart, in metres; institutions measure one building within three.
const NEAR_METRES: f64 = 150.0;

/// Rows that are further apart than this, in metres, are two libraries, even with one address.
const FAR_METRES: f64 = 10_000.0;

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
    /// The same institution. Like a telephone, it only helps to find a library again.
    Institution,
}

impl Rule {
    /// The word for reports.
    pub const fn as_str(self) -> &'static str {
        match self {
            Rule::Address => "same name and address",
            Rule::Near => "same name within 150 m",
            Rule::Telephone => "same name and telephone",
            Rule::Institution => "same name and institution",
        }
    }

    /// It shows where a library is. Any other rule holds for two that a town has of one name, too.
    pub const fn is_sure(self) -> bool {
        matches!(self, Rule::Address | Rule::Near)
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
            name: plain(name).split_whitespace().collect(),
            address: address.and_then(Address::read),
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

    /// What it lacks, as another one has it.
    #[must_use]
    pub fn or(self, other: &Likeness) -> Likeness {
        let Likeness { name, address, position, telephone } = self;
        Likeness {
            name,
            address: address.or_else(|| other.address.clone()),
            position: position.or(other.position),
            telephone: telephone.or_else(|| other.telephone.clone()),
        }
    }

    /// Both rows are one library, wherever they are listed.
    pub fn same(&self, other: &Likeness) -> Option<Rule> {
        let apart = || self.position.zip(other.position).map(|(a, b)| metres(a, b));
        if self.name != other.name {
            None
        } else if self.same_address(other) && apart().is_none_or(|metres| metres <= FAR_METRES) {
            Some(Rule::Address)
        } else {
            apart().is_some_and(|metres| metres <= NEAR_METRES).then_some(Rule::Near)
        }
    }

    /// `other` is the library whose row vanished: the same one, although a point was corrected, or a number is all that is left of it.
    pub fn again(&self, other: &Likeness) -> Option<Rule> {
        let same_telephone = || self.telephone.is_some() && self.telephone == other.telephone;
        self.same(other).or_else(|| match self.name == other.name {
            true if self.same_address(other) => Some(Rule::Address),
            true if same_telephone() => Some(Rule::Telephone),
            _ => None,
        })
    }

    /// Both are in one town.
    pub fn in_one_town(&self, other: &Likeness) -> bool {
        self.address.as_ref().zip(other.address.as_ref()).is_some_and(|(a, b)| a.in_one_town(b))
    }

    fn same_address(&self, other: &Likeness) -> bool {
        self.address.as_ref().zip(other.address.as_ref()).is_some_and(|(a, b)| a.same(b))
    }
}

/// NFKC, without what cannot be seen, and with one spelling of dots, dashes and tildes that look alike.
pub(super) fn plain(text: &str) -> String {
    let visible = text.nfkc().filter(|c| !is_invisible(*c));
    visible
        .map(|c| match c {
            '\u{387}' | '\u{119e}' | '\u{2022}' | '\u{2027}' | '\u{2219}' | '\u{22c5}' | '\u{2e31}' | '\u{30fb}' => '·',
            '\u{2010}'..='\u{2015}' | '\u{2212}' => '-',
            '\u{223c}' | '\u{301c}' => '~',
            c => c,
        })
        .collect()
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
    fn what_looks_alike_is_alike() {
        let one = like("어린이·청소년 도서관", "경기도 가시 나로 1-2", None, "");
        for (name, address) in [
            ("어린이ㆍ청소년도서관", "경기도 가시 나로 1\u{2013}2"),
            ("어린이・청소년도서관", "경기도\u{feff} 가시\u{a0}나로 1\u{2212}2"),
            ("어린이‧청소년\u{200b}도서관", "경기도 가시 나로\u{3164}1-2\u{200e}"),
            ("어린이･청소\u{ad}년도서관", "경기도 가시 나로 １－２"),
        ] {
            assert_eq!(one.same(&like(name, address, None, "")), Some(Rule::Address), "{name} {address}");
        }
    }

    #[test]
    fn points_that_are_far_apart_outweigh_an_address() {
        let from = |latitude| like("관", "나로 1", at(latitude, 127.0), "");
        let (here, town, province) = (from(37.0), from(37.08), from(37.1));
        assert_eq!(here.same(&town), Some(Rule::Address));
        assert_eq!((here.same(&province), here.again(&province)), (None, Some(Rule::Address)));
    }

    #[test]
    fn a_name_alone_is_nothing() {
        let nowhere = || Likeness::new("중앙도서관", None, None, None);
        assert_eq!(nowhere().again(&nowhere()), None);
        let only_brackets = || like("중앙도서관", "(2층)", None, "");
        assert_eq!(only_brackets().again(&only_brackets()), None);
        let placeholder = || like("중앙도서관", "-", None, "");
        assert_eq!(placeholder().again(&placeholder()), None);
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
