//! Loads that end badly, final reads that do not happen, lies planted in either: never a `pass`, and never a `fail` that
//! blames the database.

use crate::contract;
use crate::holdfast::{Desk, machine};

/// The lab forgets to read what the loads left, and records nothing of it.
#[test]
fn a_final_read_that_never_happened_leaves_every_check_unknown() {
    let _turn = machine();
    let desk = Desk::new();
    if !desk.can_have_a_lab("a_final_read_that_never_happened_leaves_every_check_unknown") {
        return;
    }
    std::fs::write(desk.path().join("scenarios/unread.yaml"), UNREAD).expect("a scenario");
    let finished = desk.run(&["run", "scenarios/unread.yaml", "--plant", "no-final-read"]);
    finished.ends_with(2);
    let result = finished.result();
    for (check, load) in [("list-append", "append"), ("register", "register")] {
        let reason = format!("check {check}: the final state of load {load} was not read");
        assert!(result["reasons"].to_string().contains(&reason), "{result:#}");
    }
    contract::holds(&result);
    desk.run(&["run", "scenarios/unread.yaml"]).ends_with(0);
}

const UNREAD: &str = "name: unread\nsite: { regions: { dc1: { zones: { a: { hosts: 1 } } } } }\n\
                      database: { engine: postgres, nodes: 1, replication: { synchronous: off } }\n\
                      loads:\n  - { workload: register, clients: 2, from: dc1 }\n  \
                      - { workload: append, clients: 2, from: dc1 }\n\
                      schedule: [ { phase: baseline, for: 2s } ]\n";

/// A transaction zeroes the file without which PostgreSQL does not start, and syncs it; then the node loses its power.
#[test]
#[ignore = "second tier: final reads are tried for a minute and a half"]
fn a_database_that_never_comes_back_leaves_every_check_unknown() {
    let _turn = machine();
    let desk = Desk::new();
    if !desk.can_have_a_lab("a_database_that_never_comes_back_leaves_every_check_unknown") {
        return;
    }
    let loads = "  - workload: script\n    name: vandal\n    clients: 1\n    from: dc1\n    think_time: 100ms\n    \
                 options:\n      scripts:\n        - text: |\n            COPY (SELECT 1) TO PROGRAM 'dd \
                 if=/dev/zero of=global/pg_control bs=8192 count=1 conv=notrunc,fsync';\n";
    let schedule = "schedule:\n  - { phase: baseline, for: 2s }\n  - phase: fault\n    for: 3s\n    faults: [ { \
                    power-off: { host: dc1/a/h1 }, at: 1s, for: 1s } ]\n";
    let text = UNREAD.split("schedule:").next().expect("a part").to_owned() + loads + schedule;
    std::fs::write(desk.path().join("scenarios/gone.yaml"), text).expect("a scenario");
    let finished = desk.run(&["run", "scenarios/gone.yaml"]);
    finished.ends_with(2);
    let result = finished.result();
    for (check, load) in [("list-append", "append"), ("register", "register")] {
        let reason = format!("check {check}: the final state of load {load} was not read (n1 was asked for");
        assert!(result["reasons"].to_string().contains(&reason), "{result:#}");
    }
    contract::holds(&result);
}
