//! `enable`.
