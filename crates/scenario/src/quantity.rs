//! The quantities a scenario may expect: name, unit, scope, meaning.
//!
//! Owns the one table from which the decoder, `explain`, the JSON Schema, the judge of a run and the report's words take
//! them. How a quantity is read from a result is the judge's business.

use capabilities::workloads::{NAMES, WorkloadFacts, workload};
use serde::Serialize;
use yaml::explain::Key;

/// Checks that count lost writes, first the one that names each of them.
const COUNTING: &[&str] = &["ledger", "tpcb-sums", "tpcc-conditions", "last-writes"];
/// Checks that find invented writes, first the one that names each of them.
const FINDING: &[&str] = &["ledger", "last-writes", "tpcc-conditions"];
/// The check that judges the isolation of transactions.
const JUDGING: &[&str] = &["list-append"];

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Quantity {
    /// Acknowledged writes that are missing at the end.
    LostWrites,
    /// Writes that nobody made.
    InventedWrites,
    /// Kinds of isolation anomaly.
    Anomalies,
    /// Times that another node came to lead.
    LeaderChanges,
    /// Times that several nodes led at once.
    SplitBrains,
    /// CPU time of the lab itself.
    LabCpuShare,
    /// The longer of the time to the first success and the longest gap.
    Recovery,
    /// Time to the first success.
    FirstSuccess,
    /// Time to the first second at 95 %.
    Recovery95Percent,
    /// Time to the end of the last relapse.
    RecoverySustained,
    /// Longest time without a success.
    Gap,
    /// Seconds below half of the baseline.
    Below50Percent,
    /// Seconds below 95 % of the baseline.
    Below95Percent,
    /// Operations that did not happen.
    LostOperations,
    /// Throughput while the fault stood.
    ThroughputRatioDuring,
    /// Errors of all classes.
    Errors,
    /// Errors of one class, by its name in results.
    ErrorsOf(&'static str),
    /// Errors among all operations.
    ErrorRate,
    /// Successes a second.
    Throughput,
    Latency(LatencyFigure),
    /// TPC-C's new orders a minute.
    TpmC,
    /// The same as a share of the most that the standard allows.
    Efficiency,
}

/// A figure of a latency distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LatencyFigure {
    Mean,
    /// Median.
    P50,
    /// 90th percentile.
    P90,
    /// 95th percentile.
    P95,
    /// 99th percentile.
    P99,
    /// 99.9th percentile.
    P99_9,
    /// Longest.
    Max,
}

/// What a quantity is measured of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Measured {
    /// The run as a whole.
    OfRun,
    /// The run as a whole, or that part of it which is one load's or is laid to one fault.
    OfRunLoadOrFault,
    /// The run as a whole, or that part of it which is one load's.
    OfRunOrLoad,
    /// Each load.
    OfLoad,
    /// Each load in each phase.
    InPhase,
    /// Each load after each fault, until the next one is asked for or the loads end.
    AfterFault,
}

impl Measured {
    /// How a name with a scope is written.
    #[must_use]
    pub fn syntax(self) -> &'static str {
        match self {
            Measured::OfRun => "no scope",
            Measured::OfRunLoadOrFault => "scope LOAD or FAULT",
            Measured::OfRunOrLoad | Measured::OfLoad => "scope LOAD",
            Measured::InPhase => "scope LOAD.PHASE",
            Measured::AfterFault => "scope LOAD.FAULT",
        }
    }
}

/// What the bound of an expectation is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// A plain whole number; the bound is that number.
    Count,
    /// A plain number; the bound is that number.
    Number,
    /// Written as a duration; the bound is in seconds.
    Seconds,
    /// Written as a duration; the bound is in microseconds.
    Microseconds,
    /// Written `100/s`; the bound is per second.
    PerSecond,
    /// Written `95%` or `0.95`; the bound is the ratio, which may exceed 1.
    Ratio,
    /// As [`Unit::Ratio`], of a quantity that cannot exceed 1.
    Share,
}

impl Unit {
    /// How its bounds are written, in words.
    #[must_use]
    pub fn written(self) -> &'static str {
        match self {
            Unit::Count | Unit::Number => "a plain number",
            Unit::Seconds | Unit::Microseconds => "a duration",
            Unit::PerSecond => "a number a second (`100/s`)",
            Unit::Ratio | Unit::Share => "a share (`95%` or `0.95`)",
        }
    }

    /// What its figures are counted in, as results name it; empty where they are counts and shares.
    #[must_use]
    pub fn in_results(self) -> &'static str {
        match self {
            Unit::Count | Unit::Number | Unit::Ratio | Unit::Share => "",
            Unit::Seconds => "s",
            Unit::Microseconds => "us",
            Unit::PerSecond => "per_s",
        }
    }
}

/// What a scenario must contain for a quantity to be measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needs {
    /// Only a load.
    Nothing,
    Fault,
    /// A database of the lab in which another node can come to lead.
    Leader,
    /// A database of the lab whose nodes elect their leader.
    Election,
    /// A load whose history one of these checks judges, the best of them first.
    CheckedBy(&'static [&'static str]),
    /// A load with this figure of its own.
    Figure(&'static str),
}

impl Needs {
    /// The workloads of which a load will do, the best of them first; none where it needs no particular one.
    #[must_use]
    pub fn workloads(self) -> Vec<&'static str> {
        let mut names = Vec::new();
        match self {
            Needs::Nothing | Needs::Fault | Needs::Leader | Needs::Election => {}
            Needs::CheckedBy(checks) => {
                for check in checks {
                    names.extend(workloads_where(|facts| facts.checks.contains(check)));
                }
            }
            Needs::Figure(figure) => {
                names.extend(workloads_where(|facts| facts.figures.contains(&figure)));
            }
        }
        names
    }
}

fn workloads_where(is_so: impl Fn(&WorkloadFacts) -> bool) -> impl Iterator<Item = &'static str> {
    NAMES.iter().copied().filter(move |name| workload(name).is_some_and(&is_so))
}

/// A quantity to expect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuantityEntry {
    /// As written in a scenario.
    pub name: &'static str,
    /// What it is.
    pub quantity: Quantity,
    /// The unit its bound is written in, and the base unit of [`crate::Expectation::bound`].
    pub unit: Unit,
    /// What it is measured of.
    pub measured: Measured,
    /// What the scenario must contain for it to be measured at all.
    pub needs: Needs,
    /// What it measures, one line.
    pub meaning: &'static str,
    /// A bound as written.
    pub example: &'static str,
}

/// The quantity of that name.
#[must_use]
pub fn named(name: &str) -> Option<&'static QuantityEntry> {
    QUANTITIES.iter().find(|entry| entry.name == name)
}

/// The entry of a quantity.
#[must_use]
pub fn entry_of(quantity: Quantity) -> Option<&'static QuantityEntry> {
    QUANTITIES.iter().find(|entry| entry.quantity == quantity)
}

const fn of_run(
    name: &'static str,
    quantity: Quantity,
    (unit, needs): (Unit, Needs),
    meaning: &'static str,
    example: &'static str,
) -> QuantityEntry {
    QuantityEntry { name, quantity, unit, measured: Measured::OfRun, needs, meaning, example }
}

const fn of_writes(
    name: &'static str,
    quantity: Quantity,
    measured: Measured,
    checks: &'static [&'static str],
    meaning: &'static str,
) -> QuantityEntry {
    let needs = Needs::CheckedBy(checks);
    QuantityEntry { name, quantity, unit: Unit::Count, measured, needs, meaning, example: "0" }
}

const fn after_fault(
    name: &'static str,
    quantity: Quantity,
    unit: Unit,
    meaning: &'static str,
    example: &'static str,
) -> QuantityEntry {
    let (measured, needs) = (Measured::AfterFault, Needs::Fault);
    QuantityEntry { name, quantity, unit, measured, needs, meaning, example }
}

const fn in_phase(
    name: &'static str,
    quantity: Quantity,
    unit: Unit,
    meaning: &'static str,
    example: &'static str,
) -> QuantityEntry {
    let (measured, needs) = (Measured::InPhase, Needs::Nothing);
    QuantityEntry { name, quantity, unit, measured, needs, meaning, example }
}

const fn errors_of(name: &'static str, class: &'static str, meaning: &'static str) -> QuantityEntry {
    in_phase(name, Quantity::ErrorsOf(class), Unit::Count, meaning, "0")
}

const fn latency(
    name: &'static str,
    figure: LatencyFigure,
    meaning: &'static str,
    example: &'static str,
) -> QuantityEntry {
    in_phase(name, Quantity::Latency(figure), Unit::Microseconds, meaning, example)
}

const fn of_orders(
    name: &'static str,
    quantity: Quantity,
    unit: Unit,
    meaning: &'static str,
    example: &'static str,
) -> QuantityEntry {
    let (measured, needs) = (Measured::OfLoad, Needs::Figure("tpmC"));
    QuantityEntry { name, quantity, unit, measured, needs, meaning, example }
}

/// Every quantity a scenario may expect, in the order they are told to people.
pub const QUANTITIES: &[QuantityEntry] = &[
    of_writes(
        "lost_writes",
        Quantity::LostWrites,
        Measured::OfRunLoadOrFault,
        COUNTING,
        "acknowledged writes that are missing at the end, of all loads whose check counts them or found a loss; \
         beside a ledger, the sums of tpcb count none",
    ),
    of_writes(
        "invented_writes",
        Quantity::InventedWrites,
        Measured::OfRunOrLoad,
        FINDING,
        "rows and values at the end that no client wrote",
    ),
    of_run(
        "anomalies",
        Quantity::Anomalies,
        (Unit::Count, Needs::CheckedBy(JUDGING)),
        "kinds of anomaly in list-append transactions, including those that the claimed isolation level allows",
        "0",
    ),
    of_run(
        "leader_changes",
        Quantity::LeaderChanges,
        (Unit::Count, Needs::Leader),
        "times that another node came to lead while loads ran; nodes that elect are asked five times a second, and a node \
         that does not answer does not lead",
        "0",
    ),
    of_run(
        "split_brains",
        Quantity::SplitBrains,
        (Unit::Count, Needs::Election),
        "times that several nodes, each asked by itself, said that they lead, the same two in two looks in a row; a leader \
         that is cut off may say so until it finds out, although it acknowledges nothing",
        "0",
    ),
    after_fault(
        "recovery",
        Quantity::Recovery,
        Unit::Seconds,
        "the longer of `first_success` and `gap`",
        "< 30s",
    ),
    after_fault(
        "first_success",
        Quantity::FirstSuccess,
        Unit::Seconds,
        "time from the fault's effect to the end of the first successful operation that was sent after it; time in \
         which nothing was due does not count",
        "< 30s",
    ),
    after_fault(
        "gap",
        Quantity::Gap,
        Unit::Seconds,
        "longest time without a success while operations were due",
        "< 10s",
    ),
    after_fault(
        "recovery_95_percent",
        Quantity::Recovery95Percent,
        Unit::Seconds,
        "time from the fault's effect to the end of the first second at 95 % of the baseline; later relapses do not \
         count",
        "< 60s",
    ),
    after_fault(
        "recovery_sustained",
        Quantity::RecoverySustained,
        Unit::Seconds,
        "time from the fault's effect to the end of the last relapse: the last interruption, second below 50 %, or \
         pair of neighbouring seconds below 95 % of the baseline",
        "< 60s",
    ),
    after_fault(
        "below_50_percent",
        Quantity::Below50Percent,
        Unit::Seconds,
        "whole seconds in which throughput was below 50 % of the baseline",
        "< 10s",
    ),
    after_fault(
        "below_95_percent",
        Quantity::Below95Percent,
        Unit::Seconds,
        "whole seconds in which throughput was below 95 % of the baseline by more than the baseline's own spread",
        "< 20s",
    ),
    after_fault(
        "lost_operations",
        Quantity::LostOperations,
        Unit::Count,
        "missing operations: how far the seconds below 95 % fell short of the baseline",
        "< 5000",
    ),
    after_fault(
        "throughput_ratio_during",
        Quantity::ThroughputRatioDuring,
        Unit::Ratio,
        "throughput during the fault, as a share of the baseline's",
        "> 10%",
    ),
    in_phase("errors", Quantity::Errors, Unit::Count, "failed transactions and connection attempts", "< 100"),
    errors_of("errors_connection", "connection", "errors because the connection failed or broke"),
    errors_of("errors_timeout", "timeout", "errors because the client timed out"),
    errors_of("errors_serialization", "serialization", "errors because of conflicts with other transactions"),
    errors_of("errors_read_only", "read-only", "errors because the node does not take writes"),
    errors_of("errors_other", "other", "all other errors"),
    in_phase(
        "error_rate",
        Quantity::ErrorRate,
        Unit::Share,
        "failed transactions and connection attempts as a share of all attempts; needs 100 of them to hold",
        "< 1%",
    ),
    in_phase(
        "throughput_per_s",
        Quantity::Throughput,
        Unit::PerSecond,
        "successful transactions a second",
        "> 100/s",
    ),
    latency("latency_mean", LatencyFigure::Mean, "mean latency of a transaction; needs 10 of them", "< 5ms"),
    latency("latency_p50", LatencyFigure::P50, "median latency of a transaction; needs 20 of them", "< 5ms"),
    latency(
        "latency_p90",
        LatencyFigure::P90,
        "90th percentile of a transaction's latency; needs 100 of them",
        "< 10ms",
    ),
    latency(
        "latency_p95",
        LatencyFigure::P95,
        "95th percentile of a transaction's latency; needs 200 of them",
        "< 20ms",
    ),
    latency(
        "latency_p99",
        LatencyFigure::P99,
        "99th percentile of a transaction's latency; needs 1,000 of them",
        "< 50ms",
    ),
    latency(
        "latency_p99_9",
        LatencyFigure::P99_9,
        "99.9th percentile of a transaction's latency; needs 10,000 of them",
        "< 200ms",
    ),
    latency("latency_max", LatencyFigure::Max, "longest latency of a transaction", "< 2s"),
    of_orders(
        "tpmC",
        Quantity::TpmC,
        Unit::Number,
        "new orders a minute, as TPC-C counts them, warm-up left out; needs 10 of them to hold",
        "> 10",
    ),
    of_orders(
        "efficiency",
        Quantity::Efficiency,
        Unit::Ratio,
        "tpmC as a share of the maximum that the standard's pauses allow; needs 10 new orders to hold",
        "> 80%",
    ),
    of_run(
        "lab_cpu_share",
        Quantity::LabCpuShare,
        (Unit::Share, Needs::Nothing),
        "the lab's own share of all CPU time spent under load",
        "< 20%",
    ),
];

/// What an expectation of a quantity holds, and which scope its name may have.
pub(crate) fn bound(entry: &QuantityEntry) -> String {
    format!("a comparison with {}; {}", entry.unit.written(), entry.measured.syntax())
}

/// What may stand under `expect`.
pub(crate) fn keys() -> Vec<Key> {
    QUANTITIES.iter().map(key).collect()
}

fn key(entry: &'static QuantityEntry) -> Key {
    Key { name: entry.name, required: false, holds: bound(entry), meaning: entry.meaning }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_and_every_quantity_stands_once() {
        for (place, entry) in QUANTITIES.iter().enumerate() {
            let others = QUANTITIES.iter().skip(place + 1);
            assert!(
                others.clone().all(|other| other.name != entry.name && other.quantity != entry.quantity),
                "{}",
                entry.name
            );
            assert_eq!(entry_of(entry.quantity), named(entry.name));
        }
    }
}
