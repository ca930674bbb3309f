//! An address, and when two spellings of it are one.

use super::likeness::plain;

/// An address in a form in which spelling does not matter.
#[derive(Debug, Clone, PartialEq)]
pub struct Address {
    /// The province without what is only its rank: a reform changes that, and adds a neighbour's name at most.
    province: Option<String>,
    rest: String,
}

/// The ranks of provinces, longest first. All but the last two are nowhere else in an address.
const RANKS: [&str; 7] = ["특별자치도", "특별자치시", "통합특별시", "특별시", "광역시", "도", "시"];

/// Provinces as people write them without a rank.
const PROVINCES: [&str; 23] = [
    "충청북",
    "충청남",
    "전라북",
    "전라남",
    "경상북",
    "경상남",
    "서울",
    "부산",
    "대구",
    "인천",
    "광주",
    "대전",
    "울산",
    "세종",
    "경기",
    "강원",
    "충북",
    "충남",
    "전북",
    "전남",
    "경북",
    "경남",
    "제주",
];

impl Address {
    /// Of a published text. A placeholder ("-", "미정") or an area alone is no address: it has no number, or nothing but one.
    pub fn read(text: &str) -> Option<Address> {
        let address = bare(&without_remarks(&plain(text)));
        let (province, rest) = split(&address);
        let is_one = rest.chars().any(char::is_alphabetic) && has_number(rest);
        is_one.then(|| Address { province, rest: rest.to_owned() })
    }

    /// Both name one town, or one district of a large one.
    pub fn in_one_town(&self, other: &Address) -> bool {
        let town = |address: &Address| {
            let end = address.rest.char_indices().skip(1).find(|(_, c)| matches!(c, '시' | '군' | '구'));
            end.map(|(at, _)| address.rest[..at].to_owned())
        };
        self.is_akin(other) && town(self).is_some() && town(self) == town(other)
    }

    /// They are one, whatever the province is called this year. The neighbour's street of the same name is in no such province.
    pub fn same(&self, other: &Address) -> bool {
        self.rest == other.rest && self.is_akin(other)
    }

    fn is_akin(&self, other: &Address) -> bool {
        match (&self.province, &other.province) {
            (Some(a), Some(b)) => a.contains(b.as_str()) || b.contains(a.as_str()),
            (None, None) => true,
            _ => false,
        }
    }
}

fn has_number(text: &str) -> bool {
    text.chars().any(|c| c.is_ascii_digit() && c != '0')
}

/// Without what stands in parentheses. One that is never closed is a remark when the number came before it, and else a slip.
fn without_remarks(text: &str) -> String {
    let mut rest = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '(' => match after_remark(chars.as_str()) {
                Some(after) => chars = after.chars(),
                None if has_number(&rest) => break,
                None => {}
            },
            ')' => {}
            _ => rest.push(c),
        }
        if matches!(c, '(' | ')') {
            rest.push(' ');
        }
    }
    rest
}

/// What follows the parenthesis that closes the one before `text`.
fn after_remark(text: &str) -> Option<&str> {
    let mut depth = 1_usize;
    for (at, c) in text.char_indices() {
        match c {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return Some(&text[at + 1..]);
        }
    }
    None
}

/// Without white space and commas, but for one blank between two numbers.
fn bare(text: &str) -> String {
    let mut address = String::new();
    for word in text.split(|c: char| c.is_whitespace() || matches!(c, ',' | '、')).filter(|word| !word.is_empty()) {
        if address.ends_with(|c: char| c.is_ascii_digit()) && word.starts_with(|c: char| c.is_ascii_digit()) {
            address.push(' ');
        }
        address.push_str(word);
    }
    address
}

/// The province in its short form, and what follows it.
fn split(address: &str) -> (Option<String>, &str) {
    let named = RANKS[..5].iter().find_map(|rank| {
        let (province, rest) = address.split_once(rank)?;
        (2..=6).contains(&province.chars().count()).then_some((province, rest))
    });
    let short = || {
        PROVINCES.iter().find_map(|province| {
            let rest = address.strip_prefix(province)?;
            Some((*province, RANKS.iter().find_map(|rank| rest.strip_prefix(rank)).unwrap_or(rest)))
        })
    };
    match named.or_else(short) {
        Some((province, rest)) => (Some(abbreviated(province)), rest),
        None => (None, address),
    }
}

/// 전라남 is 전남, and so on.
fn abbreviated(province: &str) -> String {
    [("충청", "충"), ("전라", "전"), ("경상", "경")]
        .iter()
        .fold(province.to_owned(), |name, (long, short)| name.replace(long, short))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn same(a: &str, b: &str) -> bool {
        Address::read(a).zip(Address::read(b)).is_some_and(|(a, b)| a.same(&b) && b.same(&a))
    }

    #[test]
    fn a_placeholder_or_an_area_alone_is_no_address() {
        for none in [
            "-",
            ".",
            "",
            " ",
            "미정",
            "없음",
            "해당없음",
            "0",
            "000-00",
            "12",
            "대한민국",
            "경기도",
            "서울특별시 종로구",
            "(2층)",
            "인천광역시 1",
            "번지 0",
        ] {
            assert_eq!(Address::read(none), None, "{none}");
        }
    }

    #[test]
    fn a_reform_is_no_other_address() {
        for (old, new) in [
            ("인천광역시 계양구 계양산로134번길 18", "인천특별자치시 계양구 계양산로134번길 18"),
            ("전라남도 순천시 나로 1", "전남광주통합특별시 순천시 나로 1"),
            ("광주광역시 동구 나로 1", "전남광주통합특별시 동구 나로 1"),
            ("전라북도 전주시 나로 1", "전북특별자치도 전주시 나로 1"),
            ("강원도 고성군 나로 1", "강원특별자치도 고성군 나로 1"),
            ("서울 영등포구 나로 1", "서울특별시영등포구 나로 1"),
            ("부산 영도구 나로 1", "부산시 영도구 나로1"),
            ("전남 순천시 나로 1", "전라남도 순천시 나로 1"),
        ] {
            assert!(same(old, new), "{old} = {new}");
        }
        // Districts of one name, each in a province of its own.
        for (one, other) in [
            ("부산광역시 중구 중앙로 1", "대구광역시 중구 중앙로 1"),
            ("강원특별자치도 고성군 중앙로 1", "경상남도 고성군 중앙로 1"),
            ("경상남도 고성군 중앙로 1", "경상북도 고성군 중앙로 1"),
            ("중구 중앙로 1", "대구광역시 중구 중앙로 1"),
            ("인천광역시 계양구 나로 18", "인천특별자치시 계양구 나로 19"),
        ] {
            assert!(!same(one, other), "{one} != {other}");
        }
    }

    #[test]
    fn a_town_is_what_comes_first() {
        let in_one = |a: &str, b: &str| Address::read(a).unwrap().in_one_town(&Address::read(b).unwrap());
        assert!(in_one("대구광역시 중구 동덕로 115, 7층 703호", "대구광역시 중구 공평로 10길 25"));
        assert!(in_one("광주광역시 동구 나로 1", "전남광주통합특별시 동구 다로 2"));
        for (one, other) in [
            ("대구광역시 중구 동덕로 1", "부산광역시 중구 동덕로 2"),
            ("경기도 수원시 나로 1", "경기도 용인시 나로 2"),
            ("구로구 나로 1", "구리시 나로 1"),
            ("가 1", "가 2"),
        ] {
            assert!(!in_one(one, other), "{one} / {other}");
        }
    }

    #[test]
    fn remarks_and_commas() {
        for (one, other) in [
            ("대전광역시 동구 옥천로 180번길 20 (판암동)", "대전광역시 동구 옥천로 180번길, 20（판암동, 2층）"),
            ("대전광역시 동구 옥천로180번길 20", "대전광역시 동구 옥천로 180번길 20(판암동"),
            ("가시 나로 27-13, 3층 302호(태영(가)빌딩)", "가시 나로27-13 3층302호"),
            ("가시 나로 1, 2", "가시 나로 1 2"),
            ("가시 나로 1)", "가시 나로 1"),
        ] {
            assert!(same(one, other), "{one} = {other}");
        }
        for (one, other) in [
            ("경기도 수원시 (장안구 가로 1", "경기도 수원시 (권선구 나로 9"),
            ("경기도 수원시 가로 1,2", "경기도 수원시 가로 12"),
            ("경기도 수원시 가로 1(나)2", "경기도 수원시 가로 12"),
        ] {
            assert!(!same(one, other), "{one} != {other}");
        }
    }
}
