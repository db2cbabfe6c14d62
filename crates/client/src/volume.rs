//! Sessions with a node's volume, without a database: what can be asked.

use crate::connection::{Connection, SessionFuture};

pub use rawio::{Done, Durability, Pass, Shape};

/// One connection to the process on a volume.
pub trait VolumeSession: Connection {
    /// Carries out one pass.
    ///
    /// # Errors
    /// With [`SessionError::definite`] false: part of a pass may have been done.
    fn pass(&mut self, pass: Pass) -> SessionFuture<'_, Done>;
}
