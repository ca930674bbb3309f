//! deploy
pub mod model;
