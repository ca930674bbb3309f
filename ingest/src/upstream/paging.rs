//! One crawl: every page once, from page 1.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::io;

use sha2::{Digest, Sha256};

use super::envelope::{Answer, Field, Item};
use super::{Upstream, UpstreamError};
use crate::error::Error;
use crate::spool::{AT_MOST, Spool};

/// A data set of the portal has a few thousand rows; a listing that never ends must not fill the memory.
const MAX_PAGES: u32 = 200;

/// How far a crawl has come; told after each page.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Pages read in this crawl.
    pub pages: u32,
    /// Rows read in this crawl.
    pub rows: u64,
    /// Rows that there are, as the last page said.
    pub total: u64,
}

/// A row and SHA-256 of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// The row as it came.
    pub item: Item,
    /// Equal exactly when two rows are.
    pub fingerprint: [u8; 32],
}

impl From<Item> for Published {
    fn from(item: Item) -> Self {
        let fingerprint = fingerprint(&item);
        Published { item, fingerprint }
    }
}

fn fingerprint(item: &Item) -> [u8; 32] {
    let mut hash = Sha256::new();
    for (name, value) in item {
        let (kind, text) = match value {
            Field::Text(text) => (b't', text),
            Field::Unreadable(raw) => (b'u', raw),
        };
        for part in [name, text] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        hash.update([kind]);
    }
    hash.finalize().into()
}

/// The rows of one walk over all pages, and what the walk itself can say about them.
#[derive(Debug)]
pub struct Crawl {
    /// The rows in the order of the pages.
    pub rows: Spool,
    /// `totalCount` of the last page that had one.
    pub total: u64,
    /// Every page announced the same total.
    pub steady: bool,
    /// The pages that had rows.
    pages: Vec<Page>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Page {
    rows: usize,
    fingerprint: [u8; 32],
}

/// Why no snapshot can be made of a walk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// A page had the same rows as an earlier one.
    #[error("page {page} was page {earlier} once more")]
    Repeated {
        /// The page.
        page: usize,
        /// The earlier one.
        earlier: usize,
    },
    /// The pages ended before the total was reached.
    #[error("the pages ended after {rows} of {total} rows")]
    Short {
        /// Rows read.
        rows: u64,
        /// The total that was announced.
        total: u64,
    },
    /// There are more rows than there should be.
    #[error("the pages had {rows} rows, of only {total} in all")]
    Surplus {
        /// Rows read.
        rows: u64,
        /// The total that was announced.
        total: u64,
    },
}

impl Crawl {
    /// Before the first page.
    #[expect(clippy::new_without_default, reason = "a walk without a page is a beginning, and no value of its own")]
    pub fn new() -> Self {
        Crawl { rows: Spool::default(), total: 0, steady: true, pages: Vec::new() }
    }

    /// The next page.
    pub fn add(&mut self, page: u32, total: u64, rows: &[Published]) -> io::Result<()> {
        self.steady &= page == 1 || total == self.total;
        self.total = total;
        if !rows.is_empty() {
            let fingerprints = rows.iter().map(|row| row.fingerprint).collect();
            self.pages.push(Page { rows: rows.len(), fingerprint: multiset(fingerprints) });
        }
        self.rows.push(rows)
    }

    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.rows.fingerprints().len()
    }

    /// There are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What this walk contradicts itself in, if it does.
    pub fn flaw(&self) -> Option<Flaw> {
        let (rows, total) = (self.len() as u64, self.total);
        let repeated = self.pages.iter().enumerate().find_map(|(page, rows)| {
            let earlier = self.pages[..page].iter().position(|earlier| earlier == rows)?;
            Some(Flaw::Repeated { page: page + 1, earlier: earlier + 1 })
        });
        repeated.or_else(|| match rows.cmp(&total) {
            Ordering::Less => Some(Flaw::Short { rows, total }),
            Ordering::Equal => None,
            Ordering::Greater => Some(Flaw::Surplus { rows, total }),
        })
    }

    /// Rows of the first page: where the listing was cut.
    pub fn first_page(&self) -> usize {
        self.pages.first().map_or(0, |page| page.rows)
    }

    /// Two pages have a row in common: the row is published twice, or it was read twice and another one not at all. Pages that are
    /// cut elsewhere tell which.
    pub fn repeats_rows(&self) -> bool {
        let mut page_of = HashMap::new();
        let page_numbers =
            self.pages.iter().enumerate().flat_map(|(number, page)| std::iter::repeat_n(number, page.rows));
        self.rows.fingerprints().iter().zip(page_numbers).any(|(row, page)| *page_of.entry(row).or_insert(page) != page)
    }

    /// The walk agrees with itself: one total throughout, and exactly as many rows. Necessary for a complete snapshot, and not enough:
    /// rows that move between pages while the walk goes on are missed without any count being wrong.
    pub fn is_consistent(&self) -> bool {
        self.steady && self.flaw().is_none()
    }

    /// SHA-256 of the multiset of rows: equal exactly when two crawls carry the same rows, equal ones counted, in whatever order.
    pub fn fingerprint(&self) -> [u8; 32] {
        multiset(self.rows.fingerprints().to_vec())
    }
}

/// SHA-256 of rows in any order, equal ones counted.
pub fn multiset(mut rows: Vec<[u8; 32]>) -> [u8; 32] {
    rows.sort_unstable();
    Sha256::digest(rows.concat()).into()
}

/// Walks over all pages, of `size` rows each; a page that was there before is the last one. `turned` is called after each page; the walk
/// ends when it fails.
pub async fn crawl(
    upstream: &Upstream,
    size: u64,
    turned: &mut impl AsyncFnMut(Progress) -> Result<(), Error>,
) -> Result<Crawl, Error> {
    let mut crawl = Crawl::new();
    for page in 1..=MAX_PAGES {
        let answer = upstream.page(page, size).await?;
        let Answer::Page { total, items } = answer else { return Ok(crawl) };
        let empty = items.is_empty();
        let rows: Vec<Published> = items.into_iter().map(|item| upstream.published(item)).collect();
        crawl.add(page, total, &rows).map_err(Error::Spool)?;
        let rows = crawl.len() as u64;
        turned(Progress { pages: page, rows, total }).await?;
        if crawl.rows.bytes() > AT_MOST {
            return Err(UpstreamError::TooLarge { rows, mib: AT_MOST >> 20 }.into());
        }
        if empty || rows >= total || matches!(crawl.flaw(), Some(Flaw::Repeated { .. })) {
            return Ok(crawl);
        }
    }
    Err(UpstreamError::Endless { pages: MAX_PAGES }.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn item(name: &str, value: &str) -> Item {
        Item::from([(name.to_owned(), Field::Text(value.to_owned()))])
    }

    fn crawl(items: Vec<Item>) -> Crawl {
        let mut crawl = Crawl::new();
        let rows: Vec<Published> = items.into_iter().map(Published::from).collect();
        crawl.add(1, rows.len() as u64, &rows).unwrap();
        crawl
    }

    #[test]
    fn a_row_is_its_fields_and_nothing_else() {
        assert_ne!(fingerprint(&item("ab", "c")), fingerprint(&item("a", "bc")));
        let unreadable = Item::from([("a".to_owned(), Field::Unreadable("b".to_owned()))]);
        assert_ne!(fingerprint(&item("a", "b")), fingerprint(&unreadable));
    }

    #[test]
    fn equal_rows_are_counted() {
        let (a, b) = (item("n", "a"), item("n", "b"));
        let twice_a = crawl(vec![a.clone(), a.clone(), b.clone()]);
        let twice_b = crawl(vec![a, b.clone(), b]);
        assert_ne!(twice_a.fingerprint(), twice_b.fingerprint());
    }

    #[test]
    fn a_server_that_sends_one_page_over_and_over_is_not_believed() {
        let rows = |names: [&str; 2]| names.map(|name| Published::from(item("n", name))).to_vec();
        let mut crawl = Crawl::new();
        crawl.add(1, 6, &rows(["a", "b"])).unwrap();
        assert_eq!(crawl.flaw(), Some(Flaw::Short { rows: 2, total: 6 }));
        crawl.add(2, 6, &rows(["c", "d"])).unwrap();
        crawl.add(3, 6, &rows(["b", "a"])).unwrap();
        assert_eq!(crawl.flaw(), Some(Flaw::Repeated { page: 3, earlier: 1 }), "in whatever order");
    }

    #[test]
    fn a_row_on_two_pages_is_a_doubt_and_twice_on_one_page_is_none() {
        let walk = |pages: [&[&str]; 2]| {
            let mut crawl = Crawl::new();
            for (page, names) in (1..).zip(pages) {
                let rows: Vec<Published> = names.iter().map(|name| item("n", name).into()).collect();
                crawl.add(page, 4, &rows).unwrap();
            }
            crawl
        };
        assert!(!walk([&["a", "a"], &["b", "c"]]).repeats_rows());
        assert!(walk([&["a", "b"], &["c", "a"]]).repeats_rows());
        let surplus = walk([&["a", "b", "c"], &["d", "e"]]);
        assert_eq!((surplus.flaw(), surplus.first_page()), (Some(Flaw::Surplus { rows: 5, total: 4 }), 3));
    }

    proptest! {
        #[test]
        fn order_is_no_matter(values in proptest::collection::vec("[a-c]{0,2}", 0..20), by in 0usize..20) {
            let items: Vec<Item> = values.iter().map(|value| item("n", value)).collect();
            let mut turned = items.clone();
            turned.rotate_left(by.min(items.len()));
            prop_assert_eq!(crawl(items).fingerprint(), crawl(turned).fingerprint());
        }
    }
}
