//! A published report's figures beside this run's.
//!
//! Owns what a figure's name in a scenario stands for in a result; what was published stands in the scenario.

use std::collections::BTreeSet;

use capabilities::workloads::spelt;
use history::WARM_UP;
use results::{
    LatencyUs, LoadFigures, LoadResult, OperationResult, PhaseResult, ReproducedFigure, ReproducedReport,
    ReproducedStep, RunResult,
};
use scenario::{ReportedStep, Scenario};

/// The report's figures with those of this run, where this program knows what they are called here.
pub fn reproduced(result: &RunResult, scenario: &Scenario) -> ReproducedReport {
    let Some(reproduces) = &scenario.about.reproduces else { return ReproducedReport::default() };
    let load = result.loads.first();
    let baseline = load.and_then(LoadResult::baseline);
    let seen = load.and_then(|load| shown(load, scenario));
    let figures = reproduces.figures.iter().map(|(name, reported)| ReproducedFigure {
        name: name.clone(),
        reported: *reported,
        measured: load.and_then(|load| of_the_fault(name, result, load).or_else(|| figure(name, load, seen))),
        reported_baseline: reproduces.baseline.get(name).copied(),
        measured_baseline: load.zip(baseline).and_then(|(load, phase)| figure(name, load, Some(phase))),
    });
    ReproducedReport {
        report: reproduces.report.clone(),
        figures: figures.collect(),
        reported_steps: reported_steps(&reproduces.steps),
        measured_steps: load.map(|load| measured_steps(&reproduces.steps, load)).unwrap_or_default(),
    }
}

/// Every figure that one of the steps states.
fn names(steps: &[ReportedStep]) -> BTreeSet<&String> {
    steps.iter().flat_map(|step| step.figures.keys()).collect()
}

fn reported_steps(steps: &[ReportedStep]) -> Vec<ReproducedStep> {
    let names = names(steps);
    let row = |step: &ReportedStep| ReproducedStep {
        step: step.step.clone(),
        figures: names.iter().map(|name| ((*name).clone(), step.figures.get(*name).copied())).collect(),
    };
    steps.iter().map(row).collect()
}

/// The phases of a load, each with the figures that the report's steps state.
fn measured_steps(steps: &[ReportedStep], load: &LoadResult) -> Vec<ReproducedStep> {
    let names = names(steps);
    let row = |phase: &PhaseResult| ReproducedStep {
        step: phase.name.clone(),
        figures: names.iter().map(|name| ((*name).clone(), figure(name, load, Some(phase)))).collect(),
    };
    let counted = load.phases.iter().filter(|phase| phase.name != WARM_UP);
    if names.is_empty() { Vec::new() } else { counted.map(row).collect() }
}

/// What a report shows is what its fault did; without a fault it is the baseline. Nothing where the whole run counts.
fn shown<'r>(load: &'r LoadResult, scenario: &Scenario) -> Option<&'r PhaseResult> {
    match scenario.schedule.iter().position(|phase| !phase.faults.is_empty()) {
        Some(fault) => load.phases.get(fault),
        None => load.baseline(),
    }
}

/// `throughput_during_percent`, `throughput_lowest_percent`: what the first fault left of the baseline, on average and in the slowest
/// second.
fn of_the_fault(name: &str, result: &RunResult, load: &LoadResult) -> Option<f64> {
    let done = result.faults.first()?.loads.iter().find(|done| done.load == load.name)?;
    let ratio = match name {
        "throughput_during_percent" => done.throughput_ratio_during,
        "throughput_lowest_percent" => done.throughput_ratio_lowest,
        _ => None,
    };
    ratio.map(|ratio| ratio * 100.0)
}

/// `tps`; `errors`; `latency_ms_p99` of the transactions; `update_us_mean` of an operation; or what the workload itself calls a
/// figure. In the phase, or over all of the load.
fn figure(name: &str, load: &LoadResult, phase: Option<&PhaseResult>) -> Option<f64> {
    let figures = phase.map_or(&load.measured, |phase| &phase.measured);
    let LoadFigures { latency_us: latency, throughput_per_s: per_s, operations, errors, .. } = figures;
    match name {
        "tps" | "throughput_per_s" => return Some(*per_s),
        "errors" => return Some(errors.values().sum::<u64>() as f64),
        "commit_ms" => {
            let commit = operations.get("END").filter(|commit| commit.count > 0)?;
            return Some(commit.latency_us.mean / 1e3);
        }
        _ => {}
    }
    let told = phase.and_then(|phase| phase.measured.figures.get(name));
    if let Some(told) = told.or_else(|| load.measured.figures.get(name)) {
        return Some(*told);
    }
    let (what, us_in_unit, statistic) =
        [("_us_", 1.0), ("_ms_", 1e3)].into_iter().find_map(|(unit, us)| {
            let (what, statistic) = name.rsplit_once(unit)?;
            Some((what, us, statistic))
        })?;
    let told_by = |(operation, of): (&String, &OperationResult)| {
        (spelt(operation) == what && of.count > 0).then(|| of.latency_us.clone())
    };
    let of_operation = operations.iter().find_map(told_by);
    let of_all = Some(latency).filter(|_| figures.transactions > 0);
    let latency = if what == "latency" { of_all } else { of_operation.as_ref() };
    latency.and_then(|latency| stated(statistic, latency)).map(|us| us / us_in_unit)
}

/// A statistic by its name, in microseconds.
fn stated(statistic: &str, latency: &LatencyUs) -> Option<f64> {
    Some(match statistic {
        "mean" => latency.mean,
        "p50" => latency.p50 as f64,
        "p90" => latency.p90 as f64,
        "p95" => latency.p95 as f64,
        "p99" => latency.p99 as f64,
        "p99_9" => latency.p99_9 as f64,
        "max" => latency.max as f64,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use scenario::Source;

    use super::*;

    fn latency(mean: f64) -> LatencyUs {
        LatencyUs { mean, p50: 2, p90: 3, p95: 4, p99: 5, p99_9: 6, max: 7, ..LatencyUs::default() }
    }

    fn load() -> LoadResult {
        let operation =
            |count, mean| OperationResult { count, latency_us: latency(mean), ..OperationResult::default() };
        let mut load = LoadResult::default();
        load.measured.transactions = 3;
        (load.measured.throughput_per_s, load.measured.latency_us) = (19.0, latency(9000.0));
        load.measured.operations.insert("UPDATE".to_owned(), operation(3, 2742.0));
        load.measured.operations.insert("write random 4 KiB".to_owned(), operation(3, 474.0));
        load.measured.operations.insert("READ".to_owned(), operation(0, 0.0));
        load.measured.errors = BTreeMap::from([("timeout".to_owned(), 2), ("connection".to_owned(), 1)]);
        load.measured.figures.insert("cached_read_mb_per_s".to_owned(), 6202.0);
        load
    }

    #[track_caller]
    fn check(name: &str, expected: Option<f64>) {
        assert_eq!(figure(name, &load(), None), expected, "{name}");
    }

    #[test]
    fn a_figure_is_found_by_what_it_is_of_its_unit_and_its_statistic() {
        check("tps", Some(19.0));
        check("latency_ms_mean", Some(9.0));
        check("latency_us_p99_9", Some(6.0));
        check("update_us_mean", Some(2742.0));
        check("update_ms_mean", Some(2.742));
        check("write_random_4_kib_us_p95", Some(4.0));
        check("cached_read_mb_per_s", Some(6202.0));
        check("errors", Some(3.0));
    }

    #[test]
    fn a_table_of_steps_has_the_reports_rows_and_a_row_for_each_counted_phase() {
        let step = |step: &str, name: &str, value| ReportedStep {
            step: step.to_owned(),
            figures: BTreeMap::from([(name.to_owned(), value)]),
        };
        let steps = [step("150 threads", "tps", 90_703.0), step("200 threads", "latency_us_p99", 8_559.0)];
        let phase = |name: &str, per_s| {
            let mut phase = PhaseResult { name: name.to_owned(), ..PhaseResult::default() };
            (phase.measured.throughput_per_s, phase.measured.latency_us) = (per_s, latency(1.0));
            phase.measured.transactions = 3;
            phase
        };
        let phases = vec![phase(WARM_UP, 1.0), phase("4-clients", 822.0), phase("8-clients", 807.0)];
        let row = |step: &str, tps, p99| ReproducedStep {
            step: step.to_owned(),
            figures: BTreeMap::from([("tps".to_owned(), tps), ("latency_us_p99".to_owned(), p99)]),
        };
        let reported = [row("150 threads", Some(90_703.0), None), row("200 threads", None, Some(8_559.0))];
        assert_eq!(reported_steps(&steps), reported);
        let load = LoadResult { phases, ..load() };
        let measured = [row("4-clients", Some(822.0), Some(5.0)), row("8-clients", Some(807.0), Some(5.0))];
        assert_eq!(measured_steps(&steps, &load), measured);
        assert_eq!(measured_steps(&[], &load), [], "the report has no steps");
    }

    #[test]
    fn a_figure_that_this_run_has_not_is_told_as_not_measured() {
        // An operation that never came, a statistic and an operation that are none.
        check("read_us_mean", None);
        let mut hung = load();
        (hung.measured.transactions, hung.measured.latency_us) = (0, LatencyUs::default());
        hung.measured.operations.insert("END".to_owned(), OperationResult::default());
        assert_eq!(figure("latency_ms_mean", &hung, None), None);
        assert_eq!(figure("commit_ms", &hung, None), None);
        check("update_us_average", None);
        check("delete_us_mean", None);
        check("update", None);
    }

    /// The phase that is shown, of those of a schedule.
    fn shown_of(schedule: &[&str]) -> Option<String> {
        let text = format!(
            "name: t\nsite: {{ regions: {{ dc1: {{ zones: {{ a: {{ hosts: 3 }} }} }} }} }}\n\
             database: {{ engine: control, nodes: 3 }}\nloads: [{{ workload: ledger, clients: 1, from: dc1 }}]\n\
             schedule: [{}]\n",
            schedule.join(", ")
        );
        let scenario =
            scenario::parse(&Source { name: "t".to_owned(), text }, &[]).expect("a sound scenario");
        let phase =
            |phase: &scenario::Phase| PhaseResult { name: phase.name.clone(), ..PhaseResult::default() };
        let load = LoadResult { phases: scenario.schedule.iter().map(phase).collect(), ..load() };
        shown(&load, &scenario).map(|phase| phase.name.clone())
    }

    #[test]
    fn a_run_without_a_fault_is_told_by_its_baseline_and_without_that_as_a_whole() {
        let [warm_up, sweep] = ["{ phase: warm-up, for: 5s }", "{ phase: 4-clients, for: 9s }"];
        let baseline = "{ phase: baseline, for: 9s }";
        let fault = "{ phase: broken, for: 9s, faults: [{ power-off: { host: leader }, at: 0s, for: 2s }] }";
        assert_eq!(shown_of(&[warm_up, baseline, fault]).as_deref(), Some("broken"));
        assert_eq!(shown_of(&[warm_up, baseline]).as_deref(), Some("baseline"));
        assert_eq!(shown_of(&[warm_up, sweep]), None);
    }
}
