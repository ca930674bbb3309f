//! The proof that a snapshot is complete.
//!
//! The portal is walked by offset over rows that may move meanwhile, so one walk can miss rows without any count being wrong. Two
//! consecutive walks that carry the same rows did not. Only such a pair makes a [`CompleteSnapshot`], and only a [`CompleteSnapshot`]
//! lets a plan deactivate anything.

use crate::error::Error;
use crate::upstream::{Crawl, Progress, Published, Upstream, UpstreamError, crawl};

/// Walks over all pages that one run makes at most.
const MAX_CRAWLS: u32 = 4;

/// Rows that are proven to be all rows. Made by [`prove`] and nothing else.
#[derive(Debug)]
pub struct CompleteSnapshot {
    rows: Vec<Published>,
    sha256: [u8; 32],
}

impl CompleteSnapshot {
    /// How many rows the proof is about.
    pub fn len(&self) -> usize {
        self.rows.len()
    }
}

/// The rows that a run works with.
#[derive(Debug)]
pub enum Snapshot {
    /// All of them.
    Complete(CompleteSnapshot),
    /// Rows that were published, and perhaps not all of them.
    Doubtful {
        /// The rows of the last walk that reached its total.
        rows: Vec<Published>,
        /// Their fingerprint.
        sha256: [u8; 32],
    },
}

impl Snapshot {
    /// The rows.
    pub fn rows(&self) -> &[Published] {
        match self {
            Snapshot::Complete(snapshot) => &snapshot.rows,
            Snapshot::Doubtful { rows, .. } => rows,
        }
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

/// Two consecutive walks prove completeness when each agrees with itself and both carry the same multiset of rows.
pub fn prove(earlier: &Crawl, later: Crawl) -> Result<CompleteSnapshot, Crawl> {
    let sha256 = later.fingerprint();
    if earlier.is_consistent() && later.is_consistent() && earlier.fingerprint() == sha256 {
        Ok(CompleteSnapshot { rows: later.rows, sha256 })
    } else {
        Err(later)
    }
}

/// Walks until two consecutive walks agree, or [`MAX_CRAWLS`] were made.
pub async fn obtain(
    upstream: &Upstream,
    turned: &mut impl AsyncFnMut(Progress) -> Result<(), Error>,
) -> Result<Snapshot, Error> {
    let mut walks = Walks::default();
    loop {
        let crawl = crawl(upstream, turned).await?;
        tracing::info!(rows = crawl.rows.len(), total = crawl.total, steady = crawl.steady, "crawled");
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
}

impl Walks {
    /// One more walk. `None`: another one is needed. Empty is refused at once: nothing can be right about it.
    pub fn add(&mut self, crawl: Crawl) -> Result<Option<Snapshot>, Error> {
        if crawl.rows.is_empty() {
            return Err(Error::EmptySnapshot { announced: crawl.total });
        }
        self.made += 1;
        let crawl = match self.previous.take() {
            None => crawl,
            Some(earlier) => match prove(&earlier, crawl) {
                Ok(snapshot) => return Ok(Some(Snapshot::Complete(snapshot))),
                Err(crawl) => {
                    tracing::warn!(crawl = self.made, "two consecutive crawls differ: the upstream is changing");
                    if !earlier.is_short() {
                        self.fallback = Some(earlier);
                    }
                    crawl
                }
            },
        };
        if self.made < MAX_CRAWLS {
            self.previous = Some(crawl);
            return Ok(None);
        }
        let (rows, total) = (crawl.rows.len() as u64, crawl.total);
        match if crawl.is_short() { self.fallback.take() } else { Some(crawl) } {
            Some(crawl) => Ok(Some(Snapshot::Doubtful { sha256: crawl.fingerprint(), rows: crawl.rows })),
            None => Err(UpstreamError::Short { crawls: MAX_CRAWLS, rows, total }.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::{Field, Item};

    fn crawl(names: &[&str], total: u64, steady: bool) -> Crawl {
        let item = |name: &&str| Item::from([("n".to_owned(), Field::Text((*name).to_owned()))]);
        Crawl { rows: names.iter().map(item).map(Published::from).collect(), total, steady }
    }

    #[test]
    fn only_two_equal_and_consistent_walks_prove_anything() {
        let whole = || crawl(&["a", "b", "b"], 3, true);
        assert!(prove(&whole(), crawl(&["b", "a", "b"], 3, true)).is_ok());
        assert!(prove(&whole(), crawl(&["a", "a", "b"], 3, true)).is_err());
        assert!(prove(&whole(), crawl(&["a", "b", "b"], 3, false)).is_err());
        assert!(prove(&crawl(&["a", "b", "b"], 4, true), whole()).is_err());
        let cut = || crawl(&["a", "b"], 3, true);
        assert!(prove(&cut(), cut()).is_err());
    }
}
