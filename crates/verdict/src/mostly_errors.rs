//! Whether a load did next to nothing, or nothing but fail, so that nothing follows from its figures.
//!
//! Owns which stretch is looked at and what counts as a failure. A load without a single success has a reason of its own.

use history::{BASELINE, ErrorClass};
use results::{LoadFigures, LoadResult, PhaseResult};

/// Of an open loop that is due less often in its baseline, none need be done there.
const OPERATIONS_DUE: f64 = 2.0;

/// Why nothing follows from a load of mostly errors: in its baseline; where it has none, which takes a run without faults,
/// in all that was measured of it.
pub(crate) fn mostly_errors(load: &LoadResult) -> Option<String> {
    let baseline = load.phases.iter().find(|phase| phase.name == BASELINE);
    if load.measured.transactions > 0 && baseline.is_some_and(is_idle) {
        return Some(format!(
            "load {}: no operation succeeded in its baseline, so later figures prove nothing; give the warm-up more time, \
             or look at what the database waited for",
            load.name
        ));
    }
    let (stretch, figures, measured) = match baseline {
        Some(phase) => ("its baseline", "later figures prove nothing", &phase.measured),
        None if load.measured.transactions == 0 => return None,
        None => ("it", "its figures prove nothing", &load.measured),
    };
    let failed = failures(measured);
    (failed > measured.transactions).then(|| {
        format!(
            "load {}: {stretch} has {} errors and {} transactions, so {figures}; look at the first errors, then correct \
             the setup or lower the load",
            load.name,
            report::with_thousands(failed),
            report::with_thousands(measured.transactions)
        )
    })
}

/// Whether nothing was done and nothing failed, although something was asked for.
fn is_idle(phase: &PhaseResult) -> bool {
    let figures = &phase.measured;
    let is_due = figures.rate_per_s.is_none_or(|rate| rate * (phase.to_s - phase.from_s) >= OPERATIONS_DUE);
    let has_done_nothing = figures.operations.values().all(|operation| operation.count == 0);
    is_due && has_done_nothing && figures.transactions == 0 && figures.errors.is_empty()
}

/// Conflicts that are to be tried again are no errors of this kind: a contended workload may have more of them than
/// successes.
fn failures(measured: &LoadFigures) -> u64 {
    let of_conflicts = ErrorClass::Serialization.name();
    measured.errors.iter().filter(|(class, _)| *class != of_conflicts).map(|(_, count)| count).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn figures(transactions: u64, class: &str, errors: u64) -> LoadFigures {
        let errors = [(class.to_owned(), errors)].into();
        LoadFigures { transactions, errors, ..LoadFigures::default() }
    }

    fn with_baseline(transactions: u64, class: &str, errors: u64) -> LoadResult {
        let measured = figures(transactions, class, errors);
        let phase = PhaseResult { name: BASELINE.to_owned(), measured, ..PhaseResult::default() };
        LoadResult { name: "kv".to_owned(), phases: vec![phase], ..LoadResult::default() }
    }

    fn without_baseline(transactions: u64, class: &str, errors: u64) -> LoadResult {
        let measured = figures(transactions, class, errors);
        LoadResult { name: "kv".to_owned(), measured, ..LoadResult::default() }
    }

    #[test]
    fn a_baseline_of_mostly_errors_is_named_and_one_of_conflicts_or_few_errors_is_not() {
        let broken = mostly_errors(&with_baseline(9, "connection", 25_794)).expect("a reason");
        assert!(broken.contains("its baseline has 25,794 errors and 9 transactions"), "{broken}");
        assert_eq!(mostly_errors(&with_baseline(100, "connection", 100)), None);
        assert_eq!(mostly_errors(&with_baseline(9, "serialization", 25_794)), None);
    }

    #[test]
    fn a_load_without_a_baseline_is_judged_by_all_that_was_measured_of_it() {
        let broken = mostly_errors(&without_baseline(9, "connection", 25_794)).expect("a reason");
        assert!(broken.contains("it has 25,794 errors and 9 transactions"), "{broken}");
        assert_eq!(mostly_errors(&without_baseline(100, "connection", 100)), None);
        assert_eq!(mostly_errors(&without_baseline(9, "serialization", 25_794)), None);
    }

    #[test]
    fn errors_after_a_sound_baseline_are_the_faults() {
        let load =
            LoadResult { measured: figures(9, "connection", 25_794), ..with_baseline(9, "timeout", 1) };
        assert_eq!(mostly_errors(&load), None);
    }

    #[test]
    fn a_load_without_a_success_is_told_by_others() {
        assert_eq!(mostly_errors(&without_baseline(0, "connection", 25_794)), None);
    }

    #[test]
    fn a_baseline_in_which_nothing_was_done_is_named_unless_nothing_was_due() {
        let idle = |rate_per_s: Option<f64>| {
            let measured = LoadFigures { rate_per_s, ..LoadFigures::default() };
            let name = BASELINE.to_owned();
            let phase = PhaseResult { name, from_s: 5.0, to_s: 15.0, measured };
            let measured = LoadFigures { transactions: 4_000, ..LoadFigures::default() };
            let load = LoadResult { phases: vec![phase], measured, ..with_baseline(0, "timeout", 0) };
            mostly_errors(&load)
        };
        for asked in [None, Some(100.0)] {
            let why = idle(asked).expect("a reason");
            assert!(why.starts_with("load kv: no operation succeeded in its baseline"), "{why}");
        }
        assert_eq!(idle(Some(0.1)), None);
    }
}
