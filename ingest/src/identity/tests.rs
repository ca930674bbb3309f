use std::collections::{BTreeMap, BTreeSet, HashSet};

use proptest::prelude::*;

use super::*;
use crate::record::Position;

/// A published row, and a table that does what a resolution says: the model of the places table.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Row {
    institution: String,
    name: String,
    address: String,
    /// Metres north of a point.
    metres: Option<u16>,
    telephone: String,
}

fn row(institution: &str, name: &str, address: &str, metres: Option<u16>, telephone: &str) -> Row {
    Row {
        institution: institution.to_owned(),
        name: name.to_owned(),
        address: address.to_owned(),
        metres,
        telephone: telephone.to_owned(),
    }
}

impl Row {
    fn listed(&self) -> Listed {
        let north = |metres: u16| Position { latitude: 37.0 + f64::from(metres) / 111_195.0, longitude: 127.0 };
        let likeness = Likeness::new(&self.name, Some(&self.address), self.metres.map(north), Some(&self.telephone));
        Listed { key: format!("{}/{}", self.institution, self.name), likeness, seen: Seen::Whole }
    }
}

#[derive(Debug, Clone, Default)]
struct Table {
    rows: Vec<Held>,
    born: i64,
}

impl Table {
    /// A month. Says what was resolved.
    fn month(&mut self, rows: &[Row]) -> Resolution {
        let listed: Vec<Listed> = rows.iter().map(Row::listed).collect();
        let resolution = resolve(&listed, &self.rows, Merging::Allowed);
        self.carry_out(&listed, &resolution);
        self.check(&listed);
        resolution
    }

    fn of(&mut self, id: i64) -> &mut Held {
        self.rows.iter_mut().find(|held| held.id == id).expect("an id from the table")
    }

    fn carry_out(&mut self, listed: &[Listed], resolution: &Resolution) {
        let before = self.clone();
        for &(place, displaced) in &resolution.swapped {
            let old = before.rows.iter().find(|held| held.id == place).unwrap().clone();
            *self.of(displaced) = Held { id: displaced, active: false, duplicate_of: Some(place), ..old };
        }
        let mut seats = vec![0; listed.len()];
        let is_face = |at: &usize| matches!(resolution.seats[*at], Seat::Face(_));
        let (faces, members): (Vec<usize>, Vec<usize>) = (0..listed.len()).partition(is_face);
        for at in faces.into_iter().chain(members) {
            let (id, root) = match resolution.seats[at] {
                Seat::Face(id) => (id, None),
                Seat::Member(id, face, _) => (id, Some(seats[face])),
                Seat::Untouched => continue,
            };
            seats[at] = id.unwrap_or_else(|| {
                self.born += 1;
                self.born
            });
            let (key, likeness) = (listed[at].key.clone(), listed[at].likeness.clone());
            let held = Held { id: seats[at], key, likeness, digest: Some([0; 32]), active: true, duplicate_of: root };
            match id {
                Some(id) => *self.of(id) = held,
                None => self.rows.push(held),
            }
        }
        for &id in resolution.retired.iter().chain(&resolution.delisted) {
            assert!(self.of(id).active, "{id} goes once");
            self.of(id).active = false;
        }
        for &(id, place) in &resolution.forwarded {
            self.of(id).duplicate_of = Some(place);
        }
    }

    /// What holds after every month.
    fn check(&self, listed: &[Listed]) {
        let keys: BTreeSet<&str> = self.rows.iter().map(|held| held.key.as_str()).collect();
        assert_eq!(keys.len(), self.rows.len(), "no key is there twice");
        let active: BTreeSet<&str> =
            self.rows.iter().filter(|held| held.active).map(|held| held.key.as_str()).collect();
        assert_eq!(active, listed.iter().map(|row| row.key.as_str()).collect(), "what is listed is active");
        for held in &self.rows {
            let Some(root) = held.duplicate_of else { continue };
            let root = self.rows.iter().find(|other| other.id == root).unwrap();
            assert_eq!(root.duplicate_of, None, "{} leads to a face: {self:?}", held.key);
            assert!(root.active || !held.active, "an active row stands behind an active place");
            if held.active {
                assert!(root.likeness.same(&held.likeness).is_some(), "{} is the same as {}", held.key, root.key);
            }
        }
    }

    /// Each active place and its face's key.
    fn places(&self) -> BTreeMap<i64, String> {
        self.rows.iter().filter(|held| held.is_place()).map(|held| (held.id, held.key.clone())).collect()
    }

    fn ids(&self) -> BTreeSet<i64> {
        self.places().into_keys().collect()
    }
}

fn keys(table: &Table) -> Vec<String> {
    table.places().into_values().collect()
}

#[test]
fn the_first_face_has_coordinates_then_the_lowest_code() {
    let mut table = Table::default();
    table.month(&[
        row("1", "관", "가길 1", None, ""),
        row("3", "관", "가길 1", Some(0), ""),
        row("2", "관", "가길 1", Some(3), ""),
    ]);
    assert_eq!(keys(&table), ["2/관"]);
}

#[test]
fn an_incumbent_stays_and_when_it_goes_the_id_moves() {
    let (city, office, later) = (
        row("2", "관", "가길 1", Some(0), ""),
        row("3", "관", "가길 1", None, ""),
        row("1", "관", "가길 1", Some(0), ""),
    );
    let mut table = Table::default();
    table.month(&[city.clone(), office.clone()]);
    assert_eq!(table.places(), BTreeMap::from([(1, "2/관".to_owned())]));
    // A row that would have been the first face changes nothing.
    let three = table.month(&[later.clone(), office.clone(), city.clone()]);
    assert_eq!(table.places(), BTreeMap::from([(1, "2/관".to_owned())]));
    assert_eq!(three.merged, []);
    let gone = table.month(&[office.clone(), later.clone()]);
    assert_eq!(table.places(), BTreeMap::from([(1, "1/관".to_owned())]));
    assert_eq!((gone.retired, gone.merged), (vec![], vec![]));
    // It returns, and there is no need for the face to change again.
    table.month(&[office.clone(), later.clone(), city.clone()]);
    assert_eq!(table.places(), BTreeMap::from([(1, "1/관".to_owned())]));
    let end = table.month(&[]);
    assert_eq!((end.retired, table.ids().len()), (vec![1], 0));
    // Whichever of its rows returns, it is that place.
    table.month(&[office]);
    assert_eq!(table.places(), BTreeMap::from([(1, "3/관".to_owned())]));
}

#[test]
fn a_new_code_or_a_new_spelling_is_no_new_library() {
    let mut table = Table::default();
    for (institution, address, metres, telephone) in [
        ("1", "가길 1", None, "02-123-4567"),
        ("2", "가길1(나동)", Some(0), ""),
        ("3", "다길 7", Some(149), "02-765-4321"),
        ("4", "라길 1", None, "02-765-4321"),
        ("1", "라길 1", None, ""),
    ] {
        let month = table.month(&[row(institution, "관", address, metres, telephone)]);
        assert_eq!((table.ids(), table.rows.len(), month.retired), (BTreeSet::from([1]), 1, vec![]));
    }
    let other = table.month(&[row("5", "관", "마길 1", None, "02-000-0000")]);
    assert_eq!((other.retired, table.ids()), (vec![1], BTreeSet::from([2])));
    // A retired place that returns under another key returns.
    table.month(&[row("5", "관", "마길 1", None, ""), row("6", "관", "라길 1", None, "")]);
    assert_eq!(table.ids(), BTreeSet::from([1, 2]));
}

#[test]
fn rooms_and_namesakes_never_merge() {
    let mut table = Table::default();
    let rows = [
        row("1", "시립도서관(어린이실)", "가길 1", Some(0), "02-123-4567"),
        row("1", "시립도서관(종합실)", "가길 1", Some(0), "02-123-4567"),
        row("1", "시립도서관", "가길 1", Some(0), "02-123-4567"),
        row("2", "중앙도서관", "나시 가길 1", Some(1000), ""),
        row("3", "중앙도서관", "다시 가길 1", Some(1151), ""),
        row("4", "중앙도서관", "", None, ""),
        row("5", "중앙도서관", "", None, ""),
        row("6", "작은도서관", "라길 1", None, "02-123-4567"),
        row("7", "작은도서관", "마길 1", None, "02-123-4567"),
    ];
    table.month(&rows);
    assert_eq!(table.ids().len(), rows.len());
    let again = table.month(&rows);
    assert_eq!((again.merged, again.retired, table.ids().len()), (vec![], vec![], rows.len()));
}

#[test]
fn a_chain_is_a_star_around_one_face() {
    let chain = |codes: [&str; 3]| {
        let rows: Vec<Row> = codes
            .iter()
            .zip([0, 140, 280])
            .map(|(code, at)| row(code, "관", &format!("{code}길 1"), Some(at), ""))
            .collect();
        let mut table = Table::default();
        table.month(&rows);
        keys(&table)
    };
    assert_eq!(chain(["2", "1", "3"]), ["1/관"], "the middle one has both beside it");
    assert_eq!(chain(["1", "2", "3"]), ["1/관", "3/관"], "the first one has the middle one");
}

#[test]
fn two_places_that_turn_out_to_be_one_keep_the_elder_id_and_part_again() {
    let (north, south) = (row("2", "관", "가길 1", Some(0), ""), row("1", "관", "나길 1", Some(400), ""));
    let mut table = Table::default();
    table.month(std::slice::from_ref(&north));
    table.month(&[north.clone(), south.clone()]);
    assert_eq!(table.ids(), BTreeSet::from([1, 2]));
    let moved = Row { metres: Some(100), ..south.clone() };
    let merged = table.month(&[north.clone(), moved]);
    assert_eq!((merged.merged, merged.retired), (vec![(2, 1)], vec![]));
    assert_eq!(table.places(), BTreeMap::from([(1, "2/관".to_owned())]));
    table.month(&[north, south]);
    assert_eq!(table.places(), BTreeMap::from([(1, "2/관".to_owned()), (2, "1/관".to_owned())]));
}

/// The same libraries under a new province's name and new institution codes: side by side for months, then the old ones are gone; or at
/// once.
#[test]
fn a_reform_of_a_province_keeps_every_id() {
    let library = |number: u16, reformed: bool| {
        let (code, province) =
            if reformed { ("4641000", "전북특별자치도") } else { ("4640000", "전라북도") };
        let address = format!("{province} 전주시 {number}길 1");
        // Every third has no coordinates, and every ninth no telephone either.
        let metres = (!number.is_multiple_of(3)).then_some(number * 400 + u16::from(reformed));
        let telephone = if number.is_multiple_of(9) { String::new() } else { format!("063-123-{:04}", number + 1) };
        row(code, &format!("도서관{number}"), &address, metres, &telephone)
    };
    let list = |reformed| (0..30).map(move |number| library(number, reformed));
    for (old_ones_first, side_by_side) in [(true, 3), (false, 3), (true, 0)] {
        let mut table = Table::default();
        table.month(&list(!old_ones_first).collect::<Vec<_>>());
        let born = table.ids();
        for turn in 0..side_by_side {
            let mut both: Vec<Row> = list(false).chain(list(true)).collect();
            both.rotate_left(turn * 7);
            let month = table.month(&both);
            assert_eq!((month.retired, month.merged, table.ids()), (vec![], vec![], born.clone()));
        }
        let month = table.month(&list(old_ones_first).collect::<Vec<_>>());
        assert_eq!((month.retired, month.merged), (vec![], vec![]));
        assert_eq!(table.ids(), born, "every id that was there before the reform, and no other");
    }
}

#[test]
fn a_telephone_takes_no_id_from_a_listed_library() {
    let telephone = "031-555-1234";
    let town = |code: &str| row(code, "마을도서관", &format!("{code}시 중앙로 {code}"), None, telephone);
    let branch = |code: &str| row(code, "마을도서관", "2시 중앙로 2", None, telephone);
    let all = [town("1"), town("2"), town("3")];
    let mut table = Table::default();
    table.month(&all);
    let before = table.places();
    // One closes: nobody inherits its id, not even by way of a row behind another, or of a new one.
    let closed = table.month(&all[1..]);
    assert_eq!((closed.retired, closed.merged, closed.swapped), (vec![1], vec![], vec![]));
    assert_eq!(table.places(), before.iter().skip(1).map(|(id, key)| (*id, key.clone())).collect());
    // It returns, and is what it was; so are the others.
    table.month(&all);
    assert_eq!(table.places(), before);
    let closed = table.month(&[town("2"), branch("4"), town("3")]);
    assert_eq!((closed.retired, closed.swapped, table.ids()), (vec![1], vec![], BTreeSet::from([2, 3])));
    // What is nobody's is recognised by it, but by one place only.
    table.month(&all);
    let moved = table.month(&[town("3"), town("7")]);
    assert_eq!((moved.retired, table.ids()), (vec![2], BTreeSet::from([1, 3])));
    assert_eq!(table.places()[&1], "7/마을도서관");
}

/// Two of one name behind one telephone in one town, both listed for months: the one that is left takes the other in, and gives it back.
#[test]
fn of_one_town_and_telephone_each_has_its_own_id_again() {
    let row = |code, address, metres| row(code, "관", address, Some(metres), "053-123-4567");
    let (east, west) = (row("1", "대구광역시 중구 동길 1", 0), row("2", "대구광역시 중구 서길 1", 475));
    let mut table = Table::default();
    table.month(&[east.clone(), west.clone()]);
    let born = table.places();
    for (left, gone) in [(&west, 1), (&east, 2)] {
        let month = table.month(std::slice::from_ref(left));
        assert_eq!((month.retired, month.swapped, month.merged), (vec![], vec![], vec![(gone, 3 - gone)]));
        assert_eq!(table.ids(), BTreeSet::from([3 - gone]), "the one that is listed is what it was");
        table.month(&[east.clone(), west.clone()]);
        assert_eq!(table.places(), born, "each has its own id again");
    }
}

#[test]
fn a_listed_place_keeps_its_id_whoever_vanishes_into_it() {
    let (north, south) = (row("1", "관", "가길 1", Some(0), ""), row("2", "관", "나길 1", Some(1000), ""));
    let mut table = Table::default();
    table.month(&[north.clone(), south.clone()]);
    let before = table.places();
    // The second one is now where the first one was, and that is no longer listed: the elder id leads to the younger.
    let moved = row("2", "관", "가길 1", Some(0), "");
    let month = table.month(&[moved]);
    assert_eq!((month.merged, month.retired, month.swapped), (vec![(1, 2)], vec![], vec![]));
    assert_eq!(table.places(), BTreeMap::from([(2, "2/관".to_owned())]));
    table.month(&[north, south]);
    assert_eq!(table.places(), before, "and nobody has the other's id");
}

#[test]
fn one_institution_does_not_lose_a_library_by_spelling_it_anew() {
    let mut table = Table::default();
    table.month(&[row("1", "별빛 관", "가길 1", None, ""), row("2", "별빛관", "나길 2", None, "")]);
    let month = table.month(&[row("1", "별빛관", "다길 3", None, ""), row("2", "별빛관", "나길 2", None, "")]);
    assert_eq!((month.retired, month.merged), (vec![], vec![]));
    assert_eq!(table.places(), BTreeMap::from([(1, "1/별빛관".to_owned()), (2, "2/별빛관".to_owned())]));
}

/// Rows of two names, around the distances that matter.
fn rows() -> impl Strategy<Value = Vec<Row>> {
    let metres = proptest::option::of(proptest::sample::select(vec![0_u16, 100, 200, 300, 1000]));
    let one = ("[1-5]", "[관실]", "([가나다]길 1)?", metres, "(02-123-456[78])?");
    let row = one.prop_map(|(institution, name, address, metres, telephone)| {
        row(&institution, &name, &address, metres, &telephone)
    });
    // Keys are given before identities are resolved: one row a key.
    proptest::collection::vec(row, 0..9).prop_map(|mut rows| {
        let mut seen = HashSet::new();
        rows.retain(|row| seen.insert((row.institution.clone(), row.name.clone())));
        rows
    })
}

/// Rows of libraries that are what they seem: six with two names, each listed by up to four institutions, which agree on where it is, or
/// on its address, or only on its telephone.
fn listings() -> impl Strategy<Value = Vec<Row>> {
    proptest::collection::btree_set((0..6_u16, 1..5_u16), 0..14).prop_map(|listings| {
        let listing = |(library, institution): (u16, u16)| {
            let (mut address, mut metres) = (format!("{library}길 {institution}"), None);
            match library / 2 {
                0 => metres = Some(1000 * library + institution),
                1 => address = format!("{library}길"),
                _ => {}
            }
            let name = if library % 2 == 0 { "관" } else { "실" };
            let telephone = format!("02-123-456{library}");
            row(&format!("{institution}{library}"), name, &address, metres, &telephone)
        };
        listings.into_iter().map(listing).collect()
    })
}

/// The resolution by keys instead of positions.
fn told(rows: &[Row], table: &Table) -> (BTreeMap<String, (Seat, Option<String>)>, Resolution) {
    let listed: Vec<Listed> = rows.iter().map(Row::listed).collect();
    let mut resolution = resolve(&listed, &table.rows, Merging::Allowed);
    let seats = std::mem::take(&mut resolution.seats);
    let by_key = listed.iter().zip(seats).map(|(row, seat)| match seat {
        Seat::Member(id, face, rule) => (row.key.clone(), (Seat::Member(id, 0, rule), Some(listed[face].key.clone()))),
        other => (row.key.clone(), (other, None)),
    });
    (by_key.collect(), resolution)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn the_order_of_rows_is_no_matter(months in proptest::collection::vec(rows(), 0..4), last in rows(), seed in any::<u64>()) {
        let mut table = Table::default();
        for month in &months {
            table.month(month);
        }
        let mut shuffled = last.clone();
        shuffled.sort_by_key(|row| {
            use std::hash::{DefaultHasher, Hash, Hasher};
            let mut hasher = DefaultHasher::new();
            (seed, row).hash(&mut hasher);
            hasher.finish()
        });
        let expected = told(&last, &table);
        prop_assert_eq!(told(&shuffled, &table), expected.clone());
        table.rows.reverse();
        prop_assert_eq!(told(&last, &table), expected);
    }

    /// The same month again changes nothing at all.
    #[test]
    fn once_is_enough(months in proptest::collection::vec(rows(), 1..5)) {
        let mut table = Table::default();
        for month in &months {
            table.month(month);
        }
        let before = table.clone();
        let again = table.month(months.last().unwrap());
        prop_assert_eq!((again.retired, again.delisted, again.swapped), (vec![], vec![], vec![]));
        prop_assert_eq!((again.forwarded, again.merged), (vec![], vec![]));
        prop_assert_eq!(table.rows, before.rows);
    }

    /// No place is retired while a row is the same library, and none that has a row of its own.
    #[test]
    fn only_an_emptied_place_is_retired(months in proptest::collection::vec(rows(), 0..4), last in rows()) {
        let mut table = Table::default();
        for month in &months {
            table.month(month);
        }
        let before = table.clone();
        let month = table.month(&last);
        for id in month.retired {
            let place = before.rows.iter().find(|held| held.id == id).unwrap();
            for row in &last {
                // A number may be that of other libraries, too.
                let rule = place.likeness.again(&row.listed().likeness);
                prop_assert!(rule.is_none_or(|rule| rule == Rule::Telephone), "{:?}", rule);
                prop_assert_ne!(&place.key, &row.listed().key);
            }
        }
        // A place that is there after and before and whose row is listed has the face that it had.
        for (id, key) in before.places() {
            if last.iter().any(|row| row.listed().key == key) {
                prop_assert!(table.places().get(&id).is_none_or(|face| *face == key));
            }
        }
    }

    /// Two months in turn end where they began: no place is born after both were seen, and from then on nothing moves.
    #[test]
    fn turn_and_turn_about_ends_where_it_began(a in listings(), b in listings()) {
        let mut table = Table::default();
        let mut seen = Vec::new();
        for month in [&a, &b, &a, &b, &a, &b] {
            table.month(month);
            seen.push((table.places(), table.born));
        }
        prop_assert_eq!(seen[5].1, seen[1].1, "no place is born twice: {:?}", seen);
        prop_assert_eq!(&seen[5], &seen[3], "{:?}", seen);
        prop_assert_eq!(&seen[4], &seen[2], "{:?}", seen);
    }
}
