//! What one load did in one second.
//!
//! Owns the shape that passes from the load's thread to everything that keeps or shows figures.

use std::collections::BTreeMap;
use std::time::Duration;

use hdrhistogram::Histogram;
use history::ErrorCounts;

/// Significant decimal digits of every histogram: figures are within 0.1 % of the true value.
pub const SIGNIFICANT_DIGITS: u8 = 3;

/// A histogram of latencies in microseconds that grows with what it is given, so the tail is never cut.
#[must_use]
pub fn new_histogram() -> Histogram<u64> {
    // The bounds grow on demand from here; they are constants the library accepts.
    let mut histogram = match Histogram::new_with_bounds(1, 2, SIGNIFICANT_DIGITS) {
        Ok(histogram) => histogram,
        Err(refusal) => unreachable!("constant histogram bounds refused: {refusal}"),
    };
    histogram.auto(true);
    histogram
}

/// Adds one latency. Below one microsecond counts as one; nothing is too long.
pub fn record_latency(histogram: &mut Histogram<u64>, latency: Duration) {
    let latency_us = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX).max(1);
    if histogram.record(latency_us).is_err() {
        // Only when the address space cannot hold a wider histogram: count it as the longest that can be told.
        histogram.saturating_record(latency_us);
    }
}

/// What one operation did in one second.
#[derive(Debug, Clone, PartialEq)]
pub struct OperationInterval {
    /// Latencies of those that succeeded, microseconds.
    pub histogram: Histogram<u64>,
    /// Those that did not, by class.
    pub errors: ErrorCounts,
    /// Of these, those that may have happened all the same: the answer is missing.
    pub errors_indefinite: ErrorCounts,
    /// Tries that met a serialization failure and were followed by another; no errors.
    pub retries: u64,
}

impl Default for OperationInterval {
    fn default() -> Self {
        OperationInterval {
            histogram: new_histogram(),
            errors: ErrorCounts::new(),
            errors_indefinite: ErrorCounts::new(),
            retries: 0,
        }
    }
}

impl OperationInterval {
    /// How many succeeded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// How many did not.
    #[must_use]
    pub fn error_count(&self) -> u64 {
        self.errors.values().sum()
    }
}

/// What one load did in the second that begins at [`second`](Interval::second) and ends before the next.
#[derive(Debug, Clone, PartialEq)]
pub struct Interval {
    /// The load's name.
    pub load: String,
    /// The whole second on the run's clock.
    pub second: u64,
    /// Every operation of the load by name, those that did nothing in this second too.
    pub operations: BTreeMap<String, OperationInterval>,
}

/// The operation under which attempts to reach a database are counted.
pub const CONNECT: &str = "connect";

/// Whether the errors of an operation count for the load as a whole, whose transactions stand under this name. Those of
/// kinds of transaction and of statements are the transactions' own, told apart.
#[must_use]
pub fn counts_for_load(operation: &str, transaction: &str) -> bool {
    operation == transaction || operation == CONNECT
}

impl Interval {
    /// Errors of the load, whose transactions stand under this name.
    #[must_use]
    pub fn error_count(&self, transaction: &str) -> u64 {
        let counted = self.operations.iter().filter(|(name, _)| counts_for_load(name, transaction));
        counted.map(|(_, measured)| measured.error_count()).sum()
    }
}
