//! How long syncs of a mirrored volume took, and how much of that was waiting for the others.
//!
//! Owns the record between two looks at it. Figures are for whoever takes it.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

/// Syncs kept until somebody looks: more than a machine does in a second.
const KEPT_MAX: usize = 65_536;

/// One sync that was acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SyncTime {
    /// Until the serving component had made it durable.
    pub here: Duration,
    /// From then until it was acknowledged.
    pub beyond: Duration,
}

#[derive(Debug, Default)]
pub(crate) struct SyncTimes(Mutex<Vec<SyncTime>>);

impl SyncTimes {
    pub(crate) fn note(&self, time: SyncTime) {
        let mut times = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if times.len() < KEPT_MAX {
            times.push(time);
        }
    }

    pub(crate) fn take(&self) -> Vec<SyncTime> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
