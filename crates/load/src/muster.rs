//! How many of a load's clients have connected before the run's clock has a zero, and what keeps the others from it.
//!
//! Owns the counts. Who waits for them, and for how long, decides when the zero is.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use client::{ConnectError, SessionError};

/// What a load's thread tells of its clients before the zero is known.
#[derive(Debug, Default)]
pub struct Muster {
    connected: AtomicUsize,
    refusal: Mutex<Option<SessionError>>,
}

impl Muster {
    /// Clients that have a session and wait for the zero.
    #[must_use]
    pub fn connected(&self) -> usize {
        self.connected.load(Ordering::Relaxed)
    }

    /// The first error that kept a client from connecting, the server's own words before any other.
    #[must_use]
    pub fn first_error(&self) -> Option<SessionError> {
        self.refusal.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn one_more(&self) {
        self.connected.fetch_add(1, Ordering::Relaxed);
    }

    /// So many, counted elsewhere.
    pub(crate) fn counted(&self, connected: usize) {
        self.connected.store(connected, Ordering::Relaxed);
    }

    pub(crate) fn failed(&self, error: &ConnectError) {
        error.failed_attempts.iter().for_each(|failed| self.refused(&failed.error));
    }

    /// Keeps the error, if it says more than what is known.
    pub(crate) fn refused(&self, error: &SessionError) {
        let mut known = self.refusal.lock().unwrap_or_else(PoisonError::into_inner);
        let says_more = error.code.is_some();
        if known.as_ref().is_none_or(|known| known.code.is_none() && says_more) {
            *known = Some(error.clone());
        }
    }
}
