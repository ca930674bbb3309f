//! One crawl: every page once, from page 1.

use sha2::{Digest, Sha256};

use super::envelope::{Answer, Field, Item};
use super::{ROWS_PER_PAGE, Upstream, UpstreamError};
use crate::error::Error;

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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crawl {
    /// The rows in the order of the pages.
    pub rows: Vec<Published>,
    /// `totalCount` of the last page that had one.
    pub total: u64,
    /// Every page announced the same total, and none was the page before it once more.
    pub steady: bool,
}

impl Crawl {
    /// The next page.
    pub fn add(&mut self, page: u32, total: u64, rows: Vec<Published>) {
        let repeated = !rows.is_empty() && self.rows.ends_with(&rows);
        self.steady &= (page == 1 || total == self.total) && !repeated;
        self.total = total;
        self.rows.extend(rows);
    }

    /// The pages ended before the total was reached.
    pub fn is_short(&self) -> bool {
        (self.rows.len() as u64) < self.total
    }

    /// The walk agrees with itself: one total throughout, and exactly as many rows. Necessary for a complete snapshot, and not enough:
    /// rows that move between pages while the walk goes on are missed without any count being wrong.
    pub fn is_consistent(&self) -> bool {
        self.steady && self.rows.len() as u64 == self.total
    }

    /// SHA-256 of the multiset of rows: equal exactly when two crawls carry the same rows, equal ones counted, in whatever order.
    pub fn fingerprint(&self) -> [u8; 32] {
        let mut rows: Vec<[u8; 32]> = self.rows.iter().map(|row| row.fingerprint).collect();
        rows.sort_unstable();
        Sha256::digest(rows.concat()).into()
    }
}

/// Walks over all pages. `turned` is called after each page; the walk ends when it fails.
pub async fn crawl(
    upstream: &Upstream,
    turned: &mut impl AsyncFnMut(Progress) -> Result<(), Error>,
) -> Result<Crawl, Error> {
    let mut crawl = Crawl { rows: Vec::new(), total: 0, steady: true };
    for page in 1..=MAX_PAGES {
        let answer = upstream.page(page, ROWS_PER_PAGE).await?;
        let Answer::Page { total, items } = answer else { return Ok(crawl) };
        let empty = items.is_empty();
        crawl.add(page, total, items.into_iter().map(Published::from).collect());
        let rows = crawl.rows.len() as u64;
        turned(Progress { pages: page, rows, total }).await?;
        if empty || rows >= total {
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
        Crawl { total: items.len() as u64, rows: items.into_iter().map(Published::from).collect(), steady: true }
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
        let page = || vec![Published::from(item("n", "a")), Published::from(item("n", "b"))];
        let mut crawl = Crawl { rows: Vec::new(), total: 0, steady: true };
        crawl.add(1, 4, page());
        assert!(crawl.is_short() && crawl.steady);
        crawl.add(2, 4, page());
        assert!(!crawl.is_consistent());
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
