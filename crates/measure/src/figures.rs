//! Figures of a stretch of a load: counts, errors, latencies.
//!
//! Owns what is computed from a histogram. Which seconds go into it is `timeline`'s business.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use history::ErrorCounts;

/// Latency figures, microseconds, each within 0.1 % of the true value. All zero when nothing was measured.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LatencyFigures {
    pub mean_us: f64,
    /// Standard deviation.
    pub stdev_us: f64,
    /// Median.
    pub p50_us: u64,
    /// 90th percentile.
    pub p90_us: u64,
    /// 95th percentile.
    pub p95_us: u64,
    /// 99th percentile.
    pub p99_us: u64,
    /// 99.9th percentile.
    pub p99_9_us: u64,
    /// Largest.
    pub max_us: u64,
}

impl LatencyFigures {
    /// The figures of a histogram of microseconds. A percentile is the smallest value that at least this
    /// share of all values do not exceed.
    #[must_use]
    pub fn of(histogram: &Histogram<u64>) -> Self {
        if histogram.is_empty() {
            return LatencyFigures::default();
        }
        LatencyFigures {
            mean_us: histogram.mean(),
            stdev_us: histogram.stdev(),
            p50_us: histogram.value_at_quantile(0.5),
            p90_us: histogram.value_at_quantile(0.9),
            p95_us: histogram.value_at_quantile(0.95),
            p99_us: histogram.value_at_quantile(0.99),
            p99_9_us: histogram.value_at_quantile(0.999),
            max_us: histogram.max(),
        }
    }
}

/// Figures of one operation.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct OperationFigures {
    /// How many succeeded.
    pub count: u64,
    /// Those that did not, by class.
    pub errors: ErrorCounts,
    /// Of these, those that may have happened all the same.
    pub errors_indefinite: ErrorCounts,
    /// Errors whose class is not known: those of a time line that was read back from files, which hold sums
    /// only.
    pub errors_unclassified: u64,
    /// Tries that met a serialization failure and were followed by another.
    pub retries: u64,
    /// Latencies of those that succeeded.
    pub latency: LatencyFigures,
}

impl OperationFigures {
    /// Errors by the names of their classes as they stand in `result.json`; those of unknown class under
    /// `unclassified`. Classes without errors are left out.
    #[must_use]
    pub fn errors_by_name(&self) -> BTreeMap<String, u64> {
        let classified = self.errors.iter().map(|(class, count)| (class.name().to_owned(), *count));
        let unclassified = [("unclassified".to_owned(), self.errors_unclassified)];
        classified.chain(unclassified).filter(|(_, count)| *count > 0).collect()
    }

    /// Of these, those that may have happened all the same, by the same names. Of errors of unknown class that is not known
    /// either.
    #[must_use]
    pub fn errors_indefinite_by_name(&self) -> BTreeMap<String, u64> {
        let named = self.errors_indefinite.iter().map(|(class, count)| (class.name().to_owned(), *count));
        named.filter(|(_, count)| *count > 0).collect()
    }
}

/// Figures of one load over a stretch of time.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    /// Whole seconds of the run that the stretch takes in, with or without operations in them.
    pub seconds: u64,
    /// Each operation that stands in any of these seconds.
    pub operations: BTreeMap<String, OperationFigures>,
}

impl Figures {
    /// Successes of an operation a second; 0 for an unknown operation or an empty stretch.
    #[must_use]
    pub fn throughput_per_s(&self, operation: &str) -> f64 {
        match self.operations.get(operation) {
            Some(figures) if self.seconds > 0 => figures.count as f64 / self.seconds as f64,
            _ => 0.0,
        }
    }
}
