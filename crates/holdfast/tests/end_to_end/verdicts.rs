//! Verdicts and exit codes: what a pipeline acts on.

use crate::contract;
use crate::holdfast::{Desk, ON_CONTROL, arguments};
use crate::turns::beside_others;

/// The control database elects another leader within moments.
const LEADER_LOST: [&str; 4] = [
    "run",
    "scenarios/flaws/ack-before-replication.yaml",
    "--set=database.settings.flaw=none",
    "--set=schedule=[{ phase: baseline, for: 2s }, { phase: fault, for: 4s, faults: [{ power-off: { host: leader }, \
     at: 0s, for: 2s }] }]",
];

#[test]
fn an_expectation_that_cannot_hold_fails_the_run() {
    let _turn = beside_others();
    let Some(desk) = Desk::with_a_lab("an_expectation_that_cannot_hold_fails_the_run") else { return };
    let finished = desk.run(&arguments(&[&LEADER_LOST, &["--set", "expect.recovery=< 1ms"]]));
    let result = finished.ends_with(1).result();
    assert_eq!(result["verdict"], "fail");
    let expectations = result["expectations"].as_array().expect("expectations");
    let recovery =
        expectations.iter().find(|expectation| expectation["name"] == "recovery").expect("recovery");
    assert_eq!(recovery["verdict"], "fail");
    assert!(result["checks"].as_array().expect("checks").iter().all(|check| check["verdict"] == "pass"));
    contract::holds(&result);
}

#[test]
fn a_fault_that_is_prevented_from_taking_effect_leaves_the_verdict_unknown() {
    let _turn = beside_others();
    let test = "a_fault_that_is_prevented_from_taking_effect_leaves_the_verdict_unknown";
    let Some(desk) = Desk::with_a_lab(test) else { return };
    let result = desk.run(&arguments(&[&LEADER_LOST, &["--prevent-faults"]])).ends_with(2).result();
    assert_eq!(result["verdict"], "unknown");
    let fault = &result["faults"][0];
    assert_eq!(fault["receipt"]["verdict"], "fail", "{fault:#}");
    assert!(fault["took_effect_s"].is_null(), "{fault:#}");
    let evidence = fault["receipt"]["evidence"].to_string();
    assert!(evidence.contains("still answers") && evidence.contains("still run"), "{evidence}");
    contract::holds(&result);
}

/// Of two nodes the follower dies, and a second fault looks for a follower while it is gone.
#[test]
fn a_fault_on_a_role_that_nobody_has_leaves_the_verdict_unknown() {
    let _turn = beside_others();
    let Some(desk) = Desk::with_a_lab("a_fault_on_a_role_that_nobody_has_leaves_the_verdict_unknown") else {
        return;
    };
    let text = "name: nobody\nsite: { regions: { dc1: { zones: { a: { hosts: 2 } } } } }\n\
                database: { engine: postgres, nodes: 2, replication: { synchronous: off } }\n\
                loads: [ { workload: ledger, clients: 1, from: dc1, rate: 100/s } ]\n\
                schedule:\n  - { phase: baseline, for: 2s }\n  - phase: fault\n    for: 5s\n    faults:\n      \
                - { power-off: { host: dc1/a/h2 }, at: 0s, for: 4s }\n      \
                - { power-off: { host: a-follower }, at: 2s, for: 1s }\n\
                expect: { lost_writes: 0 }\n";
    std::fs::write(desk.path().join("scenarios/nobody.yaml"), text).expect("a scenario");
    let finished = desk.run(&arguments(&[&["run", "scenarios/nobody.yaml"], &ON_CONTROL]));
    let result = finished.ends_with(2).result();
    assert_eq!(result["verdict"], "unknown");
    assert_eq!(result["faults"][0]["receipt"]["verdict"], "pass", "{result:#}");
    assert_eq!(result["faults"][1]["receipt"]["verdict"], "fail", "{result:#}");
    assert!(result["reasons"].to_string().contains("no target matches"), "{result:#}");
    contract::holds(&result);
}
