//! The proof that a snapshot is complete.
//!
//! The portal is walked by offset over rows that may move meanwhile, so one walk can miss rows without any count being wrong. Two
//! consecutive walks that carry the same rows did not. Only such a pair makes a [`CompleteSnapshot`], and only a [`CompleteSnapshot`]
//! lets a plan deactivate anything.
//!
//! A server whose pages overlap in the same way every time gives two equal walks, too. It shows as a row on two pages; but a row may
//! really be published twice. So such walks prove something only when their pages were cut differently: that moves an overlap, and
//! not a published row.

use std::collections::HashSet;
use std::io;

use crate::error::Error;
use crate::spool::Spool;
use crate::upstream::{Crawl, Progress, Published, ROWS_PER_PAGE, Upstream, UpstreamError, crawl, multiset};

/// Walks over all pages that one run makes at most.
const MAX_CRAWLS: u32 = 4;

/// Rows that are proven to be all rows. Made by [`prove`] and nothing else.
#[derive(Debug)]
pub struct CompleteSnapshot {
    rows: Spool,
    sha256: [u8; 32],
}

impl CompleteSnapshot {
    /// How many rows the proof is about.
    pub fn len(&self) -> usize {
        self.rows.fingerprints().len()
    }
}

/// The rows that a run works with.
#[derive(Debug)]
pub enum Snapshot {
    /// All of them.
    Complete(CompleteSnapshot),
    /// Rows that were published, and perhaps not all of them.
    Doubtful {
        /// The rows of the last walk that reached its total, identical ones once: they may be one row that was read twice.
        rows: Spool,
        /// How many that are.
        distinct: usize,
        /// Their fingerprint.
        sha256: [u8; 32],
    },
}

impl Snapshot {
    /// How many rows there are.
    pub fn len(&self) -> usize {
        match self {
            Snapshot::Complete(snapshot) => snapshot.len(),
            Snapshot::Doubtful { distinct, .. } => *distinct,
        }
    }

    /// The rows, one at a time.
    pub fn read(&mut self) -> io::Result<impl Iterator<Item = io::Result<Published>>> {
        let (rows, mut seen) = match self {
            Snapshot::Complete(snapshot) => (&mut snapshot.rows, None),
            Snapshot::Doubtful { rows, .. } => (rows, Some(HashSet::new())),
        };
        Ok(rows.read()?.filter(move |row| match (row, &mut seen) {
            (Ok(row), Some(seen)) => seen.insert(row.fingerprint),
            _ => true,
        }))
    }

    /// SHA-256 of the multiset of rows.
    pub fn sha256(&self) -> [u8; 32] {
        match self {
            Snapshot::Complete(snapshot) => snapshot.sha256,
            Snapshot::Doubtful { sha256, .. } => *sha256,
        }
    }

    /// The proof, when there is one.
    pub fn complete(&self) -> Option<&CompleteSnapshot> {
        match self {
            Snapshot::Complete(snapshot) => Some(snapshot),
            Snapshot::Doubtful { .. } => None,
        }
    }
}

/// Two consecutive walks prove completeness when each agrees with itself and both carry the same multiset of rows; when a row is on
/// two pages, only if the pages were cut differently.
pub fn prove(earlier: &Crawl, later: Crawl) -> Result<CompleteSnapshot, Box<Crawl>> {
    let sha256 = later.fingerprint();
    let overlap = (earlier.repeats_rows() || later.repeats_rows()) && earlier.first_page() == later.first_page();
    if earlier.is_consistent() && later.is_consistent() && earlier.fingerprint() == sha256 && !overlap {
        Ok(CompleteSnapshot { rows: later.rows, sha256 })
    } else {
        Err(Box::new(later))
    }
}

/// Walks until two consecutive walks agree, or [`MAX_CRAWLS`] were made.
pub async fn obtain(
    upstream: &Upstream,
    turned: &mut impl AsyncFnMut(Progress) -> Result<(), Error>,
) -> Result<Snapshot, Error> {
    let mut walks = Walks::default();
    loop {
        let page_size = walks.page_size();
        let crawl = crawl(upstream, page_size, turned).await?;
        tracing::info!(rows = crawl.len(), total = crawl.total, steady = crawl.steady, page_size, "crawled");
        if let Some(snapshot) = walks.add(crawl)? {
            return Ok(snapshot);
        }
    }
}

/// What the walks so far amount to.
#[derive(Debug, Default)]
pub struct Walks {
    made: u32,
    previous: Option<Crawl>,
    fallback: Option<Crawl>,
    /// A row was on two pages.
    doubted: bool,
    /// The next walk is to be cut into pages of so many rows.
    other_size: Option<u64>,
}

impl Walks {
    /// How many rows the pages of the next walk are to have.
    pub fn page_size(&self) -> u64 {
        self.other_size.unwrap_or(ROWS_PER_PAGE)
    }

    /// One more walk. `None`: another one is needed. Empty is refused at once: nothing can be right about it.
    pub fn add(&mut self, crawl: Crawl) -> Result<Option<Snapshot>, Error> {
        if crawl.is_empty() {
            return Err(Error::EmptySnapshot { announced: crawl.total });
        }
        self.made += 1;
        if let Some(flaw) = crawl.flaw() {
            tracing::warn!(crawl = self.made, "this crawl is of no use: {flaw}");
        }
        self.doubted |= crawl.repeats_rows();
        if self.doubted {
            // Fewer than the server gave: it may have a maximum of its own.
            let fewer = (crawl.first_page() as u64 * 9 / 10).max(1);
            self.other_size = if self.other_size.is_some() { None } else { Some(fewer) };
        }
        let crawl = match self.previous.take() {
            None => crawl,
            Some(earlier) => match prove(&earlier, crawl) {
                Ok(snapshot) => return Ok(Some(Snapshot::Complete(snapshot))),
                Err(crawl) => {
                    tracing::warn!(
                        crawl = self.made,
                        "two consecutive crawls do not prove each other: the upstream is changing"
                    );
                    if earlier.flaw().is_none() {
                        self.fallback = Some(earlier);
                    }
                    *crawl
                }
            },
        };
        if self.made < MAX_CRAWLS {
            self.previous = Some(crawl);
            return Ok(None);
        }
        match (crawl.flaw(), self.fallback.take()) {
            (None, _) => Ok(Some(doubtful(crawl))),
            (Some(_), Some(earlier)) => Ok(Some(doubtful(earlier))),
            (Some(flaw), None) => Err(UpstreamError::Flawed { crawls: MAX_CRAWLS, flaw }.into()),
        }
    }
}

/// What can be used of a walk that nothing proves.
fn doubtful(crawl: Crawl) -> Snapshot {
    let distinct: Vec<[u8; 32]> =
        crawl.rows.fingerprints().iter().copied().collect::<HashSet<_>>().into_iter().collect();
    Snapshot::Doubtful { rows: crawl.rows, distinct: distinct.len(), sha256: multiset(distinct) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::{Field, Flaw, Item};

    /// A walk whose pages are these, a letter a row, and which announces `total` on each.
    fn walk(pages: &str, total: u64) -> Crawl {
        let row = |name: char| Published::from(Item::from([("n".to_owned(), Field::Text(name.to_string()))]));
        let mut crawl = Crawl::new();
        for (page, rows) in (1..).zip(pages.split(' ')) {
            crawl.add(page, total, &rows.chars().map(row).collect::<Vec<_>>()).unwrap();
        }
        crawl
    }

    #[test]
    fn only_two_equal_and_consistent_walks_prove_anything() {
        let whole = || walk("abb", 3);
        assert!(prove(&whole(), walk("bab", 3)).is_ok());
        assert!(prove(&whole(), walk("aab", 3)).is_err());
        let mut unsteady = whole();
        unsteady.steady = false;
        assert!(prove(&whole(), unsteady).is_err());
        assert!(prove(&walk("abb", 4), whole()).is_err());
        assert!(prove(&walk("ab", 3), walk("ab", 3)).is_err());
        assert!(prove(&walk("abc", 2), walk("abc", 2)).is_err());
    }

    #[test]
    fn a_row_on_two_pages_is_proven_by_pages_that_are_cut_elsewhere() {
        assert!(prove(&walk("aa bc", 4), walk("aa bc", 4)).is_ok());
        assert!(prove(&walk("ab ca", 4), walk("ab ca", 4)).is_err());
        assert!(prove(&walk("ab ca", 4), walk("a bca", 4)).is_ok());
    }

    /// What the walks amount to, each given as a function of the page size that it is asked for.
    fn obtained(walk: impl Fn(u64) -> Crawl) -> (Result<Snapshot, Error>, Vec<u64>) {
        let (mut walks, mut sizes) = (Walks::default(), Vec::new());
        loop {
            sizes.push(walks.page_size());
            if let Some(end) = walks.add(walk(walks.page_size())).transpose() {
                return (end, sizes);
            }
        }
    }

    #[test]
    fn a_deterministic_overlap_proves_nothing_and_a_row_that_is_published_twice_is_kept() {
        // Pages of 10 that begin 9 rows apart, and 8 apart when they are to have 9: 20 of 22 rows, and two twice.
        let overlap =
            |size| if size == 9 { walk("abcdefghi ijklmnopq qrst", 22) } else { walk("abcdefghij jklmnopqrs st", 22) };
        let (snapshot, sizes) = obtained(overlap);
        let mut snapshot = snapshot.unwrap();
        assert!(snapshot.complete().is_none());
        assert_eq!(
            (snapshot.len(), snapshot.read().unwrap().count(), sizes),
            (20, 20, vec![1000, 9, 1000, 9]),
            "each row once"
        );

        let twice = |size| if size == 9 { walk("abcdefghi jklmnopqa", 18) } else { walk("abcdefghij klmnopqa", 18) };
        let (snapshot, sizes) = obtained(twice);
        assert_eq!((snapshot.unwrap().complete().map(CompleteSnapshot::len), sizes), (Some(18), vec![1000, 9]));
        // It gives no other pages, whatever it is asked for.
        let (snapshot, sizes) = obtained(|_| walk("abcdefghij klmnopqa", 18));
        assert!(snapshot.unwrap().complete().is_none() && sizes.len() == 4);
        // Without a row on two pages nothing is asked for in another way.
        assert_eq!(obtained(|_| walk("aabcdefghi jklmnopqr", 19)).1, [1000, 1000]);
    }

    #[test]
    fn walks_that_contradict_themselves_are_no_snapshot() {
        for (pages, total, flaw) in [
            ("ab ba", 6, Flaw::Repeated { page: 2, earlier: 1 }),
            ("ab cd", 3, Flaw::Surplus { rows: 4, total: 3 }),
            ("ab", 3, Flaw::Short { rows: 2, total: 3 }),
        ] {
            match obtained(|_| walk(pages, total)).0 {
                Err(Error::Upstream(error)) => assert_eq!(error, UpstreamError::Flawed { crawls: 4, flaw }),
                other => panic!("{pages}: {other:?}"),
            }
        }
    }
}
