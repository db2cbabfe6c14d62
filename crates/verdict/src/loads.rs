//! The figures of each load: in all and phase by phase.
//!
//! Owns how intervals become figures of a phase. The intervals are the collector's.

use std::collections::BTreeMap;

use history::PhaseFacts;
use history::WARM_UP;
use load::{Demand, LoadPlan};
use measure::interval::counts_for_load;
use measure::{Figures, LatencyFigures};
use results::{LatencyUs, LoadFigures, LoadResult, OperationResult, PhaseResult};

use crate::shown::{Planned, Shown};

/// What the end of a run may lie before a whole second for its rounding alone.
const ROUNDING_S: f64 = 0.001;

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

/// The end of what was recorded of a stretch: a second that had only begun when the loads were told to stop is not a
/// measured one.
pub(crate) fn recorded_until((from_s, to_s): (f64, f64), ended_s: f64) -> f64 {
    to_s.min((ended_s + ROUNDING_S).floor()).max(from_s)
}

/// The same with what was asked of the load meanwhile: clients of a closed loop, or the rate of an open one.
pub(crate) fn with_demand(plan: &LoadPlan, (from_s, to_s): (f64, f64), figures: LoadFigures) -> LoadFigures {
    match plan.asked(from_s, to_s) {
        Some(Demand { rate: Some(rate), .. }) => LoadFigures {
            rate_per_s: Some(rate.per_s),
            rate_range_per_s: (rate.least_per_s < rate.most_per_s)
                .then_some([rate.least_per_s, rate.most_per_s]),
            ..figures
        },
        Some(Demand { clients, clients_least, rate: None }) => LoadFigures {
            clients: Some(clients),
            clients_least: (clients_least < clients).then_some(clients_least),
            ..figures
        },
        None => figures,
    }
}

pub(crate) fn load_result(load: &scenario::Load, planned: &Planned<'_>, shown: &Shown) -> LoadResult {
    let facts = planned.facts.loads.iter().find(|facts| facts.name == load.name);
    let transaction = facts.map_or("", |facts| facts.transaction.as_str());
    let plan = planned.plans.iter().find(|plan| plan.name == load.name);
    // A workload that counts for itself has figures of its whole run only.
    let counts_for_itself =
        plan.is_some_and(|plan| !plan.workload.figures(&BTreeMap::new(), 1.0, 1).is_empty());
    let measured = |from_s: f64, to_s: f64, is_whole: bool| {
        let to_s = recorded_until((from_s, to_s), shown.ended_s);
        let figures = shown.recorded.timeline.summarize(&load.name, from_s, to_s).unwrap_or_default();
        let mut figures = load_figures(&figures, transaction);
        let Some(plan) = plan else { return figures };
        let succeeded =
            figures.operations.iter().map(|(name, operation)| (name.clone(), operation.count)).collect();
        if to_s > from_s && (is_whole || !counts_for_itself) {
            figures.figures = plan.workload.figures(&succeeded, to_s - from_s, load.scale);
        }
        // Of a stretch without a whole second it is still known what would have been asked.
        with_demand(plan, (from_s, to_s.max(from_s + 1.0)), figures)
    };
    let phases = phases_that_were(&planned.facts.phases, shown.ended_s);
    // As planned: a run that ended in its warm-up has no figures beside it.
    let judged = planned.facts.phases.iter().find(|phase| phase.name != WARM_UP);
    let from_s = judged.map_or(0.0, |phase| phase.from_s);
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
        errors_after_end: shown.recorded.errors_after_end.get(&load.name).copied().unwrap_or(0),
        ended_early: shown.ended_early.get(&load.name).cloned(),
        ..LoadResult::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_that_had_only_begun_at_the_end_is_not_measured_as_a_whole_one() {
        let check = |stretch, ended_s, expected: f64| assert_eq!(recorded_until(stretch, ended_s), expected);
        check((5.0, 35.0), 35.0004, 35.0);
        check((5.0, 35.0), 34.9999, 35.0);
        check((5.0, 20.0), 35.7, 20.0);
        check((20.0, 27.7), 27.7, 27.0);
        check((30.0, 35.5), 35.5004, 35.0);
        check((20.0, 20.7), 20.7, 20.0);
        check((20.003, 20.7), 20.7, 20.003);
    }
}
