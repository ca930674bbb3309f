//! Observe.
