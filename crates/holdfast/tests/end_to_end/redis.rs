//! Redis with Sentinel: what a partition and the loss of its primary's host cost, with and without waiting for replicas.

use crate::engines::{NOTHING_LOST, check, ended, leader_off_briefly};

/// Each write waits for a replica, and a primary without replicas refuses writes.
const WAITING: [&str; 3] = [
    "--set=database.replication.synchronous=any 1",
    "--set=database.settings.min-replicas-to-write=1",
    "--set=database.settings.min-replicas-max-lag=2",
];

/// The first tier's part of all that follows.
#[test]
fn redis_promotes_a_replica_within_seconds_and_keeps_the_writes_that_waited_for_one() {
    let test = "redis_promotes_a_replica_within_seconds";
    let brief = leader_off_briefly(10, 5);
    let arguments =
        [&["scenarios/redis.yaml", "--set", &brief, "--set", NOTHING_LOST], WAITING.as_slice()].concat();
    let Some(result) = ended(test, "redis", 0, &arguments) else { return };
    assert!(check(&result, "ledger")["acknowledged"].as_u64() > Some(100), "{result:#}");
    assert_eq!(check(&result, "bank")["verdict"], "pass", "{result:#}");
    assert!(result["faults"][0]["recovery_s"]["first_success"].is_number(), "{result:#}");
}

#[test]
#[ignore = "second tier: a scenario of its own, and Redis may have to be fetched"]
fn what_asynchronous_redis_acknowledged_on_the_wrong_side_of_a_partition_is_lost_and_named() {
    let test = "what_asynchronous_redis_acknowledged_on_the_wrong_side";
    let Some(result) = ended(test, "redis", 1, &["scenarios/redis.yaml"]) else { return };
    let ledger = check(&result, "ledger");
    assert!(ledger["lost"].as_u64() > Some(100), "{result:#}");
    assert_eq!(ledger["invented"], 0, "{result:#}");
    assert_eq!(
        check(&result, "bank")["verdict"],
        "fail",
        "acknowledged transfers are gone as well: {result:#}"
    );
}

#[test]
#[ignore = "second tier: a scenario of its own, and Redis may have to be fetched"]
fn redis_whose_writes_wait_for_a_replica_loses_nothing_that_it_acknowledged() {
    let test = "redis_whose_writes_wait_for_a_replica";
    let arguments = [&["scenarios/redis.yaml"], WAITING.as_slice()].concat();
    let Some(result) = ended(test, "redis", 0, &arguments) else { return };
    assert!(check(&result, "ledger")["acknowledged"].as_u64() > Some(1000), "{result:#}");
    assert_eq!(check(&result, "ledger")["lost"], 0, "{result:#}");
}
