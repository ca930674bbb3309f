//! A listing that moves under its reader, from the walk to the plan: what is still listed is never retired.

use std::collections::BTreeSet;

use rehearsal::dice::Dice;

use super::tests::{good, held};
use super::*;
use crate::error::Error;
use crate::snapshot::{Snapshot, Walks};
use crate::upstream::{Crawl, Field, Item, Published};

const ROWS: usize = 120;
const PAGE: usize = 20;

/// A listing that institutions edit while it is read.
struct Listing {
    names: Vec<usize>,
    born: usize,
    dice: Dice,
    /// Out of a hundred requests, so many find it edited.
    unrest: usize,
}

impl Listing {
    fn edit(&mut self) {
        if self.dice.below(100) >= self.unrest {
            return;
        }
        let at = self.dice.below(self.names.len());
        match self.dice.below(4) {
            // One goes and another comes: the total stays.
            0 => {
                self.names.remove(at);
                self.born += 1;
                self.names.insert(0, ROWS + self.born);
            }
            // An institution registers its rows anew: they move to the front.
            1 => {
                let end = (at + 8).min(self.names.len());
                let block: Vec<usize> = self.names.drain(at..end).collect();
                self.names.splice(0..0, block);
            }
            2 => drop(self.names.remove(at)),
            _ => {
                self.born += 1;
                let at = self.dice.below(self.names.len());
                self.names.insert(at, ROWS + self.born);
            }
        }
    }

    fn walk(&mut self) -> Crawl {
        let mut crawl = Crawl::new();
        for page in 1.. {
            self.edit();
            let row = |name: &usize| Published::from(Item::from([("n".to_owned(), Field::Text(name.to_string()))]));
            let page_rows: Vec<Published> = self.names.iter().skip((page - 1) * PAGE).take(PAGE).map(row).collect();
            crawl.add(page as u32, self.names.len() as u64, &page_rows).unwrap();
            if page_rows.is_empty() || crawl.len() >= self.names.len() {
                break;
            }
        }
        crawl
    }
}

fn name(row: &Published) -> usize {
    let Field::Text(name) = &row.item["n"] else { unreachable!() };
    name.parse().unwrap()
}

fn read(snapshot: &mut Snapshot) -> Vec<Read> {
    // A row that a walk met twice is listed twice.
    snapshot.read().unwrap().map(|row| good(&name(&row.unwrap()).to_string(), 1)).collect()
}

#[test]
fn of_a_thousand_shifting_walks_none_retires_what_is_listed() {
    let world: Vec<Held> = (0..ROWS).map(|name| held(name as i64, &name.to_string(), 1, true)).collect();
    let (mut proven, mut retired, mut single, mut single_falsely) = (0, 0, 0, 0);
    for seed in 0..1000 {
        let unrest = [1, 3, 10, 30][seed as usize % 4];
        let mut listing = Listing { names: (0..ROWS).collect(), born: 0, dice: Dice::new(seed), unrest };
        let mut walks = Walks::default();
        let mut first = true;
        let snapshot = loop {
            let mut crawl = listing.walk();
            if std::mem::take(&mut first) && crawl.is_consistent() {
                // What one walk alone would have retired.
                let seen: BTreeSet<usize> = crawl.rows.read().unwrap().map(|row| name(&row.unwrap())).collect();
                single += 1;
                single_falsely += usize::from(listing.names.iter().any(|name| *name < ROWS && !seen.contains(name)));
            }
            match walks.add(crawl) {
                Ok(None) => {}
                Ok(Some(snapshot)) => break Some(snapshot),
                Err(Error::Upstream(_)) => break None,
                Err(error) => panic!("{error}"),
            }
        };
        let Some(mut snapshot) = snapshot else { continue };
        let rows = read(&mut snapshot);
        let stale = match snapshot.complete() {
            Some(proof) => Stale::Deactivate { proof, ceiling: Some(u64::MAX) },
            None => Stale::Withhold { ceiling: None },
        };
        let plan = plan(rows, &world, stale);
        assert!(matches!(snapshot, Snapshot::Complete(_)) || plan.deactivate.is_empty());
        proven += usize::from(matches!(snapshot, Snapshot::Complete(_)));
        retired += plan.deactivate.len();
        for id in plan.deactivate {
            assert!(!listing.names.contains(&(id as usize)), "seed {seed}: {id} is listed and was retired");
        }
    }
    println!(
        "1000 seeds: {proven} snapshots proven, {retired} places retired, 0 falsely; one walk alone agreed with itself {single} times and would have retired a listed place {single_falsely} times"
    );
    assert!(
        proven > 300 && retired > 100 && single_falsely > 10,
        "the walks are worth something: {proven} {retired} {single_falsely}"
    );
}
