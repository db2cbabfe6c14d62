//! Records latencies and errors of one load, second by second.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use history::operation::ErrorCounts;

/// An operation's number within its recorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OperationId(usize);

/// What one operation did in one second.
#[derive(Debug, Clone)]
pub struct OperationInterval {
    /// Latencies, microseconds.
    pub histogram: Histogram<u64>,
    /// Errors by class.
    pub errors: ErrorCounts,
}

/// One second of one load.
#[derive(Debug, Clone)]
pub struct Interval {
    /// The load.
    pub load: String,
    /// The second.
    pub second: u64,
    /// By operation.
    pub operations: BTreeMap<String, OperationInterval>,
}

/// Records.
pub struct Recorder {
    load: String,
    operations: Vec<(String, OperationInterval)>,
}

fn empty() -> OperationInterval {
    OperationInterval {
        histogram: Histogram::new(3).expect("three digits are allowed"),
        errors: ErrorCounts::new(),
    }
}

impl Recorder {
    /// For a load.
    #[must_use]
    pub fn new(load: &str) -> Self {
        Self { load: load.to_owned(), operations: Vec::new() }
    }

    /// Interns a name.
    pub fn operation(&mut self, name: &str) -> OperationId {
        let found = self.operations.iter().position(|(known, _)| known == name);
        OperationId(found.unwrap_or_else(|| {
            self.operations.push((name.to_owned(), empty()));
            self.operations.len() - 1
        }))
    }

    /// A success.
    pub fn record_ok(&mut self, operation: OperationId, latency: Duration) {
        let latency_us = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX).max(1);
        let _ = self.operations[operation.0].1.histogram.record(latency_us);
    }

    /// An error.
    pub fn record_error(&mut self, operation: OperationId, class: history::ErrorClass) {
        *self.operations[operation.0].1.errors.entry(class).or_default() += 1;
    }

    /// Ends the second.
    pub fn take(&mut self, second: u64) -> Interval {
        let operations = self
            .operations
            .iter_mut()
            .map(|(name, seen)| (name.clone(), std::mem::replace(seen, empty())))
            .collect();
        Interval { load: self.load.clone(), second, operations }
    }
}
