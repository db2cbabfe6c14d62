//! Random sound histories pass, and no single change to what is there at the end goes unseen.

use check::{Report, ledger, tpcb};
use history::{Action, Operation, Outcome, Verdict};
use proptest::prelude::*;

use crate::notation;

fn operation(client: usize, action: Action, at_s: f64, outcome: Outcome) -> Operation {
    let operation = notation::operation(client as u64, action, at_s, at_s + 0.01, outcome);
    Operation { node: Some("n1".into()), ..operation }
}

/// What becomes of a write: its outcome, and whether it is there at the end.
fn fate() -> impl Strategy<Value = (Outcome, bool)> {
    prop_oneof![
        6 => Just((Outcome::Ok, true)),
        1 => Just((Outcome::Fail, false)),
        1 => Just((Outcome::Unknown, false)),
        1 => Just((Outcome::Unknown, true)),
    ]
}

/// A sound ledger with at least one acknowledged insert: its inserts, and what is there at the end.
fn sound_ledger() -> impl Strategy<Value = (Vec<Operation>, Vec<u64>)> {
    prop::collection::btree_map(0u64..10_000, fate(), 0..60).prop_map(|fates| {
        let mut operations = vec![operation(0, Action::LedgerInsert { value: 10_000 }, 0.0, Outcome::Ok)];
        let mut there = vec![10_000];
        for (at, (value, (outcome, happened))) in fates.into_iter().enumerate() {
            operations.push(operation(at % 5, Action::LedgerInsert { value }, at as f64 / 10.0, outcome));
            there.extend(happened.then_some(value));
        }
        (operations, there)
    })
}

fn judge_ledger(inserts: &[Operation], there: &[u64], parts: usize) -> Report {
    let mut operations = inserts.to_vec();
    let chunks: Vec<&[u64]> = there.chunks(there.len().div_ceil(parts).max(1)).collect();
    for (at, values) in chunks.iter().enumerate() {
        let complete = at + 1 == chunks.len();
        let action = Action::LedgerRead { values: values.to_vec(), complete };
        operations.push(operation(0, action, 1000.0 + at as f64, Outcome::Ok));
    }
    if chunks.is_empty() {
        let action = Action::LedgerRead { values: Vec::new(), complete: true };
        operations.push(operation(0, action, 1000.0, Outcome::Ok));
    }
    ledger::check(&operations)
}

/// TPC-B transactions with their amounts and fates; the first is acknowledged.
fn sound_tpcb() -> impl Strategy<Value = Vec<(i64, Outcome, bool)>> {
    (1i64..5000, prop::collection::vec((-5000i64..5000, fate()), 0..40)).prop_map(|(first, rest)| {
        let rest = rest.into_iter().map(|(delta, (outcome, happened))| (delta, outcome, happened));
        std::iter::once((first, Outcome::Ok, true)).chain(rest).collect()
    })
}

fn judge_tpcb(transactions: &[(i64, Outcome, bool)], change: impl Fn(&mut [i64; 4], &mut u64)) -> Report {
    let mut operations = Vec::new();
    for (at, (delta, outcome, _)) in transactions.iter().enumerate() {
        let action = Action::TpcbTransaction { delta: *delta };
        operations.push(operation(at % 5, action, at as f64 / 10.0, *outcome));
    }
    let happened = || transactions.iter().filter(|(_, _, happened)| *happened);
    let mut sums = [happened().map(|(delta, ..)| delta).sum(); 4];
    let mut history_rows = happened().count() as u64;
    change(&mut sums, &mut history_rows);
    let [accounts, tellers, branches, history] = sums;
    let action = Action::TpcbRead { accounts, tellers, branches, history, history_rows };
    operations.push(operation(0, action, 1000.0, Outcome::Ok));
    tpcb::check(&operations)
}

proptest! {
    #[test]
    fn a_sound_ledger_passes((inserts, there) in sound_ledger(), parts in 1usize..5) {
        let report = judge_ledger(&inserts, &there, parts);
        prop_assert_eq!(report.verdict, Verdict::Pass, "{}", report.explanation);
        prop_assert_eq!(report.lost, Some(0));
        prop_assert_eq!(report.invented, Some(0));
    }

    #[test]
    fn a_lost_insert_is_found((inserts, mut there) in sound_ledger(), which in any::<prop::sample::Index>()) {
        let acknowledged: Vec<u64> = inserts
            .iter()
            .filter(|insert| insert.outcome == Outcome::Ok)
            .filter_map(|insert| match insert.action {
                Action::LedgerInsert { value } => Some(value),
                _ => None,
            })
            .collect();
        let victim = *which.get(&acknowledged);
        there.retain(|value| *value != victim);
        let report = judge_ledger(&inserts, &there, 1);
        prop_assert_eq!(report.verdict, Verdict::Fail);
        prop_assert_eq!(report.lost, Some(1));
        prop_assert_eq!(report.lost_examples.iter().map(|lost| lost.value).collect::<Vec<_>>(), [victim]);
        let named = format!("insert {} by client", victim);
        prop_assert!(report.explanation.contains(&named), "{}", report.explanation);
    }

    #[test]
    fn an_invented_value_is_found((inserts, mut there) in sound_ledger(), value in 10_001u64..) {
        there.push(value);
        let report = judge_ledger(&inserts, &there, 1);
        prop_assert_eq!((report.verdict, report.invented), (Verdict::Fail, Some(1)));
    }

    #[test]
    fn a_duplicated_value_is_found((inserts, mut there) in sound_ledger(), which in any::<prop::sample::Index>()) {
        there.push(*which.get(&there));
        let report = judge_ledger(&inserts, &there, 2);
        prop_assert_eq!((report.verdict, report.counts["duplicated"]), (Verdict::Fail, 1));
    }

    #[test]
    fn a_refused_insert_that_is_there_is_found((mut inserts, mut there) in sound_ledger()) {
        inserts.push(operation(7, Action::LedgerInsert { value: 20_000 }, 1.0, Outcome::Fail));
        there.push(20_000);
        let report = judge_ledger(&inserts, &there, 1);
        prop_assert_eq!((report.verdict, report.counts["refused_but_there"]), (Verdict::Fail, 1));
    }

    #[test]
    fn sound_tpcb_sums_pass(transactions in sound_tpcb()) {
        let report = judge_tpcb(&transactions, |_, _| {});
        prop_assert_eq!(report.verdict, Verdict::Pass, "{}", report.explanation);
        let is_open = |(_, outcome, happened): &(_, Outcome, bool)| *outcome == Outcome::Unknown && !happened;
        match transactions.iter().filter(|transaction| is_open(transaction)).count() {
            0 => prop_assert_eq!(report.lost, Some(0)),
            1 => prop_assert!(report.lost.is_none_or(|lost| lost == 0)),
            _ => prop_assert_eq!(report.lost, None),
        }
    }

    #[test]
    fn a_change_of_any_one_sum_is_found(transactions in sound_tpcb(), which in 0usize..4, by in 1i64..100) {
        let report = judge_tpcb(&transactions, |sums, _| sums[which] += by);
        prop_assert_eq!(report.verdict, Verdict::Fail);
    }

    #[test]
    fn a_lost_transaction_is_found_when_all_answers_were_definite(transactions in sound_tpcb()) {
        let definite: Vec<_> = transactions.into_iter().filter(|(_, outcome, _)| *outcome != Outcome::Unknown).collect();
        let lost = definite[0].0;
        let report = judge_tpcb(&definite, |sums, rows| {
            *sums = sums.map(|sum| sum - lost);
            *rows -= 1;
        });
        prop_assert_eq!(report.verdict, Verdict::Fail);
        prop_assert!(report.explanation.starts_with("at least 1 of "), "{}", report.explanation);
        prop_assert_eq!(report.lost, Some(1));
    }

    #[test]
    fn lost_transactions_are_never_told_as_none_nor_as_more_than_they_are(
        fates in prop::collection::vec((-3i64..3, fate(), any::<bool>()), 0..8),
    ) {
        // Few amounts, so that a lost transaction often has the same as one that stands in its place.
        let mut transactions = vec![(1, Outcome::Ok, true)];
        transactions.extend(fates.into_iter().map(|(delta, (outcome, happened), is_lost)| {
            (delta, outcome, happened && !(is_lost && outcome == Outcome::Ok))
        }));
        let lost = transactions.iter().filter(|(_, outcome, happened)| *outcome == Outcome::Ok && !happened).count() as u64;
        let report = judge_tpcb(&transactions, |_, _| {});
        prop_assert!(lost == 0 || report.lost != Some(0), "{lost} lost: {}", report.explanation);
        prop_assert!(report.lost.is_none_or(|told| told <= lost), "{lost} lost: {}", report.explanation);
    }

    #[test]
    fn a_lost_amount_is_found_even_if_its_row_is_made_up_for(transactions in sound_tpcb()) {
        let definite: Vec<_> = transactions.into_iter().filter(|(_, outcome, _)| *outcome != Outcome::Unknown).collect();
        let lost = definite[0].0;
        let report = judge_tpcb(&definite, |sums, _| *sums = sums.map(|sum| sum - lost));
        prop_assert_eq!(report.verdict, Verdict::Fail);
    }
}

#[test]
fn a_million_inserts_are_judged_and_every_lost_one_is_listed() {
    let mut operations: Vec<Operation> = (0..1_000_000u64)
        .map(|value| {
            operation(
                3,
                Action::LedgerInsert { value: value * 7 % 1_000_003 },
                value as f64 / 1e4,
                Outcome::Ok,
            )
        })
        .collect();
    for part in 0..10u64 {
        let values = (part * 100_001..(part + 1) * 100_001).filter(|value| value % 1000 != 1).collect();
        let action = Action::LedgerRead { values, complete: part == 9 };
        operations.push(operation(0, action, 200.0 + part as f64, Outcome::Ok));
    }
    let report = ledger::check(&operations);
    assert_eq!(report.verdict, Verdict::Fail);
    assert_eq!(report.lost, Some(report.lost_examples.len() as u64));
    assert!(report.lost_examples.len() >= 990);
    assert!(report.explanation.len() < 2000, "the story stays short: {}", report.explanation);
    assert!(report.lost_examples.is_sorted_by(|one, other| one.completed_s <= other.completed_s));
}
