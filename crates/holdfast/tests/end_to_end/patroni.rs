//! Patroni over etcd, an engine that is a file with two processes a node: through the loss of its primary's host.

use crate::engines::{check, ended};

#[test]
#[ignore = "second tier: a scenario of its own, and Patroni may have to be fetched"]
fn patroni_elects_another_primary_and_keeps_what_strict_synchronous_replication_acknowledged() {
    let test = "patroni_elects_another_primary";
    let Some(result) = ended(test, "patroni", &[0], &["scenarios/patroni.yaml"]) else { return };
    assert!(check(&result, "ledger")["acknowledged"].as_u64() > Some(1000), "{result:#}");
    assert_eq!(check(&result, "ledger")["lost"], 0, "{result:#}");
    assert_eq!(check(&result, "tpcb-sums")["verdict"], "pass", "{result:#}");
}

/// What asynchronous replication loses is chance; that nothing is invented is not.
#[test]
#[ignore = "second tier: a scenario of its own, and Patroni may have to be fetched"]
fn asynchronous_patroni_goes_on_and_the_ledger_says_what_it_lost() {
    let test = "asynchronous_patroni_goes_on";
    let asynchronous = ["scenarios/patroni.yaml", "--set", "database.replication.synchronous=off"];
    let Some(result) = ended(test, "patroni", &[0, 1], &asynchronous) else { return };
    let ledger = check(&result, "ledger");
    assert_eq!(ledger["invented"], 0, "{result:#}");
    assert_eq!(ledger["lost"].as_u64() > Some(0), ledger["verdict"] == "fail", "{result:#}");
    assert!(result["faults"][0]["recovery_s"]["first_success"].is_number(), "{result:#}");
}

/// Whether the defect of this version of Patroni shows is chance; that the verdict follows from what was lost is not.
#[test]
#[ignore = "second tier: a scenario of its own, four minutes, and Patroni may have to be fetched"]
fn a_patroni_primary_that_wakes_up_behind_its_lease_is_judged_by_what_it_lost() {
    let test = "a_patroni_primary_that_wakes_up";
    let Some(result) = ended(test, "patroni", &[0, 1], &["scenarios/patroni-stop.yaml"]) else { return };
    let ledger = check(&result, "ledger");
    assert!(ledger["acknowledged"].as_u64() > Some(1000), "{result:#}");
    assert_eq!(ledger["invented"], 0, "{result:#}");
    assert_eq!(ledger["lost"].as_u64() > Some(0), ledger["verdict"] == "fail", "{result:#}");
    assert_eq!(ledger["verdict"], result["verdict"], "{result:#}");
    let faults = result["faults"].as_array().map(Vec::as_slice).unwrap_or_default();
    assert_eq!(faults.len(), 8, "{result:#}");
    assert!(faults.iter().all(|fault| fault["receipt"]["verdict"] == "pass"), "{result:#}");
}
