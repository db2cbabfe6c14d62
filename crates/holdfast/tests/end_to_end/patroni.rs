//! Patroni over etcd, an engine that is a file with two processes a node: through the loss of its primary's host.

use serde_json::Value;

use crate::contract;
use crate::holdfast::{Desk, arguments};
use crate::traces::Before;
use crate::turns::beside_others;

/// What a scenario of Patroni came to, its receipts held; nothing, and said so, where no lab or no Patroni can be had.
fn ended(test: &str, codes: &[i32], more: &[&str]) -> Option<Value> {
    let _turn = beside_others();
    let desk = Desk::new();
    if !desk.can_have_a_lab(test) {
        return None;
    }
    let before = Before::look(&desk);
    let finished = desk.run(&arguments(&[&["run", "scenarios/patroni.yaml"], more]));
    if finished.stderr.contains("patroni could not be installed") {
        eprintln!("skipped: {test}: no Patroni is here, and none can be fetched");
        return None;
    }
    assert!(
        finished.code().is_some_and(|code| codes.contains(&code)),
        "{}\n{}",
        finished.stdout,
        finished.stderr
    );
    let result = finished.result();
    contract::holds(&result);
    contract::timeline_holds(&finished.run_directory());
    for fault in result["faults"].as_array().expect("faults") {
        assert_eq!(fault["receipt"]["verdict"], "pass", "{fault:#}");
    }
    before.nothing_is_left(&[]);
    Some(result)
}

#[track_caller]
fn check<'a>(result: &'a Value, name: &str) -> &'a Value {
    let checks = result["checks"].as_array().expect("checks");
    checks.iter().find(|check| check["name"] == name).expect("the check is made")
}

#[test]
#[ignore = "second tier: a scenario of its own, and Patroni may have to be fetched"]
fn patroni_elects_another_primary_and_keeps_what_strict_synchronous_replication_acknowledged() {
    let test = "patroni_elects_another_primary";
    let Some(result) = ended(test, &[0], &[]) else { return };
    assert!(check(&result, "ledger")["acknowledged"].as_u64() > Some(1000), "{result:#}");
    assert_eq!(check(&result, "ledger")["lost"], 0, "{result:#}");
    assert_eq!(check(&result, "tpcb-sums")["verdict"], "pass", "{result:#}");
}

/// What asynchronous replication loses is chance; that nothing is invented is not.
#[test]
#[ignore = "second tier: a scenario of its own, and Patroni may have to be fetched"]
fn asynchronous_patroni_goes_on_and_the_ledger_says_what_it_lost() {
    let test = "asynchronous_patroni_goes_on";
    let asynchronous = ["--set", "database.replication.synchronous=off"];
    let Some(result) = ended(test, &[0, 1], &asynchronous) else { return };
    let ledger = check(&result, "ledger");
    assert_eq!(ledger["invented"], 0, "{result:#}");
    assert_eq!(ledger["lost"].as_u64() > Some(0), ledger["verdict"] == "fail", "{result:#}");
    assert!(result["faults"][0]["recovery_s"]["first_success"].is_number(), "{result:#}");
}
