//! Defects that a test plants in a load, to show that the lab's own evidence catches them.
//!
//! Owns when each one acts. What it does stands where the honest code does the thing.

use std::cell::Cell;

use history::Action;

/// From this moment on a load that is to come to a bad end does so, seconds.
pub(crate) const BAD_END_S: f64 = 3.0;
/// From this moment on inserts are dropped or invented, seconds: every client has asked something by then.
const INSERTS_S: f64 = 0.5;

/// The defects of one load; none in every honest run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Defects {
    /// Its thread panics at second 3, when a client has been answered and has not recorded it.
    pub panics: bool,
    /// It ends with an error at second 3.
    pub dies: bool,
    /// One insert of the ledger is acknowledged to its client without having been sent.
    pub drops_insert: bool,
    /// One insert of the ledger is sent that no client asked for.
    pub invents_insert: bool,
}

/// Defects that act once, and have not yet.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    drops_insert: Cell<bool>,
    invents_insert: Cell<bool>,
}

impl Pending {
    pub(crate) fn new(defects: Defects) -> Self {
        Self {
            drops_insert: Cell::new(defects.drops_insert),
            invents_insert: Cell::new(defects.invents_insert),
        }
    }

    /// Whether this transaction is to be acknowledged without being sent.
    pub(crate) fn drops(&self, action: &Action, at_s: f64) -> bool {
        acts(&self.drops_insert, action, at_s)
    }

    /// Whether an insert that nobody asked for is to be sent before this transaction.
    pub(crate) fn invents(&self, action: &Action, at_s: f64) -> bool {
        acts(&self.invents_insert, action, at_s)
    }
}

fn acts(pending: &Cell<bool>, action: &Action, at_s: f64) -> bool {
    pending.get()
        && matches!(action, Action::LedgerInsert { .. })
        && at_s >= INSERTS_S
        && pending.replace(false)
}
