//! A run's result as OpenMetrics 1.0 text: figures in base units, verdicts as state sets.
//!
//! <https://prometheus.io/docs/specs/om/open_metrics_spec/>: the samples of a family stand together, a family's unit is
//! the end of its name, a counter's sample ends in `_total`, and the text ends with `# EOF`. Samples carry no time: they
//! are the run's, not of the moment they are written.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::Write;

use history::{FaultId, Verdict};

use super::ExportError;
use results::{LatencyUs, OperationResult, RunResult};

const VERDICTS: [Verdict; 3] = [Verdict::Pass, Verdict::Fail, Verdict::Unknown];

/// A family of metrics with its samples.
struct Family {
    name: &'static str,
    kind: &'static str,
    unit: &'static str,
    help: &'static str,
    samples: String,
}

impl Family {
    fn new(name: &'static str, kind: &'static str, unit: &'static str, help: &'static str) -> Family {
        debug_assert!(unit.is_empty() || name.ends_with(unit), "{name} does not end in {unit}");
        Family { name, kind, unit, help, samples: String::new() }
    }

    /// Adds a sample; `suffix` is what the kind puts after the family's name. Nothing for what is no number.
    fn add(&mut self, suffix: &str, labels: &[(&str, &str)], value: f64) {
        if !value.is_finite() {
            return;
        }
        let written: Vec<String> =
            labels.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value))).collect();
        let labels = if written.is_empty() { String::new() } else { format!("{{{}}}", written.join(",")) };
        // Writing to a string does not fail.
        let _ = writeln!(self.samples, "{}{suffix}{labels} {value}", self.name);
    }

    /// A verdict as a state set: one sample for each verdict there is.
    fn add_verdict(&mut self, labels: &[(&str, &str)], verdict: Verdict) {
        for state in VERDICTS {
            let name = state.to_string();
            let labels: Vec<(&str, &str)> =
                labels.iter().copied().chain([(self.name, name.as_str())]).collect();
            self.add("", &labels, f64::from(u8::from(state == verdict)));
        }
    }

    /// Count, sum and quantiles of a latency.
    fn add_latency(&mut self, labels: &[(&str, &str)], operation: &OperationResult) {
        let OperationResult { count, latency_us, .. } = operation;
        let LatencyUs { mean, p50, p90, p95, p99, p99_9, .. } = latency_us;
        // Nothing takes less than a microsecond: 0 is a latency that was not kept, as of a run that was killed.
        let is_kept = *mean > 0.0;
        if *count > 0 && is_kept {
            for (quantile, us) in [("0.5", p50), ("0.9", p90), ("0.95", p95), ("0.99", p99), ("0.999", p99_9)]
            {
                let labels: Vec<(&str, &str)> =
                    labels.iter().copied().chain([("quantile", quantile)]).collect();
                self.add("", &labels, *us as f64 / 1e6);
            }
        }
        self.add("_count", labels, *count as f64);
        if *count == 0 || is_kept {
            self.add("_sum", labels, *count as f64 * mean / 1e6);
        }
    }
}

/// A label's value.
fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

/// Writes every family that has a sample.
pub(super) fn write(
    result: &RunResult,
    load: Option<&str>,
    sink: &mut impl Write,
) -> Result<(), ExportError> {
    let mut text = String::new();
    let families = of_the_run(result).into_iter().chain(of_faults(result)).chain(of_loads(result, load));
    for family in families.filter(|family| !family.samples.is_empty()) {
        let _ = writeln!(text, "# TYPE {} {}", family.name, family.kind);
        if !family.unit.is_empty() {
            let _ = writeln!(text, "# UNIT {} {}", family.name, family.unit);
        }
        let _ = writeln!(text, "# HELP {} {}", family.name, family.help);
        text.push_str(&family.samples);
    }
    text.push_str("# EOF\n");
    sink.write_all(text.as_bytes())?;
    Ok(())
}

fn of_the_run(result: &RunResult) -> Vec<Family> {
    let mut info = Family::new("holdfast_run", "info", "", "What was run.");
    let seed = result.seed.to_string();
    info.add(
        "_info",
        &[
            ("scenario", &result.scenario),
            ("seed", &seed),
            ("started_at", &result.started_at),
            ("version", &result.holdfast),
            ("engine", &result.facts.engine),
            ("engine_version", &result.facts.engine_version),
        ],
        1.0,
    );
    let mut verdict = Family::new("holdfast_verdict", "stateset", "", "The run's verdict.");
    verdict.add_verdict(&[], result.verdict);
    let mut expectations =
        Family::new("holdfast_expectation", "stateset", "", "Verdict of each expectation of the scenario.");
    // A scenario may expect two things of the same quantity.
    let unique: BTreeMap<(&str, &str), Verdict> = result
        .expectations
        .iter()
        .map(|expectation| ((expectation.name.as_str(), expectation.wanted.as_str()), expectation.verdict))
        .collect();
    for ((name, wanted), verdict) in unique {
        expectations.add_verdict(&[("name", name), ("wanted", wanted)], verdict);
    }
    let mut checks = Family::new("holdfast_check", "stateset", "", "Verdict of each check of the data.");
    let mut writes = Family::new("holdfast_check_writes", "gauge", "", "Writes as a check counted them.");
    for check in &result.checks {
        checks.add_verdict(&[("check", &check.name)], check.verdict);
        let counts = [
            ("acknowledged", check.acknowledged),
            ("lost", check.lost),
            ("invented", check.invented),
            ("indeterminate", check.indeterminate),
        ];
        for (kind, count) in counts {
            if let Some(count) = count {
                writes.add("", &[("check", &check.name), ("kind", kind)], count as f64);
            }
        }
    }
    let mut cpu = Family::new("holdfast_cpu_seconds", "counter", "seconds", "CPU time of the run by part.");
    for (part, seconds) in &result.lab.cpu_seconds {
        cpu.add("_total", &[("part", part)], *seconds);
    }
    let mut share = Family::new(
        "holdfast_lab_cpu_ratio",
        "gauge",
        "ratio",
        "Share of all CPU time under load that was not the database's.",
    );
    share.add("", &[], result.lab.cpu_share_of_lab.unwrap_or(f64::NAN));
    let mut boot = Family::new(
        "holdfast_boot_seconds",
        "gauge",
        "seconds",
        "From the lab's start to the first quorum write.",
    );
    boot.add("", &[], result.lab.boot_s.unwrap_or(f64::NAN));
    vec![info, verdict, expectations, checks, writes, cpu, share, boot]
}

fn of_faults(result: &RunResult) -> Vec<Family> {
    let mut receipts = Family::new(
        "holdfast_fault",
        "stateset",
        "",
        "Whether it was shown that a fault took effect and healed.",
    );
    let mut recovery = Family::new(
        "holdfast_fault_recovery_seconds",
        "gauge",
        "seconds",
        "From a fault's effect until service was back.",
    );
    let mut gap = Family::new(
        "holdfast_fault_gap_seconds",
        "gauge",
        "seconds",
        "The longest time without a success against what was due after a fault.",
    );
    let mut below = Family::new(
        "holdfast_fault_below_baseline_seconds",
        "gauge",
        "seconds",
        "Whole seconds after a fault below a share of the baseline's throughput.",
    );
    let mut lost = Family::new(
        "holdfast_fault_lost_writes",
        "gauge",
        "",
        "Acknowledged writes missing at the end that were acknowledged during the fault, or before it and during no other.",
    );
    let mut during = Family::new(
        "holdfast_fault_throughput_ratio",
        "gauge",
        "ratio",
        "Throughput during the fault, as a share of the baseline's.",
    );
    for (number, fault) in FaultId::of_each(&result.faults) {
        let number = number.ordinal().to_string();
        let labels = [("fault", number.as_str()), ("kind", &fault.kind), ("target", &fault.target)];
        receipts.add_verdict(&labels, fault.receipt.verdict);
        let times = [
            ("first_success", fault.recovery_s.first_success),
            ("back_to_95_percent", fault.recovery_s.back_to_95_percent),
            ("sustained", fault.recovery_s.sustained),
        ];
        for (until, seconds) in times {
            let labels: Vec<(&str, &str)> = labels.iter().copied().chain([("until", until)]).collect();
            recovery.add("", &labels, seconds.unwrap_or(f64::NAN));
        }
        gap.add("", &labels, fault.gap_s.unwrap_or(f64::NAN));
        for (share, seconds) in [("50", fault.below_50_percent_s), ("95", fault.below_95_percent_s)] {
            let labels: Vec<(&str, &str)> = labels.iter().copied().chain([("percent", share)]).collect();
            below.add("", &labels, seconds.unwrap_or(f64::NAN));
        }
        lost.add("", &labels, fault.lost_writes.map_or(f64::NAN, |writes| writes as f64));
        during.add("", &labels, fault.throughput_ratio_during.unwrap_or(f64::NAN));
    }
    vec![receipts, recovery, gap, below, lost, during]
}

fn of_loads(result: &RunResult, load: Option<&str>) -> Vec<Family> {
    let mut throughput = Family::new(
        "holdfast_throughput_per_second",
        "gauge",
        "",
        "Transactions a second of a load, warm-up left out.",
    );
    let mut errors =
        Family::new("holdfast_errors", "counter", "", "Operations that did not succeed, by class.");
    let mut latency = Family::new(
        "holdfast_operation_latency_seconds",
        "summary",
        "seconds",
        "Latency of operations that succeeded, warm-up left out.",
    );
    let mut longest = Family::new(
        "holdfast_operation_latency_max_seconds",
        "gauge",
        "seconds",
        "The longest latency of an operation, warm-up left out.",
    );
    let mut by_phase = Family::new(
        "holdfast_phase_operation_latency_seconds",
        "summary",
        "seconds",
        "The same in each phase, warm-up included.",
    );
    for load in result.loads.iter().filter(|known| load.is_none_or(|load| known.name == load)) {
        throughput.add("", &[("load", &load.name)], load.measured.throughput_per_s);
        for (class, count) in &load.measured.errors {
            errors.add("_total", &[("load", &load.name), ("class", class)], *count as f64);
        }
        for (operation, figures) in &load.measured.operations {
            let labels = [("load", load.name.as_str()), ("operation", operation)];
            latency.add_latency(&labels, figures);
            if figures.count > 0 {
                longest.add("", &labels, figures.latency_us.max as f64 / 1e6);
            }
        }
        // Two phases may have one name; a sample must not stand twice.
        let mut seen = std::collections::BTreeSet::new();
        for phase in load.phases.iter().filter(|phase| seen.insert(&phase.name)) {
            for (operation, figures) in &phase.measured.operations {
                let labels = [("load", load.name.as_str()), ("phase", &phase.name), ("operation", operation)];
                by_phase.add_latency(&labels, figures);
            }
        }
    }
    vec![throughput, errors, latency, longest, by_phase]
}
