//! Receipts of network faults on real networks: what is asked is shown, and a lab that does otherwise is found out.

use serde_json::Value;

use crate::contract;
use crate::holdfast::{Desk, Finished};
use crate::turns::{beside_others, machine};

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
         loads: [ {{ workload: register, clients: 2, from: dc1, rate: 100/s }} ]\n\
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
    let Some(desk) = Desk::with_a_lab("honest_faults_of_a_network_are_shown") else { return };
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
    assert!(delay.contains("expected 50.00 ms ± 1.20 ms"), "{delay}");
    // The way back is not touched.
    assert!(delay.contains("from n2 to n1") && delay.contains("expected 10.00 ms ± 0.40 ms"), "{delay}");
    let cut = evidence(1);
    assert!(cut.contains("throughout the fault: 0 of ") && cut.contains("the fabric counted: 0 of"), "{cut}");
    let sent = cut
        .split("throughout the fault: 0 of ")
        .skip(1)
        .map(|rest| rest.split(' ').next().unwrap_or_default());
    let sent: Vec<u32> = sent.map(|count| count.replace(',', "").parse().expect("a count")).collect();
    assert!(!sent.is_empty() && sent.iter().all(|count| *count >= 500), "{sent:?}: {cut}");
    assert!(evidence(2).contains("got a reset"));
    assert_eq!(result["links_receipt"]["verdict"], "pass", "{:#}", result["links_receipt"]);
    finished.ends_with(0);
    contract::holds(&result);
}

#[test]
fn delays_that_are_nine_tenths_of_what_was_asked_are_found_out() {
    let _turn = beside_others();
    let Some(desk) = Desk::with_a_lab("delays_that_are_nine_tenths_of_what_was_asked_are_found_out") else {
        return;
    };
    let finished = run(&desk, &scenario("", &[DELAY]), &["--plant", "delay-short"]);
    let told = reasons(&finished.result());
    assert!(told.contains("expected 50.00 ms ± 1.20 ms; the delay is too short"), "{told}");
    finished.ends_with(2);
    // Those of the site's links too, without any fault.
    let links = "  links:\n    - { between: [dc1, dc2], delay: 50ms }\n";
    let finished = run(&desk, &scenario(links, &[]), &["--plant", "delay-short"]);
    let told = reasons(&finished.result());
    assert!(told.contains("the site's links do not behave as configured"), "{told}");
    finished.ends_with(2);
}

#[test]
fn a_partition_that_lets_one_packet_of_fifty_through_is_found_out() {
    let _turn = beside_others();
    let Some(desk) = Desk::with_a_lab("a_partition_that_lets_one_packet_of_fifty_through_is_found_out")
    else {
        return;
    };
    let finished = run(&desk, &scenario("", &[CUT]), &["--plant", "leak-packets"]);
    let told = reasons(&finished.result());
    let counted = told.split("the fabric counted: ").skip(1).filter(|told| !told.starts_with("0 of"));
    assert!(told.contains("has no receipt") && counted.count() > 0, "{told}");
    finished.ends_with(2);
}

#[test]
fn conditions_beside_each_other_each_have_their_receipt() {
    let _turn = beside_others();
    let Some(desk) = Desk::with_a_lab("conditions_beside_each_other_each_have_their_receipt") else { return };
    let jitter =
        "{ network: { from: dc1, to: dc2, delay: 30ms, jitter: { normal: 4ms }, reorder: 10% }, for: 3s }";
    let fates = "{ network: { from: dc1, to: dc2, loss: 10%, duplicate: 10%, corrupt: 10% }, for: 3s }";
    let finished = run(&desk, &scenario("", &[jitter, fates]), &[]);
    let result = finished.result();
    let evidence = |fault: usize| result["faults"][fault]["receipt"]["evidence"].to_string();
    for seen in ["fit a normal jitter of 4.00 ms around", "took less than", "expected 10 %"] {
        assert!(evidence(0).contains(seen), "{}", evidence(0));
    }
    for seen in ["were lost", "arrived twice", "arrived with a bit flipped", "the fabric counted"] {
        assert!(evidence(1).contains(seen), "{}", evidence(1));
    }
    finished.ends_with(0);
}

#[test]
fn conditions_of_which_half_is_imposed_are_each_found_out() {
    let _turn = beside_others();
    let Some(desk) = Desk::with_a_lab("conditions_of_which_half_is_imposed_are_each_found_out") else {
        return;
    };
    let lies =
        ["loss-half", "duplicates-half", "corruption-half", "reorder-half", "jitter-half", "large-packets"];
    let planted = lies.iter().flat_map(|lie| ["--plant", lie]);
    let arguments: Vec<&str> = ["run", "scenarios/lies/conditions.yaml"].into_iter().chain(planted).collect();
    let finished = desk.run(&arguments);
    let result = finished.result();
    let evidence = |fault: usize| {
        let receipt = &result["faults"][fault]["receipt"];
        assert_eq!(receipt["verdict"], "fail", "{receipt:#}");
        receipt["evidence"].as_array().expect("evidence").clone()
    };
    // What is said of a share that lies outside of its interval.
    let is_off = |fault: usize, what: &str| {
        let sentences = evidence(fault);
        let told = |sentence: &&Value| {
            let sentence = sentence.as_str().unwrap_or_default();
            sentence.contains(what) && sentence.contains("throughout the fault") && !counts_as_asked(sentence)
        };
        assert!(sentences.iter().any(|sentence| told(&sentence)), "{what}: {sentences:#?}");
    };
    is_off(0, "were lost");
    is_off(0, "arrived twice");
    is_off(0, "arrived with a bit flipped");
    is_off(1, "took less than");
    assert!(evidence(1).iter().any(|one| one.to_string().contains("jitter")), "{:#?}", evidence(1));
    assert!(evidence(2).iter().any(|one| one.to_string().contains("arrived whole")), "{:#?}", evidence(2));
    finished.ends_with(2);
}

/// Whether 10 % lies within the interval that a sentence states: `71 of 700 datagrams .. (7.0 to 14.2 %), expected 10 %`.
fn counts_as_asked(sentence: &str) -> bool {
    let interval = sentence.split_once('(').and_then(|(_, rest)| rest.split_once(" %)"));
    let ends = interval.and_then(|(interval, _)| interval.split_once(" to "));
    let number = |text: &str| text.parse::<f64>().expect("a share in percent");
    ends.is_none_or(|(low, high)| (number(low)..=number(high)).contains(&10.0))
}

#[test]
fn reordering_where_nothing_takes_time_is_refused_before_anything_is_started() {
    let desk = Desk::new();
    let fault = "{ network: { from: dc1, to: dc2, reorder: 20%, loss: 10% }, for: 3s }";
    let finished = run(&desk, &scenario("", &[fault]), &[]);
    let told = &finished.stderr;
    assert!(told.contains("nothing to overtake") && told.contains("add `delay: 3ms`"), "{told}");
    finished.ends_with(254);
}

/// A primary in one data centre and a standby in the other, behind an edge that carries more than the fault on the same way, and
/// a load that writes more than the fault lets through.
const FILLED: &str = "name: filled
site:
  regions:
    dc1: { zones: { a: { hosts: 1 } } }
    dc2: { zones: { a: { hosts: 1 } } }
  links:
    - { between: [dc1, dc2], delay: 2ms }
  edges:
    - { around: dc1, rate: 30Mbit/s }
database: { engine: postgres, nodes: [dc1, dc2], replication: { synchronous: any 1 }, failover: none }
loads:
  - { workload: tpcb, scale: 1, clients: 6, from: dc1 }
schedule:
  - { phase: baseline, for: 3s }
  - phase: fault
    for: 9s
    faults:
      - { network: { from: dc1, to: dc2, rate: 4Mbit/s, queue: 40 packets }, for: 8s }
  - { phase: recovery, for: 2s }
";

#[test]
#[ignore = "second tier: a rate of a link at rest is shown in the first, and twice a rate found out"]
fn a_rate_on_a_link_that_the_database_fills_is_shown_with_what_the_database_took_of_it() {
    let _turn = machine();
    let Some(desk) = Desk::with_a_lab("a_rate_on_a_link_that_the_database_fills_is_shown") else { return };
    let finished = run(&desk, FILLED, &[]);
    let result = finished.result();
    let (receipt, healed) = (&result["faults"][0]["receipt"], &result["faults"][0]["healed_receipt"]);
    assert_eq!(receipt["verdict"], "pass", "{receipt:#} {healed:#}");
    let told = receipt["evidence"].to_string();
    for seen in
        ["together with other traffic on the same link", "expected 4.00 Mbit/s", "a full queue of 40 packets"]
    {
        assert!(told.contains(seen), "{seen}: {told}");
    }
    finished.ends_with(0);
}

#[test]
fn twice_a_rate_beside_the_databases_traffic_is_found_out() {
    is_found_out("twice_a_rate_is_found_out", "rate-double", "the rate is too high");
}

#[test]
#[ignore = "second tier: the first has twice the rate"]
fn half_a_rate_beside_the_databases_traffic_is_found_out() {
    is_found_out("half_a_rate_is_found_out", "rate-half", "the rate is too low");
}

fn is_found_out(test: &str, lie: &str, seen: &str) {
    let _turn = machine();
    let Some(desk) = Desk::with_a_lab(test) else { return };
    let finished = run(&desk, FILLED, &["--plant", lie]);
    let result = finished.result();
    let receipt = &result["faults"][0]["receipt"];
    assert_ne!(receipt["verdict"], "pass", "{lie}: {receipt:#}");
    assert!(receipt["evidence"].to_string().contains(seen), "{lie}: {receipt:#}");
    finished.ends_with(2);
}
