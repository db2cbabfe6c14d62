//! What `result.json` says of a load.

use std::collections::BTreeMap;

use history::{BASELINE, FirstError};
use serde::{Deserialize, Serialize};

/// Latency figures, microseconds. All zero when there was nothing to measure.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyUs {
    /// The sum of all, divided by their number.
    pub mean: f64,
    /// Standard deviation.
    #[serde(default)]
    pub stdev: f64,
    /// Median.
    pub p50: u64,
    /// 90th percentile.
    pub p90: u64,
    /// 95th percentile.
    pub p95: u64,
    /// 99th percentile.
    pub p99: u64,
    /// 99.9th percentile.
    pub p99_9: u64,
    /// Largest.
    pub max: u64,
}

/// Count and latency of one operation.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct OperationResult {
    /// How many succeeded.
    pub count: u64,
    /// Those that did not, by class. Of a statement, also in tries that were followed by another.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors: BTreeMap<String, u64>,
    /// Of these, those that may have happened all the same, by class.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors_indefinite: BTreeMap<String, u64>,
    /// Tries that met a serialization failure or a deadlock and were followed by another; no errors.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retries: u64,
    /// Microseconds.
    pub latency_us: LatencyUs,
}

/// What a load was asked, and how it did, over a stretch of the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadFigures {
    /// Closed loop: clients, the most at work at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<u32>,
    /// Where their number changed: the fewest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients_least: Option<u32>,
    /// Open loop: operations due a second, as a mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
    /// Where the rate changed: the lowest and the highest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_range_per_s: Option<[f64; 2]>,
    /// Of the whole load, and of a phase where they can be told of one: figures that the workload's standard defines, by name with the unit last: `tpmC`,
    /// `efficiency_percent`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<String, f64>,
    /// Transactions that succeeded.
    pub transactions: u64,
    /// Errors by class: of transactions, and of attempts to connect.
    pub errors: BTreeMap<String, u64>,
    /// Of these, those with an unknown outcome of the transaction, by class.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors_indefinite: BTreeMap<String, u64>,
    /// Transactions a second.
    pub throughput_per_s: f64,
    /// Latency of transactions.
    pub latency_us: LatencyUs,
    /// Each operation and statement.
    pub operations: BTreeMap<String, OperationResult>,
}

impl LoadFigures {
    /// New orders that succeeded, of which TPC-C's figures are made.
    #[must_use]
    pub fn new_orders(&self) -> u64 {
        self.operations.get("NEW-ORDER").map_or(0, |orders| orders.count)
    }
}

/// The figures of one phase of a load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseResult {
    /// The phase.
    pub name: String,
    /// When it began.
    pub from_s: f64,
    /// When it ended.
    pub to_s: f64,
    /// What was measured within it.
    #[serde(flatten)]
    pub measured: LoadFigures,
}

/// The figures of one load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadResult {
    /// As the scenario names it, or else its workload.
    pub name: String,
    /// As `holdfast list workloads` has it.
    pub workload: String,
    /// Its figures, warm-up left out.
    #[serde(flatten)]
    pub measured: LoadFigures,
    /// The same by phase, warm-up included.
    pub phases: Vec<PhaseResult>,
    /// Acknowledged writes of this load that are missing at the end; absent where its check does not count them, cannot tell,
    /// or knows only how many of several loads are missing together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost_writes: Option<u64>,
    /// What its check found that no client wrote; absent as above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invented_writes: Option<u64>,
    /// The first error of each class over the whole run, in order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_errors: Vec<FirstError>,
    /// Operations, and attempts to connect, that were under way when the load was told to stop and of which no success is known:
    /// their errors count in no phase.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub errors_after_end: u64,
    /// Why it ended early: a defect of the load generator. Its figures are then incomplete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_early: Option<EndedEarly>,
}

impl LoadResult {
    /// Its figures in the phase `baseline`.
    #[must_use]
    pub fn baseline(&self) -> Option<&PhaseResult> {
        self.phases.iter().find(|phase| phase.name == BASELINE)
    }
}

/// How a load ended that nobody told to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedEarly {
    /// The load generator's error, one line that names the load.
    pub why: String,
    /// Whether the history has all that it asked until then.
    pub recorded: bool,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A load and its phase as results have always been written, byte by byte.
    const WRITTEN: &str = r#"{"name":"tpcc","workload":"tpcc","rate_per_s":20.0,"rate_range_per_s":[10.0,30.0],"figures":{"tpmC":12.5},"transactions":7,"errors":{"timeout":2},"errors_indefinite":{"timeout":1},"throughput_per_s":0.7,"latency_us":{"mean":1.5,"stdev":0.5,"p50":1,"p90":2,"p95":3,"p99":4,"p99_9":5,"max":6},"operations":{"BEGIN":{"count":7,"latency_us":{"mean":1.5,"stdev":0.5,"p50":1,"p90":2,"p95":3,"p99":4,"p99_9":5,"max":6}}},"phases":[{"name":"baseline","from_s":0.0,"to_s":10.0,"clients":8,"clients_least":2,"transactions":7,"errors":{},"throughput_per_s":0.7,"latency_us":{"mean":1.5,"stdev":0.5,"p50":1,"p90":2,"p95":3,"p99":4,"p99_9":5,"max":6},"operations":{}}],"first_errors":[{"class":"timeout","text":"late","at_s":3.0}]}"#;

    #[test]
    fn a_load_is_written_as_it_always_was_and_read_back() {
        let read: LoadResult = serde_json::from_str(WRITTEN).expect("a load");
        assert_eq!((read.measured.rate_per_s, read.phases[0].measured.clients), (Some(20.0), Some(8)));
        assert_eq!(serde_json::to_string(&read).expect("text"), WRITTEN);
    }
}
