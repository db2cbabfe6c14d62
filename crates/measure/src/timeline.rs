//! Everything a run measured, second by second, and its summary over any stretch.
//!
//! Owns the second-by-second store. One second of one operation is kept as a packed histogram, some hundred
//! bytes to a few thousand, and unpacked when a summary asks for it.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
use history::ErrorCounts;

use crate::encoding::{Encoder, EncodingError, decode};
use crate::figures::{Figures, LatencyFigures, OperationFigures};
use crate::interval::{Interval, new_histogram};

/// The longest run a time line takes in, seconds: a hundred days. A later second is a damaged file, and would
/// make the seconds in between too many to list.
pub const SECONDS_MAX: u64 = 100 * 24 * 3600;

/// What can go wrong with a time line.
#[derive(Debug, thiserror::Error)]
pub enum TimelineError {
    /// A second beyond the longest run.
    #[error("load {load}: second {second} is beyond the longest run of {SECONDS_MAX} s")]
    SecondBeyondRun { load: String, second: u64 },
    /// A histogram could not be packed or unpacked.
    #[error("load {load}, operation {operation}, second {second}: {source}")]
    Histogram {
        load: String,
        operation: String,
        second: u64,
        /// What is wrong with it.
        source: EncodingError,
    },
}

/// One operation in one second.
#[derive(Debug, Clone, Default, PartialEq)]
struct Cell {
    count: u64,
    errors: ErrorCounts,
    errors_indefinite: ErrorCounts,
    errors_unclassified: u64,
    retries: u64,
    /// Empty when `count` is 0.
    packed: Box<[u8]>,
}

/// By operation, by second.
type LoadCells = BTreeMap<String, BTreeMap<u64, Cell>>;

/// The figures of every load of a run.
#[derive(Default)]
pub struct Timeline {
    loads: BTreeMap<String, LoadCells>,
    encoder: Encoder,
}

impl Timeline {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        Timeline::default()
    }

    /// Adds an interval; one of the same load and second is added to what is there.
    ///
    /// # Errors
    /// When the second is beyond [`SECONDS_MAX`], or a histogram cannot be packed.
    pub fn add(&mut self, interval: &Interval) -> Result<(), TimelineError> {
        for (operation, measured) in &interval.operations {
            self.add_histogram(&interval.load, operation, interval.second, &measured.histogram)?;
            let cell = cell_of(&mut self.loads, &interval.load, operation, interval.second)?;
            add_counts(&mut cell.errors, &measured.errors);
            add_counts(&mut cell.errors_indefinite, &measured.errors_indefinite);
            cell.retries = cell.retries.saturating_add(measured.retries);
        }
        Ok(())
    }

    /// Adds the latencies of one operation in one second.
    ///
    /// # Errors
    /// As [`add`](Timeline::add).
    pub fn add_histogram(
        &mut self,
        load: &str,
        operation: &str,
        second: u64,
        histogram: &Histogram<u64>,
    ) -> Result<(), TimelineError> {
        let failed = |source| TimelineError::Histogram {
            load: load.to_owned(),
            operation: operation.to_owned(),
            second,
            source,
        };
        let cell = cell_of(&mut self.loads, load, operation, second)?;
        if histogram.is_empty() {
            return Ok(());
        }
        let mut packed = Vec::new();
        if cell.packed.is_empty() {
            self.encoder.encode(histogram, &mut packed).map_err(failed)?;
        } else {
            let mut merged = decode(&cell.packed).map_err(failed)?;
            merged.add(histogram).map_err(|error| failed(EncodingError::Counts(error.to_string())))?;
            self.encoder.encode(&merged, &mut packed).map_err(failed)?;
        }
        cell.packed = packed.into_boxed_slice();
        cell.count = cell.count.saturating_add(histogram.len());
        Ok(())
    }

    /// Adds errors of which only the number is known.
    ///
    /// # Errors
    /// When the second is beyond [`SECONDS_MAX`].
    pub fn add_unclassified_errors(
        &mut self,
        load: &str,
        operation: &str,
        second: u64,
        count: u64,
    ) -> Result<(), TimelineError> {
        let cell = cell_of(&mut self.loads, load, operation, second)?;
        cell.errors_unclassified = cell.errors_unclassified.saturating_add(count);
        Ok(())
    }

    /// The names of all loads.
    pub fn loads(&self) -> impl Iterator<Item = &str> {
        self.loads.keys().map(String::as_str)
    }

    /// The first and the last second a load stands in; `None` when it never does.
    #[must_use]
    pub fn span(&self, load: &str) -> Option<(u64, u64)> {
        let cells = self.loads.get(load)?;
        let first = cells.values().filter_map(|seconds| seconds.keys().next()).min()?;
        let last = cells.values().filter_map(|seconds| seconds.keys().next_back()).max()?;
        Some((*first, *last))
    }

    /// The figures of a load over a stretch of the run's clock.
    ///
    /// A second belongs to the stretch its middle falls in, so that stretches that touch share no second and
    /// lose none, and a boundary that is a few milliseconds off a whole second takes the second it means.
    ///
    /// # Errors
    /// When a packed histogram cannot be unpacked.
    pub fn summarize(&self, load: &str, from_s: f64, to_s: f64) -> Result<Figures, TimelineError> {
        let (first, end) = (second_whose_middle_follows(from_s), second_whose_middle_follows(to_s));
        let mut figures = Figures { seconds: end.saturating_sub(first), operations: BTreeMap::new() };
        let Some(cells) = self.loads.get(load).filter(|_| first < end) else {
            return Ok(figures);
        };
        for (operation, seconds) in cells {
            let mut merged = new_histogram();
            let mut summary: Option<OperationFigures> = None;
            for (second, cell) in seconds.range(first..end) {
                let summary = summary.get_or_insert_default();
                summary.count = summary.count.saturating_add(cell.count);
                summary.errors_unclassified =
                    summary.errors_unclassified.saturating_add(cell.errors_unclassified);
                add_counts(&mut summary.errors, &cell.errors);
                add_counts(&mut summary.errors_indefinite, &cell.errors_indefinite);
                summary.retries = summary.retries.saturating_add(cell.retries);
                if cell.packed.is_empty() {
                    continue;
                }
                decode(&cell.packed)
                    .and_then(|part| {
                        merged.add(&part).map_err(|error| EncodingError::Counts(error.to_string()))
                    })
                    .map_err(|source| TimelineError::Histogram {
                        load: load.to_owned(),
                        operation: operation.clone(),
                        second: *second,
                        source,
                    })?;
            }
            if let Some(mut summary) = summary {
                summary.latency = LatencyFigures::of(&merged);
                figures.operations.insert(operation.clone(), summary);
            }
        }
        Ok(figures)
    }

    /// Successes of an operation in each second from the load's first to its last, those without any included.
    /// Empty when the load or the operation is unknown.
    #[must_use]
    pub fn throughput(&self, load: &str, operation: &str) -> Vec<(u64, u64)> {
        let cells = self.loads.get(load).and_then(|cells| cells.get(operation));
        let (Some(cells), Some((first, last))) = (cells, self.span(load)) else {
            return Vec::new();
        };
        (first..=last).map(|second| (second, cells.get(&second).map_or(0, |cell| cell.count))).collect()
    }
}

fn add_counts(sums: &mut ErrorCounts, counts: &ErrorCounts) {
    for (class, count) in counts {
        let sum = sums.entry(*class).or_insert(0);
        *sum = sum.saturating_add(*count);
    }
}

/// The cell of one operation in one second, made when there is none.
fn cell_of<'a>(
    loads: &'a mut BTreeMap<String, LoadCells>,
    load: &str,
    operation: &str,
    second: u64,
) -> Result<&'a mut Cell, TimelineError> {
    if second > SECONDS_MAX {
        return Err(TimelineError::SecondBeyondRun { load: load.to_owned(), second });
    }
    let cells = loads.entry(load.to_owned()).or_default().entry(operation.to_owned()).or_default();
    Ok(cells.entry(second).or_default())
}

/// The first second whose middle is at or after a moment.
fn second_whose_middle_follows(time_s: f64) -> u64 {
    // The cast keeps within the type's range and takes what is no number for 0.
    (time_s - 0.5).ceil() as u64
}
