//! What checks found lost and invented, of each load by itself.
//!
//! Owns what can be told of one load where a check judges several together. What a run lost as a whole is `results`' to say.

use check::{LostWrite, registry};
use results::{LoadResult, losses};

use crate::checks::Checked;

/// Tells it in the results of these loads.
pub(crate) fn tell(checked: &[Checked], loads: &mut [LoadResult]) {
    let workloads: Vec<String> = loads.iter().map(|load| load.workload.clone()).collect();
    for load in loads {
        let judges = |checked: &&Checked, workload: &str| {
            registry::find(&checked.result.name).is_some_and(|check| check.judges(workload))
        };
        let counts = |checked: &&Checked| losses::counts(&checked.result.name);
        let Some(checked) = checked.iter().filter(counts).find(|of| judges(of, &load.workload)) else {
            continue;
        };
        let loads_judged = workloads.iter().filter(|workload| judges(&checked, workload)).count();
        let (lost, invented) = (checked.result.lost, checked.result.invented);
        load.lost_writes =
            lost.and_then(|all| of_one(all, loads_judged).or_else(|| named(&load.name, all, &checked.lost)));
        load.invented_writes = invented.and_then(|all| of_one(all, loads_judged));
    }
}

/// The part of one of so many loads: known where there is one, or nothing to share.
fn of_one(all: u64, loads_judged: usize) -> Option<u64> {
    (all == 0 || loads_judged == 1).then_some(all)
}

/// The part of a load where every lost write is known by itself.
fn named(load: &str, all: u64, known: &[LostWrite]) -> Option<u64> {
    let of_load = known.iter().filter(|write| write.load == load).count() as u64;
    (known.len() as u64 == all).then_some(of_load)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use history::Verdict;
    use results::CheckResult;
    use scenario::quantity::{self, Needs, Quantity};

    use super::*;

    fn load(name: &str, workload: &str) -> LoadResult {
        LoadResult { name: name.to_owned(), workload: workload.to_owned(), ..LoadResult::default() }
    }

    fn lost(load: &str) -> LostWrite {
        LostWrite { value: 1, load: load.into(), client: 1, invoked_s: 0.0, completed_s: 1.0, node: None }
    }

    fn checked(name: &str, counts: (Option<u64>, Option<u64>), lost: Vec<LostWrite>) -> Checked {
        let (all, invented) = counts;
        let result = CheckResult {
            acknowledged: Some(100),
            lost: all,
            invented,
            ..CheckResult::new(name, Verdict::Fail, "")
        };
        Checked { result, lost }
    }

    /// Lost and invented writes of each load.
    fn told(checked: &[Checked], mut loads: Vec<LoadResult>) -> Vec<(Option<u64>, Option<u64>)> {
        tell(checked, &mut loads);
        loads.iter().map(|load| (load.lost_writes, load.invented_writes)).collect()
    }

    #[test]
    fn what_a_scenario_may_expect_of_lost_writes_is_what_the_checks_count() {
        let entry = quantity::entry_of(Quantity::LostWrites).expect("there");
        let Needs::CheckedBy(checks) = entry.needs else { panic!("not by checks") };
        let counting = registry::CHECKS.iter().map(|check| check.name).filter(|name| losses::counts(name));
        assert_eq!(BTreeSet::from_iter(checks.iter().copied()), counting.collect());
    }

    #[test]
    fn a_check_of_one_load_tells_of_it_and_of_no_other() {
        let checks = [
            checked("ledger", (Some(3), Some(0)), Vec::new()),
            checked("tpcb-sums", (Some(7), None), Vec::new()),
        ];
        let loads = vec![load("ledger", "ledger"), load("tpcb", "tpcb"), load("sums", "bank")];
        assert_eq!(told(&checks, loads), [(Some(3), Some(0)), (Some(7), None), (None, None)]);
    }

    #[test]
    fn of_two_loads_that_one_check_judges_each_has_what_is_known_by_name() {
        let two = || vec![load("near", "ledger"), load("far", "ledger")];
        let names = vec![lost("far"), lost("far"), lost("near")];
        assert_eq!(
            told(&[checked("ledger", (Some(3), Some(0)), names.clone())], two()),
            [(Some(1), Some(0)), (Some(2), Some(0))]
        );
        // One more is lost of which no name is known, and nobody can say who the invented row would have been of.
        assert_eq!(told(&[checked("ledger", (Some(4), Some(1)), names)], two()), [(None, None); 2]);
        assert_eq!(
            told(&[checked("ledger", (Some(0), Some(0)), Vec::new())], two()),
            [(Some(0), Some(0)); 2]
        );
        assert_eq!(told(&[checked("ledger", (None, None), Vec::new())], two()), [(None, None); 2]);
    }
}
