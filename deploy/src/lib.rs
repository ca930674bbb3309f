//! deploy
pub mod model;
pub mod run;
