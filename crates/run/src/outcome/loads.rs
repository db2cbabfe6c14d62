//! The figures of each load: in all and phase by phase.
//!
//! Owns how intervals become figures of a phase. The intervals are the collector's.

use history::PhaseFacts;
use history::WARM_UP;
use load::{Asked, LoadPlan};
use measure::interval::counts_for_load;
use measure::{Figures, LatencyFigures};
use results::{LatencyUs, LoadResult, OperationResult, PhaseResult};

use crate::conductor::Shown;
use crate::preparation::Prepared;

fn latency(figures: &LatencyFigures) -> LatencyUs {
    LatencyUs {
        mean: figures.mean_us,
        stdev: figures.stdev_us,
        p50: figures.p50_us,
        p90: figures.p90_us,
        p95: figures.p95_us,
        p99: figures.p99_us,
        p99_9: figures.p99_9_us,
        max: figures.max_us,
    }
}

pub(crate) fn phase_result(phase: &PhaseFacts, figures: &Figures, transaction: &str) -> PhaseResult {
    let mut result = PhaseResult {
        name: phase.name.clone(),
        from_s: phase.from_s,
        to_s: phase.to_s,
        ..PhaseResult::default()
    };
    for (name, operation) in &figures.operations {
        let (errors, errors_indefinite) = (operation.errors_by_name(), operation.errors_indefinite_by_name());
        if counts_for_load(name, transaction) {
            let sums = [(&mut result.errors, &errors), (&mut result.errors_indefinite, &errors_indefinite)];
            for (sum, counts) in sums {
                for (class, count) in counts {
                    *sum.entry(class.clone()).or_default() += count;
                }
            }
        }
        if name == transaction {
            result.transactions = operation.count;
            result.latency_us = latency(&operation.latency);
        }
        let latency_us = latency(&operation.latency);
        let (count, retries) = (operation.count, operation.retries);
        let figures = OperationResult { count, errors, errors_indefinite, retries, latency_us };
        result.operations.insert(name.clone(), figures);
    }
    result.throughput_per_s = figures.throughput_per_s(transaction);
    result
}

/// The phases that were, cut off where the run ended early.
fn phases_that_were(phases: &[PhaseFacts], ended_s: f64) -> Vec<PhaseFacts> {
    let begun = phases.iter().filter(|phase| phase.from_s < ended_s);
    begun.map(|phase| PhaseFacts { to_s: phase.to_s.min(ended_s), ..phase.clone() }).collect()
}

/// What was asked of a load over a stretch of time, in the words of a phase: clients of a closed loop, or the rate of an
/// open one.
pub(crate) fn asked(plan: &LoadPlan, from_s: f64, to_s: f64) -> PhaseResult {
    let nothing = PhaseResult::default();
    match plan.asked(from_s, to_s) {
        Some(Asked { rate: Some(rate), .. }) => PhaseResult {
            rate_per_s: Some(rate.per_s),
            rate_range_per_s: (rate.least_per_s < rate.most_per_s)
                .then_some([rate.least_per_s, rate.most_per_s]),
            ..nothing
        },
        Some(Asked { clients, clients_least, rate: None }) => PhaseResult {
            clients: Some(clients),
            clients_least: (clients_least < clients).then_some(clients_least),
            ..nothing
        },
        None => nothing,
    }
}

pub(super) fn load_result(load: &scenario::Load, prepared: &Prepared, shown: &Shown) -> LoadResult {
    let facts = prepared.facts.loads.iter().find(|facts| facts.name == load.name);
    let transaction = facts.map_or("", |facts| facts.transaction.as_str());
    let timeline = &shown.recorded.timeline;
    let summarize = |from_s, to_s| timeline.summarize(&load.name, from_s, to_s).unwrap_or_default();
    let phases = phases_that_were(&prepared.facts.phases, shown.ended_s);
    let from_s =
        phases.iter().find(|phase| !phase.name.starts_with(WARM_UP)).map_or(0.0, |phase| phase.from_s);
    let whole = PhaseFacts { name: "whole".to_owned(), from_s, to_s: shown.ended_s };
    let total = phase_result(&whole, &summarize(from_s, shown.ended_s), transaction);
    let succeeded =
        total.operations.iter().map(|(name, operation)| (name.clone(), operation.count)).collect();
    let plan = prepared.plans.iter().find(|plan| plan.name == load.name);
    let figures = plan.map(|plan| plan.workload.figures(&succeeded, total.to_s - total.from_s, load.scale));
    let asked = |from_s, to_s| plan.map(|plan| asked(plan, from_s, to_s)).unwrap_or_default();
    let in_all = asked(from_s, shown.ended_s);
    LoadResult {
        figures: figures.unwrap_or_default(),
        name: load.name.clone(),
        workload: load.workload.clone(),
        clients: in_all.clients,
        clients_least: in_all.clients_least,
        rate_per_s: in_all.rate_per_s,
        rate_range_per_s: in_all.rate_range_per_s,
        transactions: total.transactions,
        errors: total.errors,
        errors_indefinite: total.errors_indefinite,
        throughput_per_s: total.throughput_per_s,
        latency_us: total.latency_us,
        operations: total.operations,
        first_errors: shown.recorded.first_errors.get(&load.name).cloned().unwrap_or_default(),
        ended_early: shown.ended_early.get(&load.name).cloned(),
        phases: phases
            .iter()
            .map(|phase| {
                let PhaseResult { clients, clients_least, rate_per_s, rate_range_per_s, .. } =
                    asked(phase.from_s, phase.to_s);
                let result = phase_result(phase, &summarize(phase.from_s, phase.to_s), transaction);
                PhaseResult { clients, clients_least, rate_per_s, rate_range_per_s, ..result }
            })
            .collect(),
    }
}
