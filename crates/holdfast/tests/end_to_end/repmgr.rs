//! PostgreSQL with repmgr, which fails over without a consensus store: through the loss of its primary's host, and with two
//! primaries after a cut in the network.

use crate::engines::{check, ended};

#[test]
#[ignore = "second tier: a scenario of its own, and repmgr may have to be fetched"]
fn repmgrd_promotes_a_standby_and_keeps_what_synchronous_replication_acknowledged() {
    let test = "repmgrd_promotes_a_standby";
    let Some(result) = ended(test, "repmgr", 0, &["scenarios/repmgr.yaml"]) else { return };
    assert!(check(&result, "ledger")["acknowledged"].as_u64() > Some(100), "{result:#}");
    assert_eq!(check(&result, "ledger")["lost"], 0, "{result:#}");
    assert_eq!(check(&result, "tpcb-sums")["verdict"], "pass", "{result:#}");
}

#[test]
#[ignore = "second tier: a scenario of its own, and repmgr may have to be fetched"]
fn what_the_cut_off_of_two_primaries_acknowledged_is_lost_and_named() {
    let test = "what_the_cut_off_of_two_primaries_acknowledged";
    let Some(result) = ended(test, "repmgr", 1, &["scenarios/repmgr-split-brain.yaml"]) else { return };
    let ledger = check(&result, "ledger");
    assert_eq!(ledger["verdict"], "fail", "{result:#}");
    assert!(ledger["lost"].as_u64() > Some(100), "{result:#}");
    assert_eq!(ledger["invented"], 0, "{result:#}");
    assert!(ledger["explanation"].to_string().contains("was acknowledged"), "{result:#}");
}

#[test]
#[ignore = "second tier: a scenario of its own, and repmgr may have to be fetched"]
fn a_cut_off_primary_whose_commits_wait_for_a_standby_acknowledges_nothing_that_is_lost() {
    let test = "a_cut_off_primary_whose_commits_wait_for_a_standby";
    let arguments = ["scenarios/repmgr-split-brain.yaml", "--set=database.replication.synchronous=any 1"];
    let Some(result) = ended(test, "repmgr", 0, &arguments) else { return };
    assert!(check(&result, "ledger")["acknowledged"].as_u64() > Some(100), "{result:#}");
    assert_eq!(check(&result, "ledger")["lost"], 0, "{result:#}");
}
