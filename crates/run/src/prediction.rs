//! Prediction beside measurement: what the network between leader, standbys and clients adds to each statement, on
//! paper and in the run; and the sentences that say which statements pay.
//!
//! Compares phases whose network differs from the baseline's for their whole length; a phase in which it changes
//! half-way has no one figure to predict.

use std::time::Duration;

use history::PhaseFacts;
use model::{Acknowledgements, Distances, commit_wait};
use report::result::{LatencyUs, LoadResult, OperationResult, PhaseResult, PredictionResult};

/// A difference counts as noise within so many standard errors.
const NOISE_DEVIATIONS: f64 = 4.0;

/// The statement that waits for the standbys.
const COMMIT: &str = "END";

/// One-way delays between the nodes (by number) and the clients (the number after the last node).
#[derive(Debug, Clone, PartialEq)]
pub struct Ways(pub Vec<Vec<Duration>>);

impl Distances for Ways {
    fn one_way(&self, from: usize, to: usize) -> Duration {
        self.0.get(from).and_then(|row| row.get(to)).copied().unwrap_or_default()
    }
}

/// The layout that the predictions rest on.
#[derive(Debug, Clone, Copy)]
pub struct Layout {
    /// The leader's number; its standbys are all the other nodes.
    pub leader: usize,
    /// How many nodes.
    pub nodes: usize,
    /// What a commit waits for.
    pub acknowledgements: Acknowledgements,
}

/// What the network adds to one statement.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Added {
    statement_ms: f64,
    commit_ms: f64,
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

fn cost(layout: Layout, ways: &Ways) -> Option<Added> {
    let standbys: Vec<usize> = (0..layout.nodes).filter(|node| *node != layout.leader).collect();
    let wait = commit_wait(layout.leader, &standbys, layout.acknowledgements, ways)?;
    let statement_ms = milliseconds(ways.round_trip(layout.nodes, layout.leader));
    Some(Added { statement_ms, commit_ms: statement_ms + milliseconds(wait) })
}

/// Predictions and sentences for one load. `ways` gives the distances of a phase, `None` where they change within it.
#[must_use]
pub fn of_load(
    load: &LoadResult,
    statements: &[String],
    phases: &[PhaseFacts],
    layout: Layout,
    ways: impl Fn(&PhaseFacts) -> Option<Ways>,
) -> (Vec<PredictionResult>, Vec<String>) {
    let (mut predictions, mut sentences) = (Vec::new(), Vec::new());
    let found = |name: &str| load.phases.iter().find(|phase| phase.name == name);
    let Some((baseline_facts, baseline)) = phases
        .iter()
        .find(|phase| phase.name == "baseline")
        .and_then(|facts| Some((facts, found("baseline")?)))
    else {
        return (predictions, sentences);
    };
    let Some(before) = ways(baseline_facts).and_then(|ways| cost(layout, &ways)) else {
        return (predictions, sentences);
    };
    for facts in phases {
        let (Some(phase), Some(after)) =
            (found(&facts.name), ways(facts).and_then(|ways| cost(layout, &ways)))
        else {
            continue;
        };
        if after == before || statements.is_empty() {
            continue;
        }
        let compared = Compared { baseline, phase, before, after, clients: load.clients };
        predictions.extend(compared.predictions(&load.name, statements));
        sentences.push(compared.sentence(statements));
    }
    (predictions, sentences)
}

/// A phase beside the baseline.
struct Compared<'a> {
    baseline: &'a PhaseResult,
    phase: &'a PhaseResult,
    before: Added,
    after: Added,
    clients: Option<u32>,
}

impl Compared<'_> {
    fn asked_ms(&self, statement: &str) -> f64 {
        if statement == COMMIT {
            self.after.commit_ms - self.before.commit_ms
        } else {
            self.after.statement_ms - self.before.statement_ms
        }
    }

    fn both(&self, statement: &str) -> Option<(&OperationResult, &OperationResult)> {
        let (before, after) =
            (self.baseline.operations.get(statement)?, self.phase.operations.get(statement)?);
        (before.count > 0 && after.count > 0).then_some((before, after))
    }

    fn added_ms(&self, statement: &str) -> Option<f64> {
        let (before, after) = self.both(statement)?;
        Some((after.latency_us.mean - before.latency_us.mean) / 1e3)
    }

    /// How far a mean difference of nothing may stray by chance, milliseconds.
    fn noise_ms(&self, statement: &str) -> Option<f64> {
        let (before, after) = self.both(statement)?;
        let variance = |latency: &LatencyUs, count: u64| latency.stdev * latency.stdev / count as f64;
        let error = variance(&before.latency_us, before.count) + variance(&after.latency_us, after.count);
        Some(NOISE_DEVIATIONS * error.sqrt() / 1e3)
    }

    fn predictions(&self, load: &str, statements: &[String]) -> Vec<PredictionResult> {
        let phase = &self.phase.name;
        let mut rows: Vec<PredictionResult> = statements
            .iter()
            .map(|statement| PredictionResult {
                name: format!("{load}, {statement}: mean latency that phase {phase} adds to the baseline's"),
                predicted: self.asked_ms(statement),
                measured: self.added_ms(statement),
                unit: "ms".to_owned(),
            })
            .collect();
        // With several clients they wait for each other's locks, and the sum of latencies says nothing of throughput.
        if self.clients == Some(1) && self.baseline.throughput_per_s > 0.0 {
            let asked_ms: f64 = statements.iter().map(|statement| self.asked_ms(statement)).sum();
            rows.push(PredictionResult {
                name: format!("{load}: transactions in phase {phase}"),
                predicted: 1e3 / (1e3 / self.baseline.throughput_per_s + asked_ms),
                measured: Some(self.phase.throughput_per_s),
                unit: "per second".to_owned(),
            });
        }
        rows
    }

    fn sentence(&self, statements: &[String]) -> String {
        let (mut paying, mut quiet) = (Vec::new(), 0);
        for statement in statements {
            let (Some(added), Some(noise)) = (self.added_ms(statement), self.noise_ms(statement)) else {
                continue;
            };
            // What is smaller than a hundredth of the largest wait asked for is not what the phase is about.
            let least = noise.max(self.asked_ms(COMMIT).abs() / 100.0);
            if added.abs() > least {
                paying
                    .push(format!("{statement} ({added:+.2} ms, asked {:+.2} ms)", self.asked_ms(statement)));
            } else {
                quiet += 1;
            }
        }
        let phase = &self.phase.name;
        if paying.is_empty() {
            return format!("In phase {phase} no statement differs from the baseline beyond noise.");
        }
        let why = if self.asked_ms(COMMIT) > self.asked_ms("") {
            ": one write-ahead log, streamed as it is written, so only the commit waits for the standby's answer"
        } else {
            ""
        };
        format!(
            "In phase {phase} {} {} beyond noise; the other {quiet} statements do not differ{why}.",
            paying.join(", "),
            if paying.len() == 1 { "differs" } else { "differ" },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn operation(mean_us: f64) -> OperationResult {
        OperationResult {
            count: 1000,
            latency_us: LatencyUs { mean: mean_us, stdev: mean_us / 10.0, ..LatencyUs::default() },
        }
    }

    fn phase(name: &str, per_s: f64, begin_us: f64, end_us: f64) -> PhaseResult {
        PhaseResult {
            name: name.to_owned(),
            throughput_per_s: per_s,
            operations: [("BEGIN".to_owned(), operation(begin_us)), (COMMIT.to_owned(), operation(end_us))]
                .into(),
            ..PhaseResult::default()
        }
    }

    #[test]
    fn only_the_commit_pays_for_a_distant_standby_and_the_sentence_says_so() {
        let load = LoadResult {
            name: "tpcb".to_owned(),
            clients: Some(1),
            phases: vec![phase("baseline", 500.0, 200.0, 1_000.0), phase("delayed", 19.2, 201.0, 51_100.0)],
            ..LoadResult::default()
        };
        let facts = |name: &str, from_s| PhaseFacts { name: name.to_owned(), from_s, to_s: from_s + 1.0 };
        let layout = Layout { leader: 0, nodes: 2, acknowledgements: Acknowledgements::Any(1) };
        let ways = |facts: &PhaseFacts| {
            let mut ways = vec![vec![Duration::ZERO; 3]; 3];
            if facts.name == "delayed" {
                ways[0][1] = Duration::from_millis(50);
            }
            Some(Ways(ways))
        };
        let statements = ["BEGIN".to_owned(), COMMIT.to_owned()];
        let phases = [facts("baseline", 0.0), facts("delayed", 1.0)];
        let (predictions, sentences) = of_load(&load, &statements, &phases, layout, ways);
        let figures: Vec<(f64, Option<f64>)> =
            predictions.iter().map(|row| (row.predicted.round(), row.measured.map(f64::round))).collect();
        assert_eq!(figures, [(0.0, Some(0.0)), (50.0, Some(50.0)), (19.0, Some(19.0))]);
        assert!(sentences[0].starts_with(
            "In phase delayed END (+50.10 ms, asked +50.00 ms) differs beyond noise; the other 1"
        ));
    }
}
