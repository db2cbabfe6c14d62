//! A load alone, judged: the figures of its phases, doubts about them, and what is proved.
//!
//! Owns what follows from a load on a database that is nobody's to account for. The loading, and the files of it, are `run`'s.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use history::{FirstError, PhaseFacts, RunFacts, Verdict, WARM_UP};
use load::LoadPlan;
use measure::{Doubt, Histogram, Timeline, warnings};
use results::{CPU_PARTS, EndedEarly, LabResult, LoadResult, PhaseResult, RunResult, WarningResult};

use crate::checks::checks_of;
use crate::loads::{load_figures, recorded_until, with_demand};
use crate::reasons::in_words;

/// What is known of a load alone when it has ended.
pub struct LoadAlone<'a> {
    /// What was asked.
    pub plan: &'a LoadPlan,
    /// Options of its workload.
    pub options: &'a BTreeMap<String, String>,
    /// What is left out of totals.
    pub warm_up: Duration,
    /// Whether the workload's tables were made first, and the end is read and checked.
    pub makes_tables: bool,
    /// Whether it was interrupted.
    pub was_interrupted: bool,
    /// When it ended, seconds.
    pub ended_s: f64,
    /// How it ended, where nobody had told it to.
    pub ended_early: Option<EndedEarly>,
    /// CPU time of the load.
    pub cpu: Duration,
    /// Share of the machine's processors that were busy meanwhile, 0 to 1.
    pub busy_share: Option<f64>,
    /// Latencies, counts and errors.
    pub timeline: &'a Timeline,
    /// How late the generator itself was, microseconds; of an open loop.
    pub lateness: Option<&'a Histogram<u64>>,
    /// Operations that waited for a free connection when the load ended.
    pub waiting: u64,
    /// The first error of each class.
    pub first_errors: &'a [FirstError],
    /// Errors of what was under way when the load was told to stop.
    pub errors_after_end: u64,
}

impl LoadAlone<'_> {
    /// Draws everything together, with checks where their answer would prove something. `told` are warnings that were known before.
    #[must_use]
    pub fn judged(&self, facts: RunFacts, directory: &Path, told: Vec<WarningResult>) -> RunResult {
        let mut result = self.measured(facts);
        result.lab.warnings = self.doubts(&result.loads);
        result.lab.warnings.extend(told);
        if self.makes_tables && !self.was_interrupted {
            result.checks = checks_of(&result, self.options, directory);
        }
        (result.verdict, result.reasons) = verdict(&result, self.makes_tables, self.was_interrupted);
        result
    }

    fn measured(&self, facts: RunFacts) -> RunResult {
        let plan = self.plan;
        let result_of = |phase: &PhaseFacts| {
            let from_s = phase.from_s;
            let to_s = recorded_until((from_s, phase.to_s), self.ended_s);
            let figures = self.timeline.summarize(&plan.name, from_s, to_s).unwrap_or_default();
            let figures = load_figures(&figures, plan.workload.transaction_name());
            let measured = with_demand(plan, (from_s, to_s), figures);
            PhaseResult { name: phase.name.clone(), from_s, to_s, measured }
        };
        let phases: Vec<PhaseResult> =
            facts.phases.iter().filter(|phase| phase.from_s < self.ended_s).map(result_of).collect();
        let PhaseResult { from_s, to_s, measured: mut total, .. } =
            phases.iter().rfind(|phase| phase.name != WARM_UP).cloned().unwrap_or_default();
        let succeeded =
            total.operations.iter().map(|(name, operation)| (name.clone(), operation.count)).collect();
        total.figures = plan.workload.figures(&succeeded, to_s - from_s, plan.scale);
        let load = LoadResult {
            name: plan.name.clone(),
            workload: plan.workload.name().to_owned(),
            measured: total,
            phases,
            first_errors: self.first_errors.to_vec(),
            errors_after_end: self.errors_after_end,
            ended_early: self.ended_early.clone(),
            ..LoadResult::default()
        };
        let used_s = |part| if part == "load" { self.cpu.as_secs_f64() } else { 0.0 };
        let cpu_seconds = CPU_PARTS.map(|part| (part.to_owned(), used_s(part))).into();
        let lab = LabResult { cpu_seconds, ..LabResult::default() };
        RunResult { loads: vec![load], lab, ..RunResult::blank(facts) }
    }

    fn doubts(&self, loads: &[LoadResult]) -> Vec<WarningResult> {
        // The database may be on this machine as well, and is nobody's to account for here.
        let saturated = self.busy_share.and_then(|busy| warnings::cpu_saturated(busy, None));
        let mut doubts: Vec<Doubt> = saturated.into_iter().collect();
        for load in loads {
            let name = &load.name;
            let series = self.timeline.throughput(name, self.plan.workload.transaction_name());
            let warm_s = self.warm_up.as_secs();
            let measured: Vec<u64> =
                series.iter().filter(|(second, _)| *second >= warm_s).map(|(_, count)| *count).collect();
            doubts.extend(warnings::baseline_doubt(name, &measured));
            doubts.extend(warnings::few_samples(name, load.measured.transactions));
            if let Some(lateness) = self.lateness {
                let late_us_p99 = lateness.value_at_quantile(0.99);
                doubts.extend(warnings::generator_late(name, late_us_p99, load.measured.latency_us.p50));
                let last = self.plan.steps.last().and_then(|step| step.rate_per_s);
                doubts.extend(warnings::rate_not_kept(name, self.waiting, last.unwrap_or(0.0)));
            }
        }
        let told = warnings::folded(&doubts).into_iter();
        told.map(|(what, remedy)| WarningResult { what, remedy: remedy.to_owned() }).collect()
    }
}

/// What is proved. A load on tables it did not make proves nothing about them, which is no failure of the load.
fn verdict(result: &RunResult, makes_tables: bool, interrupted: bool) -> (Verdict, Vec<String>) {
    let found = result.checks.iter().filter(|check| check.verdict != Verdict::Pass);
    let found = found.map(|check| (check.verdict, format!("check {}: {}", check.name, check.explanation)));
    let own = [
        (interrupted, "the load was interrupted"),
        (!makes_tables, "the load used existing tables, so nothing is proved about the data"),
    ];
    let own: Vec<&str> = own.into_iter().filter(|(is_so, _)| *is_so).map(|(_, why)| why).collect();
    let doubts = result.doubts();
    // These two are why it has no checks.
    let told = doubts.iter().filter(|doubt| own.is_empty() || **doubt != results::Doubt::NoChecks);
    let doubtful = own.iter().map(|why| (*why).to_owned()).chain(told.map(in_words));
    let parts: Vec<(Verdict, String)> = found.chain(doubtful.map(|why| (Verdict::Unknown, why))).collect();
    let whole = parts.iter().fold(Verdict::Pass, |whole, (part, _)| whole.and(*part));
    match whole {
        Verdict::Pass => (whole, vec!["every check passed".to_owned()]),
        _ => (whole, parts.into_iter().map(|(_, reason)| reason).collect()),
    }
}

#[cfg(test)]
mod tests {
    use results::{CheckResult, LoadFigures};

    use super::*;

    #[test]
    fn a_load_of_mostly_errors_proves_nothing_however_its_checks_came_out() {
        let told = |transactions, errors| {
            let errors = [("connection".to_owned(), errors)].into();
            let measured = LoadFigures { transactions, errors, ..LoadFigures::default() };
            let load = LoadResult { name: "ledger".to_owned(), measured, ..LoadResult::default() };
            let checks = vec![CheckResult::new("ledger", Verdict::Pass, "")];
            let result = RunResult { loads: vec![load], checks, ..RunResult::blank(RunFacts::default()) };
            verdict(&result, true, false)
        };
        assert_eq!(told(100, 1).0, Verdict::Pass);
        let (verdict, reasons) = told(9, 25_794);
        assert_eq!(verdict, Verdict::Unknown, "{reasons:?}");
        assert!(reasons[0].contains("25,794 errors and 9 transactions"), "{reasons:?}");
    }
}
