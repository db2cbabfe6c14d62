//! Ours beside another's: measured in turn on the same machine by the same yardstick.
//!
//! Owns the measuring and the form of the result. What each bench compares stands in its own file.

pub mod cpu_account;
pub mod lab;
mod shell_cluster;
pub mod table;
