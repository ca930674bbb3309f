//! What needs root or packages: `cargo rehearse hostile` says what is missing, and runs these.

mod black_hole;
mod poolers;
