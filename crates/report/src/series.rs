//! The timeline by load as curves: throughput, latency and errors, thinned where a run is too long to draw whole.
//!
//! A second between a load's first row and the end of the recording in which nothing succeeded has throughput 0. A second
//! in which nothing was measured (before the load began, after the recording ended; no success, so no latency) is a gap.

use std::collections::BTreeMap;

use results::{LoadSeconds, Second};

/// The most points a curve is drawn with; longer runs are drawn with several seconds to a point.
const MOST_POINTS: u64 = 1200;

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

/// How many seconds stand in one point of a curve that covers so many seconds.
pub(crate) fn seconds_per_point(seconds: u64) -> u64 {
    seconds.div_ceil(MOST_POINTS).max(1)
}

/// Transactions a second. Each point is the mean of its seconds.
pub(crate) fn throughput(load: &LoadSeconds, recorded_until: u64) -> Vec<Point> {
    rates(load, recorded_until, |second| second.count)
}

/// Failed transactions a second.
pub(crate) fn errors(load: &LoadSeconds, recorded_until: u64) -> Vec<Point> {
    rates(load, recorded_until, |second| second.errors)
}

/// Failures a second of anything besides transactions.
pub(crate) fn other_errors(load: &LoadSeconds, recorded_until: u64) -> Vec<Point> {
    rates(load, recorded_until, |second| second.other_errors)
}

fn rates(load: &LoadSeconds, recorded_until: u64, of: impl Fn(&Second) -> u64) -> Vec<Point> {
    let Some(&first) = load.seconds.keys().next() else { return Vec::new() };
    let width = seconds_per_point(recorded_until);
    let mut points = Vec::new();
    let mut from = first;
    while from < recorded_until {
        let to = (from / width + 1).saturating_mul(width).min(recorded_until);
        let values: Vec<u64> = load.seconds.range(from..to).map(|(_, second)| of(second)).collect();
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
pub(crate) fn percentile(load: &LoadSeconds, which: usize, recorded_until: u64) -> Vec<Point> {
    let width = seconds_per_point(recorded_until);
    let mut highest: BTreeMap<u64, (u64, u64)> = BTreeMap::new();
    for (second, percentiles) in
        load.seconds.iter().filter_map(|(second, values)| Some((*second, values.percentiles_us?)))
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
