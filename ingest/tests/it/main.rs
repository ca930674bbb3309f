//! The program against a real PostgreSQL and the stand-in for data.go.kr.

mod commands;
mod commit;
mod crashes;
mod faults;
mod identity;
mod lock;
mod mirror;
mod portal;
mod real_months;
mod rooms;
mod schema;
mod secrets;
mod snapshots;
mod tripwires;
mod world;
