//! Normalise.
