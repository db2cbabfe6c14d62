//! The timeline by load: how many succeeded and failed in each second, and how fast.

use std::collections::{BTreeMap, BTreeSet};

use measure::TimelineRow;
use measure::interval::counts_for_load;

use crate::run::RunResult;

/// One load, second by second.
#[derive(Debug, Default)]
pub struct LoadSeconds {
    /// The load.
    pub name: String,
    /// The operation whose rate is the load's throughput.
    pub transaction: String,
    /// What happened in each second that the timeline has.
    pub seconds: BTreeMap<u64, Second>,
}

/// One second of one load. `None` where nothing succeeded.
#[derive(Debug, Default, Clone, PartialEq)]
pub struct Second {
    /// Transactions that succeeded.
    pub count: u64,
    /// Transactions that did not succeed.
    pub errors: u64,
    /// What failed besides transactions: attempts to connect.
    pub other_errors: u64,
    /// Median, 95th and 99th percentile, microseconds.
    pub percentiles_us: Option<[u64; 3]>,
}

/// The name of the operation that counts.
fn transaction_of(result: &RunResult, load: &str) -> String {
    let facts = result.facts.loads.iter().find(|facts| facts.name == load);
    facts.map_or_else(|| "transaction".to_owned(), |facts| facts.transaction.clone())
}

/// The timeline by load: those of the plan in their order, then any other.
#[must_use]
pub fn by_load(result: &RunResult, rows: &[TimelineRow]) -> Vec<LoadSeconds> {
    let mut names: Vec<&str> = result.facts.loads.iter().map(|load| load.name.as_str()).collect();
    let others: BTreeSet<&str> = rows.iter().map(|row| row.load.as_str()).collect();
    names
        .extend(others.into_iter().filter(|name| !result.facts.loads.iter().any(|load| load.name == **name)));
    let mut series: Vec<LoadSeconds> = Vec::new();
    for name in names {
        let transaction = transaction_of(result, name);
        series.push(LoadSeconds { name: name.to_owned(), transaction, seconds: BTreeMap::new() });
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
#[must_use]
pub fn recorded_until(series: &[LoadSeconds]) -> u64 {
    series.iter().filter_map(|load| load.seconds.keys().next_back()).max().map_or(0, |last| last + 1)
}
