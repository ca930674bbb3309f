//! The receipt of a proven run.

/// What a proven run leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receipt {}
