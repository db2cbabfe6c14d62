//! The control database: a small replicated key-value store, correct by default, with one switch per flaw.
//!
//! It exists so that every check can be shown the defect it must catch, and so that a first try needs nothing installed;
//! it claims to be nothing more. One process per node; a leader is elected by Raft (Ongaro and Ousterhout, "In Search of
//! an Understandable Consensus Algorithm", 2014), and every transaction, reads included, goes through its log. There are
//! no snapshots: a node keeps the log of its whole life in memory and in one file, which suits runs of minutes.
//!
//! Owns the transactions, the state machine, the consensus, the journal's form and the wire's form, all of them pure
//! (time and chance are arguments), and in `server` the I/O around them. Knows nothing of the lab.

pub mod chance;
pub mod flaw;
pub mod journal;
pub mod log;
pub mod message;
pub mod replica;
mod replication;
pub mod server;
pub mod state;
pub mod transaction;
pub mod wire;

pub use flaw::{Flaw, UnknownFlaw};
pub use transaction::{Answer, Found, Operation, Value};
