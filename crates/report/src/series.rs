//! The timeline by load: throughput, latency and errors in each second, thinned where a run is too long to draw whole.
//!
//! A second between a load's first row and the end of the recording in which nothing succeeded has throughput 0. A second
//! in which nothing was measured (before the load began, after the recording ended; no success, so no latency) is a gap.

use std::collections::{BTreeMap, BTreeSet};

use measure::interval::counts_for_load;

use crate::result::RunResult;
use crate::run_directory::RunDirectory;
use crate::timeline_csv::TimelineRow;

/// The most points a curve is drawn with; longer runs are drawn with several seconds to a point.
const MOST_POINTS: u64 = 1200;

/// One load, second by second.
#[derive(Debug, Default)]
pub(crate) struct LoadSeries {
    pub(crate) name: String,
    /// The operation whose rate is the load's throughput.
    pub(crate) transaction: String,
    pub(crate) seconds: BTreeMap<u64, Second>,
}

/// One second of one load. `None` where nothing succeeded.
#[derive(Debug, Default, Clone, PartialEq)]
pub(crate) struct Second {
    pub(crate) count: u64,
    /// Transactions that did not succeed.
    pub(crate) errors: u64,
    /// What failed besides transactions: attempts to connect.
    pub(crate) other_errors: u64,
    /// Median, 95th and 99th percentile, microseconds.
    pub(crate) percentiles_us: Option<[u64; 3]>,
}

/// A stretch of a curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    pub(crate) from_s: f64,
    pub(crate) to_s: f64,
    pub(crate) value: f64,
    /// Lowest and highest second within the stretch.
    pub(crate) lowest: f64,
    pub(crate) highest: f64,
}

/// The name of the operation that counts.
fn transaction_of(result: &RunResult, load: &str) -> String {
    let facts = result.facts.loads.iter().find(|facts| facts.name == load);
    facts.map_or_else(|| "transaction".to_owned(), |facts| facts.transaction.clone())
}

/// The timeline by load: those of the plan in their order, then any other.
pub(crate) fn by_load(run: &RunDirectory) -> Vec<LoadSeries> {
    from_rows(&run.result, &run.timeline)
}

/// As [`by_load`], from rows alone.
pub(crate) fn from_rows(result: &RunResult, rows: &[TimelineRow]) -> Vec<LoadSeries> {
    let mut names: Vec<&str> = result.facts.loads.iter().map(|load| load.name.as_str()).collect();
    let others: BTreeSet<&str> = rows.iter().map(|row| row.load.as_str()).collect();
    names
        .extend(others.into_iter().filter(|name| !result.facts.loads.iter().any(|load| load.name == **name)));
    let mut series: Vec<LoadSeries> = Vec::new();
    for name in names {
        let transaction = transaction_of(result, name);
        series.push(LoadSeries { name: name.to_owned(), transaction, seconds: BTreeMap::new() });
    }
    let places: BTreeMap<String, usize> =
        series.iter().enumerate().map(|(index, load)| (load.name.clone(), index)).collect();
    for row in rows {
        let Some(&index) = places.get(&row.load) else { continue };
        let load = &mut series[index];
        let is_transaction = row.operation == load.transaction;
        let second = load.seconds.entry(row.second).or_default();
        if is_transaction {
            second.count = second.count.saturating_add(row.count);
            second.errors = second.errors.saturating_add(row.errors);
            if row.count > 0 {
                second.percentiles_us = Some([row.p50_us, row.p95_us, row.p99_us]);
            }
        } else if counts_for_load(&row.operation, &load.transaction) {
            // The errors of statements and of kinds of transaction are the transactions', counted there already.
            second.other_errors = second.other_errors.saturating_add(row.errors);
        }
    }
    series.retain(|load| !load.seconds.is_empty());
    series
}

/// The first second after the recording: what lies beyond it is not known.
pub(crate) fn recorded_until(series: &[LoadSeries]) -> u64 {
    series.iter().filter_map(|load| load.seconds.keys().next_back()).max().map_or(0, |last| last + 1)
}

/// How many seconds stand in one point of a curve that covers so many seconds.
pub(crate) fn seconds_per_point(seconds: u64) -> u64 {
    seconds.div_ceil(MOST_POINTS).max(1)
}

impl LoadSeries {
    /// Transactions a second. Each point is the mean of its seconds.
    pub(crate) fn throughput(&self, recorded_until: u64) -> Vec<Point> {
        self.rates(recorded_until, |second| second.count)
    }

    /// Failed transactions a second.
    pub(crate) fn errors(&self, recorded_until: u64) -> Vec<Point> {
        self.rates(recorded_until, |second| second.errors)
    }

    /// Failures a second of anything besides transactions.
    pub(crate) fn other_errors(&self, recorded_until: u64) -> Vec<Point> {
        self.rates(recorded_until, |second| second.other_errors)
    }

    fn rates(&self, recorded_until: u64, of: impl Fn(&Second) -> u64) -> Vec<Point> {
        let Some(&first) = self.seconds.keys().next() else { return Vec::new() };
        let width = seconds_per_point(recorded_until);
        let mut points = Vec::new();
        let mut from = first;
        while from < recorded_until {
            let to = (from / width + 1).saturating_mul(width).min(recorded_until);
            let values: Vec<u64> = self.seconds.range(from..to).map(|(_, second)| of(second)).collect();
            let sum: f64 = values.iter().map(|&value| value as f64).sum();
            let is_complete = values.len() as u64 == to - from;
            points.push(Point {
                from_s: from as f64,
                to_s: to as f64,
                value: sum / (to - from) as f64,
                lowest: if is_complete { values.iter().min().copied().unwrap_or(0) as f64 } else { 0.0 },
                highest: values.iter().max().copied().unwrap_or(0) as f64,
            });
            from = to;
        }
        points
    }

    /// One percentile over time (0: p50, 1: p95, 2: p99), microseconds; nothing where nothing succeeded. Where
    /// several seconds stand in one point it is the highest of them: percentiles cannot be averaged.
    pub(crate) fn percentile(&self, which: usize, recorded_until: u64) -> Vec<Point> {
        let width = seconds_per_point(recorded_until);
        let mut highest: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
        for (second, percentiles) in
            self.seconds.iter().filter_map(|(second, values)| Some((*second, values.percentiles_us?)))
        {
            let Some(&value) = percentiles.get(which) else { continue };
            let entry = highest.entry(second / width).or_insert((value, value));
            *entry = (entry.0.min(value), entry.1.max(value));
        }
        highest
            .into_iter()
            .map(|(index, (lowest, highest))| Point {
                from_s: (index * width) as f64,
                to_s: ((index + 1) * width).min(recorded_until) as f64,
                value: highest as f64,
                lowest: lowest as f64,
                highest: highest as f64,
            })
            .collect()
    }
}
