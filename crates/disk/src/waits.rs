//! Operations under way, by when they began: how long the oldest has taken so far.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// See the module.
#[derive(Debug, Default)]
pub(crate) struct Waits(Mutex<(u64, BTreeMap<u64, Instant>)>);

impl Waits {
    fn all(&self) -> MutexGuard<'_, (u64, BTreeMap<u64, Instant>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// An operation begins; returns the number to end it with.
    pub(crate) fn begin(&self) -> u64 {
        let mut all = self.all();
        all.0 += 1;
        let number = all.0;
        all.1.insert(number, Instant::now());
        number
    }

    /// It is over.
    pub(crate) fn end(&self, number: u64) {
        self.all().1.remove(&number);
    }

    /// How long the oldest has taken so far; zero where none is under way.
    pub(crate) fn longest(&self) -> Duration {
        self.all().1.values().next().map(Instant::elapsed).unwrap_or_default()
    }
}
