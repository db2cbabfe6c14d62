//! Convergence: small histories, each with the verdict and the story it must get; and random ones, where every order of
//! the values is tried.

use std::collections::BTreeSet;

use check::convergence;
use history::Verdict::{self, Fail, Pass, Unknown};
use history::{Action, Key, Outcome};
use proptest::prelude::*;

use crate::notation::{assert_told, history, operation};

#[track_caller]
fn check(text: &str, verdict: Verdict, told: &str) {
    assert_told(&convergence::check(&history(text)), verdict, told);
}

const END: &str = "\n90-91 c9 replica n1 x=2\n90-91 c8 replica n2 x=2";

#[track_caller]
fn check_with_end(text: &str, verdict: Verdict, told: &str) {
    check(&format!("{text}{END}"), verdict, told);
}

#[test]
fn replicas_that_agree_on_the_newest_pass() {
    check_with_end(
        "0-1 c1 write x 1\n0-1 c2 write x 2\n2-3 c1 read x 1\n4-5 c1 read x 2",
        Pass,
        "2 replicas hold the same in the end, and no client saw any of 1 register go back in time",
    );
    // Old values may be read for a while, by those who saw nothing newer.
    check_with_end("0-1 c1 write x 1\n2-3 c2 write x 2\n4-5 c3 read x -\n6-7 c3 read x 1", Pass, "");
}

#[test]
fn replicas_that_differ_are_found() {
    check(
        "0-1 c1 write x 1\n0-1 c2 write x 2\n90-91 c9 replica n1 x=2\n90-91 c8 replica n2 x=1",
        Fail,
        "replicas differ in 1 register: key x is 2 on n1, 1 on n2",
    );
    check(
        "0-1 c2 write x 2\n90-91 c9 replica n1 x=2\n90-91 c8 replica n2",
        Fail,
        "key x is 2 on n1, nothing on n2",
    );
}

#[test]
fn replicas_that_differ_by_a_write_without_an_answer_are_not_known_to_differ() {
    let end = "\n90-91 c9 replica n1 x=2\n90-91 c8 replica n2 x=1";
    let text = "0-1 c1 write x 1\n2-3 c2 write x 2 unknown";
    check(
        &format!("{text}{end}"),
        Unknown,
        "replicas differ in 1 register, but only by writes without a definite answer, which may be on their way: key x \
         is 2 on n1, 1 on n2",
    );
    // What somebody has read has happened.
    check(&format!("{text}\n4-5 c3 read x 2{end}"), Fail, "replicas differ in 1 register: key x is 2 on n1");
    // Other replicas may differ by something else.
    let three = "\n90-91 c9 replica n1 x=2\n90-91 c8 replica n2 x=1\n90-91 c7 replica n3";
    check(&format!("{text}{three}"), Fail, "key x is 2 on n1, 1 on n2, nothing on n3");
}

#[test]
fn reads_that_go_back_are_found() {
    let text = "0-1 c1 write x 1\n0-1 c2 write x 2\n2-3 c3 read x 2\n4-5 c3 read x 1\n6-7 c3 read x 2";
    check_with_end(text, Fail, "no order of the values explains this");
}

#[test]
fn clients_that_disagree_about_the_order_are_found() {
    let text = "0-1 c1 write x 1\n0-1 c2 write x 2\n2-3 c3 read x 2\n4-5 c3 read x 1\n2-3 c4 read x 1\n4-5 c4 read x 2";
    check_with_end(
        text,
        Fail,
        "key x: client 4 read 1 (2.000 s to 3.000 s), then client 4 read 2 (4.000 s to 5.000 s); client 3 read 2 (2.000 s \
         to 3.000 s), then client 3 read 1 (4.000 s to 5.000 s): no order of the values explains this",
    );
}

#[test]
fn not_reading_ones_own_write_is_found() {
    check_with_end("0-1 c2 write x 2\n2-3 c2 read x -", Fail, "found nothing where a value was written");
    let text = "0-1 c1 write x 1\n2-3 c2 read x 1\n4-5 c2 write x 2\n6-7 c2 read x 1\n8-9 c2 read x 2\n10-11 c2 read x 1";
    check_with_end(text, Fail, "go back in time");
}

#[test]
fn a_client_with_two_operations_at_once_keeps_no_order_between_them() {
    check_with_end("0-5 c2 write x 2\n2-3 c2 read x -", Pass, "");
}

#[test]
fn an_end_that_is_not_the_newest_is_found() {
    let text = "0-1 c1 write x 1\n0-1 c2 write x 2\n2-3 c3 read x 2\n4-5 c3 read x 1";
    check_with_end(text, Fail, "key x holds 2, which is not the newest: client 3 read 2");
}

#[test]
fn a_lost_or_invented_register_is_found() {
    check(
        "0-1 c1 write x 1\n2-3 c1 write y 1\n90-91 c9 replica n1 x=1\n90-91 c8 replica n2 x=1",
        Fail,
        "key y holds nothing, although a write by client 1 was acknowledged",
    );
    check_with_end("0-1 c1 write x 1", Fail, "key x holds 2, which no client wrote");
    check(
        "0-1 c1 write x 1\n90-91 c9 replica n1 x=1 y=3\n90-91 c8 replica n2 x=1 y=3",
        Fail,
        "key y is there, to which no client wrote",
    );
    check_with_end("0-1 c1 write x 2\n2-3 c3 read x 7", Fail, "found a value that no client wrote");
}

#[test]
fn what_cannot_be_known_is_unknown() {
    check("0-1 c1 write x 2\n90-91 c9 replica n1 x=2", Unknown, "1 of 1 replica read to the end");
    check(
        "0-1 c1 write x 2\n90-91 c9 replica n1 x=2\n90-91 c8 replica n2 x=2 unknown",
        Unknown,
        "1 of 2 replicas",
    );
    check(
        "0-1 c1 write x 2\n90-91 c9 replica n1 x=2\n90-91 c8 replica-part n2 x=2",
        Unknown,
        "1 of 2 replicas",
    );
    check_with_end("0-95 c1 write x 2", Unknown, "need not agree yet");
    check_with_end("0-1 c1 write x 2\n2-3 c1 write x 2", Unknown, "written more than once");
    // What is known of the order of another key says nothing of this one.
    check(
        "0-1 c1 write x 5\n2-3 c1 write x 5\n4-5 c1 write y 7\n6-7 c2 read y 7\n8-9 c1 write y 8\n10-11 c2 read y 8\n\
         90-91 c9 replica n1 x=5 y=8\n90-91 c8 replica n2 x=5 y=8",
        Unknown,
        "written more than once",
    );
    check("90-91 c9 replica n1\n90-91 c8 replica n2", Unknown, "nothing to agree on");
    check_with_end("3-1 c1 write x 2", Unknown, "contradicts itself");
}

#[test]
fn a_read_in_parts_is_taken_together() {
    check(
        "0-1 c1 write x 1\n2-3 c1 write y 2\n90-91 c9 replica-part n1 x=1\n92-93 c9 replica n1 y=2\n90-91 c8 replica n2 x=1 y=2",
        Pass,
        "",
    );
}

/// Whether some order of the values lets no client go back, and ends in `end`: tries all.
fn some_order_fits(sessions: &[Vec<(bool, i64)>], end: i64) -> bool {
    fn orders(left: BTreeSet<i64>, so_far: &mut Vec<i64>, fits: &mut impl FnMut(&[i64]) -> bool) -> bool {
        if left.is_empty() {
            return fits(so_far);
        }
        left.clone().into_iter().any(|value| {
            let mut rest = left.clone();
            rest.remove(&value);
            so_far.push(value);
            let found = orders(rest, so_far, fits);
            so_far.pop();
            found
        })
    }
    orders((1..=4).collect(), &mut Vec::new(), &mut |order| {
        let age = |value: i64| order.iter().position(|one| *one == value);
        let keeps = |session: &Vec<(bool, i64)>| {
            let mut newest = None;
            session.iter().all(|(is_write, value)| {
                let fits = *is_write || age(*value) >= newest;
                newest = newest.max(age(*value));
                fits
            })
        };
        // Only what was read or written by somebody who then read is known to be older than the end.
        let newer_than_end = order[age(end).unwrap_or(0) + 1..].to_vec();
        sessions.iter().all(keeps)
            && !sessions.iter().any(|session| {
                let seen_end = session.iter().position(|(_, value)| *value == end);
                seen_end.is_some_and(|at| {
                    session[at..].iter().any(|(is_write, value)| !is_write && newer_than_end.contains(value))
                })
            })
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(10_000))]

    #[test]
    fn every_order_of_values_tried_agrees(
        writers in prop::collection::vec(0usize..3, 4),
        reads in prop::collection::vec((0usize..3, 1i64..5), 0..7),
        end in 1i64..5,
    ) {
        let mut sessions = vec![Vec::new(); 3];
        for (value, writer) in (1..).zip(writers) {
            sessions[writer].push((true, value));
        }
        for (reader, value) in reads {
            sessions[reader].push((false, value));
        }
        let key = Key::from("x");
        let mut operations = Vec::new();
        let mut add = |client: u64, at: f64, action: Action| {
            operations.push(operation(client, action, at, at + 0.5, Outcome::Ok));
        };
        for (client, session) in sessions.iter().enumerate() {
            for (at, (is_write, value)) in session.iter().enumerate() {
                let action = match is_write {
                    true => Action::RegisterWrite { key: key.clone(), value: *value },
                    false => Action::RegisterRead { key: key.clone(), value: Some(*value) },
                };
                add(client as u64, at as f64, action);
            }
        }
        for replica in ["n1", "n2"] {
            let values = vec![(key.clone(), end)];
            add(9, 99.0, Action::ReplicaRead { replica: replica.into(), values, complete: true });
        }
        let report = convergence::check(&operations);
        let wanted = if some_order_fits(&sessions, end) { Verdict::Pass } else { Verdict::Fail };
        prop_assert_eq!(report.verdict, wanted, "{}", report.explanation);
    }
}
