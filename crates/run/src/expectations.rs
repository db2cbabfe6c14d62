//! Each expectation of the scenario held against what was measured.
//!
//! What was not measured is `unknown`, unless the run shows that the bound can no longer hold.

use history::Verdict;
use report::result::{ExpectationResult, FaultResult, LoadResult, RunResult};
use scenario::Expectation;
use scenario::resolved::Comparison;

/// A quantity as measured.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Measured {
    /// It has this value.
    Value(f64),
    /// It is larger than this: what it waits for had not happened when the run ended.
    Beyond(f64),
    /// The run does not tell.
    Untold,
}

/// Judges all. `ended_s` is when the loads were told to stop.
#[must_use]
pub fn judge(expectations: &[Expectation], result: &RunResult, ended_s: f64) -> Vec<ExpectationResult> {
    let judge = |expectation: &Expectation| {
        let measured = measure(&expectation.name, result, ended_s);
        ExpectationResult {
            name: expectation.name.clone(),
            wanted: expectation.wanted.clone(),
            measured: in_words(&expectation.name, measured),
            verdict: compare(measured, expectation.comparison, expectation.bound),
        }
    };
    expectations.iter().map(judge).collect()
}

fn compare(measured: Measured, comparison: Comparison, bound: f64) -> Verdict {
    let holds = |holds: bool| if holds { Verdict::Pass } else { Verdict::Fail };
    match measured {
        Measured::Untold => Verdict::Unknown,
        Measured::Value(value) => holds(match comparison {
            Comparison::Equal => (value - bound).abs() <= f64::EPSILON * bound.abs().max(1.0),
            Comparison::Less => value < bound,
            Comparison::AtMost => value <= bound,
            Comparison::Greater => value > bound,
            Comparison::AtLeast => value >= bound,
        }),
        Measured::Beyond(least) => match comparison {
            Comparison::Less | Comparison::AtMost | Comparison::Equal if least >= bound => Verdict::Fail,
            Comparison::Greater | Comparison::AtLeast if least >= bound => Verdict::Pass,
            _ => Verdict::Unknown,
        },
    }
}

fn measure(name: &str, result: &RunResult, ended_s: f64) -> Measured {
    let value = |value: Option<f64>| value.map_or(Measured::Untold, Measured::Value);
    let sum_of_checks = |pick: fn(&report::result::CheckResult) -> Option<u64>| {
        let found: Vec<u64> = result.checks.iter().filter_map(pick).collect();
        value((!found.is_empty()).then(|| found.iter().sum::<u64>() as f64))
    };
    let errors: u64 = result.loads.iter().flat_map(|load| load.errors.values()).sum();
    let transactions: u64 = result.loads.iter().map(|load| load.transactions).sum();
    let slowest = |pick: fn(&LoadResult) -> u64| {
        let seen = result.loads.iter().filter(|load| load.transactions > 0).map(pick).max();
        value(seen.map(|latency_us| latency_us as f64))
    };
    match name {
        "lost_writes" => value(report::losses::lost_writes(&result.checks).map(|lost| lost as f64)),
        // A check in doubt has not seen all there is.
        "anomalies" => sum_of_checks(|check| {
            let doubtful = check.verdict == Verdict::Unknown;
            let kinds = check.counts.get(check::list_append::ANOMALIES)?;
            u64::try_from(*kinds).ok().filter(|_| !doubtful)
        }),
        "invented_writes" => sum_of_checks(|check| check.invented),
        "recovery" => time_to(result, ended_s, |fault| fault.recovery_s.first_success),
        "recovery_95_percent" => time_to(result, ended_s, |fault| fault.recovery_s.back_to_95_percent),
        "errors" => Measured::Value(errors as f64),
        "error_rate" => {
            value((errors + transactions > 0).then(|| errors as f64 / (errors + transactions) as f64))
        }
        "throughput_per_s" => Measured::Value(result.loads.iter().map(|load| load.throughput_per_s).sum()),
        "latency_p50" => slowest(|load| load.latency_us.p50),
        "latency_p95" => slowest(|load| load.latency_us.p95),
        "latency_p99" => slowest(|load| load.latency_us.p99),
        "throughput_ratio_during" => {
            value(result.faults.iter().filter_map(|fault| fault.throughput_ratio_during).reduce(f64::min))
        }
        "lab_cpu_share" => value(result.lab.cpu_share_of_lab),
        _ => Measured::Untold,
    }
}

/// The longest over all faults. A fault that was never shown to take effect leaves it unmeasured.
fn time_to(result: &RunResult, ended_s: f64, pick: fn(&FaultResult) -> Option<f64>) -> Measured {
    let mut longest: Option<f64> = None;
    let mut beyond: Option<f64> = None;
    for fault in &result.faults {
        let Some(effect_s) = fault.took_effect_s else { return Measured::Untold };
        match pick(fault) {
            Some(time_s) => longest = Some(longest.map_or(time_s, |longest| longest.max(time_s))),
            None => {
                let least = (ended_s - effect_s).max(0.0);
                beyond = Some(beyond.map_or(least, |beyond| beyond.max(least)));
            }
        }
    }
    match (beyond, longest) {
        (Some(least), longest) => Measured::Beyond(least.max(longest.unwrap_or(0.0))),
        (None, Some(time_s)) => Measured::Value(time_s),
        (None, None) => Measured::Untold,
    }
}

fn in_words(name: &str, measured: Measured) -> String {
    let (value, more) = match measured {
        Measured::Untold => return "not measured".to_owned(),
        Measured::Value(value) => (value, ""),
        Measured::Beyond(value) => (value, "not within "),
    };
    let words = match name {
        "recovery" | "recovery_95_percent" => format!("{value:.2} s"),
        "latency_p50" | "latency_p95" | "latency_p99" => format!("{:.2} ms", value / 1e3),
        "throughput_per_s" => format!("{value:.1}/s"),
        "error_rate" | "throughput_ratio_during" | "lab_cpu_share" => format!("{:.1} %", value * 100.0),
        _ => format!("{value}"),
    };
    format!("{more}{words}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(measured: Measured, comparison: Comparison, bound: f64, expected: Verdict) {
        assert_eq!(compare(measured, comparison, bound), expected, "{measured:?} {comparison:?} {bound}");
    }

    #[test]
    fn a_value_is_held_against_its_bound() {
        check(Measured::Value(0.0), Comparison::Equal, 0.0, Verdict::Pass);
        check(Measured::Value(1.0), Comparison::Equal, 0.0, Verdict::Fail);
        check(Measured::Value(30.0), Comparison::Less, 30.0, Verdict::Fail);
        check(Measured::Value(30.0), Comparison::AtMost, 30.0, Verdict::Pass);
        check(Measured::Value(0.1), Comparison::Greater, 0.2, Verdict::Fail);
    }

    #[test]
    fn what_had_not_happened_by_the_end_fails_only_a_bound_that_was_passed() {
        check(Measured::Beyond(40.0), Comparison::Less, 30.0, Verdict::Fail);
        check(Measured::Beyond(20.0), Comparison::Less, 30.0, Verdict::Unknown);
        check(Measured::Beyond(20.0), Comparison::Greater, 30.0, Verdict::Unknown);
    }

    #[test]
    fn what_was_not_measured_is_never_a_pass() {
        for comparison in [Comparison::Equal, Comparison::Less, Comparison::AtLeast] {
            check(Measured::Untold, comparison, 0.0, Verdict::Unknown);
        }
    }
}
