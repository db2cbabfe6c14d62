//! The figures of each load: in all and phase by phase.
//!
//! Owns how intervals become figures of a phase. The intervals are the collector's.

use std::collections::BTreeMap;

use history::PhaseFacts;
use history::WARM_UP;
use load::{Asked, LoadPlan};
use measure::interval::counts_for_load;
use measure::{Figures, LatencyFigures};
use results::{LatencyUs, LoadFigures, LoadResult, OperationResult, PhaseResult};

use crate::conductor::Shown;
use crate::prepared::Prepared;

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

/// The figures of a stretch of the run, without what was asked in it.
pub(crate) fn load_figures(figures: &Figures, transaction: &str) -> LoadFigures {
    let mut result = LoadFigures::default();
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
        let latency_us = latency(&operation.latency);
        if name == transaction {
            result.transactions = operation.count;
            result.latency_us = latency_us.clone();
        }
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

/// The same with what was asked of the load meanwhile: clients of a closed loop, or the rate of an open one.
pub(crate) fn with_demand(plan: &LoadPlan, (from_s, to_s): (f64, f64), figures: LoadFigures) -> LoadFigures {
    match plan.asked(from_s, to_s) {
        Some(Asked { rate: Some(rate), .. }) => LoadFigures {
            rate_per_s: Some(rate.per_s),
            rate_range_per_s: (rate.least_per_s < rate.most_per_s)
                .then_some([rate.least_per_s, rate.most_per_s]),
            ..figures
        },
        Some(Asked { clients, clients_least, rate: None }) => LoadFigures {
            clients: Some(clients),
            clients_least: (clients_least < clients).then_some(clients_least),
            ..figures
        },
        None => figures,
    }
}

pub(super) fn load_result(load: &scenario::Load, prepared: &Prepared, shown: &Shown) -> LoadResult {
    let facts = prepared.facts.loads.iter().find(|facts| facts.name == load.name);
    let transaction = facts.map_or("", |facts| facts.transaction.as_str());
    let plan = prepared.plans.iter().find(|plan| plan.name == load.name);
    // A workload that counts for itself has figures of its whole run only.
    let counts_for_itself =
        plan.is_some_and(|plan| !plan.workload.figures(&BTreeMap::new(), 1.0, 1).is_empty());
    let measured = |from_s: f64, to_s: f64, is_whole: bool| {
        let figures = shown.recorded.timeline.summarize(&load.name, from_s, to_s).unwrap_or_default();
        let mut figures = load_figures(&figures, transaction);
        let Some(plan) = plan else { return figures };
        let succeeded =
            figures.operations.iter().map(|(name, operation)| (name.clone(), operation.count)).collect();
        if is_whole || !counts_for_itself {
            figures.figures = plan.workload.figures(&succeeded, to_s - from_s, load.scale);
        }
        with_demand(plan, (from_s, to_s), figures)
    };
    let phases = phases_that_were(&prepared.facts.phases, shown.ended_s);
    let from_s = phases.iter().find(|phase| phase.name != WARM_UP).map_or(0.0, |phase| phase.from_s);
    let of_phase = |phase: &PhaseFacts| PhaseResult {
        name: phase.name.clone(),
        from_s: phase.from_s,
        to_s: phase.to_s,
        measured: measured(phase.from_s, phase.to_s, false),
    };
    LoadResult {
        name: load.name.clone(),
        workload: load.workload.clone(),
        measured: measured(from_s, shown.ended_s, true),
        phases: phases.iter().map(of_phase).collect(),
        first_errors: shown.recorded.first_errors.get(&load.name).cloned().unwrap_or_default(),
        ended_early: shown.ended_early.get(&load.name).cloned(),
    }
}
