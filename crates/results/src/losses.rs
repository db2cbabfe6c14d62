//! Which checks a run's lost writes are counted by, and how many that makes.
//!
//! Owns the choice between checks; how each counts is its own matter. No two of them judge the same load, so that no write is
//! counted twice.

use check::registry::KNOWING_EACH_WRITE;
use check::{ledger, tpcb};

pub use crate::lost_writes::LostWrites;
use crate::run::CheckResult;

/// The checks that count lost writes by what is missing in a sum.
const SUMMING: [&str; 1] = [tpcb::NAME];

/// Whether a check of this name counts lost writes also where it finds none. One that does not leaves nothing open.
#[must_use]
pub fn counts(name: &str) -> bool {
    KNOWING_EACH_WRITE.contains(&name) || SUMMING.contains(&name)
}

/// The checks that a run's lost writes are counted by: those that count, and any that found a loss. Beside a ledger, which knows
/// each write by name, sums count none: they tell at best how many are missing at least. Where none of a run's checks counts: those that say how many writes they judged.
pub fn counting_lost_writes(checks: &[CheckResult]) -> impl Iterator<Item = &CheckResult> {
    let has_ledger = checks.iter().any(|check| check.name == ledger::NAME);
    let is_counted = |check: &CheckResult| counts(&check.name) || check.lost.is_some();
    let has_counted = checks.iter().any(is_counted);
    checks.iter().filter(move |check| match (has_ledger, has_counted) {
        (true, _) if SUMMING.contains(&check.name.as_str()) => false,
        (true, _) => {
            KNOWING_EACH_WRITE.contains(&check.name.as_str()) || check.lost.is_some_and(|lost| lost > 0)
        }
        (false, true) => is_counted(check),
        (false, false) => check.acknowledged.is_some(),
    })
}

/// The run's lost writes; absent where none is known to be lost, but not everything could be told.
#[must_use]
pub fn lost_writes(checks: &[CheckResult]) -> Option<LostWrites> {
    let counts: Vec<Option<u64>> = counting_lost_writes(checks).map(|check| check.lost).collect();
    let known: u64 = counts.iter().flatten().sum();
    let is_whole = !counts.is_empty() && counts.iter().all(Option::is_some);
    match known {
        _ if is_whole => Some(LostWrites::Exactly(known)),
        0 => None,
        known => Some(LostWrites::AtLeast(known)),
    }
}

#[cfg(test)]
mod tests {
    use history::Verdict;

    use super::*;

    fn check(name: &str, acknowledged: Option<u64>, lost: Option<u64>) -> CheckResult {
        CheckResult { acknowledged, lost, ..CheckResult::new(name, Verdict::Pass, "") }
    }

    #[test]
    fn all_that_was_found_lost_counts_but_sums_beside_a_ledger() {
        let (sums, ledger) = (check("tpcb-sums", Some(90), Some(7)), check("ledger", Some(10), Some(2)));
        assert_eq!(lost_writes(&[sums.clone(), ledger.clone()]), Some(LostWrites::Exactly(2)));
        assert_eq!(lost_writes(std::slice::from_ref(&sums)), Some(LostWrites::Exactly(7)));
        let beside = |other: CheckResult| lost_writes(&[other, ledger.clone()]);
        assert_eq!(beside(check("tpcb-sums", Some(90), None)), Some(LostWrites::Exactly(2)));
        assert_eq!(beside(check("last-writes", Some(90), Some(3))), Some(LostWrites::Exactly(5)));
        assert_eq!(beside(check("last-writes", Some(90), None)), Some(LostWrites::AtLeast(2)));
        assert_eq!(beside(check("list-append", Some(90), Some(1))), Some(LostWrites::Exactly(3)));
        // A ledger that does not know is not answered for by sums.
        assert_eq!(
            lost_writes(&[check("ledger", Some(10), None), check("tpcb-sums", Some(90), Some(0))]),
            None
        );
        assert_eq!(lost_writes(&[check("tpcb-sums", Some(90), None)]), None);
        assert_eq!(lost_writes(&[check("other", None, None)]), None);
        assert_eq!(lost_writes(&[]), None);
    }

    #[test]
    fn writes_that_are_judged_and_not_counted_are_told_only_where_no_check_counts() {
        let register = || check("register", Some(5), None);
        let judged = |checks: &[CheckResult]| {
            counting_lost_writes(checks).filter_map(|check| check.acknowledged).sum::<u64>()
        };
        let counted = [register(), check("last-writes", Some(90), Some(0))];
        assert_eq!((judged(&counted), lost_writes(&counted)), (90, Some(LostWrites::Exactly(0))));
        assert_eq!((judged(&[register()]), lost_writes(&[register()])), (5, None));
    }

    #[test]
    fn what_one_check_found_lost_is_at_least_that_where_another_could_not_tell() {
        let last_writes = |lost| check("last-writes", Some(10), lost);
        let sums = |lost| check("tpcb-sums", Some(90), Some(lost));
        let of = |other: Option<u64>| lost_writes(&[sums(7), last_writes(other)]);
        assert_eq!(of(None), Some(LostWrites::AtLeast(7)));
        assert_eq!(of(Some(0)), Some(LostWrites::Exactly(7)));
        assert_eq!(lost_writes(&[sums(0), last_writes(None)]), None);
    }
}
