//! From what the run has shown to `result.json`: the checks made, the figures drawn together, the verdict.
//!
//! Decides nothing that a check, a receipt or an expectation has not said.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;

use check::list_append::{self, Isolation, Level, ListAppend, Order};
use check::registry;
use engine::Engine;
use history::{EventKind, HistoryReader, PhaseFacts, Receipt, Verdict};
use load::{Asked, LoadPlan};
use measure::interval::counts_for_load;
use measure::{Doubt, Figures, LatencyFigures, Timeline, recovery, warnings};
use report::result::{
    CheckResult, FaultResult, LabResult, LatencyUs, LoadResult, OperationResult, PhaseResult, RecoveryResult,
    ReproducedReport, RunResult, WarningResult,
};
use scenario::Scenario;

use crate::chronicle::Chronicle;
use crate::conductor::Shown;
use crate::directory::RunDirectory;
use crate::expectations;
use crate::faulting::FaultRecord;
use crate::paper;
use crate::prediction::Evidence;
use crate::preparation::Prepared;
use crate::volumes::result as volumes;

/// Phases whose name begins so are left out of totals.
pub(crate) const WARM_UP: &str = "warm-up";
/// The phase that recovery is measured against.
pub(crate) const BASELINE: &str = "baseline";

/// The workload whose history is held against an isolation level.
const APPEND: &str = "append";

/// The check made for one load, with the writes it found lost.
struct Checked {
    result: CheckResult,
    lost: Vec<check::LostWrite>,
}

/// The writes that the run lost.
struct Lost {
    /// How many, at least; absent where that could not be told.
    count: Option<u64>,
    /// Those that are known one by one: all of them or none.
    known: Vec<check::LostWrite>,
}

/// Draws everything together.
#[must_use]
pub fn draw(
    scenario: &Scenario,
    prepared: &Prepared,
    shown: &Shown,
    directory: &RunDirectory,
    chronicle: &Chronicle,
) -> RunResult {
    let checked =
        if shown.interrupted.is_some() { Vec::new() } else { check_all(scenario, prepared, directory) };
    for check in &checked {
        let CheckResult { name, verdict, explanation, .. } = check.result.clone();
        chronicle.say(EventKind::Check { name, verdict, explanation });
    }
    let facts = prepared.facts.clone();
    let loads: Vec<LoadResult> =
        scenario.loads.iter().map(|load| load_result(load, prepared, shown)).collect();
    let (checks, lost): (Vec<CheckResult>, Vec<Vec<check::LostWrite>>) =
        checked.into_iter().map(|check| (check.result, check.lost)).unzip();
    let lost = Lost { count: report::losses::lost_writes(&checks), known: lost.concat() };
    let faults = fault_results(scenario, prepared, shown, &lost);
    let lab = LabResult {
        boot_s: Some(prepared.boot_s),
        nodes: u32::try_from(facts.site.nodes.len()).unwrap_or(u32::MAX),
        cpu_seconds: shown.in_all.by_part(),
        cpu_share_of_lab: shown.under_load.share_of_lab(),
        packets: packets(prepared),
        warnings: all_warnings(prepared, shown, &loads, chronicle),
    };
    let mut result = RunResult {
        holdfast: facts.holdfast.clone(),
        scenario: facts.scenario.clone(),
        seed: facts.seed,
        started_at: facts.started_at.clone(),
        verdict: Verdict::Unknown,
        reasons: Vec::new(),
        expectations: Vec::new(),
        checks,
        faults,
        loads,
        prediction: Vec::new(),
        explanations: Vec::new(),
        reproduces: ReproducedReport::default(),
        volumes: volumes::results(prepared, shown),
        links: shown.links.clone(),
        lab,
        facts,
    };
    let evidence = Evidence {
        timeline: &shown.recorded.timeline,
        events: &chronicle.events(),
        shown,
        seed: result.facts.seed,
    };
    paper::beside(&mut result, scenario, &evidence);
    result.expectations = expectations::judge(&scenario.expect, &result, shown.ended_s);
    (result.verdict, result.reasons) = verdict(&result, shown.interrupted.as_deref(), chronicle.failure());
    result
}

/// What became of the network's packets; kinds that did not occur are left out.
fn packets(prepared: &Prepared) -> BTreeMap<String, u64> {
    let Ok(counters) = prepared.datacentre.fabric.counters() else { return BTreeMap::new() };
    let kinds = [
        ("sent", counters.packets),
        ("delivered", counters.delivered_packets),
        ("duplicated", counters.duplicated_packets),
        ("fragments", counters.fragment_packets),
        ("answers", counters.answer_packets),
        ("blocked", counters.blocked_packets),
        ("lost", counters.lost_packets),
        ("corrupted", counters.corrupted_packets),
        ("overtaking", counters.overtaking_packets),
        ("queue_full", counters.queue_full_packets),
        ("too_big", counters.too_big_packets),
        ("no_such_address", counters.no_such_address_packets),
        ("power_lost", counters.port_gone_packets),
        ("refused", counters.refused_packets),
        ("malformed", counters.malformed_packets),
    ];
    kinds.into_iter().filter(|(_, count)| *count > 0).map(|(name, count)| (name.to_owned(), count)).collect()
}

/// Every check that applies to a load, made on the history as it stands in the run directory: what is judged is what
/// anybody can judge again. A check sees all loads, because they may share their tables.
fn check_all(scenario: &Scenario, prepared: &Prepared, directory: &RunDirectory) -> Vec<Checked> {
    let mut workloads: Vec<&str> = scenario.loads.iter().map(|load| load.workload.as_str()).collect();
    // Every replica was read for itself.
    if prepared.plans.iter().any(load::are_compared) {
        workloads.push(check::convergence::NAME);
    }
    check_history(&workloads, claimed(prepared.engine.as_ref(), &scenario.loads), directory)
}

/// The checks that apply to a workload with these options on a PostgreSQL that nobody configured for us, made on the
/// history in the run directory.
pub(crate) fn checks_of(
    workload: &str,
    options: &BTreeMap<String, String>,
    directory: &RunDirectory,
) -> Vec<CheckResult> {
    let isolation = begun_at(options).unwrap_or(Isolation::ReadCommitted);
    check_history(&[workload], Level { isolation, order: Order::Any }, directory)
        .into_iter()
        .map(|checked| checked.result)
        .collect()
}

/// What an engine claims of the transactions of these loads, in the checker's words. Loads over lists share them, so the
/// weakest level that any of them begins at is what holds for all.
fn claimed(engine: &dyn Engine, loads: &[scenario::Load]) -> Level {
    let by_default = match engine.isolation() {
        engine::Isolation::ReadCommitted => Isolation::ReadCommitted,
        engine::Isolation::SnapshotIsolation => Isolation::Snapshot,
        engine::Isolation::Serializable => Isolation::Serializable,
    };
    let begun_at = |load: &scenario::Load| begun_at(&load.options).unwrap_or(by_default);
    let judged = loads.iter().filter(|load| load.workload == APPEND);
    let isolation = judged.map(begun_at).min().unwrap_or(by_default);
    // Other databases' documents promise nothing of the order in time; the control database is there to be held to it, and
    // etcd promises strict serializability ("KV API guarantees").
    let in_time = [engine::control::NAME, engine::etcd::NAME].contains(&engine.name());
    let order = if in_time { Order::RealTime } else { Order::Any };
    Level { isolation, order }
}

/// The level that the option `isolation` has transactions begin at.
fn begun_at(options: &BTreeMap<String, String>) -> Option<Isolation> {
    match options.get("isolation").map(String::as_str) {
        Some("read-committed") => Some(Isolation::ReadCommitted),
        Some("repeatable-read") => Some(Isolation::Snapshot),
        Some("serializable") => Some(Isolation::Serializable),
        _ => None,
    }
}

fn check_history(workloads: &[&str], level: Level, directory: &RunDirectory) -> Vec<Checked> {
    let applies = |registered: &registry::RegisteredCheck| {
        workloads.iter().any(|workload| registered.workloads.contains(workload))
    };
    let mut checks: Vec<Box<dyn check::Check>> = registry::CHECKS
        .iter()
        .filter(|registered| applies(registered))
        .map(|registered| match registered.name {
            list_append::NAME => Box::new(ListAppend::claiming(level)),
            _ => (registered.begin)(),
        })
        .collect();
    let broken = feed(&mut checks, directory).err();
    checks.into_iter().map(|check| checked(check.conclude(), broken.as_deref())).collect()
}

fn feed(checks: &mut [Box<dyn check::Check>], directory: &RunDirectory) -> Result<(), String> {
    let file = File::open(directory.file("history.jsonl.zst")).map_err(|error| error.to_string())?;
    // A record that contradicts itself is our fault, and nothing follows from it about the database.
    let mut soundness = check::Soundness::default();
    for operation in HistoryReader::new(BufReader::new(file)).map_err(|error| error.to_string())? {
        let operation = operation.map_err(|error| error.to_string())?;
        soundness.observe(&operation).map_err(|contradiction| contradiction.to_string())?;
        for check in checks.iter_mut() {
            check.observe(&operation);
        }
    }
    Ok(())
}

fn checked(report: check::Report, broken: Option<&str>) -> Checked {
    let mut result = CheckResult {
        name: report.name.to_owned(),
        verdict: report.verdict,
        explanation: report.explanation,
        acknowledged: report.acknowledged,
        lost: report.lost,
        invented: report.invented,
        indeterminate: report.indeterminate,
        counts: report.counts,
    };
    if let Some(broken) = broken {
        // A defect found in what could be read stays found; the rest is not known.
        result.verdict = result.verdict.and(Verdict::Unknown);
        result.explanation =
            format!("the history could not be read to its end: {broken}. {}", result.explanation);
    }
    Checked { result, lost: report.lost_examples }
}

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

fn load_result(load: &scenario::Load, prepared: &Prepared, shown: &Shown) -> LoadResult {
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

/// Throughput second by second of each load, and its baseline, for those that have one.
fn series_with_baseline(prepared: &Prepared, timeline: &Timeline) -> Vec<(Vec<(u64, u64)>, f64)> {
    let Some(baseline) = prepared.facts.phases.iter().find(|phase| phase.name == BASELINE) else {
        return Vec::new();
    };
    let loads = prepared.facts.loads.iter();
    loads
        .filter_map(|load| {
            let series = timeline.throughput(&load.name, &load.transaction);
            let per_s = recovery::baseline_per_s(&series, baseline.from_s, baseline.to_s)?;
            Some((series, per_s))
        })
        .collect()
}

fn fault_results(scenario: &Scenario, prepared: &Prepared, shown: &Shown, lost: &Lost) -> Vec<FaultResult> {
    let series = series_with_baseline(prepared, &shown.recorded.timeline);
    let loads = scenario.loads.len();
    let effects: Vec<Option<f64>> = shown.faults.iter().map(|fault| fault.took_effect_s).collect();
    let result = |(number, fault): (usize, &FaultRecord)| {
        let during = fault.took_effect_s.map(|from_s| (from_s, fault.mended_s.unwrap_or(shown.ended_s)));
        FaultResult {
            kind: fault.kind.clone(),
            target: fault.target.clone(),
            hits: fault.hits.clone(),
            nodes: fault.vms.iter().map(|vm| crate::datacentre::node_name(*vm)).collect(),
            asked_s: fault.asked_s,
            took_effect_s: fault.took_effect_s,
            healed_s: fault.healed_s,
            receipt: whole_receipt(&fault.receipts),
            recovery_s: recovery_of(number, fault, shown, &series, loads),
            lost_operations: sum_over(&series, |series, per_s| {
                recovery::lost_operations(series, per_s, fault.took_effect_s?)
            }),
            lost_writes: lost.to_fault(number, &effects),
            throughput_ratio_during: during.and_then(|(from_s, to_s)| ratio_during(&series, from_s, to_s)),
        }
    };
    shown.faults.iter().enumerate().map(result).collect()
}

/// Evidence of effect and of healing together: as good as its weakest part, and unknown when a part is missing.
fn whole_receipt(receipts: &[Receipt]) -> Receipt {
    let verdict = receipts.iter().fold(Verdict::Pass, |verdict, receipt| verdict.and(receipt.verdict));
    let mut evidence: Vec<String> = receipts.iter().flat_map(|receipt| receipt.evidence.clone()).collect();
    if receipts.len() < 2 && verdict == Verdict::Pass {
        evidence.push("there is no evidence of its healing".to_owned());
        return Receipt { verdict: Verdict::Unknown, evidence };
    }
    Receipt { verdict, evidence }
}

/// With several loads the slowest to recover counts.
fn recovery_of(
    number: usize,
    fault: &FaultRecord,
    shown: &Shown,
    series: &[(Vec<(u64, u64)>, f64)],
    loads: usize,
) -> RecoveryResult {
    let Some(effect_s) = fault.took_effect_s else { return RecoveryResult::default() };
    let firsts: Vec<f64> =
        shown.recorded.first_success.iter().filter(|first| first.0 == number).map(|first| first.2).collect();
    let backs: Option<Vec<f64>> =
        series.iter().map(|(series, per_s)| recovery::back_to_95_percent(series, *per_s, effect_s)).collect();
    let slowest = |times: Vec<f64>| times.into_iter().reduce(f64::max);
    RecoveryResult {
        first_success: if firsts.len() == loads { slowest(firsts) } else { None },
        back_to_95_percent: backs.filter(|backs| backs.len() == loads).and_then(slowest),
    }
}

fn sum_over(
    series: &[(Vec<(u64, u64)>, f64)],
    part: impl Fn(&[(u64, u64)], f64) -> Option<f64>,
) -> Option<f64> {
    let parts: Option<Vec<f64>> = series.iter().map(|(series, per_s)| part(series, *per_s)).collect();
    parts.filter(|parts| !parts.is_empty()).map(|parts| parts.iter().sum())
}

/// Of several loads the mean of their ratios, so that a fast load does not drown a slow one.
fn ratio_during(series: &[(Vec<(u64, u64)>, f64)], from_s: f64, to_s: f64) -> Option<f64> {
    let sum =
        sum_over(series, |series, per_s| recovery::throughput_ratio_during(series, per_s, from_s, to_s))?;
    Some(sum / series.len() as f64)
}

impl Lost {
    /// The part that is laid to one fault that took effect: absent where the lost writes are not known one by one, so
    /// that several faults would have to share a count.
    fn to_fault(&self, number: usize, effects: &[Option<f64>]) -> Option<u64> {
        let (count, _) = (self.count?, effects.get(number).copied().flatten()?);
        if count == self.known.len() as u64 {
            return Some(lost_to(number, effects, &self.known));
        }
        (effects.iter().flatten().count() == 1).then_some(count)
    }
}

/// A lost write is laid to the first fault that took effect after it was acknowledged; one acknowledged after all of
/// them, to the last.
fn lost_to(number: usize, effects: &[Option<f64>], lost: &[check::LostWrite]) -> u64 {
    let known: Vec<(usize, f64)> =
        effects.iter().enumerate().filter_map(|(number, effect)| Some((number, (*effect)?))).collect();
    let culprit = |completed_s: f64| {
        let next =
            known.iter().filter(|(_, effect)| *effect >= completed_s).min_by(|a, b| a.1.total_cmp(&b.1));
        next.or_else(|| known.iter().max_by(|a, b| a.1.total_cmp(&b.1))).map(|(number, _)| *number)
    };
    lost.iter().filter(|write| culprit(write.completed_s) == Some(number)).count() as u64
}

fn all_warnings(
    prepared: &Prepared,
    shown: &Shown,
    loads: &[LoadResult],
    chronicle: &Chronicle,
) -> Vec<WarningResult> {
    let mut found: Vec<WarningResult> = chronicle
        .events()
        .into_iter()
        .filter_map(|event| match event.kind {
            EventKind::Warning { what, remedy } => Some(WarningResult { what, remedy }),
            _ => None,
        })
        .collect();
    let mut doubts: Vec<Doubt> = shown.busy_share.and_then(warnings::cpu_saturated).into_iter().collect();
    let baseline = prepared.facts.phases.iter().find(|phase| phase.name == BASELINE);
    for (load, facts) in loads.iter().zip(&prepared.facts.loads) {
        if let Some(baseline) = baseline {
            let series = shown.recorded.timeline.throughput(&load.name, &facts.transaction);
            let counts: Vec<u64> = series
                .iter()
                .filter(|(second, _)| *second as f64 >= baseline.from_s && (*second as f64) < baseline.to_s)
                .map(|(_, count)| *count)
                .collect();
            doubts.extend(warnings::baseline_doubt(&load.name, &counts));
        }
        if let Some(open_loop) = shown.recorded.open_loops.get(&load.name) {
            let late_us_p99 = open_loop.lateness.value_at_quantile(0.99);
            doubts.extend(warnings::generator_late(&load.name, late_us_p99, load.latency_us.p50));
            let plan = prepared.plans.iter().find(|plan| plan.name == load.name);
            let last = plan.and_then(|plan| plan.step_at(shown.ended_s));
            let rate_per_s = last.and_then(|step| step.rate_per_s).unwrap_or(0.0);
            doubts.extend(warnings::rate_not_kept(&load.name, open_loop.waiting_at_end, rate_per_s));
        }
        for phase in load.phases.iter().filter(|phase| !phase.name.starts_with(WARM_UP)) {
            let what = format!("{}, phase {}", load.name, phase.name);
            // p99.9 is not in the report's tables by phase; the doubts worth a reader's time are those about p99.
            doubts.extend(warnings::few_samples(&what, phase.transactions).into_iter().filter(|doubt| {
                !matches!(doubt, Doubt::FewSamples { percentile: warnings::Percentile::P99_9, .. })
            }));
        }
    }
    found.extend(
        doubts.iter().map(|doubt| WarningResult { what: doubt.what(), remedy: doubt.remedy().to_owned() }),
    );
    found
}

/// One failure fails; else one doubt leaves doubt. The reasons name each.
fn verdict(result: &RunResult, interrupted: Option<&str>, untold: Option<String>) -> (Verdict, Vec<String>) {
    let mut parts: Vec<(Verdict, String)> = Vec::new();
    for check in &result.checks {
        parts.push((check.verdict, format!("check {}: {}", check.name, check.explanation)));
    }
    for expectation in &result.expectations {
        let (name, wanted, measured) = (&expectation.name, &expectation.wanted, &expectation.measured);
        parts.push((expectation.verdict, format!("expected {name} {wanted}: {measured}")));
    }
    for (number, fault) in result.faults.iter().enumerate() {
        // A fault that did not happen proves nothing about the database, neither way.
        let doubt = if fault.receipt.verdict == Verdict::Pass { Verdict::Pass } else { Verdict::Unknown };
        let (kind, target) = (&fault.kind, &fault.target);
        let evidence = fault.receipt.evidence.join("; ");
        parts.push((doubt, format!("fault {number} ({kind}, {target}) has no receipt: {evidence}")));
    }
    if let Some(why) = interrupted {
        parts.push((Verdict::Unknown, format!("the run ended early: {why}")));
    }
    if let Some(why) = untold {
        parts.push((Verdict::Unknown, format!("the record is not complete: {why}")));
    }
    for load in result.loads.iter().filter(|load| load.transactions == 0 && interrupted.is_none()) {
        parts.push((Verdict::Unknown, format!("load {}: nothing that it asked succeeded", load.name)));
    }
    if result.checks.is_empty() && interrupted.is_none() {
        parts.push((Verdict::Unknown, "no check applies to any load, so nothing was proved".to_owned()));
    }
    let whole = parts.iter().fold(Verdict::Pass, |verdict, (part, _)| verdict.and(*part));
    parts.retain(|(part, _)| *part != Verdict::Pass);
    parts.sort_by_key(|(part, _)| std::cmp::Reverse(*part));
    let mut reasons: Vec<String> = parts.into_iter().map(|(_, reason)| reason).collect();
    if whole == Verdict::Pass {
        reasons = vec!["every check passed, every expectation held, every fault has its receipt".to_owned()];
    }
    (whole, reasons)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lost(completed_s: f64) -> check::LostWrite {
        check::LostWrite { value: 1, load: "l".into(), client: 1, invoked_s: 0.0, completed_s, node: None }
    }

    #[test]
    fn a_lost_write_is_laid_to_the_first_fault_after_its_acknowledgement() {
        let effects = [Some(10.0), None, Some(20.0)];
        let writes = [lost(5.0), lost(10.0), lost(11.0), lost(30.0)];
        assert_eq!(lost_to(0, &effects, &writes), 2);
        assert_eq!(lost_to(1, &effects, &writes), 0);
        assert_eq!(lost_to(2, &effects, &writes), 2);
    }

    #[test]
    fn losses_that_are_only_counted_are_laid_to_the_only_fault_or_to_none() {
        let counted = Lost { count: Some(7), known: Vec::new() };
        assert_eq!(counted.to_fault(0, &[Some(10.0), None]), Some(7));
        assert_eq!(counted.to_fault(1, &[Some(10.0), None]), None);
        assert_eq!(counted.to_fault(0, &[Some(10.0), Some(20.0)]), None);
        let none = Lost { count: Some(0), known: Vec::new() };
        assert_eq!(none.to_fault(1, &[Some(10.0), Some(20.0)]), Some(0));
        let open = Lost { count: None, known: Vec::new() };
        assert_eq!(open.to_fault(0, &[Some(10.0)]), None);
    }

    #[test]
    fn a_receipt_without_healing_is_not_whole() {
        let effect = Receipt { verdict: Verdict::Pass, evidence: vec!["seen".into()] };
        assert_eq!(whole_receipt(std::slice::from_ref(&effect)).verdict, Verdict::Unknown);
        assert_eq!(whole_receipt(&[effect.clone(), effect.clone()]).verdict, Verdict::Pass);
        let not = Receipt { verdict: Verdict::Fail, evidence: vec!["not seen".into()] };
        assert_eq!(whole_receipt(&[effect, not]).verdict, Verdict::Fail);
    }
}
