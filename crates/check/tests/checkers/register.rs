//! Registers: small histories, each with the verdict and the story it must get.

use check::register;
use history::Verdict::{self, Fail, Pass, Unknown};

use crate::notation::{assert_told, history};

#[track_caller]
fn check(text: &str, verdict: Verdict, told: &str) {
    assert_told(&register::check(&history(text)), verdict, told);
}

#[test]
fn a_read_may_find_what_was_written_before_or_meanwhile() {
    check("0-1 c1 write x 1\n2-3 c2 read x 1", Pass, "2 operations on 1 register can be put in an order");
    check("0-3 c1 write x 1\n1-2 c2 read x 1", Pass, "");
    check("0-3 c1 write x 1\n1-2 c2 read x -", Pass, "");
    check("0-1 c1 read x -", Pass, "");
}

#[test]
fn operations_that_touch_may_be_in_either_order() {
    check("0-1 c1 write x 1\n1-2 c2 read x -", Pass, "");
    check("1-2 c1 write x 1\n0-1 c2 read x 1", Pass, "");
}

#[test]
fn a_stale_read_is_found() {
    check(
        "0-1 c1 write x 1\n2-3 c1 write x 2\n4-5 c2 read x 1",
        Fail,
        "1 of 1 register is not linearizable: key x: the write of 2 by client 1 (2.000 s to 3.000 s) took effect at some \
         moment, but from the end of the write of 1 by client 1 (0.000 s to 1.000 s) to the beginning of the read of 1 by client 2 \
         (4.000 s to 5.000 s) it held 1: a contradiction",
    );
    check("0-1 c1 write x 1\n2-3 c2 read x -", Fail, "key x");
}

#[test]
fn a_stale_read_of_a_value_that_was_held_meanwhile_names_all_four_operations() {
    check(
        "0-1 c1 write x 1\n2-3 c1 write x 2\n4-5 c2 read x 2\n2-6 c3 write x 3\n7-8 c4 read x 2\n3.5-3.6 c5 read x 1",
        Fail,
        "the register held",
    );
}

#[test]
fn a_value_nobody_wrote_or_that_was_refused_is_found() {
    check(
        "0-1 c1 write x 1\n2-3 c2 read x 7",
        Fail,
        "the read of 7 by client 2 (2.000 s to 3.000 s) found a value that no client wrote, or",
    );
    check("0-1 c1 write x 1 fail\n2-3 c2 read x 1", Fail, "that no client wrote");
}

#[test]
fn a_read_of_the_future_is_found() {
    check(
        "0-1 c2 read x 1\n2-3 c1 write x 1",
        Fail,
        "the read of 1 by client 2 (0.000 s to 1.000 s) depends on the write of 1 by client 1 (2.000 s to 3.000 s), \
         which began only after it had ended: a contradiction",
    );
}

#[test]
fn a_change_takes_place_once_and_in_order() {
    let chain = "0-1 c1 write x 1\n2-3 c2 cas x 1 2\n2-3 c3 cas x 2 3\n4-5 c4 read x 3";
    check(chain, Pass, "");
    check("0-1 c1 write x 1\n2-3 c2 cas x 1 2\n2-3 c3 cas x 1 3", Fail, "cannot have gone both ways");
    check(
        "0-1 c1 write x 1\n4-5 c2 cas x 1 2\n2-3 c3 cas x 2 3",
        Fail,
        "depends on the change from 1 to 2 by client 2",
    );
    check("0-9 c2 cas x 3 2\n0-9 c3 cas x 2 3", Fail, "over a circle of changes");
    check("0-1 c1 write x 1\n2-3 c2 cas x 1 2\n4-5 c4 read x 1", Fail, "");
    check("0-1 c1 cas x - 1\n2-3 c4 read x 1", Pass, "");
    check("0-1 c1 write x 1\n2-3 c2 cas x 1 2 fail\n4-5 c4 read x 1", Pass, "");
}

#[test]
fn a_write_may_not_come_between_a_value_and_its_change() {
    check("0-1 c1 write x 1\n2-3 c2 write x 2\n4-5 c3 cas x 1 3", Fail, "took effect at some moment");
    check(
        "0-1 c1 write x 1\n0-3 c2 write x 2\n2-6 c3 read x 2\n4-5 c3 cas x 1 3",
        Fail,
        "the register held 2 at some moment",
    );
}

#[test]
fn a_write_without_an_answer_may_take_effect_late_or_never() {
    check("0-1 c1 write x 1 unknown\n2-3 c2 read x -\n4-5 c2 read x 1", Pass, "any may have happened");
    check("0-1 c1 write x 1 unknown\n2-3 c2 read x -", Pass, "");
    check("0-1 c1 write x 1 unknown\n2-3 c2 read x 1\n4-5 c2 read x -", Fail, "");
    check("0-1 c1 cas x - 1 unknown\n2-3 c2 cas x 1 2 unknown\n4-5 c3 read x 2", Pass, "");
    check("0-1 c1 cas x 5 1 unknown\n2-3 c2 cas x 1 2 unknown\n4-5 c3 read x 2", Fail, "no client wrote");
}

#[test]
fn values_written_twice_are_searched() {
    check("0-1 c1 write x 1\n2-3 c2 write x 1\n4-5 c3 read x 1", Pass, "");
    check("0-1 c1 write x 1\n2-3 c2 write x 2\n4-5 c2 write x 1\n6-7 c3 read x 1", Pass, "");
    check(
        "0-1 c1 write x 1\n2-3 c2 write x 1\n4-5 c2 write x 2\n6-7 c3 read x 1",
        Fail,
        "no order of the operations explains the read of 1 by client 3 (6.000 s to 7.000 s): whatever the order until \
         then, the register held 2",
    );
}

#[test]
fn a_search_out_of_budget_is_unknown() {
    let mut text = String::from("0-99 c0 read x 1\n");
    for client in 1..30 {
        text += &format!("0-99 c{client} write x {}\n", client % 3);
    }
    let mut running = Box::new(register::Register::with_budget(20));
    for operation in &history(&text) {
        check::Check::observe(running.as_mut(), operation);
    }
    let report = check::Check::conclude(running);
    assert_told(&report, Unknown, "the search was given up after 20 steps for key: x");
}

#[test]
fn keys_are_judged_one_by_one_and_told_in_order() {
    check(
        "0-1 c1 write z 1\n0-1 c2 write a 2\n2-3 c1 read z -\n2-3 c2 read a -\n0-1 c3 write k 5\n2-3 c3 read k 5",
        Fail,
        "2 of 3 registers are not linearizable: key a: ",
    );
}

#[test]
fn writes_that_nobody_read_are_in_some_order_and_nothing_acknowledged_shows_nothing() {
    check(
        "0-1 c1 write x 1",
        Pass,
        "no read or compare-and-set was acknowledged, so any order of the writes does",
    );
    check("0-1 c1 write x 1 unknown\n2-3 c1 read x - unknown", Unknown, "no operation was acknowledged");
    check("", Unknown, "so nothing was shown");
}

#[test]
fn a_history_that_contradicts_itself_proves_nothing() {
    check("3-1 c1 write x 1\n4-5 c1 read x -", Unknown, "the history contradicts itself");
    check("NaN-1 c1 write x 1\n4-5 c1 read x 7", Unknown, "the history contradicts itself");
}
