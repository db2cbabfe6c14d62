//! The network as scenarios draw it: every condition has its receipt, faults come and go, edges fill, packets can be read.

use serde_json::Value;

use crate::contract;
use crate::holdfast::Desk;
use crate::turns::{beside_others, machine};

/// Two data centres with two nodes, an edge around the second, and these phases with their faults.
fn scenario(faults: &[(&str, &str)]) -> String {
    let phases = faults.iter().enumerate().map(|(number, (length, fault))| {
        format!("  - {{ phase: fault-{number}, for: {length}, faults: [{fault}] }}\n")
    });
    format!(
        "name: drawn\nsite:\n  regions:\n    dc1: {{ zones: {{ a: {{ hosts: 1 }} }} }}\n    \
         dc2: {{ zones: {{ a: {{ hosts: 1 }} }} }}\n  links:\n    - {{ between: [dc1, dc2], delay: 5ms }}\n  \
         edges:\n    - {{ around: dc2, rate: 100Mbit/s, queue: 200 packets }}\n  busy-poll: 20us\n\
         database: {{ engine: postgres, nodes: [dc1, dc2], replication: {{ synchronous: off }} }}\n\
         loads: [ {{ workload: ledger, clients: 1, rate: 50/s, from: dc1 }} ]\n\
         schedule:\n  - {{ phase: baseline, for: 2s }}\n{}expect: {{ lost_writes: 0 }}\n",
        phases.collect::<String>()
    )
}

fn evidence(result: &Value, fault: usize) -> String {
    let receipt = &result["faults"][fault]["receipt"];
    assert_eq!(receipt["verdict"], "pass", "{receipt:#}");
    receipt["evidence"].to_string()
}

#[test]
fn every_condition_of_a_network_has_its_receipt_and_its_links_are_counted() {
    let _turn = beside_others();
    let Some(desk) = Desk::with_a_lab("every_condition_of_a_network_has_its_receipt") else { return };
    let text = scenario(&[
        ("8s", "{ network: { from: dc1, to: dc2, duplicate: 10%, reorder: 20%, loss: 5% }, for: 7s }"),
        ("9s", "{ network: { from: dc1, to: dc2, rate: 20Mbit/s, queue: 50 packets, mtu: 1400B }, for: 6s }"),
        ("5s", "{ partition: { from: dc1, to: dc2 }, for: 4500ms, flap: { down: 1s, up: 500ms } }"),
    ]);
    std::fs::write(desk.path().join("scenarios/drawn.yaml"), text).expect("a scenario");
    let finished = desk.run(&["run", "scenarios/drawn.yaml", "--capture", "n2", "--capture", "dc1 -> dc2"]);
    let result = finished.result();
    let fates = evidence(&result, 0);
    for seen in [
        "were lost (",
        "expected 5 %",
        "arrived twice (",
        "expected 10 %",
        "took less than",
        "expected 20 %",
        "throughout the fault",
    ] {
        assert!(fates.contains(seen), "{seen}: {fates}");
    }
    let capacity = evidence(&result, 1);
    for seen in [
        "packets of 1400 bytes",
        "packets of 1401 bytes",
        "expected 20.00 Mbit/s",
        "a full queue of 50 packets",
    ] {
        assert!(capacity.contains(seen), "{seen}: {capacity}");
    }
    let flapping = evidence(&result, 2);
    assert!(flapping.contains("in between") && flapping.contains("arrived (0.0 to "), "{flapping}");
    finished.ends_with(0);
    let links = result["links"].as_array().expect("links");
    let edge = links.iter().find(|link| link["name"] == "edge-of-dc2 in").expect("the edge");
    assert_eq!(edge["rate_bits_per_s"], 100_000_000);
    assert!(edge["bytes"].as_u64() > Some(10_000), "{edge:#}");
    let directory = finished.run_directory();
    let csv = std::fs::read_to_string(directory.join("links.csv")).expect("links.csv");
    assert!(csv.lines().count() > 17 * 2, "{csv}");
    let events = std::fs::read_to_string(directory.join("events.jsonl")).expect("events.jsonl");
    for occasion in ["before the load", "fault 1 is active", "fault 3 has healed"] {
        assert!(events.contains(occasion), "no round trips {occasion}");
    }
    for capture in ["n2.pcap", "dc1-to-dc2.pcap"] {
        let bytes = std::fs::read(directory.join("captures").join(capture)).expect(capture);
        assert_eq!(bytes[..4], 0xa1b2_3c4d_u32.to_le_bytes(), "{capture}");
        assert!(bytes.len() > 10_000, "{capture} holds {} bytes", bytes.len());
    }
    contract::holds(&result);
}

#[test]
#[ignore = "a scenario of its own; part of `cargo xtask test --all`"]
fn the_rebuild_of_a_follower_saturates_the_edge_it_must_pass() {
    let _turn = machine();
    let Some(desk) = Desk::with_a_lab("the_rebuild_of_a_follower_saturates_the_edge") else { return };
    let finished = desk.run(&[
        "run",
        "scenarios/fr1-topologies-edge.yaml",
        "--set=site.edges.0.rate=5Mbit/s",
        "--set=schedule.0.for=1s",
        "--set=schedule.1.for=3s",
        "--set=schedule.2.for=14s",
        "--set=schedule.2.faults.0.for=6s",
        "--set=schedule.3.for=1s",
    ]);
    let result = finished.ends_with(0).result();
    let links = result["links"].as_array().expect("links");
    let edge = links.iter().find(|link| link["name"] == "edge in").expect("the edge");
    assert!(edge["utilisation_max"].as_f64() > Some(0.9), "{edge:#}");
    contract::holds(&result);
}

#[test]
fn what_is_not_there_cannot_be_captured() {
    let desk = Desk::new();
    let finished = desk.run(&["run", "scenarios/host-failure.yaml", "--capture", "n7"]);
    finished.ends_with(254);
    assert!(
        finished.stderr.contains("`n7`") && finished.stderr.contains("n1, n2, n3"),
        "{}",
        finished.stderr
    );
}
