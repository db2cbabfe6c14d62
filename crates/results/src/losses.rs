//! Which checks a run's lost writes are counted by, and how many that makes.
//!
//! Owns the choice between checks that count the same losses; how each counts is its own matter.

use check::ledger;

pub use crate::lost_writes::LostWrites;
use crate::run::CheckResult;

/// The checks that a run's lost writes are counted by: the ledger where there is one, because it knows each write by
/// name; otherwise those that count. Never both, or a write would be counted twice.
pub fn counting_lost_writes(checks: &[CheckResult]) -> impl Iterator<Item = &CheckResult> {
    let has_ledger = checks.iter().any(|check| check.name == ledger::NAME);
    checks.iter().filter(
        move |check| if has_ledger { check.name == ledger::NAME } else { check.acknowledged.is_some() },
    )
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
    fn the_ledger_counts_alone_where_there_is_one_and_the_sums_otherwise() {
        let (sums, ledger) = (check("tpcb-sums", Some(90), Some(7)), check("ledger", Some(10), Some(2)));
        assert_eq!(lost_writes(&[sums.clone(), ledger.clone()]), Some(LostWrites::Exactly(2)));
        assert_eq!(lost_writes(std::slice::from_ref(&sums)), Some(LostWrites::Exactly(7)));
        // A ledger that does not know is not answered for by sums.
        assert_eq!(
            lost_writes(&[check("ledger", Some(10), None), check("tpcb-sums", Some(90), Some(0))]),
            None
        );
        assert_eq!(lost_writes(&[check("tpcb-sums", Some(90), None)]), None);
        assert_eq!(lost_writes(&[check("other", None, None)]), None);
        assert_eq!(lost_writes(&[]), None);
        let counting: Vec<_> =
            counting_lost_writes(&[sums, ledger]).map(|check| check.acknowledged).collect();
        assert_eq!(counting, [Some(10)]);
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
