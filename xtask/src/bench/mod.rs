//! Ours beside another's: measured in turn on the same machine by the same yardstick.
//!
//! Owns the measuring and the form of the result. What each bench compares stands in its own file.

pub mod check;
pub mod clock;
pub mod cpu_account;
pub mod disk;
pub mod fabric;
pub mod lab;
pub mod load;
pub mod load_alike;
mod load_cassandra;
mod load_idle_server;
pub mod load_many;
mod load_mysql;
mod load_ours;
mod load_peers;
mod load_server;
mod load_sides;
mod packages;
pub mod paper;
mod shell_cluster;
pub mod table;
pub mod weight;
