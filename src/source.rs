//! Which data set a run mirrors.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// A data set that `ingest` knows how to fetch. This is the only spelling of its name: on command lines, in the ledger, in
/// reports, in lock keys and in `deploy.toml`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SourceName {
    /// 전국도서관표준데이터, data.go.kr 15013109: every public library of the country, about 3,600 rows.
    Library,
}

impl SourceName {
    /// Every source, in the order in which help texts list them.
    pub const ALL: &'static [SourceName] = &[SourceName::Library];

    /// The name as it is written everywhere.
    pub const fn as_str(self) -> &'static str {
        match self {
            SourceName::Library => "library",
        }
    }
}

impl fmt::Display for SourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The name is not one of [`SourceName::ALL`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown source {0:?}; known: {known}", known = known())]
pub struct UnknownSource(pub String);

fn known() -> String {
    let names: Vec<_> = SourceName::ALL.iter().map(|s| s.as_str()).collect();
    names.join(", ")
}

impl FromStr for SourceName {
    type Err = UnknownSource;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        SourceName::ALL
            .iter()
            .copied()
            .find(|source| source.as_str() == name)
            .ok_or_else(|| UnknownSource(name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_has_one_spelling() {
        for &source in SourceName::ALL {
            assert_eq!(source.as_str().parse(), Ok(source));
            assert_eq!(serde_json::to_value(source).unwrap(), source.as_str());
        }
        let error = "Library".parse::<SourceName>().unwrap_err();
        assert_eq!(error.to_string(), "unknown source \"Library\"; known: library");
    }
}
