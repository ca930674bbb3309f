//! `story`.
