//! Register histories of the kind that Jepsen's tests of etcd leave: one key, five values, some seventy operations, a
//! fifth of them without an answer, which all stay possible to the end. Each must be decided.

use check::register;
use history::{Action, Key, Operation, Outcome, Verdict};

use crate::notation::operation;
use crate::random::Random;

/// What a register made of the requests of five clients. A client whose operation had no answer goes on as another one.
fn history(random: &mut Random, count: u64) -> Vec<Operation> {
    let mut free_at = [0u64; 5];
    let mut requests: Vec<(u64, u64, u64, usize)> = Vec::new();
    for _ in 0..count {
        let client = (0..5).min_by_key(|client| free_at[*client]).unwrap();
        let begin = free_at[client] + random.below(10);
        let end = begin + 1 + random.below(30);
        free_at[client] = end + 1;
        requests.push((begin + random.below(end - begin + 1), begin, end, client));
    }
    requests.sort_unstable();
    let key = Key::from(0);
    let mut held = None;
    let mut names: Vec<u64> = (0..5).collect();
    let mut operations = Vec::new();
    for (_, begin, end, client) in requests {
        let [one, other] = [random.below(5) as i64, random.below(5) as i64];
        let action = match random.below(3) {
            0 => Action::RegisterRead { key: key.clone(), value: held },
            1 => Action::RegisterWrite { key: key.clone(), value: one },
            _ => Action::RegisterCompareAndSet { key: key.clone(), expected: Some(one), new: other },
        };
        let is_change = matches!(action, Action::RegisterCompareAndSet { .. });
        let fits = !is_change || held == Some(one);
        let has_answer = random.below(100) >= 22;
        let happens = has_answer || random.percent(50);
        if happens && fits {
            match action {
                Action::RegisterWrite { .. } => held = Some(one),
                Action::RegisterCompareAndSet { .. } => held = Some(other),
                _ => {}
            }
        }
        let outcome = match (has_answer, fits) {
            (false, _) => Outcome::Unknown,
            (true, true) => Outcome::Ok,
            (true, false) => Outcome::Fail,
        };
        operations.push(operation(names[client], action, begin as f64, end as f64, outcome));
        if !has_answer {
            names[client] += 5;
        }
    }
    operations
}

#[test]
fn an_honest_register_passes_however_many_operations_have_no_answer() {
    let mut unanswered = 0;
    for seed in 0..300 {
        let mut random = Random(seed);
        let count = 70 + random.below(30);
        let operations = history(&mut random, count);
        let report = register::check(&operations);
        assert_eq!(report.verdict, Verdict::Pass, "seed {seed}: {}", report.explanation);
        unanswered += report.indeterminate.unwrap_or_default();
    }
    assert!((3_000..6_000).contains(&unanswered), "{unanswered} writes without an answer in 300 histories");
}

#[test]
fn a_register_of_which_one_read_lies_is_decided_and_often_found_out() {
    let mut found = 0;
    for seed in 0..300 {
        let mut random = Random(seed);
        let count = 70 + random.below(30);
        let mut operations = history(&mut random, count);
        let mut reads: Vec<&mut Option<i64>> = operations
            .iter_mut()
            .filter(|operation| operation.outcome == Outcome::Ok)
            .filter_map(|operation| match &mut operation.action {
                Action::RegisterRead { value, .. } => Some(value),
                _ => None,
            })
            .collect();
        let which = reads.len() / 2;
        *reads[which] = Some((reads[which].unwrap_or(0) + 1) % 5);
        let report = register::check(&operations);
        assert_ne!(report.verdict, Verdict::Unknown, "seed {seed}: {}", report.explanation);
        found += u32::from(report.verdict == Verdict::Fail);
    }
    assert!(found > 60, "{found} of 300");
}

#[test]
fn a_search_that_would_take_for_ever_is_given_up_and_says_so() {
    let mut operations = history(&mut Random(1), 80);
    // Forty clients that all write at once, twice each value, and a read of what nobody wrote last.
    for at in 0..40 {
        let action = Action::RegisterWrite { key: Key::from(0), value: 10 + at % 20 };
        let begin_s = operations[0].invoked_s;
        operations.push(operation(1_000 + at as u64, action, begin_s, 10_000.0, Outcome::Ok));
    }
    let mut check = Box::new(register::Register::with_budget(100_000));
    for operation in &operations {
        check::Check::observe(check.as_mut(), operation);
    }
    let report = check::Check::conclude(check);
    assert_eq!(report.verdict, Verdict::Unknown, "{}", report.explanation);
    assert!(
        report.explanation.contains("the search was given up after 100000 steps"),
        "{}",
        report.explanation
    );
}
