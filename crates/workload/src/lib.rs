//! What the clients ask, transaction by transaction; one file per workload.
//!
//! Owns tables, statements and how a transaction is drawn from chance. Knows no protocol and no clock of the run:
//! it is written against `client`'s session traits, and `load` times and records it.

pub mod ledger;
pub mod registry;
pub mod tpcb;
pub mod workload;

pub use registry::{all, by_name};
pub use workload::{Attempt, ClientState, Request, Statement, StatementObserver, Workload};
