//! Recording of latencies and errors while a load runs.
//!
//! Owns the hot path: one thread, no allocation per operation once the histograms have grown to the latencies
//! at hand. Latencies are noted in a short list first and moved to the histograms many at a time: a histogram is large,
//! and touching it for every operation would each time wait for memory that the database's processes have pushed out of
//! the processor's caches.

use std::collections::BTreeMap;
use std::time::Duration;

use history::ErrorClass;

use crate::interval::{Interval, OperationInterval, record_latency};

/// An operation's number within the [`Recorder`] that gave it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct OperationId(usize);

/// Latencies noted before they are moved.
const NOTED_MAX: usize = 512;

/// Gathers what one load does, second by second. Used from the load's one thread.
#[derive(Debug)]
pub struct Recorder {
    load: String,
    operations: Vec<(String, OperationInterval)>,
    noted: Vec<(OperationId, Duration)>,
}

impl Recorder {
    /// A recorder for the load of this name.
    #[must_use]
    pub fn new(load: &str) -> Self {
        Recorder { load: load.to_owned(), operations: Vec::new(), noted: Vec::with_capacity(NOTED_MAX) }
    }

    /// The number of the operation of this name; the same name gets the same number. Every operation named
    /// here stands in every interval from then on, with zeroes when it did nothing.
    pub fn operation(&mut self, name: &str) -> OperationId {
        if let Some(known) = self.operations.iter().position(|(other, _)| other == name) {
            return OperationId(known);
        }
        self.operations.push((name.to_owned(), OperationInterval::default()));
        OperationId(self.operations.len() - 1)
    }

    /// Counts a success that took so long.
    /// One of an operation that another recorder has named is not counted.
    pub fn record_ok(&mut self, operation: OperationId, latency: Duration) {
        self.noted.push((operation, latency));
        if self.noted.len() >= NOTED_MAX {
            self.move_noted();
        }
    }

    fn move_noted(&mut self) {
        for (operation, latency) in self.noted.drain(..) {
            if let Some((_, interval)) = self.operations.get_mut(operation.0) {
                record_latency(&mut interval.histogram, latency);
            }
        }
    }

    /// Counts an error; a `definite` one certainly left nothing behind. Its latency is not kept: it would say how long the
    /// client waited, not how long the database took.
    ///
    /// # Panics
    /// When `operation` was given by another recorder and is unknown to this one.
    pub fn record_error(&mut self, operation: OperationId, class: ErrorClass, definite: bool) {
        let interval = &mut self.operations[operation.0].1;
        *interval.errors.entry(class).or_insert(0) += 1;
        if !definite {
            *interval.errors_indefinite.entry(class).or_insert(0) += 1;
        }
    }

    /// Counts a try that another one follows.
    ///
    /// # Panics
    /// As [`record_error`](Recorder::record_error).
    pub fn record_retry(&mut self, operation: OperationId) {
        self.operations[operation.0].1.retries += 1;
    }

    /// Everything recorded since the last call, as the interval of `second`. To be called once for each
    /// second, when it has ended, also when nothing happened in it.
    pub fn take(&mut self, second: u64) -> Interval {
        self.move_noted();
        let mut operations = BTreeMap::new();
        for (name, current) in &mut self.operations {
            let errors = std::mem::take(&mut current.errors);
            let errors_indefinite = std::mem::take(&mut current.errors_indefinite);
            let retries = std::mem::take(&mut current.retries);
            let histogram = current.histogram.clone();
            // Emptied, not replaced: it keeps the width it has grown to.
            current.histogram.reset();
            let taken = OperationInterval { histogram, errors, errors_indefinite, retries };
            operations.insert(name.clone(), taken);
        }
        Interval { load: self.load.clone(), second, operations }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interval_holds_what_came_since_the_last_one() {
        let mut recorder = Recorder::new("tpcb");
        let (commit, begin) = (recorder.operation("commit"), recorder.operation("begin"));
        assert_eq!(recorder.operation("commit"), commit);
        recorder.record_ok(commit, Duration::from_micros(500));
        recorder.record_ok(commit, Duration::from_secs(3000));
        recorder.record_error(begin, ErrorClass::Timeout, true);
        recorder.record_error(begin, ErrorClass::Timeout, false);
        recorder.record_retry(commit);

        let first = recorder.take(7);
        assert_eq!((first.load.as_str(), first.second), ("tpcb", 7));
        assert_eq!(first.operations["commit"].count(), 2);
        assert!(first.operations["commit"].histogram.max() >= 3_000_000_000, "the tail is not cut");
        assert_eq!(first.operations["begin"].errors[&ErrorClass::Timeout], 2);
        assert_eq!(first.operations["begin"].error_count(), 2);
        assert_eq!(first.operations["begin"].errors_indefinite[&ErrorClass::Timeout], 1);
        assert_eq!((first.operations["commit"].retries, first.operations["begin"].retries), (1, 0));

        let second = recorder.take(8);
        assert_eq!(second.operations["commit"].count(), 0);
        assert_eq!(second.operations["begin"].error_count(), 0);
        assert!(second.operations["begin"].errors_indefinite.is_empty());
        assert_eq!(second.operations["commit"].retries, 0);
    }

    #[test]
    fn an_error_of_a_transaction_is_one_of_the_load_however_many_operations_tell_of_it() {
        let mut recorder = Recorder::new("tpcc");
        for name in ["transaction", "NEW-ORDER", "UPDATE district", "connect"] {
            let operation = recorder.operation(name);
            recorder.record_error(operation, ErrorClass::Connection, true);
        }
        assert_eq!(recorder.take(0).error_count("transaction"), 2);
    }

    #[test]
    fn the_shortest_and_the_longest_latency_are_counted() {
        let mut recorder = Recorder::new("l");
        let read = recorder.operation("read");
        recorder.record_ok(read, Duration::ZERO);
        recorder.record_ok(read, Duration::from_nanos(999));
        recorder.record_ok(read, Duration::MAX);
        let interval = recorder.take(0);
        assert_eq!(interval.operations["read"].count(), 3);
        assert_eq!(interval.operations["read"].histogram.min(), 1);
        assert!(interval.operations["read"].histogram.max() > u64::MAX / 2);
    }
}
