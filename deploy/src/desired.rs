//! Desired.
