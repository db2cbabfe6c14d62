//! The checkers of isolation, order and conservation: small histories told in a notation, random ones against brute
//! force, the histories that ship with the stories told of them, and histories with one thing changed.

mod bank;
mod conformance;
mod convergence;
mod corpora;
mod last_writes_by_force;
mod ledger_by_force;
mod list_append;
mod list_append_by_definition;
mod list_append_by_force;
mod list_append_histories;
mod mutations;
mod notation;
mod random;
mod register;
mod register_by_force;
mod register_like_etcd;
