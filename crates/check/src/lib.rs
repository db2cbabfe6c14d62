//! From a history to a verdict, with a story that a reader can verify by hand.
//!
//! Owns what each check demands. Knows neither which faults ran nor when, so that it can excuse nothing;
//! reads no clock and opens no file. On doubt a verdict is `unknown`, never `pass`.

pub mod bank;
mod components;
pub mod conditions;
pub mod convergence;
pub mod final_read;
pub mod last_writes;
pub mod ledger;
pub mod list_append;
mod names;
mod open_transfers;
pub mod register;
pub mod registry;
pub mod report;
mod rows_read;
pub mod soundness;
mod story;
mod subsets;
pub mod tpcb;
mod tpcb_amounts;
mod tpcc_rows;

pub use final_read::FinalReads;
pub use registry::{CHECKS, RegisteredCheck};
pub use report::{LostWrite, Report};
pub use soundness::{Contradiction, Soundness};

use history::Operation;

/// A check that is fed a history operation by operation, so that a history need not be held in memory.
pub trait Check {
    /// Takes in the next operation, in any order; those the check is not about are passed over.
    fn observe(&mut self, operation: &Operation);

    /// Judges what was taken in.
    fn conclude(self: Box<Self>) -> Report;
}
