//! `result.json`, the public result of a run: times in seconds on the run's clock, latencies in microseconds.
//!
//! Keys are only ever added. Owns the form, computes nothing.

use std::collections::BTreeMap;

use history::{FirstError, Receipt, RunFacts, Verdict};
use serde::{Deserialize, Serialize};

pub use crate::volume_result::{
    AskedResult, CatchUpResult, ComponentResult, LagResult, MeanwhileResult, OpeningResult, ResyncResult,
    SyncsResult, VolumeResult,
};

/// The whole of `result.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunResult {
    /// Holdfast's version.
    pub holdfast: String,
    /// The scenario's name.
    pub scenario: String,
    /// The seed.
    pub seed: u64,
    /// When the run began, RFC 3339.
    pub started_at: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Why the verdict is what it is, one sentence each, the weightiest first.
    pub reasons: Vec<String>,
    /// Each expectation of the scenario.
    pub expectations: Vec<ExpectationResult>,
    /// Each check.
    pub checks: Vec<CheckResult>,
    /// Each fault.
    pub faults: Vec<FaultResult>,
    /// Each load.
    pub loads: Vec<LoadResult>,
    /// Predicted beside measured.
    #[serde(default)]
    pub prediction: Vec<PredictionResult>,
    /// What follows from the figures, in sentences made from them.
    #[serde(default)]
    pub explanations: Vec<String>,
    /// The published report that the scenario reproduces; without figures when it reproduces none.
    #[serde(default)]
    pub reproduces: ReproducedReport,
    /// Volumes.
    #[serde(default)]
    pub volumes: Vec<VolumeResult>,
    /// What each link of the site carried while loads ran.
    #[serde(default)]
    pub links: Vec<LinkResult>,
    /// Whether the site's links did what was asked of them before the load; absent where it has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links_receipt: Option<Receipt>,
    /// The lab itself.
    pub lab: LabResult,
    /// The run as planned and built.
    pub facts: RunFacts,
}

impl RunResult {
    /// Of a run that has shown nothing yet: as its facts say, everything else empty, the verdict unknown.
    #[must_use]
    pub fn blank(facts: RunFacts) -> RunResult {
        RunResult {
            holdfast: facts.holdfast.clone(),
            scenario: facts.scenario.clone(),
            seed: facts.seed,
            started_at: facts.started_at.clone(),
            verdict: Verdict::Unknown,
            reasons: Vec::new(),
            expectations: Vec::new(),
            checks: Vec::new(),
            faults: Vec::new(),
            loads: Vec::new(),
            prediction: Vec::new(),
            explanations: Vec::new(),
            reproduces: ReproducedReport::default(),
            volumes: Vec::new(),
            links: Vec::new(),
            links_receipt: None,
            lab: LabResult::default(),
            facts,
        }
    }
}

/// A published report's own figures, to stand beside the measured ones.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ReproducedReport {
    /// The report's name: `FR-3`.
    pub report: String,
    /// Its figures beside this run's.
    pub figures: Vec<ReproducedFigure>,
}

/// A figure of a published report beside this run's.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ReproducedFigure {
    /// Its name, the unit last.
    pub name: String,
    /// In the report.
    pub reported: f64,
    /// In this run; null when this run has no such figure.
    pub measured: Option<f64>,
}

/// An expectation and how it came out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ExpectationResult {
    /// Its name: `lost_writes`.
    pub name: String,
    /// What was wanted, as written: `< 30s`.
    pub wanted: String,
    /// What was measured, with its unit, and of which load, phase or fault where there are several: the worst of them.
    /// `nothing` when it was not measured.
    pub measured: String,
    /// How it came out.
    pub verdict: Verdict,
}

/// A check and how it came out.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CheckResult {
    /// Its name: `ledger`, `tpcb-sums`.
    pub name: String,
    /// How it came out.
    pub verdict: Verdict,
    /// The minimal story.
    pub explanation: String,
    /// What is shown when the check passes.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub proves: String,
    /// What is not shown when it passes, though a reader might think so.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub does_not_prove: String,
    /// Writes acknowledged: the ledger's inserts, or TPC-B's transactions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<u64>,
    /// Acknowledged and not there; absent where that could not be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// Ledger: there and never asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub invented: Option<u64>,
    /// Writes without a definite answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub indeterminate: Option<u64>,
    /// Further counts.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counts: BTreeMap<String, i64>,
}

impl CheckResult {
    /// One without counts, with what the check of that name proves and does not prove.
    #[must_use]
    pub fn new(name: &str, verdict: Verdict, explanation: &str) -> Self {
        let registered = check::registry::find(name);
        CheckResult {
            name: name.to_owned(),
            verdict,
            explanation: explanation.to_owned(),
            proves: registered.map(|check| check.proves.to_owned()).unwrap_or_default(),
            does_not_prove: registered.map(|check| check.does_not_prove.to_owned()).unwrap_or_default(),
            acknowledged: None,
            lost: None,
            invented: None,
            indeterminate: None,
            counts: BTreeMap::new(),
        }
    }
}

/// A fault: what was asked, what happened, what it cost.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct FaultResult {
    /// Its kind: `power-off`.
    pub kind: String,
    /// What it was aimed at, as written.
    pub target: String,
    /// Paths of the hosts hit.
    pub hits: Vec<String>,
    /// Nodes that ran there.
    pub nodes: Vec<String>,
    /// When it was asked for.
    pub asked_s: f64,
    /// When it had taken effect, by its receipt; null when it never did.
    pub took_effect_s: Option<f64>,
    /// When it was healed; null when it was not.
    pub healed_s: Option<f64>,
    /// Evidence of effect, of what the volumes kept and lost, and of healing, together.
    pub receipt: Receipt,
    /// The lab lost data that a node had synced, so that what is missing says nothing about the database.
    #[serde(default)]
    pub lab_lost_synced: bool,
    /// The longest time without a success against what was due, of all loads, until the next fault was asked for or the
    /// loads ended; null where that is not known of each load.
    #[serde(default)]
    pub gap_s: Option<f64>,
    /// Whole seconds below 50 % of the baseline in the same stretch, of the load that has most; null as above.
    #[serde(default)]
    pub below_50_percent_s: Option<f64>,
    /// The same below 95 %.
    #[serde(default)]
    pub below_95_percent_s: Option<f64>,
    /// Whether the longest time without a success of any load was more than its baseline has, too.
    #[serde(default)]
    pub interrupted: Option<bool>,
    /// Times to recover, of the load that took longest.
    pub recovery_s: RecoveryResult,
    /// Until when what happens is charged to it: when the next fault was asked for, or the end of the loads.
    #[serde(default)]
    pub charged_until_s: Option<f64>,
    /// What it did to each load.
    #[serde(default)]
    pub loads: Vec<FaultLoadResult>,
    /// Operations that did not happen, of all loads: what seconds below 95 % fell short of the baseline.
    pub lost_operations: Option<f64>,
    /// Acknowledged writes missing at the end, acknowledged before this fault took effect.
    pub lost_writes: Option<u64>,
    /// Throughput while the fault stood, as a share of the baseline's.
    pub throughput_ratio_during: Option<f64>,
}

/// Times to recover, in seconds after the fault took effect; null when it never happened in the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RecoveryResult {
    /// First operation sent after the fault that succeeded; time in which nothing was due is left out.
    pub first_success: Option<f64>,
    /// End of the first whole second with at least 95 % of the baseline's throughput, whatever followed.
    pub back_to_95_percent: Option<f64>,
    /// End of the last relapse before the next fault was asked for or the loads ended; 0 where there was none.
    #[serde(default)]
    pub sustained: Option<f64>,
}

/// What a fault did to one load until the next one was asked for or the loads ended. What is not known is null.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FaultLoadResult {
    /// The load.
    pub load: String,
    /// The longest time without a success against what was due.
    pub gap_s: Option<f64>,
    /// When that began.
    pub gap_from_s: Option<f64>,
    /// Whether it had not ended when the loads did: it may have gone on.
    #[serde(default)]
    pub gap_is_open: bool,
    /// The longest time without a success in the baseline.
    pub baseline_gap_s: Option<f64>,
    /// Whether it is more than the baseline has, too.
    pub interrupted: Option<bool>,
    /// Whole seconds below 50 % of the baseline.
    pub below_50_percent_s: Option<f64>,
    /// Whole seconds below 95 % of the baseline.
    pub below_95_percent_s: Option<f64>,
    /// The throughput below which a second counted as below 95 %, which allows for the baseline's own spread.
    pub below_95_percent_per_s: Option<f64>,
    /// Times to recover.
    pub recovery_s: RecoveryResult,
    /// Operations that did not happen.
    pub lost_operations: Option<f64>,
    /// Throughput while the fault stood, as a share of the baseline's.
    pub throughput_ratio_during: Option<f64>,
}

/// Latency figures, microseconds. All zero when there was nothing to measure.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LatencyUs {
    /// Mean.
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
    /// Their latency.
    pub latency_us: LatencyUs,
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
    /// Closed loop: clients in this phase, the most at work at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients: Option<u32>,
    /// Where their number changed: the fewest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clients_least: Option<u32>,
    /// Open loop: operations due a second in this phase, as a mean.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_per_s: Option<f64>,
    /// Where the rate changed: the lowest and the highest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_range_per_s: Option<[f64; 2]>,
    /// Transactions that succeeded.
    pub transactions: u64,
    /// Errors by class: of transactions, and of attempts to connect.
    pub errors: BTreeMap<String, u64>,
    /// Of these, those after which nobody knows whether the transaction happened, by class.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors_indefinite: BTreeMap<String, u64>,
    /// Transactions a second.
    pub throughput_per_s: f64,
    /// Latency of transactions.
    pub latency_us: LatencyUs,
    /// Each operation and statement.
    pub operations: BTreeMap<String, OperationResult>,
}

/// The figures of one load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LoadResult {
    /// Its name.
    pub name: String,
    /// Its workload.
    pub workload: String,
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
    /// Figures that the workload's standard defines, by name with the unit last: `tpmC`, `efficiency_percent`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<String, f64>,
    /// Transactions that succeeded, warm-up left out, as in all figures of this level.
    pub transactions: u64,
    /// Errors by class: of transactions, and of attempts to connect.
    pub errors: BTreeMap<String, u64>,
    /// Of these, those after which nobody knows whether the transaction happened, by class.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub errors_indefinite: BTreeMap<String, u64>,
    /// Transactions a second.
    pub throughput_per_s: f64,
    /// Latency of transactions.
    pub latency_us: LatencyUs,
    /// Each operation and statement.
    pub operations: BTreeMap<String, OperationResult>,
    /// The same by phase, warm-up included.
    pub phases: Vec<PhaseResult>,
    /// The first error of each class over the whole run, in order of time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub first_errors: Vec<FirstError>,
    /// Why it ended before it was told to: a defect of the load generator. Its figures are not complete then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_early: Option<EndedEarly>,
}

/// How a load ended that nobody told to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedEarly {
    /// Why.
    pub why: String,
    /// Whether the history has all that it asked until then.
    pub recorded: bool,
}

/// A prediction beside its measurement.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct PredictionResult {
    /// What.
    pub name: String,
    /// On paper.
    pub predicted: f64,
    /// In the run.
    pub measured: Option<f64>,
    /// Unit of both.
    pub unit: String,
    /// What the prediction says of the measurement.
    #[serde(default)]
    pub relation: Relation,
    /// Lower end of the measurement's interval of 99 %, where one can be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Its upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Whether they agree within noise; absent where that cannot be told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agrees: Option<bool>,
    /// How much they may differ and still agree; present where the interval excludes the prediction, so that they agree by
    /// this alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agrees_within: Option<f64>,
    /// The prediction in words, where its number says little.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_in_words: Option<String>,
    /// The measurement in words; why there is none, where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured_in_words: Option<String>,
}

/// What a prediction says of the measurement.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Relation {
    /// It is this.
    #[default]
    Equal,
    /// It is no less.
    AtLeast,
}

/// A link or one way of an edge: what it carried while loads ran.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkResult {
    /// Its name: `dc1 -> dc2`.
    pub name: String,
    /// What it can carry, bits a second; no limit when absent.
    pub rate_bits_per_s: Option<u64>,
    /// Packets it carried.
    pub packets: u64,
    /// Bytes of IP packets it carried.
    pub bytes: u64,
    /// Packets that found its queue full.
    pub dropped_packets: u64,
    /// Share of the time it was sending, 0 to 1; only with a rate.
    pub utilisation: Option<f64>,
    /// The same in its busiest second.
    pub utilisation_max: Option<f64>,
    /// Most bytes that waited for it at the end of a second.
    pub waiting_bytes_max: u64,
}

/// The lab itself: what it took and what it costs.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct LabResult {
    /// Wall seconds from the start of the lab to the database's first quorum write.
    pub boot_s: Option<f64>,
    /// Database nodes.
    pub nodes: u32,
    /// CPU seconds of the whole run by part: database, load, fabric, disk, other.
    pub cpu_seconds: BTreeMap<String, f64>,
    /// (load + fabric + disk + other) / all CPU seconds spent while loads ran, 0 to 1.
    pub cpu_share_of_lab: Option<f64>,
    /// Packets by what became of them, over the whole run: `delivered`, `lost` by chance, `blocked` ...
    #[serde(default)]
    pub packets: BTreeMap<String, u64>,
    /// Doubts about the measurement, with their remedies.
    pub warnings: Vec<WarningResult>,
    /// Stretches in which parts of the lab stood still: what was measured meanwhile is not the database's.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stalls: Vec<history::Stall>,
    /// What somebody outside the schedule did to processes of nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub interference: Vec<InterferenceResult>,
    /// Why the power-offs of the schedule could lose nothing, where the scenario asks for volumes that do: virtual disks could
    /// not be had.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nothing_to_lose: Option<String>,
}

/// Something done to a process of a node that neither the schedule nor the lab did.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct InterferenceResult {
    /// When it was seen, seconds on the run's clock.
    pub t_s: f64,
    /// What was done, and to whom.
    #[serde(flatten)]
    pub interference: history::Interference,
}

/// A doubt about the measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WarningResult {
    /// What is doubtful.
    pub what: String,
    /// What to do about it.
    pub remedy: String,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}
