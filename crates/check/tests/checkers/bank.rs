//! The bank: small histories, each with the verdict and the story it must get; and random ones against a ledger kept by
//! hand.

use check::bank;
use history::Verdict::{self, Fail, Pass, Unknown};
use history::{Action, Key, Operation, Outcome};
use proptest::prelude::*;

use crate::notation::{self, assert_told, history};

#[track_caller]
fn check(text: &str, verdict: Verdict, told: &str) {
    assert_told(&bank::check(&history(text)), verdict, told);
}

#[test]
fn money_that_only_moves_passes() {
    let text = "0-0 c0 setup a=10 b=0\n1-2 c1 transfer a b 4\n3-4 c2 balances a=6 b=4";
    check(text, Pass, "1 read found every account and the total of 10, over 1 transfer");
}

#[test]
fn a_wrong_total_is_found() {
    let text =
        "0-0 c0 setup a=10 b=0\n1-4 c1 transfer a b 4\n2-3 c2 balances a=6 b=0\n5-6 c2 balances a=6 b=4";
    check(
        text,
        Fail,
        "the total is 10, but not in 1 read: the read by client 2 (2.000 s to 3.000 s) found 6",
    );
}

#[test]
fn totals_that_differ_are_found_without_a_start() {
    check("1-4 c1 transfer a b 4\n2-3 c2 balances a=6 b=0\n5-6 c2 balances a=6 b=4", Fail, "the total is 6");
    check("1-2 c1 transfer a b 4\n3-4 c2 balances a=6 b=4", Unknown, "how the accounts were at the start");
}

#[test]
fn an_overdrawn_account_is_found_where_it_is_forbidden() {
    let text = "0-0 c0 setup a=1 b=0\n1-2 c1 transfer a b 4\n3-4 c2 balances a=-3 b=4";
    check(text, Fail, "found -3 in account a");
    check(&text.replace("setup", "overdraft"), Pass, "");
}

#[test]
fn a_missing_or_doubled_account_is_found() {
    check("0-0 c0 setup a=5 b=0\n1-2 c1 transfer a b 0\n3-4 c2 balances a=5", Fail, "found 1 of 2 accounts");
    check("0-0 c0 setup a=5 b=0\n1-2 c1 transfer a b 0\n3-4 c2 balances a=5 b=0 b=0", Fail, "exactly once");
}

#[test]
fn a_transfer_that_is_missing_at_the_end_is_found() {
    let text = "0-0 c0 setup a=10 b=0 c=3\n1-2 c1 transfer a b 4\n3-4 c2 balances a=10 b=0 c=3";
    check(text, Fail, "account a holds 10 and must hold 6; account b holds 0 and must hold 4");
    // One without an answer may have undone it.
    let open = "0-0 c0 setup a=10 b=0\n1-2 c1 transfer a b 4\n1-2 c2 transfer b a 4 unknown\n3-4 c2 balances a=10 b=0";
    check(open, Pass, "");
    // Or it may not have taken effect yet.
    check(
        "0-0 c0 setup a=10 b=0\n0-1 c1 transfer a b 0\n1-9 c1 transfer a b 4\n3-4 c2 balances a=10 b=0",
        Pass,
        "",
    );
}

#[test]
fn nothing_seen_shows_nothing() {
    check("0-0 c0 setup a=10\n1-2 c2 balances a=10", Unknown, "nothing to get wrong");
    check("0-0 c0 setup a=10 b=0\n1-2 c1 transfer a b 4", Unknown, "no read was acknowledged");
    check(
        "0-0 c0 setup a=10\n0-0 c0 setup a=10\n1-2 c1 transfer a a 4\n3-4 c1 balances a=10",
        Unknown,
        "more than once",
    );
    check("2-1 c0 setup a=10", Unknown, "contradicts itself");
}

fn operation(at: f64, action: Action) -> Operation {
    notation::operation(1, action, at, at + 0.5, Outcome::Ok)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn a_bank_kept_by_hand_agrees(
        moves in prop::collection::vec((0usize..3, 0usize..3, 1i64..5, any::<bool>()), 1..8),
        slip in prop::option::of((0usize..8, 0usize..3, -2i64..3)),
    ) {
        let mut balances = [10i64; 3];
        let pairs = |balances: &[i64; 3]| (0..).map(Key::Number).zip(balances.iter().copied()).collect::<Vec<_>>();
        let setup = Action::BankSetup { balances: pairs(&balances), may_be_negative: false };
        let mut operations = vec![operation(0.0, setup)];
        let mut truth = true;
        let last = moves.len() - 1;
        for (at, (from, to, amount, is_read)) in moves.into_iter().enumerate() {
            let key = |account: usize| Key::Number(account as i64);
            balances[from] -= amount;
            balances[to] += amount;
            let transfer = Action::BankTransfer { from: key(from), to: key(to), amount };
            operations.push(operation(at as f64 + 0.1, transfer));
            // A slip stays: all reads from then on show it.
            if let Some((when, account, by)) = slip && when == at {
                balances[account] += by;
            }
            if is_read || at == last {
                truth &= balances.iter().sum::<i64>() == 30 && balances.iter().all(|balance| *balance >= 0);
                operations.push(operation(at as f64 + 0.7, Action::BankRead { balances: pairs(&balances) }));
            }
        }
        let report = bank::check(&operations);
        let wanted = if truth { Verdict::Pass } else { Verdict::Fail };
        prop_assert_eq!(report.verdict, wanted, "{}", report.explanation);
    }
}
