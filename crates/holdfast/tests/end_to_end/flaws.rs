//! The control database end to end: without a flaw it passes, and a flaw is found by the check meant for it.
//!
//! A few short runs stand for all in the first tier; `cargo xtask flaws` runs every flaw over many seeds.

use crate::contract;
use crate::holdfast::{Desk, Finished};
use crate::turns::beside_others;

/// Runs a scenario of the control database; the check of that name must say this, and so must the run.
fn check(test: &str, arguments: &[&str], checked: &str, expected: &str) {
    check_within(1, test, arguments, checked, expected);
}

/// The same of a flaw that shows only where a write is under way when the power goes: on a busy machine one run may have none.
fn check_within(runs: usize, test: &str, arguments: &[&str], checked: &str, expected: &str) {
    let _turn = beside_others();
    let Some(desk) = Desk::with_a_lab(test) else { return };
    let mut ended = (0..runs).map(|_| desk.run(&[&["run"], arguments].concat()));
    let is_as_expected = |finished: &Finished| finished.result()["verdict"] == expected;
    let mut finished = ended.next().expect("a run");
    while !is_as_expected(&finished)
        && let Some(next) = ended.next()
    {
        finished = next;
    }
    finished.ends_with(i32::from(expected == "fail"));
    let result = finished.result();
    assert_eq!(result["verdict"], expected);
    let checks = result["checks"].as_array().expect("checks");
    let of_name = checks.iter().find(|check| check["name"] == checked).expect("the check is made");
    assert_eq!(of_name["verdict"], expected, "{of_name:#}");
    contract::holds(&result);
}

const SOUND: [&str; 2] = ["--set", "database.settings.flaw=none"];

/// The leader acknowledges alone, and its host loses power after two seconds.
const BRIEF: [&str; 3] = [
    "scenarios/flaws/ack-before-replication.yaml",
    "--set",
    "schedule=[{ phase: baseline, for: 2s }, { phase: fault, for: 5s, faults: [{ power-off: { host: leader }, at: 0s, for: \
     2s }] }]",
];

#[test]
fn write_skew_is_found_where_serializable_is_claimed() {
    let test = "write_skew_is_found_where_serializable_is_claimed";
    check(test, &["scenarios/flaws/write-skew.yaml"], "list-append", "fail");
}

#[test]
fn the_control_database_without_a_flaw_survives_the_loss_of_its_leader() {
    let test = "the_control_database_without_a_flaw_survives_the_loss_of_its_leader";
    let arguments = [&BRIEF[..], &SOUND].concat();
    check(test, &arguments, "ledger", "pass");
}

#[test]
#[ignore = "second tier: three short runs, half a minute"]
fn writes_of_ycsb_and_kv_that_a_lost_leader_acknowledged_alone_are_missed() {
    let test = "writes_of_ycsb_and_kv_that_a_lost_leader_acknowledged_alone_are_missed";
    // So many keys that nobody writes again what was lost.
    let ycsb = "{ workload: ycsb, clients: 2, from: dc1, options: { workload: a, records: 300 } }";
    let kv =
        "{ workload: kv, clients: 2, from: dc1, options: { read: 20%, span: 5%, batch: 2, preload: 300 } }";
    let of = |loads: &[&str]| format!("loads=[{}]", loads.join(", "));
    for load in [ycsb, kv] {
        check_within(4, test, &[&BRIEF[..], &["--set", &of(&[load])]].concat(), "last-writes", "fail");
    }
    check(test, &[&BRIEF[..], &["--set", &of(&[ycsb, kv])], &SOUND].concat(), "last-writes", "pass");
}

#[test]
#[ignore = "takes three minutes; part of `cargo xtask test --all`"]
fn every_flaw_is_found_by_the_check_meant_for_it_and_none_passes_under_all_their_faults() {
    let test = "every_flaw_is_found_by_the_check_meant_for_it_and_none_passes_under_all_their_faults";
    for (flaw, checked) in [
        ("ack-before-fsync", "ledger"),
        ("ack-before-replication", "ledger"),
        ("clock-last-write-wins", "register"),
        ("dirty-read", "bank"),
        ("duplicate-on-retry", "list-append"),
        ("forget-on-restart", "ledger"),
        ("lost-update", "list-append"),
        ("non-repeatable-order", "list-append"),
        ("split-brain", "ledger"),
        ("stale-reads", "register"),
        ("write-skew", "list-append"),
    ] {
        check(test, &[&format!("scenarios/flaws/{flaw}.yaml")], checked, "fail");
    }
    // The run passes only when every one of its four checks does.
    check(test, &["scenarios/flaws/none.yaml"], "ledger", "pass");
}
