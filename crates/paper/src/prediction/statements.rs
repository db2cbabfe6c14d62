//! What the network adds to each statement in a phase, on paper and in the run; and the sentences that say which
//! statements pay.
//!
//! Compares phases whose network differs from the baseline's for their whole length; a phase in which it changes half-way
//! has no one figure to predict. The first second of a phase is left out: in it the fault is only being imposed.

use history::{BASELINE, PhaseFacts};
use measure::{Estimate, Figures, mean_over_seconds};
use model::cost::{Cost, TransactionCost};
use results::{LoadResult, PredictionResult, RunResult};
use scenario::{Scenario, ThinkTime};

use super::{Evidence, figure};
use crate::commits::{CommitCost, PhaseCost, of_loads as commits_of};

/// What is smaller than this part of the largest wait asked for is not what a phase is about.
const SLIGHT: f64 = 0.01;

/// Predictions and sentences for every load whose transactions are of one kind.
pub(super) fn of_loads(
    result: &RunResult,
    scenario: &Scenario,
    evidence: &Evidence<'_>,
) -> (Vec<PredictionResult>, Vec<String>) {
    let (mut rows, mut sentences) = (Vec::new(), Vec::new());
    for costs in commits_of(scenario) {
        let load = result.loads.iter().find(|load| load.name == costs.load);
        let asked = scenario.loads.iter().find(|load| load.name == costs.load);
        let (Some(load), Some(asked)) = (load, asked) else { continue };
        let transaction = result.facts.loads.iter().find(|facts| facts.name == load.name);
        let Some(transaction) = transaction.map(|facts| facts.transaction.as_str()) else { continue };
        if asked.pace.sweep.is_some() {
            // Phases differ by more than their network.
            continue;
        }
        let thinks = asked.pace.think_time != ThinkTime::default();
        for compared in compared(&result.facts.phases, &costs, load, transaction, evidence) {
            rows.extend(compared.statements());
            if load.measured.clients == Some(1) && !thinks {
                rows.extend(compared.throughput());
            }
            sentences.push(compared.sentence());
        }
    }
    (rows, sentences)
}

/// A phase beside the baseline.
struct Compared<'a> {
    load: &'a LoadResult,
    transaction: &'a str,
    phase: &'a PhaseFacts,
    /// What the network asks for in the baseline and in the phase.
    asked: [TransactionCost; 2],
    /// Each whole second of the baseline and of the phase.
    seconds: [Vec<Figures>; 2],
    seed: u64,
}

fn compared<'a>(
    phases: &'a [PhaseFacts],
    costs: &CommitCost,
    load: &'a LoadResult,
    transaction: &'a str,
    evidence: &Evidence<'_>,
) -> Vec<Compared<'a>> {
    let cost_in = |name: &str| -> Option<TransactionCost> {
        let named = |phase: &&PhaseCost| phase.names.iter().any(|one| one == name);
        costs.computed().iter().find(named)?.cost.clone()
    };
    let Some(baseline) = phases.iter().find(|phase| phase.name == BASELINE) else { return Vec::new() };
    let Some(before) = cost_in(BASELINE) else { return Vec::new() };
    let differs = |after: &TransactionCost| (after.total_ms.mean - before.total_ms.mean).abs() > 1e-9;
    let ended_s = evidence.ended_s;
    phases
        .iter()
        .filter(|phase| phase.from_s < ended_s)
        .filter_map(|phase| {
            let after = cost_in(&phase.name).filter(differs)?;
            let seconds = [baseline, phase]
                .map(|phase| seconds_of(evidence, &load.name, phase, phase.to_s.min(ended_s)));
            let asked = [before.clone(), after];
            Some(Compared { load, transaction, phase, asked, seconds, seed: evidence.seed })
        })
        .collect()
}

/// The figures of each whole second of a phase but its first.
fn seconds_of(evidence: &Evidence<'_>, load: &str, phase: &PhaseFacts, to_s: f64) -> Vec<Figures> {
    let first = phase.from_s.round() as u64 + 1;
    (first..to_s.round() as u64)
        .map(|second| {
            evidence.timeline.summarize(load, second as f64, (second + 1) as f64).unwrap_or_default()
        })
        .collect()
}

impl Compared<'_> {
    /// What the phase's network adds to each statement on paper, milliseconds.
    fn added_on_paper(&self) -> impl Iterator<Item = (&Cost, f64)> {
        let [before, after] = &self.asked;
        let pairs = before.statements.iter().zip(&after.statements);
        pairs.map(|(before, after)| (after, after.latency_ms.mean - before.latency_ms.mean))
    }

    fn largest_ms(&self) -> f64 {
        self.added_on_paper().map(|(_, added)| added.abs()).fold(0.0, f64::max)
    }

    fn mean_ms(&self, which: usize, statement: &str) -> Option<Estimate> {
        let of = |figures: &Figures| {
            let operation = figures.operations.get(statement);
            operation
                .map_or((0.0, 0), |found| (found.latency.mean_us * found.count as f64 / 1e3, found.count))
        };
        let seconds: Vec<(f64, u64)> = self.seconds[which].iter().map(of).collect();
        mean_over_seconds(&seconds, self.seed)
    }

    fn added_ms(&self, statement: &str) -> Option<Estimate> {
        Some(self.mean_ms(0, statement)?.increase_to(self.mean_ms(1, statement)?))
    }

    fn per_s(&self, which: usize) -> Option<Estimate> {
        let count =
            |figures: &Figures| figures.operations.get(self.transaction).map_or(0, |found| found.count);
        let seconds: Vec<(f64, u64)> =
            self.seconds[which].iter().map(|figures| (count(figures) as f64, 1)).collect();
        mean_over_seconds(&seconds, self.seed)
    }

    fn statements(&self) -> Vec<PredictionResult> {
        let slack = self.largest_ms() * SLIGHT;
        let (load, phase) = (&self.load.name, &self.phase.name);
        let row = |(cost, added): (&Cost, f64)| {
            let name =
                format!("{load}, {}: mean latency that phase {phase} adds to the baseline's", cost.name);
            figure(name, "ms", added, self.added_ms(&cost.name), slack)
        };
        self.added_on_paper().map(row).collect()
    }

    /// With several clients they wait for each other's locks, and the sum of latencies says nothing of throughput.
    /// `None` where the baseline has too few seconds to predict from.
    fn throughput(&self) -> Option<PredictionResult> {
        let added_ms: f64 = self.added_on_paper().map(|(_, added)| added).sum();
        let name = format!("{}: transactions in phase {}", self.load.name, self.phase.name);
        let before = self.per_s(0).filter(|before| before.mean > 0.0)?;
        let slowed = |per_s: f64| 1e3 / (1e3 / per_s.max(1e-9) + added_ms);
        let predicted = slowed(before.mean);
        // What is predicted from a measurement is no surer than that.
        let slack = (slowed(before.high) - slowed(before.low)) / 2.0;
        Some(figure(name, "per second", predicted, self.per_s(1), slack))
    }

    fn sentence(&self) -> String {
        let (mut paying, mut quiet) = (Vec::new(), 0);
        for (cost, asked_ms) in self.added_on_paper() {
            let Some(added) = self.added_ms(&cost.name) else { continue };
            let is_sure = added.low > 0.0 || added.high < 0.0;
            if is_sure && added.mean.abs() > self.largest_ms() * SLIGHT {
                paying.push(format!("{} ({:+.2} ms, asked {asked_ms:+.2} ms)", cost.name, added.mean));
            } else {
                quiet += 1;
            }
        }
        let phase = &self.phase.name;
        if paying.is_empty() {
            return format!("In phase {phase} no statement differs from the baseline beyond noise.");
        }
        let others = match quiet {
            0 => String::new(),
            1 => "; the other statement does not differ".to_owned(),
            many => format!("; the other {many} statements do not differ"),
        };
        format!(
            "In phase {phase} {} {} beyond noise{others}{}.",
            paying.join(", "),
            if paying.len() == 1 { "differs" } else { "differ" },
            self.why()
        )
    }

    /// Why those statements pay: a database with one log waits once, at the commit, one with a group for each statement at each
    /// that writes.
    fn why(&self) -> &'static str {
        let waits = |cost: &Cost| cost.quorum_round_trips > 0;
        let waiting = self.added_on_paper().filter(|(cost, _)| waits(cost)).count();
        let largest = self.added_on_paper().filter(|(cost, _)| waits(cost)).map(|(_, added)| added);
        let others = self.added_on_paper().filter(|(cost, _)| !waits(cost)).map(|(_, added)| added);
        let most = |added: f64, one: f64| added.max(one);
        if largest.fold(0.0, most) <= others.fold(0.0, most) {
            ""
        } else if waiting > 1 {
            ": every request that writes waits for a quorum"
        } else {
            ": one write-ahead log, streamed continuously, so only the commit waits for the standby"
        }
    }
}
