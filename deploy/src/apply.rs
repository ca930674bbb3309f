//! Apply.
