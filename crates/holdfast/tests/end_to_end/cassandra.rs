//! Cassandra with what a setting or a consistency level changes: each pair runs one scenario as it is and once more with the
//! other choice.

use serde_json::Value;

use crate::engines::{check, ended_on};
use crate::holdfast::Desk;
use crate::turns::machine;

/// A write is acknowledged once it is synced.
const BATCH: [&str; 2] =
    ["--set=database.settings.commitlog_sync=batch", "--set=database.settings.commitlog_sync_period=0ms"];

/// What a scenario came to that has the machine for itself: three Java machines fill it while they start.
fn ended_alone(test: &str, code: i32, arguments: &[&str]) -> Option<Value> {
    let _turn = machine();
    let desk = Desk::with_a_lab(test)?;
    ended_on(&desk, test, &["cassandra"], code, arguments)
}

#[test]
#[ignore = "second tier: the shipped scenario as it is, three minutes"]
fn what_cassandra_acknowledged_before_it_was_synced_is_lost_at_a_power_off_and_named() {
    let test = "what_cassandra_acknowledged_before_it_was_synced";
    let Some(result) = ended_alone(test, 1, &["scenarios/cassandra-power-loss.yaml"]) else { return };
    let ledger = check(&result, "ledger");
    assert!(ledger["lost"].as_u64() > Some(0), "{ledger:#}");
    assert_eq!(ledger["invented"], 0, "{ledger:#}");
    assert!(ledger["explanation"].to_string().contains("was acknowledged"), "{ledger:#}");
}

#[test]
#[ignore = "second tier: the shipped scenario with another setting, three minutes"]
fn cassandra_that_syncs_before_it_acknowledges_loses_nothing_at_a_power_off() {
    let test = "cassandra_that_syncs_before_it_acknowledges";
    let arguments = [&["scenarios/cassandra-power-loss.yaml"], BATCH.as_slice()].concat();
    let Some(result) = ended_alone(test, 0, &arguments) else { return };
    let ledger = check(&result, "ledger");
    assert!(ledger["acknowledged"].as_u64() > Some(1_000), "{ledger:#}");
    assert_eq!(ledger["lost"], 0, "{ledger:#}");
}

#[test]
#[ignore = "second tier: the shipped scenario as it is, three minutes"]
fn stale_reads_at_consistency_one_are_found_and_told() {
    let test = "stale_reads_at_consistency_one";
    let Some(result) = ended_alone(test, 1, &["scenarios/cassandra-one.yaml"]) else { return };
    let register = check(&result, "register");
    assert_eq!(register["verdict"], "fail", "{register:#}");
    let told = register["explanation"].to_string();
    assert!(told.contains("not linearizable: key ") && told.contains("a contradiction"), "{register:#}");
    check(&result, "convergence");
}

#[test]
#[ignore = "second tier: the shipped scenario at another consistency, three minutes"]
fn at_quorum_no_read_is_stale_and_all_copies_hold_the_same_in_the_end() {
    let test = "at_quorum_no_read_is_stale";
    let arguments = ["scenarios/cassandra-one.yaml", "--set=loads.0.consistency=quorum"];
    let Some(result) = ended_alone(test, 0, &arguments) else { return };
    assert!(check(&result, "register")["acknowledged"].as_u64() > Some(1_000), "{result:#}");
    assert_eq!(check(&result, "convergence")["verdict"], "pass", "{result:#}");
}
