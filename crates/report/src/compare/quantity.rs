//! The figures that are held against each other: throughput and latency of every operation, over all and by phase, and
//! recovery from every fault.
//!
//! Owns where each stands in a result, and its seconds where it has any; judges nothing.

use std::collections::BTreeSet;

use history::{FaultId, WARM_UP};
use measure::Better;
use scenario::Quantity as Expected;
use scenario::quantity::{self, QuantityEntry};

use super::source::Taken;
use results::{
    FaultLoadResult, FaultResult, LatencyUs, LoadFigures, LoadResult, OperationResult, PhaseResult, RunResult,
};

/// What a figure is of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A load's transactions.
    Load {
        load: String,
        /// In this phase; in all but warm-up when absent.
        phase: Option<String>,
    },
    /// One operation or statement of a load, in all phases but warm-up.
    Operation { load: String, operation: String },
    /// A figure that a load's workload defines: `tpmC`, `sequential_write_mb_per_s`.
    Figure {
        load: String,
        /// Its name, with the unit last.
        figure: String,
    },
    /// A fault, by its place in the run.
    Fault {
        /// Which.
        number: FaultId,
        /// Its kind and target.
        name: String,
    },
}

/// Which figure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Quantity {
    /// Transactions a second.
    Throughput,
    /// Mean latency, microseconds.
    Mean,
    /// Median, microseconds.
    P50,
    /// 95th percentile, microseconds.
    P95,
    /// 99th percentile, microseconds.
    P99,
    /// A workload's own figure, in the unit of its name.
    Figure,
    /// Seconds without a success after a fault, the longest.
    Gap,
    /// Seconds from a fault's effect to the first success.
    FirstSuccess,
    /// Seconds from a fault's effect to 95 % of the baseline's throughput.
    BackTo95Percent,
    /// Seconds from a fault's effect to the end of the last relapse.
    Sustained,
    /// Seconds below 50 % of the baseline after a fault.
    Below50Percent,
    /// Seconds below 95 % of the baseline after a fault.
    Below95Percent,
}

/// Latencies, in the order they are shown.
pub(super) const LATENCIES: [Quantity; 4] = [Quantity::Mean, Quantity::P50, Quantity::P95, Quantity::P99];
const OF_A_FAULT: [Quantity; 6] = [
    Quantity::Gap,
    Quantity::FirstSuccess,
    Quantity::BackTo95Percent,
    Quantity::Sustained,
    Quantity::Below50Percent,
    Quantity::Below95Percent,
];

/// Phases that figures leave out.
fn is_warm_up(phase: &PhaseResult) -> bool {
    phase.name == WARM_UP
}

/// Every figure that any of the runs has, in the order of the report.
pub(super) fn all(runs: &[&RunResult]) -> Vec<(Subject, Quantity)> {
    let mut all = Vec::new();
    let mut seen = BTreeSet::new();
    let mut push = |subject: Subject, quantity: Quantity| {
        if seen.insert((subject.clone(), quantity)) {
            all.push((subject, quantity));
        }
    };
    let results = || runs.iter().copied();
    for (result, load) in results().flat_map(|result| result.loads.iter().map(move |load| (result, load))) {
        let subject = Subject::Load { load: load.name.clone(), phase: None };
        push(subject.clone(), Quantity::Throughput);
        LATENCIES.iter().for_each(|quantity| push(subject.clone(), *quantity));
        for figure in load.measured.figures.keys() {
            push(Subject::Figure { load: load.name.clone(), figure: figure.clone() }, Quantity::Figure);
        }
        // The transaction is the load itself.
        let transaction = transaction_of(result, &load.name);
        let measured = load.measured.operations.iter().filter(|(_, figures)| figures.count > 0);
        for (operation, _) in measured.filter(|(operation, _)| Some(operation.as_str()) != transaction) {
            let subject = Subject::Operation { load: load.name.clone(), operation: operation.clone() };
            LATENCIES.iter().for_each(|quantity| push(subject.clone(), *quantity));
        }
    }
    for load in results().flat_map(|result| &result.loads) {
        let measured: Vec<&PhaseResult> = load.phases.iter().filter(|phase| !is_warm_up(phase)).collect();
        for phase in measured.iter().filter(|_| measured.len() > 1) {
            let subject = Subject::Load { load: load.name.clone(), phase: Some(phase.name.clone()) };
            push(subject.clone(), Quantity::Throughput);
            LATENCIES.iter().for_each(|quantity| push(subject.clone(), *quantity));
        }
    }
    for result in results() {
        for (number, fault) in FaultId::of_each(&result.faults) {
            let subject = Subject::Fault { number, name: name_of(fault) };
            OF_A_FAULT.iter().for_each(|quantity| push(subject.clone(), *quantity));
        }
    }
    all
}

/// What a fault is called.
pub(super) fn name_of(fault: &FaultResult) -> String {
    results::fault_name(&fault.kind, " of ", &fault.target)
}

fn load_of<'r>(result: &'r RunResult, name: &str) -> Option<&'r LoadResult> {
    result.loads.iter().find(|load| load.name == name)
}

/// The operation that is the load's transaction.
fn transaction_of<'r>(result: &'r RunResult, load: &str) -> Option<&'r str> {
    result.facts.loads.iter().find(|facts| facts.name == load).map(|facts| facts.transaction.as_str())
}

/// The phases of this name: a schedule may have several, of which the first counts.
fn phase_of<'r>(load: &'r LoadResult, name: &str) -> Option<&'r PhaseResult> {
    load.phases.iter().find(|phase| phase.name == name)
}

/// Where a subject's seconds lie.
struct Stretch<'r> {
    load: &'r str,
    operation: &'r str,
    from_s: u64,
    to_s: u64,
}

/// Whether an interruption of it had not ended when the load did.
fn is_interrupted_still(load: &FaultLoadResult) -> bool {
    load.gap_is_open && load.interrupted != Some(false)
}

impl Quantity {
    /// Its name in tables.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Quantity::Throughput => "throughput",
            Quantity::Mean => "mean",
            Quantity::P50 => "p50",
            Quantity::P95 => "p95",
            Quantity::P99 => "p99",
            Quantity::Figure => "figure",
            Quantity::Gap => "longest time without a success",
            Quantity::FirstSuccess => "first success",
            Quantity::BackTo95Percent => "back to 95 %",
            Quantity::Sustained => "sustained recovery",
            Quantity::Below50Percent => "below 50 %",
            Quantity::Below95Percent => "below 95 %",
        }
    }

    /// What it is called, and counted in, in expectations; none where a workload defines it.
    fn entry(self) -> Option<&'static QuantityEntry> {
        use scenario::quantity::LatencyFigure;
        quantity::entry_of(match self {
            Quantity::Throughput => Expected::Throughput,
            Quantity::Mean => Expected::Latency(LatencyFigure::Mean),
            Quantity::P50 => Expected::Latency(LatencyFigure::P50),
            Quantity::P95 => Expected::Latency(LatencyFigure::P95),
            Quantity::P99 => Expected::Latency(LatencyFigure::P99),
            Quantity::Figure => return None,
            Quantity::Gap => Expected::Gap,
            Quantity::FirstSuccess => Expected::FirstSuccess,
            Quantity::BackTo95Percent => Expected::Recovery95Percent,
            Quantity::Sustained => Expected::RecoverySustained,
            Quantity::Below50Percent => Expected::Below50Percent,
            Quantity::Below95Percent => Expected::Below95Percent,
        })
    }

    /// Its name in expressions and expectations; a workload's figure has its own.
    #[must_use]
    pub fn word(self) -> &'static str {
        self.entry().map_or("figure", |entry| entry.name)
    }

    /// Which values are the good ones; of a workload's own figure, larger ones.
    pub(super) fn better(self) -> Better {
        match self {
            Quantity::Throughput | Quantity::Figure => Better::Larger,
            _ => Better::Smaller,
        }
    }

    /// What it is counted in; empty where its name says it.
    pub(super) fn unit(self) -> &'static str {
        self.entry().map_or("", |entry| entry.unit.in_results())
    }

    /// The value in a run; none where it has none.
    #[must_use]
    pub fn of(self, result: &RunResult, subject: &Subject) -> Option<f64> {
        match subject {
            Subject::Load { load, phase: None } => {
                let load = load_of(result, load)?;
                self.of_load(&load.measured)
            }
            Subject::Load { load, phase: Some(phase) } => {
                let phase = phase_of(load_of(result, load)?, phase)?;
                self.of_load(&phase.measured)
            }
            Subject::Operation { load, operation } => {
                let OperationResult { count, latency_us, .. } =
                    load_of(result, load)?.measured.operations.get(operation)?;
                self.of_transactions(*count, 0.0, latency_us)
            }
            Subject::Figure { load, figure } => load_of(result, load)?
                .measured
                .figures
                .get(figure)
                .copied()
                .filter(|_| self == Quantity::Figure),
            Subject::Fault { number, name } => {
                let fault = result.faults.get(number.index()).filter(|fault| name_of(fault) == *name)?;
                match self {
                    // One that had not ended is longer than what was seen of it, nobody knows by how much.
                    Quantity::Gap => fault.gap_s.filter(|_| !fault.loads.iter().any(is_interrupted_still)),
                    Quantity::FirstSuccess => fault.recovery_s.first_success,
                    Quantity::BackTo95Percent => fault.recovery_s.back_to_95_percent,
                    Quantity::Sustained => fault.recovery_s.sustained,
                    Quantity::Below50Percent => fault
                        .below_50_percent_s
                        .filter(|_| !fault.loads.iter().any(|load| load.below_50_percent_at_end)),
                    Quantity::Below95Percent => fault
                        .below_95_percent_s
                        .filter(|_| !fault.loads.iter().any(|load| load.below_95_percent_at_end)),
                    _ => None,
                }
            }
        }
    }

    fn of_load(self, figures: &LoadFigures) -> Option<f64> {
        self.of_transactions(figures.transactions, figures.throughput_per_s, &figures.latency_us)
    }

    fn of_transactions(self, count: u64, per_s: f64, latency: &LatencyUs) -> Option<f64> {
        let latency_us = match self {
            Quantity::Throughput => return Some(per_s),
            Quantity::Mean => latency.mean,
            Quantity::P50 => latency.p50 as f64,
            Quantity::P95 => latency.p95 as f64,
            Quantity::P99 => latency.p99 as f64,
            _ => return None,
        };
        // No operation counts as less than a microsecond: 0 is a latency that was not kept, as of a run that was killed.
        (count > 0 && latency_us > 0.0).then_some(latency_us)
    }

    /// The same for each whole second of the subject's stretch; none where there is no such thing. A second in which
    /// nothing succeeded has a throughput of 0 and no latency.
    pub(super) fn by_second(self, taken: &Taken, subject: &Subject) -> Option<Vec<f64>> {
        let stretch = stretch(&taken.run.result, subject)?;
        let by_second = taken.seconds.as_ref()?.get(stretch.load)?;
        let mut seconds = Vec::new();
        for second in stretch.from_s..stretch.to_s {
            let measured = by_second.get(&second).and_then(|operations| operations.get(stretch.operation));
            let count = measured.map_or(0, |measured| measured.count);
            let latency = measured.filter(|measured| measured.count > 0).map(|measured| measured.latency);
            seconds.extend(match (self, latency) {
                (Quantity::Throughput, _) => Some(count as f64),
                (_, None) => None,
                (Quantity::Mean, Some(latency)) => Some(latency.mean_us),
                (Quantity::P50, Some(latency)) => Some(latency.p50_us as f64),
                (Quantity::P95, Some(latency)) => Some(latency.p95_us as f64),
                (Quantity::P99, Some(latency)) => Some(latency.p99_us as f64),
                _ => None,
            });
        }
        Some(seconds)
    }

    /// What two values may differ by for the way they are measured alone.
    pub(super) fn resolution(self) -> f64 {
        match self {
            // Told in whole seconds, and the fault strikes within one.
            Quantity::BackTo95Percent
            | Quantity::Sustained
            | Quantity::Below50Percent
            | Quantity::Below95Percent => 1.0,
            _ => 0.0,
        }
    }

    pub(super) fn mean(self, values: &[f64]) -> f64 {
        values.iter().sum::<f64>() / values.len() as f64
    }
}

fn stretch<'r>(result: &'r RunResult, subject: &'r Subject) -> Option<Stretch<'r>> {
    let (name, operation, phase) = match subject {
        Subject::Load { load, phase } => (load, None, phase.as_deref()),
        Subject::Operation { load, operation } => (load, Some(operation.as_str()), None),
        Subject::Figure { .. } | Subject::Fault { .. } => return None,
    };
    let load = load_of(result, name)?;
    let operation = match operation {
        Some(operation) => operation,
        None => transaction_of(result, name)?,
    };
    let (from_s, to_s) = match phase {
        Some(phase) => phase_of(load, phase).map(|phase| (phase.from_s, phase.to_s))?,
        None => {
            let mut measured = load.phases.iter().filter(|phase| !is_warm_up(phase));
            let first = measured.next()?;
            (first.from_s, measured.next_back().unwrap_or(first).to_s)
        }
    };
    // The second in which the run ended is a part of one.
    Some(Stretch { load: name, operation, from_s: from_s.ceil() as u64, to_s: to_s.floor() as u64 })
}
