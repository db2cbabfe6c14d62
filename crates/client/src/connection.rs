//! What sessions of every kind have: a time limit, an end, errors.
//!
//! Futures stay on the thread that made them.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use history::ErrorClass;

/// A future of a session call; it need not be `Send`, all clients of a load share one thread.
pub type SessionFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, SessionError>> + 'a>>;

/// Why a call failed, and what that says about the transaction it belonged to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SessionError {
    /// What it is counted under.
    pub class: ErrorClass,
    /// True: the transaction this call belonged to certainly did not happen, now or later. False: it may have.
    pub definite: bool,
    /// What went wrong, a lowercase fragment that carries the address or the server's own words.
    pub message: String,
    /// The server's code (SQLSTATE), where the server gave one.
    pub code: Option<String>,
}

/// What a session of any kind has.
pub trait Connection {
    /// How long every later call waits for its answer before it gives the session up.
    fn set_timeout(&mut self, timeout: Duration);

    /// Whether the session can be used no more and must be dropped.
    fn is_broken(&self) -> bool;

    /// The node that was asked last, where that is another than the session was opened with: a replica may answer with
    /// what is older than what the leader has acknowledged.
    fn read_at(&self) -> Option<&str> {
        None
    }
}
