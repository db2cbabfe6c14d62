//! Live migrations: shown when they happen, refuted when they do not, and given up when they cannot be made.

use crate::contract;
use crate::holdfast::Desk;
use crate::turns::beside_others;

#[test]
fn a_migration_has_a_receipt_and_one_that_cuts_connections_has_none() {
    let _turn = beside_others();
    let test = "a_migration_has_a_receipt_and_one_that_cuts_connections_has_none";
    let Some(desk) = Desk::with_a_lab(test) else { return };
    let result = desk.run(&["run", "scenarios/lies/migration.yaml"]).ends_with(0).result();
    contract::holds(&result);
    let evidence = result["faults"][0]["receipt"]["evidence"].to_string();
    for seen in [
        "were stopped at the start",
        "answered none of",
        "still answers",
        "packets to n1",
        "answers dc1 again",
    ] {
        assert!(evidence.contains(seen), "{seen}: {evidence}");
    }
    let migration = &result["migrations"][0];
    assert_eq!((migration["from"].as_str(), migration["to"].as_str()), (Some("dc1/a/h1"), Some("dc1/a/h2")));
    assert_eq!(migration["rounds"][0]["bytes"], 64 << 20, "{migration:#}");
    let connections = &migration["connections"];
    assert!(connections["before"].as_u64() >= Some(2), "the load's: {migration:#}");
    assert_eq!(connections["survived"], connections["before"], "{migration:#}");
    assert_eq!(connections["cut_off"], 0, "{migration:#}");
    assert_eq!(result["loads"][0]["errors"].as_object().map(serde_json::Map::len), Some(0), "{result:#}");

    let lying = desk.run(&["run", "scenarios/lies/migration.yaml", "--plant", "migration-drops"]);
    let result = lying.ends_with(2).result();
    let receipt = &result["faults"][0]["receipt"];
    assert_eq!(receipt["verdict"], "fail", "{receipt:#}");
    assert!(receipt["evidence"].to_string().contains("did not survive the migration"), "{receipt:#}");
    assert_ne!(result["migrations"][0]["connections"]["cut_off"], 0, "{result:#}");
}

#[test]
fn a_migration_that_cannot_converge_stays_and_says_why() {
    let _turn = beside_others();
    let Some(desk) = Desk::with_a_lab("a_migration_that_cannot_converge_stays_and_says_why") else { return };
    // A single round over a narrow link, while the load writes all the time.
    let scenario = "name: stays\nsite:\n  regions: { dc1: { zones: { a: { hosts: [h1, h2] }, b: { hosts: [c1] } } } }\n  \
                    edges: [ { name: card, around: h2, rate: 2Mbit/s } ]\n\
                    database: { engine: postgres, nodes: [h1], replication: { synchronous: off } }\n\
                    loads: [ { workload: ledger, clients: 4, from: dc1/b } ]\n\
                    schedule: [ { phase: baseline, for: 2s }, { phase: fault, for: 10s, faults: [ { migrate: { of: n1, to: \
                    h2, memory: 1MiB, max-rounds: 1 } } ] } ]\nexpect: { lost_writes: 0 }\n";
    std::fs::write(desk.path().join("stays.yaml"), scenario).expect("a scenario");
    let result = desk.run(&["run", "stays.yaml"]).ends_with(2).result();
    let migration = &result["migrations"][0];
    assert!(
        migration["given_up"].as_str().is_some_and(|why| why.contains("does not converge: after round 1")),
        "{migration:#}"
    );
    assert!(migration["stun_s"].is_null(), "{migration:#}");
    let receipt = &result["faults"][0]["receipt"];
    assert!(receipt["evidence"].to_string().contains("the node stays where it was"), "{receipt:#}");
}

/// n1 moves to the only host with room and stands still for 4 s; meanwhile n2's host is lost, and n2 is to start elsewhere.
const ONE_PLACE: &str = "
name: one-place
site: { regions: { dc1: { zones: { a: { hosts: [h1, h2, h3, h4] } } } } }
database:
  engine: control
  nodes: [h1, h2, h3]
  failover: { ha-restart: { after: 500ms } }
  platform: { host_nodes: 1 }
loads: [{ workload: ledger, clients: 1, rate: 40/s, from: dc1 }]
schedule:
  - { phase: baseline, for: 2s }
  - phase: fault
    for: 10s
    faults:
      - { migrate: { of: n1, to: h4, memory: 16MiB, stun: 4s }, at: 0s }
      - { power-off: { host: h2 }, at: 1500ms, for: 7s }
expect: { lost_writes: 0 }
";

#[test]
#[ignore = "second tier: a run of a quarter of a minute"]
fn a_host_that_a_node_moves_to_is_not_given_to_another_meanwhile() {
    let _turn = beside_others();
    let Some(desk) = Desk::with_a_lab("a_host_that_a_node_moves_to_is_not_given_to_another_meanwhile") else {
        return;
    };
    std::fs::write(desk.path().join("one-place.yaml"), ONE_PLACE).expect("a scenario");
    let finished = desk.run(&["run", "one-place.yaml"]);
    let result = finished.ends_with(0).result();
    assert_eq!(result["migrations"][0]["to"], "dc1/a/h4", "{result:#}");
    assert_eq!(result["placement"].as_array().map_or(0, Vec::len), 0, "{result:#}");
    let told = &finished.stdout;
    assert!(told.contains("n2 stays off until a host can run it"), "{told}");
    assert!(told.contains("boots on dc1/a/h1"), "the host that n1 has left: {told}");
}
