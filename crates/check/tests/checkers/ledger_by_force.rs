//! The ledger against brute force: every table that the answers allow is made, and the final read held against each.

use check::ledger;
use history::{Action, Operation, Outcome, Verdict};
use proptest::prelude::*;

use crate::notation;

fn operation(number: u64, action: Action, outcome: Outcome) -> Operation {
    notation::operation(number, action, number as f64, number as f64 + 0.5, outcome)
}

/// Whether some choice among the inserts without a definite answer leaves exactly these rows.
fn some_world_leaves(outcomes: &[Outcome], read: &[u64]) -> bool {
    let mut rows = read.to_vec();
    rows.sort_unstable();
    (0_u32..1 << outcomes.len()).any(|happened| {
        let is_there = |value: usize| happened & (1 << value) != 0;
        let is_possible = outcomes.iter().enumerate().all(|(value, outcome)| match outcome {
            Outcome::Ok => is_there(value),
            Outcome::Fail => !is_there(value),
            Outcome::Unknown => true,
        });
        let table: Vec<u64> =
            (0..outcomes.len()).filter(|value| is_there(*value)).map(|value| value as u64).collect();
        is_possible && table == rows
    })
}

fn outcome() -> impl Strategy<Value = Outcome> {
    prop_oneof![5 => Just(Outcome::Ok), 1 => Just(Outcome::Fail), 2 => Just(Outcome::Unknown)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn a_ledger_is_judged_as_by_trying_every_table_that_could_be(
        outcomes in prop::collection::vec(outcome(), 0..6),
        asked_for in any::<u8>(),
        slip in prop::option::of(0_u64..7),
    ) {
        // Mostly what a sound database would leave, with one row added or taken away now and then.
        let mut read: Vec<u64> = (0..outcomes.len())
            .filter(|value| match outcomes[*value] {
                Outcome::Ok => true,
                Outcome::Fail => false,
                Outcome::Unknown => asked_for & (1 << value) != 0,
            })
            .map(|value| value as u64)
            .collect();
        match slip {
            Some(value) if asked_for & 0x80 != 0 => read.push(value),
            Some(value) => read.retain(|there| *there != value),
            None => {}
        }
        let inserts = outcomes.iter().enumerate().map(|(value, outcome)| {
            operation(value as u64, Action::LedgerInsert { value: value as u64 }, *outcome)
        });
        let last = Action::LedgerRead { values: read.clone(), complete: true };
        let operations: Vec<Operation> = inserts.chain([operation(100, last, Outcome::Ok)]).collect();
        let report = ledger::check(&operations);
        let wanted = match some_world_leaves(&outcomes, &read) {
            false => Verdict::Fail,
            true if !outcomes.contains(&Outcome::Ok) => Verdict::Unknown,
            true => Verdict::Pass,
        };
        prop_assert_eq!(report.verdict, wanted, "{}", report.explanation);
    }
}
