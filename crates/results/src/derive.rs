//! The result of a run that left none: what its events and its timeline still tell, and no more. Its verdict is `unknown`.
//!
//! Percentiles over a phase cannot be had from percentiles of single seconds, so only counts and the largest latency are
//! given. Where a run has several loads, the slowest to return and the hardest hit stand for the fault.

use std::collections::BTreeMap;
use std::ops::Add;

use history::{BASELINE, Event, EventKind, FaultId, LoadFacts, PhaseFacts, RunFacts, Verdict, WARM_UP};
use measure::TimelineRow;
use measure::interval::counts_for_load;
use measure::recovery::{self, Baseline, LoadRecord, Second, Struck};

use crate::by_second::{self, LoadSeconds};
use crate::fault::{FaultLoadResult, FaultResult, RecoveryResult, new_leader_s, of_all};
use crate::lab::{CPU_PARTS, FailedRollbackResult, InterferenceResult, LabResult, WarningResult};
use crate::load::{LatencyUs, LoadFigures, LoadResult, OperationResult, PhaseResult};
use crate::run::{CheckResult, RunResult};

/// Why the verdict is `unknown`, in the first place.
const NO_RESULT: &str = "the run ended without a result (killed?)";

/// The key under which errors stand whose class the timeline does not tell.
const UNCLASSIFIED: &str = "unclassified";

/// What the files still tell; nothing when not even the run's first event is there. Of a timeline of which lines are missing
/// nobody knows whether a second was slow.
pub(crate) fn result(
    events: &[Event],
    (rows, is_timeline_damaged): (&[TimelineRow], bool),
) -> Option<RunResult> {
    let facts = events.iter().find_map(|event| match &event.kind {
        EventKind::RunStarted { facts } => Some((**facts).clone()),
        _ => None,
    })?;
    let mut result = blank(facts);
    result.lab.warnings.extend(events.iter().filter_map(WarningResult::told_by));
    for event in events {
        match &event.kind {
            EventKind::LabUp { boot_s, cpu_seconds, from_snapshot } => {
                (result.lab.boot_s, result.lab.from_snapshot) = (Some(*boot_s), *from_snapshot);
                result.lab.cpu_seconds.extend(cpu_seconds.clone());
            }
            EventKind::LabStall { stall } => result.lab.stalls.push(stall.clone()),
            EventKind::Interference { interference } => {
                let interference = interference.clone();
                result.lab.interference.push(InterferenceResult { t_s: event.t_s, interference });
            }
            EventKind::RollbackFailed { .. } => {
                result.lab.failed_rollbacks.extend(FailedRollbackResult::told_by(event));
            }
            EventKind::LeadersAtTheEnd { nodes, silent } => {
                result.leaders_at_the_end.clone_from(nodes);
                result.silent_at_the_end.clone_from(silent);
            }
            EventKind::Check { name, verdict, explanation } => {
                result.checks.push(CheckResult::new(name, *verdict, explanation))
            }
            EventKind::RunFailed { why } => {
                result.reasons.retain(|reason| reason != NO_RESULT);
                result.reasons.push(format!("the run failed: {why}"));
            }
            EventKind::Interrupted { why } => result.reasons.push(format!("the run was interrupted: {why}")),
            _ => {}
        }
    }
    result.lab.warnings.push(WarningResult {
        what: "the figures by phase are counts from timeline.csv; percentiles over a phase are not given"
            .to_owned(),
        remedy: "the histograms are in timeline.hlog; run the scenario again for a result".to_owned(),
    });
    let loads = by_second::by_load(&result, rows);
    let recorded_until_s = by_second::recorded_until(&loads) as f64;
    let phases = phases(events, recorded_until_s);
    result.loads = result.facts.loads.iter().map(|load| load_result(load, &phases, rows)).collect();
    result.faults = faults(events, &result.facts);
    if !is_timeline_damaged {
        consequences(&mut result.faults, &loads, &phases, recorded_until_s);
    }
    Some(result)
}

fn blank(facts: RunFacts) -> RunResult {
    let lab = LabResult {
        nodes: u32::try_from(facts.site.nodes.len()).unwrap_or(u32::MAX),
        // Every part has its key in every result; what the lab's own boot took is told by its event.
        cpu_seconds: CPU_PARTS.map(|part| (part.to_owned(), 0.0)).into(),
        ..LabResult::default()
    };
    RunResult { reasons: vec![NO_RESULT.to_owned()], lab, ..RunResult::blank(facts) }
}

/// Phases as they were: each from its event to the next one's, the last to its planned end or the end of the recording.
fn phases(events: &[Event], recorded_until_s: f64) -> Vec<PhaseFacts> {
    let begun: Vec<(f64, &str, f64)> = events
        .iter()
        .filter_map(|event| match &event.kind {
            EventKind::Phase { name, for_s } => Some((event.t_s, name.as_str(), *for_s)),
            _ => None,
        })
        .collect();
    let ends = begun.iter().skip(1).map(|(from_s, _, _)| *from_s).map(Some).chain([None]);
    begun
        .iter()
        .zip(ends)
        .map(|(&(from_s, name, for_s), next)| PhaseFacts {
            name: name.to_owned(),
            from_s,
            to_s: next.unwrap_or((from_s + for_s).min(recorded_until_s)).max(from_s),
        })
        .collect()
}

/// Whether a second belongs to a phase: its middle lies in it.
fn is_within(second: u64, from_s: f64, to_s: f64) -> bool {
    let middle_s = second as f64 + 0.5;
    (from_s..to_s).contains(&middle_s)
}

fn load_result(load: &LoadFacts, phases: &[PhaseFacts], rows: &[TimelineRow]) -> LoadResult {
    let phases: Vec<PhaseResult> = phases.iter().map(|phase| phase_result(load, phase, rows)).collect();
    let mut total = LoadResult {
        name: load.name.clone(),
        workload: load.workload.clone(),
        measured: asked_of(load),
        ..LoadResult::default()
    };
    let mut length_s = 0.0;
    for phase in phases.iter().filter(|phase| phase.name != WARM_UP) {
        length_s += phase.to_s - phase.from_s;
        total.measured.transactions = total.measured.transactions.saturating_add(phase.measured.transactions);
        total.measured.latency_us.max = total.measured.latency_us.max.max(phase.measured.latency_us.max);
        for (class, errors) in &phase.measured.errors {
            let sum = total.measured.errors.entry(class.clone()).or_default();
            *sum = sum.saturating_add(*errors);
        }
        for (name, operation) in &phase.measured.operations {
            let sum = total.measured.operations.entry(name.clone()).or_default();
            sum.count = sum.count.saturating_add(operation.count);
            sum.latency_us.max = sum.latency_us.max.max(operation.latency_us.max);
            for (class, errors) in &operation.errors {
                let of_class = sum.errors.entry(class.clone()).or_default();
                *of_class = of_class.saturating_add(*errors);
            }
        }
    }
    if length_s > 0.0 {
        total.measured.throughput_per_s = total.measured.transactions as f64 / length_s;
    }
    total.phases = phases;
    total
}

/// What was asked of a load. Of a rate that changed its mean is not known.
fn asked_of(load: &LoadFacts) -> LoadFigures {
    let [least, most] = match load.rate_range_per_s {
        None => return LoadFigures { clients: Some(load.clients), ..LoadFigures::default() },
        Some(range) => range,
    };
    let (is_steady, range) = (least >= most, [least, most]);
    LoadFigures {
        rate_per_s: is_steady.then_some(most),
        rate_range_per_s: (!is_steady).then_some(range),
        ..LoadFigures::default()
    }
}

fn phase_result(load: &LoadFacts, phase: &PhaseFacts, rows: &[TimelineRow]) -> PhaseResult {
    let mut result = PhaseResult {
        name: phase.name.clone(),
        from_s: phase.from_s,
        to_s: phase.to_s,
        ..PhaseResult::default()
    };
    let mut errors = 0_u64;
    let of_phase =
        rows.iter().filter(|row| row.load == load.name && is_within(row.second, phase.from_s, phase.to_s));
    for row in of_phase {
        let sum: &mut OperationResult = result.measured.operations.entry(row.operation.clone()).or_default();
        sum.count = sum.count.saturating_add(row.count);
        sum.latency_us = LatencyUs { max: sum.latency_us.max.max(row.max_us), ..LatencyUs::default() };
        if row.errors > 0 {
            let of_operation = sum.errors.entry(UNCLASSIFIED.to_owned()).or_default();
            *of_operation = of_operation.saturating_add(row.errors);
        }
        if counts_for_load(&row.operation, &load.transaction) {
            errors = errors.saturating_add(row.errors);
        }
    }
    if let Some(transaction) = result.measured.operations.get(&load.transaction) {
        result.measured.transactions = transaction.count;
        result.measured.latency_us = transaction.latency_us.clone();
    }
    if errors > 0 {
        result.measured.errors.insert(UNCLASSIFIED.to_owned(), errors);
    }
    if phase.to_s > phase.from_s {
        result.measured.throughput_per_s = result.measured.transactions as f64 / (phase.to_s - phase.from_s);
    }
    result
}

/// Faults by number, from the events about them.
fn faults(events: &[Event], facts: &RunFacts) -> Vec<FaultResult> {
    let mut faults: BTreeMap<FaultId, FaultResult> = BTreeMap::new();
    let mut answered: BTreeMap<FaultId, BTreeMap<&str, f64>> = BTreeMap::new();
    for event in events {
        match &event.kind {
            EventKind::FaultAsked { fault, kind, target, hits, nodes } => {
                faults.insert(*fault, asked(event.t_s, kind, target, hits, nodes));
            }
            EventKind::FaultTookEffect { fault, receipt } => {
                if let Some(fault) = faults.get_mut(fault) {
                    fault.took_effect_s = (receipt.verdict == Verdict::Pass).then_some(event.t_s);
                    fault.receipt.verdict = receipt.verdict;
                    fault.receipt.evidence.extend(receipt.evidence.iter().cloned());
                }
            }
            EventKind::FaultHealed { fault, receipt } => {
                if let Some(fault) = faults.get_mut(fault) {
                    fault.healed_s = (receipt.verdict == Verdict::Pass).then_some(event.t_s);
                    fault.receipt.verdict = fault.receipt.verdict.and(receipt.verdict);
                    fault.receipt.evidence.extend(receipt.evidence.iter().cloned());
                }
            }
            EventKind::Canary { fault, receipt } => {
                if let Some(fault) = faults.get_mut(fault) {
                    fault.receipt.verdict = fault.receipt.verdict.and(receipt.verdict);
                    fault.receipt.evidence.extend(receipt.evidence.iter().cloned());
                }
            }
            EventKind::FirstSuccess { fault, load, after_s } => {
                answered.entry(*fault).or_default().insert(load, *after_s);
            }
            _ => {}
        }
    }
    for (number, fault) in &mut faults {
        let of_loads = facts.loads.iter().map(|load| answered.get(number)?.get(load.name.as_str()).copied());
        // A load that had no success yet may be the slowest.
        let all = of_loads.collect::<Option<Vec<f64>>>().unwrap_or_default();
        fault.recovery_s.first_success = all.into_iter().reduce(f64::max);
    }
    let asked_s: Vec<f64> = faults.values().map(|fault| fault.asked_s).collect();
    for fault in faults.values_mut() {
        let Some(effect_s) = fault.took_effect_s else { continue };
        let next_s = asked_s.iter().copied().filter(|asked_s| *asked_s > effect_s).reduce(f64::min);
        fault.new_leader_s = new_leader_s(facts, events, (effect_s, next_s.unwrap_or(f64::INFINITY)));
    }
    // A fault that was never seen to heal has only half its receipt.
    for fault in faults.values_mut().filter(|fault| fault.healed_s.is_none()) {
        fault.receipt.verdict = fault.receipt.verdict.and(Verdict::Unknown);
    }
    faults.into_values().collect()
}

fn asked(t_s: f64, kind: &str, target: &str, hits: &[String], nodes: &[String]) -> FaultResult {
    FaultResult { hits: hits.to_vec(), nodes: nodes.to_vec(), ..FaultResult::asked(kind, target, t_s) }
}

/// What faults did to loads, from counts per second. Waits are not in the files, so that what rests on them is absent.
fn consequences(
    faults: &mut [FaultResult],
    loads: &[LoadSeconds],
    phases: &[PhaseFacts],
    recorded_until_s: f64,
) {
    let struck = |fault: &FaultResult| Struck { asked_s: fault.asked_s, effect_s: fault.took_effect_s };
    let windows = recovery::windows(&faults.iter().map(struck).collect::<Vec<_>>(), recorded_until_s);
    let Some(baseline) = phases.iter().find(|phase| phase.name == BASELINE) else { return };
    for (fault, window) in faults.iter_mut().zip(windows) {
        let Some(window) = window else { continue };
        let stood_until_s = fault.healed_s.unwrap_or(recorded_until_s).min(recorded_until_s);
        let load_result = |load: &LoadSeconds| {
            let series: Vec<(u64, u64)> =
                load.seconds.iter().map(|(second, values)| (*second, values.count)).collect();
            let baseline = Baseline::of(&series, baseline.from_s, baseline.to_s).ok()?;
            // What was asked of the load is not in the files either: it is taken not to have changed.
            let as_asked = |(second, successes)| Second { second, successes, demand: Some(1.0) };
            let seconds: Vec<Second> = series.iter().copied().map(as_asked).collect();
            let record =
                LoadRecord { seconds: &seconds, waits: None, baseline: Ok(baseline), baseline_wait_s: None };
            let damage = recovery::damage(&record, &window);
            let ratio =
                recovery::throughput_ratio_during(&seconds, baseline.per_s, window.effect_s, stood_until_s);
            Some(FaultLoadResult {
                load: load.name.clone(),
                below_50_percent_s: damage.below_50_percent_s,
                below_95_percent_s: damage.below_95_percent_s,
                below_50_percent_at_end: damage.is_below_50_percent_at_end,
                below_95_percent_at_end: damage.is_below_95_percent_at_end,
                below_95_percent_per_s: baseline.below_95_percent_per_s.ok(),
                baseline_per_s: Some(baseline.per_s),
                incomparable: damage.incomparable,
                recovery_s: RecoveryResult {
                    back_to_95_percent: recovery::back_to_95_percent(
                        &seconds,
                        baseline.per_s,
                        window.effect_s,
                    ),
                    ..RecoveryResult::default()
                },
                lost_operations: damage.lost_operations,
                throughput_ratio_during: ratio,
                throughput_ratio_lowest: recovery::throughput_ratio_lowest(
                    &seconds,
                    baseline.per_s,
                    window.effect_s,
                    stood_until_s,
                ),
                ..FaultLoadResult::default()
            })
        };
        // Where one load has nothing to compare with, nothing is said of the worst of all.
        let Some(results) = loads.iter().map(load_result).collect::<Option<Vec<_>>>() else { continue };
        fault.below_50_percent_s = of_all(&results, |load| load.below_50_percent_s, f64::max);
        fault.below_95_percent_s = of_all(&results, |load| load.below_95_percent_s, f64::max);
        fault.recovery_s.back_to_95_percent =
            of_all(&results, |load| load.recovery_s.back_to_95_percent, f64::max);
        fault.lost_operations = of_all(&results, |load| load.lost_operations, f64::add);
        fault.throughput_ratio_during = of_all(&results, |load| load.throughput_ratio_during, f64::min);
        fault.charged_until_s = Some(window.end_s);
        fault.loads = results;
    }
}
