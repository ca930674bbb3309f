//! `trigger-now`.
