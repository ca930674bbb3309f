//! Receipts.
