//! Random small histories of a register, each judged by trying every order.

use std::collections::BTreeSet;

use check::register;
use history::{Action, Key, Operation, Outcome, Verdict};
use proptest::prelude::*;
use proptest::strategy::ValueTree;

use crate::notation::operation;

/// Whether some order of the operations on one key explains all answers: goes through all of them.
fn is_linearizable(operations: &[&Operation]) -> bool {
    fn try_all(
        operations: &[&Operation],
        done: u32,
        held: Option<i64>,
        seen: &mut BTreeSet<(u32, Option<i64>)>,
    ) -> bool {
        let is_done = |at: usize| done >> at & 1 == 1;
        if (0..operations.len()).all(|at| is_done(at) || operations[at].outcome == Outcome::Unknown) {
            return true;
        }
        if !seen.insert((done, held)) {
            return false;
        }
        (0..operations.len()).filter(|at| !is_done(*at)).any(|at| {
            let must_wait = operations.iter().enumerate().any(|(other, before)| {
                !is_done(other)
                    && before.outcome == Outcome::Ok
                    && before.completed_s < operations[at].invoked_s
            });
            let after = match operations[at].action {
                Action::RegisterRead { value, .. } => (value == held).then_some(held),
                Action::RegisterWrite { value, .. } => Some(Some(value)),
                Action::RegisterCompareAndSet { expected, new, .. } => {
                    (expected == held).then_some(Some(new))
                }
                _ => None,
            };
            !must_wait && after.is_some_and(|held| try_all(operations, done | 1 << at, held, seen))
        })
    }
    try_all(operations, 0, None, &mut BTreeSet::new())
}

/// What an operation is made from: when it begins, how long it takes, what moment in it counts, what kind it is, how it
/// came out, and what it is said to have found where this is not what it did find.
type Seed = (u8, u8, u8, u8, u8, u8);

fn seeds() -> impl Strategy<Value = Vec<Seed>> {
    prop::collection::vec((0u8..12, 0u8..8, 0u8..8, 0u8..10, 0u8..10, 0u8..30), 0..9)
}

/// A history that a register could have made, but for the lies in it. With few values some are written twice; of ten
/// operations so many have no answer, and half of those happened.
fn played(seeds: &[Seed], values: i64, unanswered: u8) -> Vec<Operation> {
    let mut order: Vec<usize> = (0..seeds.len()).collect();
    let moment = |at: &usize| {
        let (begin, length, moment, ..) = seeds[*at];
        (u16::from(begin) * 8 + u16::from(length) * u16::from(moment), *at)
    };
    order.sort_by_key(moment);
    let mut held = None;
    let mut operations = Vec::new();
    for at in order {
        let (begin, length, _, kind, fate, lie) = seeds[at];
        let outcome = match fate {
            0 => Outcome::Fail,
            fate if fate <= unanswered => Outcome::Unknown,
            _ => Outcome::Ok,
        };
        let happens = outcome == Outcome::Ok || (outcome == Outcome::Unknown && fate % 2 == 1);
        let found = match lie {
            0..=5 => Some(i64::from(lie)).filter(|value| *value != 0),
            _ => held,
        };
        let new = 1 + at as i64 % values;
        let key = Key::from(0);
        let action = match kind {
            0..=4 => Action::RegisterRead { key, value: found },
            5 | 6 => Action::RegisterWrite { key, value: new },
            _ => Action::RegisterCompareAndSet { key, expected: found, new },
        };
        let takes_effect = match action {
            Action::RegisterRead { .. } => false,
            Action::RegisterCompareAndSet { expected, .. } => expected == held,
            _ => true,
        };
        if happens && takes_effect {
            held = Some(new);
        }
        let begin_s = f64::from(begin);
        operations.push(operation(at as u64, action, begin_s, begin_s + f64::from(length), outcome));
    }
    operations
}

fn agrees(operations: &[Operation]) -> Result<(), TestCaseError> {
    let not_refused = |operation: &&Operation| match operation.action {
        Action::RegisterRead { .. } => operation.outcome == Outcome::Ok,
        _ => operation.outcome != Outcome::Fail,
    };
    let counted: Vec<&Operation> = operations.iter().filter(not_refused).collect();
    let report = register::check(operations);
    match (is_linearizable(&counted), report.verdict) {
        (true, Verdict::Pass) | (false, Verdict::Fail) => Ok(()),
        (true, Verdict::Unknown) if counted.iter().all(|one| one.outcome != Outcome::Ok) => Ok(()),
        (truth, verdict) => Err(TestCaseError::fail(format!(
            "linearizable is {truth}, but the verdict is {verdict}: {}",
            report.explanation
        ))),
    }
}

#[test]
fn random_histories_are_of_both_kinds() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let mut counts = [0; 2];
    for _ in 0..1000 {
        let seeds = seeds().new_tree(&mut runner).unwrap().current();
        let operations = played(&seeds, 100, 2);
        counts[usize::from(register::check(&operations).verdict == Verdict::Fail)] += 1;
    }
    assert!(counts.iter().all(|count| *count > 150), "{counts:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn zones_agree_with_brute_force(seeds in seeds()) {
        agrees(&played(&seeds, 100, 2))?;
    }

    #[test]
    fn search_agrees_with_brute_force_where_half_of_all_have_no_answer(seeds in seeds()) {
        agrees(&played(&seeds, 2, 5))?;
    }

    #[test]
    fn search_agrees_with_brute_force(seeds in seeds()) {
        agrees(&played(&seeds, 3, 2))?;
    }
}
