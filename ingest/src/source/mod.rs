//! The data sets: where each is fetched, and how a published row becomes a [`Row`].
//!
//! One file a source. A source knows field names and rules, and neither HTTP nor SQL.

mod library;

use geuneul::SourceName;

use crate::record::Row;
use crate::upstream::Item;

/// A data set behind the portal's paged API.
pub struct Source {
    /// Its name.
    pub name: SourceName,
    /// The API's path.
    pub path: &'static str,
    /// A published field of that name is stored. Others come and go: a row is the same without them.
    pub is_field: fn(&str) -> bool,
    /// Reads one published row.
    pub read: fn(&Item) -> Row,
}

impl Source {
    /// The source of that name.
    pub const fn of(name: SourceName) -> Source {
        match name {
            SourceName::Library => {
                Source { name, path: library::PATH, is_field: library::is_field, read: library::read }
            }
        }
    }
}
