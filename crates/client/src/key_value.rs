//! The trait that key-value workloads are written against.
//!
//! Owns the trait; the words of its transactions are the control database's, whose client is one of those that implement it.

use crate::session::{Connection, SessionFuture};

pub use control::transaction::{Found, Operation, Value};

/// One connection to a database of keys and values.
pub trait KeyValueSession: Connection {
    /// Carries out one transaction of micro-operations, whole or not at all, as if no other ran beside it. Answers with
    /// what each found, in order.
    ///
    /// # Errors
    /// With [`crate::SessionError::definite`] telling whether it may have happened all the same. A condition that was not
    /// met (another value held, below the floor, there already) is definite and has the code [`REFUSED`].
    fn transact(&mut self, operations: Vec<Operation>) -> SessionFuture<'_, Vec<Found>>;

    /// Whether an append writes the whole list again, so that a list that grows for ever costs ever more.
    fn rewrites_lists(&self) -> bool {
        false
    }
}

/// The code of a transaction that was turned down by a condition of its own.
pub const REFUSED: &str = "refused";
