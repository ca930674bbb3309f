//! Where the rows of a walk lie until they are read: in memory while they are few, and then in a file without a name, which goes with the
//! process. A walk keeps only a row's fingerprint at hand.

use std::io::{BufRead, BufReader, Error, ErrorKind, Result, Seek, Write};

use tempfile::SpooledTempFile;

use crate::upstream::{Item, Published};

/// More than this goes to a file in `TMPDIR`. A month of libraries is about 5 MiB.
const IN_MEMORY: usize = 64 << 20;

/// More than this is no snapshot: what is read of the rows is kept in memory until it is written.
pub const AT_MOST: u64 = 256 << 20;

/// Rows, one line of JSON each.
#[derive(Debug)]
pub struct Spool {
    file: SpooledTempFile,
    bytes: u64,
    fingerprints: Vec<[u8; 32]>,
}

impl Default for Spool {
    fn default() -> Self {
        Spool::with_memory(IN_MEMORY)
    }
}

impl Spool {
    fn with_memory(bytes: usize) -> Self {
        Spool { file: SpooledTempFile::new(bytes), bytes: 0, fingerprints: Vec::new() }
    }

    /// Appends the rows of a page.
    pub fn push(&mut self, rows: &[Published]) -> Result<()> {
        let mut lines = Vec::new();
        for row in rows {
            serde_json::to_writer(&mut lines, &row.item)?;
            lines.push(b'\n');
        }
        self.file.write_all(&lines)?;
        self.bytes += lines.len() as u64;
        self.fingerprints.extend(rows.iter().map(|row| row.fingerprint));
        Ok(())
    }

    /// How much there is of the rows.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// One a row, in their order.
    pub fn fingerprints(&self) -> &[[u8; 32]] {
        &self.fingerprints
    }

    /// The rows in their order, one at a time. Nothing can be appended afterwards.
    pub fn read(&mut self) -> Result<impl Iterator<Item = Result<Published>>> {
        self.file.rewind()?;
        let lines = BufReader::new(&mut self.file).lines();
        // A file that somebody cut short must not look like a shorter listing.
        let lines = lines.chain(std::iter::repeat_with(|| Err(Error::from(ErrorKind::UnexpectedEof))));
        Ok(lines.zip(&self.fingerprints).map(|(line, &fingerprint)| {
            let item: Item = serde_json::from_str(&line?)?;
            Ok(Published { item, fingerprint })
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::upstream::Field;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn what_comes_out_is_what_went_in(
            rows in proptest::collection::vec(proptest::collection::btree_map("\\PC{0,4}", ("\\PC{0,8}|[\u{0}-\u{1f}]{0,3}", any::<bool>()), 0..4), 0..12),
            memory in 0usize..400,
        ) {
            let field = |(text, readable)| if readable { Field::Text(text) } else { Field::Unreadable(text) };
            let rows: Vec<Published> = rows
                .into_iter()
                .map(|row| Item::from_iter(row.into_iter().map(|(name, value)| (name, field(value)))).into())
                .collect();
            let mut spool = Spool::with_memory(memory);
            for page in rows.chunks(3) {
                spool.push(page).unwrap();
            }
            prop_assert_eq!(spool.file.is_rolled(), spool.bytes() > memory as u64);
            for _ in 0..2 {
                prop_assert_eq!(spool.read().unwrap().collect::<Result<Vec<_>>>().unwrap(), rows.clone());
            }
        }
    }

    #[test]
    fn a_file_that_was_cut_short_is_an_error() {
        let mut spool = Spool::with_memory(0);
        spool.push(&[Item::new().into(), Item::new().into()]).unwrap();
        spool.file.set_len(3).unwrap();
        assert!(spool.read().unwrap().collect::<Result<Vec<_>>>().is_err());
    }
}
