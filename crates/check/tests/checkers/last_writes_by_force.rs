//! Last writes against brute force: every order that time and answers allow is made, and what a cell holds in the end held
//! against the last write of each.

use check::last_writes;
use history::{Action, Operation, Outcome, Verdict};
use proptest::prelude::*;

use crate::notation::operation;

/// A write to the one cell: when it was asked for and answered, and how.
#[derive(Debug, Clone, Copy)]
struct Write {
    invoked: u8,
    lasts: u8,
    outcome: Outcome,
}

impl Write {
    fn ended(&self) -> f64 {
        f64::from(self.invoked) + 0.5 + f64::from(self.lasts)
    }

    /// Must be over before the other can take effect. What got no answer may take effect at any later time.
    fn precedes(&self, other: &Write) -> bool {
        self.outcome == Outcome::Ok && self.ended() < f64::from(other.invoked)
    }
}

/// What the cell may hold in the end: 0, or the number of a write, counted from 1.
fn may_end_with(writes: &[Write], holds: u64) -> bool {
    (0_u32..1 << writes.len()).any(|happened| {
        let is_there = |at: usize| happened & (1 << at) != 0;
        let is_possible = writes.iter().enumerate().all(|(at, write)| match write.outcome {
            Outcome::Ok => is_there(at),
            Outcome::Fail => !is_there(at),
            Outcome::Unknown => true,
        });
        let there: Vec<usize> = (0..writes.len()).filter(|at| is_there(*at)).collect();
        is_possible && some_order_ends_with(writes, &there, holds)
    })
}

/// Takes away, one after another, writes that may come first, in every way there is.
fn some_order_ends_with(writes: &[Write], left: &[usize], holds: u64) -> bool {
    if left.is_empty() {
        return holds == 0;
    }
    left.iter().any(|first| {
        let rest: Vec<usize> = left.iter().copied().filter(|at| at != first).collect();
        let may_be_first = rest.iter().all(|other| !writes[*other].precedes(&writes[*first]));
        let ends = if rest.is_empty() {
            *first as u64 + 1 == holds
        } else {
            some_order_ends_with(writes, &rest, holds)
        };
        may_be_first && ends
    })
}

fn write() -> impl Strategy<Value = Write> {
    let outcome = prop_oneof![5 => Just(Outcome::Ok), 1 => Just(Outcome::Fail), 2 => Just(Outcome::Unknown)];
    (0_u8..8, 0_u8..4, outcome).prop_map(|(invoked, lasts, outcome)| Write { invoked, lasts, outcome })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn a_cell_is_judged_as_by_trying_every_order_there_could_have_been(
        writes in prop::collection::vec(write(), 1..5),
        holds in 0_u64..6,
    ) {
        let asked = writes.iter().enumerate().map(|(at, write)| {
            let action = Action::CellsWrite { cells: vec![7], value: at as u64 + 1 };
            operation(at as u64, action, f64::from(write.invoked), write.ended(), write.outcome)
        });
        let read = Action::CellsRead { cells: vec![(7, holds)], complete: true };
        let operations: Vec<Operation> =
            asked.chain([operation(99, read, 100.0, 101.0, Outcome::Ok)]).collect();
        let report = last_writes::check(&operations);
        let wanted = match may_end_with(&writes, holds) {
            false => Verdict::Fail,
            true if !writes.iter().any(|write| write.outcome == Outcome::Ok) => Verdict::Unknown,
            true => Verdict::Pass,
        };
        prop_assert_eq!(report.verdict, wanted, "{}", report.explanation);
    }
}
