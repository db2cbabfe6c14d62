//! Receipts of network faults on real networks: what is asked is shown, and a lab that does otherwise is found out.

use serde_json::Value;

use crate::contract;
use crate::holdfast::{Desk, Finished};
use crate::turns::beside_others;

/// Three nodes of the control database in two data centres, and these phases with their faults.
fn scenario(links: &str, faults: &[&str]) -> String {
    let phases = faults
        .iter()
        .enumerate()
        .map(|(number, fault)| format!("  - {{ phase: fault-{number}, for: 4s, faults: [{fault}] }}\n"));
    format!(
        "name: receipts\nsite:\n  regions:\n    dc1: {{ zones: {{ a: {{ hosts: 1 }} }} }}\n    \
         dc2: {{ zones: {{ a: {{ hosts: 1 }}, b: {{ hosts: 1 }} }} }}\n{links}\
         database: {{ engine: control, nodes: 3, replication: {{ synchronous: any 1 }}, failover: none }}\n\
         loads: [ {{ workload: register, clients: 2, from: dc1 }} ]\n\
         schedule:\n  - {{ phase: baseline, for: 2s }}\n{}",
        phases.collect::<String>()
    )
}

fn run(desk: &Desk, text: &str, arguments: &[&str]) -> Finished {
    std::fs::write(desk.path().join("scenarios/receipts.yaml"), text).expect("a scenario");
    desk.run(&[&["run", "scenarios/receipts.yaml"], arguments].concat())
}

const DELAY: &str = "{ network: { from: dc1, to: dc2, delay: 50ms }, for: 2500ms }";
const CUT: &str = "{ partition: { isolate: leader }, for: 2500ms }";

fn reasons(result: &Value) -> String {
    result["reasons"].to_string()
}

#[test]
fn honest_faults_of_a_network_are_shown_with_their_intervals_and_counts() {
    let _turn = beside_others();
    let desk = Desk::new();
    if !desk.can_have_a_lab("honest_faults_of_a_network_are_shown") {
        return;
    }
    let links = "  links:\n    - { between: [dc1, dc2], delay: 10ms }\n";
    let reset = "{ partition: { from: dc1, to: dc2, answer: reset }, for: 2500ms }";
    let finished = run(&desk, &scenario(links, &[DELAY, CUT, reset]), &[]);
    let result = finished.result();
    let evidence = |fault: usize| {
        let receipt = &result["faults"][fault]["receipt"];
        assert_eq!(receipt["verdict"], "pass", "{receipt:#}");
        receipt["evidence"].to_string()
    };
    let delay = evidence(0);
    assert!(delay.contains("asked 50.00 ms give or take 1.20 ms"), "{delay}");
    // The way back is not touched.
    assert!(
        delay.contains("from n2 to n1") && delay.contains("asked 10.00 ms give or take 0.40 ms"),
        "{delay}"
    );
    let cut = evidence(1);
    assert!(
        cut.contains("all the time it stood: 0 of ") && cut.contains("by the fabric's own count 0 of"),
        "{cut}"
    );
    assert!(evidence(2).contains("were refused to their sender"));
    assert_eq!(result["links_receipt"]["verdict"], "pass", "{:#}", result["links_receipt"]);
    finished.ends_with(0);
    contract::holds(&result);
}

#[test]
fn delays_that_are_nine_tenths_of_what_was_asked_are_found_out() {
    let _turn = beside_others();
    let desk = Desk::new();
    if !desk.can_have_a_lab("delays_that_are_nine_tenths_of_what_was_asked_are_found_out") {
        return;
    }
    let finished = run(&desk, &scenario("", &[DELAY]), &["--plant", "delay-short"]);
    let told = reasons(&finished.result());
    assert!(told.contains("asked 50.00 ms give or take 1.20 ms; the delay is shorter than asked"), "{told}");
    finished.ends_with(2);
    // Those of the site's links too, without any fault.
    let links = "  links:\n    - { between: [dc1, dc2], delay: 50ms }\n";
    let finished = run(&desk, &scenario(links, &[]), &["--plant", "delay-short"]);
    let told = reasons(&finished.result());
    assert!(told.contains("the site's links do not do what was asked of them"), "{told}");
    finished.ends_with(2);
}

#[test]
fn a_partition_that_lets_one_packet_of_fifty_through_is_found_out() {
    let _turn = beside_others();
    let desk = Desk::new();
    if !desk.can_have_a_lab("a_partition_that_lets_one_packet_of_fifty_through_is_found_out") {
        return;
    }
    let finished = run(&desk, &scenario("", &[CUT]), &["--plant", "leak-packets"]);
    let told = reasons(&finished.result());
    let counted = told.split("by the fabric's own count ").skip(1).filter(|told| !told.starts_with("0 of"));
    assert!(told.contains("has no receipt") && counted.count() > 0, "{told}");
    finished.ends_with(2);
}

#[test]
fn conditions_beside_each_other_each_have_their_receipt() {
    let _turn = beside_others();
    let desk = Desk::new();
    if !desk.can_have_a_lab("conditions_beside_each_other_each_have_their_receipt") {
        return;
    }
    let jitter =
        "{ network: { from: dc1, to: dc2, delay: 30ms, jitter: { normal: 4ms }, reorder: 10% }, for: 3s }";
    let fates = "{ network: { from: dc1, to: dc2, loss: 10%, duplicate: 10%, corrupt: 10% }, for: 3s }";
    let finished = run(&desk, &scenario("", &[jitter, fates]), &[]);
    let result = finished.result();
    let evidence = |fault: usize| result["faults"][fault]["receipt"]["evidence"].to_string();
    for seen in ["fit a normal jitter of 4.00 ms around", "took less than", "asked 10 %"] {
        assert!(evidence(0).contains(seen), "{}", evidence(0));
    }
    for seen in ["were lost", "arrived twice", "arrived with a bit flipped"] {
        assert!(evidence(1).contains(seen), "{}", evidence(1));
    }
    finished.ends_with(0);
}

#[test]
fn reordering_where_nothing_takes_time_has_no_receipt_and_says_why() {
    let _turn = beside_others();
    let desk = Desk::new();
    if !desk.can_have_a_lab("reordering_where_nothing_takes_time_has_no_receipt") {
        return;
    }
    let fault = "{ network: { from: dc1, to: dc2, reorder: 20%, loss: 10% }, for: 3s }";
    let finished = run(&desk, &scenario("", &[fault]), &[]);
    let told = reasons(&finished.result());
    assert!(told.contains("reordering from n1 to n2 cannot be seen"), "{told}");
    finished.ends_with(2);
}
