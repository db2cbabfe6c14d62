//! What the clients ask, transaction by transaction; one file per workload.
//!
//! Owns tables, statements and how a transaction is drawn from chance. Knows no protocol and no clock of the run:
//! it is written against `client`'s session traits, and `load` times and records it.

pub mod append;
pub mod bank;
mod cells;
mod dialect;
pub mod distribution;
pub mod iot;
mod key_value;
pub mod kv;
pub mod ledger;
mod options;
mod parallel;
mod random_text;
pub mod rawio;
pub mod register;
pub mod registry;
pub mod script;
mod script_error;
pub mod tpcb;
pub mod tpcc;
pub mod workload;
pub mod ycsb;

pub use registry::{ConfigurationError, all, by_name, configured};
pub use workload::{
    Attempt, ClientState, Ground, Memory, Pauses, Request, Statement, StatementObserver, Workload,
};
