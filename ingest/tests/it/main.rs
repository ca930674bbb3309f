//! The program against a real PostgreSQL and the stand-in for data.go.kr.

mod by_hand;
mod certificates;
mod commands;
mod commit;
mod crashes;
mod failover;
mod faults;
mod guards;
mod hostile;
mod identity;
mod kill;
mod lock;
mod mirror;
mod ping;
mod portal;
mod proxy;
mod real_months;
mod rooms;
mod schema;
mod secrets;
mod skips;
mod snapshots;
mod status;
mod tls;
mod tripwires;
mod world;
