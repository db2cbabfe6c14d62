//! A platform that forgets its rules is caught by the run's own events, and an honest one says why a node stays off.

use crate::holdfast::Desk;
use crate::traces::Before;
use crate::turns::beside_others;

const SCENARIO: &str = "scenarios/lies/placement.yaml";

#[test]
fn a_platform_that_forgets_its_rules_is_caught_and_an_honest_one_says_why_a_node_stays_off() {
    let _turn = beside_others();
    let Some(desk) = Desk::with_a_lab("a_platform_that_forgets_its_rules_is_caught") else { return };
    let before = Before::look(&desk);
    let lying = desk.run(&["run", SCENARIO, "--plant", "rules-forgotten"]);
    let reasons = lying.ends_with(2).result()["reasons"].to_string();
    assert!(reasons.contains("run together although rule 1 keeps them apart"), "{reasons}");
    let honest = desk.run(&["run", SCENARIO]);
    honest.ends_with(0);
    let events = std::fs::read_to_string(honest.run_directory().join("events.jsonl")).expect("events");
    for said in
        ["stays off until a host can run it", "must not share a host", "because its host has power again"]
    {
        assert!(events.contains(said), "{said}: {events}");
    }
    before.nothing_is_left(&[]);
}

#[test]
fn a_node_that_was_restarted_elsewhere_moves_home_live_when_its_host_is_back() {
    let _turn = beside_others();
    let test = "a_node_that_was_restarted_elsewhere_moves_home_live_when_its_host_is_back";
    let Some(desk) = Desk::with_a_lab(test) else { return };
    let scenario = "name: home\nsite: { regions: { dc1: { zones: { a: { hosts: 4 } } } } }\n\
                    database: { engine: control, nodes: [dc1/a/h1, dc1/a/h2, dc1/a/h3], failover: { ha-restart: { after: 1500ms } }, \
                    platform: { drs: conservative } }\n\
                    loads: [ { workload: ledger, clients: 1, rate: 40/s, from: dc1 } ]\n\
                    schedule: [ { phase: baseline, for: 3s }, { phase: fault, for: 14s, faults: [ { power-off: { host: dc1/a/h3 }, \
                    for: 3s } ] } ]\nexpect: { lost_writes: 0 }\n";
    std::fs::write(desk.path().join("home.yaml"), scenario).expect("a scenario");
    let finished = desk.run(&["run", "home.yaml"]);
    let migrations = &finished.ends_with(0).result()["migrations"];
    let moved = |key: &str| migrations[0][key].as_str().map(str::to_owned);
    assert_eq!(moved("node").as_deref(), Some("n3"), "{migrations:#}");
    assert_eq!(moved("from").as_deref(), Some("dc1/a/h4"), "{migrations:#}");
    assert_eq!(moved("to").as_deref(), Some("dc1/a/h3"), "{migrations:#}");
    assert!(migrations[0]["given_up"].is_null() && migrations[1].is_null(), "{migrations:#}");
    assert!(finished.stdout.contains("it began there, and the host is back"), "{}", finished.stdout);
}

/// n3's host fails while a spare one is there, then n2's while the spare one is off too.
#[test]
#[ignore = "second tier: four databases, two minutes each"]
fn on_four_engines_a_node_moves_home_live_and_one_that_no_host_has_memory_for_stays_off() {
    let _turn = beside_others();
    let test = "on_four_engines_a_node_moves_home_live_and_one_that_no_host_has_memory_for_stays_off";
    let Some(desk) = Desk::with_a_lab(test) else { return };
    for engine in ["etcd", "postgres", "patroni", "cassandra"] {
        let copies = if engine == "cassandra" { "replication: { copies: 3 }, " } else { "" };
        let scenario = format!(
            "name: {engine}\nsite: {{ regions: {{ dc1: {{ zones: {{ a: {{ hosts: 4 }} }} }} }} }}\n\
             database: {{ engine: {engine}, {copies}nodes: [dc1/a/h1, dc1/a/h2, dc1/a/h3], \
             failover: {{ ha-restart: {{ after: 2s }} }}, \
             platform: {{ drs: conservative, host_memory: 2GiB, node_memory: 2GiB }} }}\n\
             loads: [ {{ workload: ledger, clients: 1, rate: 20/s, from: dc1 }} ]\n\
             schedule: [ {{ phase: baseline, for: 5s }}, \
             {{ phase: spare, for: 35s, faults: [ {{ power-off: {{ host: dc1/a/h3 }}, for: 8s }} ] }}, \
             {{ phase: full, for: 15s, faults: [ {{ power-off: {{ host: dc1/a/h4 }}, for: 14s }}, \
             {{ power-off: {{ host: dc1/a/h2 }}, at: 1s, for: 8s }} ] }}, {{ phase: recovery, for: 25s }} ]\n\
             expect: {{ lost_writes: 0, invented_writes: 0 }}\n"
        );
        std::fs::write(desk.path().join("home.yaml"), scenario).expect("a scenario");
        let finished = desk.run(&["run", "home.yaml"]);
        let migrations = &finished.ends_with(0).result()["migrations"];
        let home = &migrations[0];
        let said = &finished.stdout;
        assert!(said.contains("n3, lost with dc1/a/h3, boots on dc1/a/h4"), "{engine}: {said}");
        assert_eq!(
            [&home["node"], &home["from"], &home["to"]],
            ["n3", "dc1/a/h4", "dc1/a/h3"],
            "{engine}: {migrations:#}"
        );
        assert!(home["given_up"].is_null() && migrations[1].is_null(), "{engine}: {migrations:#}");
        let events = std::fs::read_to_string(finished.run_directory().join("events.jsonl")).expect("events");
        assert!(events.contains("n2 stays off until a host can run it"), "{engine}: {events}");
    }
}

/// n3 has to start beside another node, for the free host is off. When that is back and n3's own is not, one host runs two and one none.
#[test]
#[ignore = "second tier: two runs of half a minute"]
fn eager_moves_even_hosts_out_where_conservative_ones_leave_a_node_that_cannot_go_home() {
    let _turn = beside_others();
    let test = "eager_moves_even_hosts_out_where_conservative_ones_leave_a_node_that_cannot_go_home";
    let Some(desk) = Desk::with_a_lab(test) else { return };
    for (drs, moves) in [("eager", true), ("conservative", false)] {
        let scenario = format!(
            "name: crowded\nsite: {{ regions: {{ dc1: {{ zones: {{ a: {{ hosts: 4 }} }} }} }} }}\n\
             database: {{ engine: control, nodes: [dc1/a/h1, dc1/a/h2, dc1/a/h3], failover: {{ ha-restart: {{ after: 1500ms }} }}, \
             platform: {{ drs: {drs} }} }}\n\
             loads: [ {{ workload: ledger, clients: 1, rate: 40/s, from: dc1 }} ]\n\
             schedule: [ {{ phase: baseline, for: 3s }}, {{ phase: fault, for: 18s, faults: [ {{ power-off: {{ host: dc1/a/h4 }}, \
             for: 7s }}, {{ power-off: {{ host: dc1/a/h3 }}, at: 1s }} ] }} ]\nexpect: {{ lost_writes: 0 }}\n"
        );
        std::fs::write(desk.path().join("crowded.yaml"), scenario).expect("a scenario");
        let finished = desk.run(&["run", "crowded.yaml"]);
        let migrations = &finished.ends_with(0).result()["migrations"];
        let said = &finished.stdout;
        assert!(said.contains("n3, lost with dc1/a/h3, boots on dc1/a/h"), "{said}");
        // When h3 has power again at the end, n3 may go home.
        let away = migrations.as_array().into_iter().flatten().find(|moved| moved["to"] == "dc1/a/h4");
        assert_eq!(away.is_some(), moves, "{drs}: {migrations:#}");
        if let Some(away) = away {
            assert!(away["node"] == "n3" && away["given_up"].is_null(), "{away:#}");
            assert!(said.contains("one host runs 2 nodes, the other 0"), "{said}");
        }
    }
}

#[test]
#[ignore = "second tier: two runs of a quarter of a minute"]
fn a_node_of_an_isolated_host_runs_on_or_is_switched_off_and_restarted_elsewhere_as_the_response_says() {
    let _turn = beside_others();
    let name =
        "a_node_of_an_isolated_host_runs_on_or_is_switched_off_and_restarted_elsewhere_as_the_response_says";
    let Some(desk) = Desk::with_a_lab(name) else { return };
    for (response, told) in [
        ("leave-running", "n2 runs on there, as the isolation response says"),
        ("power-off", "n2 is switched off, as the isolation response says; no process of n2 is left"),
    ] {
        let scenario = format!(
            "name: isolated\nsite: {{ regions: {{ dc1: {{ zones: {{ a: {{ hosts: 4 }} }} }} }} }}\n\
             database: {{ engine: control, nodes: 3, failover: {{ ha-restart: {{ after: 2s }} }}, \
             platform: {{ isolation: {response} }} }}\n\
             loads: [ {{ workload: ledger, clients: 1, rate: 40/s, from: dc1 }} ]\n\
             schedule: [ {{ phase: baseline, for: 3s }}, {{ phase: fault, for: 12s, faults: [ {{ partition: {{ isolate: \
             dc1/a/h2 }}, for: 9s }} ] }} ]\nexpect: {{ lost_writes: 0 }}\n"
        );
        std::fs::write(desk.path().join("isolated.yaml"), scenario).expect("a scenario");
        let finished = desk.run(&["run", "isolated.yaml"]);
        finished.ends_with(0);
        let said = &finished.stdout;
        assert!(said.contains("dc1/a/h2 has reached no other host for 2.0 s"), "{said}");
        assert!(said.contains(told), "{response}: {said}");
        assert_eq!(
            said.contains("n2, lost with dc1/a/h2, boots on dc1/a/h4"),
            response == "power-off",
            "{said}"
        );
        assert!(!said.contains("n1 is switched off") && !said.contains("n3 is switched off"), "{said}");
    }
}
