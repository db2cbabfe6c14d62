//! Faults on a cluster that exists: struck by their command files, shown by the files' looks, undone; and the record of each.
//!
//! Owns when a fault's commands run and on which member. What makes a receipt is `remote`'s; which files there are, and what they
//! may strike, is `scenario_files`'.

mod context;
mod receipts;
mod strikes;

pub use context::Targets;
pub use strikes::Strikes;
