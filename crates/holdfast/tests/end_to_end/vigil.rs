//! The lab watches itself and the nodes' processes: a lab that stood still, or a stranger at work, leaves no verdict `pass`.

use std::thread::sleep;
use std::time::Duration;

use crate::contract;
use crate::holdfast::Desk;
use crate::turns::beside_others;

/// Two nodes without faults.
const QUIET: &str = "name: quiet\nsite: { regions: { dc1: { zones: { a: { hosts: 2 } } } } }\n\
                     database: { engine: postgres, nodes: 2, replication: { synchronous: off } }\n\
                     loads: [ { workload: ledger, clients: 1, from: dc1, rate: 100/s } ]\n\
                     schedule: [ { phase: baseline, for: 10s } ]\nexpect: { lost_writes: 0 }\n";

#[test]
fn a_lab_that_stood_still_leaves_the_verdict_unknown_and_names_the_stretch() {
    let _turn = beside_others();
    let test = "a_lab_that_stood_still_leaves_the_verdict_unknown_and_names_the_stretch";
    let Some(desk) = Desk::with_a_lab(test) else { return };
    std::fs::write(desk.path().join("quiet.yaml"), QUIET).expect("a scenario");
    let result = desk.run(&["run", "quiet.yaml", "--set", "schedule.0.for=3s"]).ends_with(0).result();
    assert!(result["lab"]["stalls"].is_null() && result["lab"]["interference"].is_null(), "{result:#}");

    // What was measured while the lab stood still is not laid to the database.
    let judged = "expect={ lost_writes: 0, throughput_per_s: > 1000000/s }";
    let planted = desk.run(&["run", "quiet.yaml", "--plant", "lab-stall", "--set", judged]);
    let result = planted.ends_with(2).result();
    let figure = result["expectations"]
        .as_array()
        .and_then(|all| all.iter().find(|one| one["name"] == "throughput_per_s"));
    assert_eq!(figure.map(|figure| &figure["verdict"]), Some(&"unknown".into()), "{result:#}");
    let stall = &result["lab"]["stalls"][0];
    assert!(stall["length_s"].as_f64().expect("a length") > 4.0, "{stall:#}");
    assert!(result["reasons"].to_string().contains("the lab stalled"), "{result:#}");
    let report = std::fs::read_to_string(planted.run_directory().join("report.html")).expect("a report");
    assert!(report.contains("class=\"shade stall\""), "the stall is not drawn");
    contract::holds(&result);
}

#[test]
fn a_lab_that_nobody_watched_leaves_the_verdict_unknown_and_names_the_watch() {
    let _turn = beside_others();
    let test = "a_lab_that_nobody_watched_leaves_the_verdict_unknown_and_names_the_watch";
    let Some(desk) = Desk::with_a_lab(test) else { return };
    std::fs::write(desk.path().join("quiet.yaml"), QUIET).expect("a scenario");
    for lie in ["vigil-panic", "no-vigil"] {
        let planted = desk.run(&["run", "quiet.yaml", "--set", "schedule.0.for=4s", "--plant", lie]);
        let result = planted.ends_with(2).result();
        assert_eq!(result["lab"]["stalls"][0]["parts"][0]["part"], "watch", "{lie}: {result:#}");
        assert!(result["reasons"].to_string().contains("its watchdog"), "{lie}: {result:#}");
        assert!(planted.stdout.contains("STALL"), "{lie}: {}", planted.stdout);
        contract::holds(&result);
    }
}

/// Sends a signal to those of a node's PostgreSQL processes that the second word picks from their ids.
const SIGNAL: &str = "signal() { for p in /proc/[0-9]*; do read c < $p/comm; [ \"$c\" = postgres ] && echo ${p#/proc/}; done \
                      | eval \"$2\" | while read p; do kill -$1 $p; done; }; ";
/// All of them for a second; then one that is not the first: only the database's log tells of it.
const STOP_AND_KILL: &str =
    "signal STOP cat; sleep 1; signal CONT cat; signal KILL 'sort -n | tail -n 1'; sleep 1; ";

/// What a stranger does on the second node, in one visit: each takes its time to begin, and the run does not wait.
fn visit(desk: &Desk, does: &str) {
    desk.run(&["shell", "n2", "sh", "-c", &format!("{SIGNAL}{does}")]).ends_with(0);
}

#[test]
fn a_stranger_who_stops_and_kills_processes_of_a_node_is_named_and_leaves_the_verdict_unknown() {
    let _turn = beside_others();
    let name = "a_stranger_who_stops_and_kills_processes_of_a_node_is_named_and_leaves_the_verdict_unknown";
    let Some(desk) = Desk::with_a_lab(name) else { return };
    std::fs::write(desk.path().join("quiet.yaml"), QUIET).expect("a scenario");
    let running = desk.start(&["run", "quiet.yaml"]);
    assert!(running.says("phase baseline"));
    visit(&desk, &format!("{STOP_AND_KILL}signal KILL 'sort -n | head -n 1'"));
    let finished = running.wait();
    let result = finished.ends_with(2).result();
    let seen = result["lab"]["interference"].to_string();
    assert!(seen.contains("\"stopped\""), "{seen}");
    assert!(seen.contains("PostgreSQL's") && seen.contains("/postgres"), "{seen}");
    let reasons = result["reasons"].to_string();
    assert!(
        reasons.contains("outside the schedule") && reasons.contains("interference: expected"),
        "{reasons}"
    );
    assert!(finished.stdout.contains("INTERFERENCE"), "{}", finished.stdout);
    contract::holds(&result);
}

#[test]
fn a_stranger_whom_the_scenario_expects_is_named_and_leaves_no_doubt() {
    let _turn = beside_others();
    let test = "a_stranger_whom_the_scenario_expects_is_named_and_leaves_no_doubt";
    let Some(desk) = Desk::with_a_lab(test) else { return };
    std::fs::write(desk.path().join("quiet.yaml"), QUIET).expect("a scenario");
    let running = desk.start(&["run", "quiet.yaml", "--set", "database.interference=expected"]);
    assert!(running.says("phase baseline"));
    // A server that is told to end catches the signal, and ends in order.
    visit(&desk, &format!("{STOP_AND_KILL}signal TERM 'sort -n | head -n 1'"));
    let finished = running.wait();
    let result = finished.ends_with(0).result();
    let seen = result["lab"]["interference"].as_array().expect("what was seen");
    assert!(seen.iter().all(|of| of["expected"] == true), "{seen:?}");
    for done in ["stopped", "killed", "ended"] {
        assert!(seen.iter().any(|of| of["done"] == done), "{done}: {seen:?}");
    }
    assert!(finished.stdout.contains("INTERFERENCE"), "{}", finished.stdout);
    let report = std::fs::read_to_string(finished.run_directory().join("report.html")).expect("a report");
    assert!(report.contains("which the scenario expects"), "the report does not tell it");
    contract::holds(&result);
}

/// How long a server must have been in the background before a stranger's kill of it counts, and more.
const STANDS_FOR: Duration = Duration::from_secs(3);

#[test]
#[ignore = "second tier: Patroni may have to be fetched"]
fn a_stranger_who_kills_what_patroni_has_started_is_named_and_leaves_the_verdict_unknown() {
    let _turn = beside_others();
    let desk = Desk::new();
    let name = "a_stranger_who_kills_what_patroni_has_started_is_named_and_leaves_the_verdict_unknown";
    if !desk.can_have_a_lab(name) {
        return;
    }
    let quiet = QUIET.replace("hosts: 2", "hosts: 3").replace("postgres, nodes: 2", "patroni, nodes: 3");
    std::fs::write(desk.path().join("quiet.yaml"), quiet).expect("a scenario");
    let running = desk.start(&["run", "quiet.yaml", "--set", "schedule.0.for=20s"]);
    if !running.says("phase baseline") {
        let finished = running.wait();
        assert!(finished.stderr.contains("patroni could not be installed"), "{}", finished.stderr);
        eprintln!("skipped: {name}: no patroni is here, and none can be fetched");
        return;
    }
    // One that PostgreSQL has started: only its log, which is Patroni's, tells of it.
    visit(&desk, "signal KILL 'sort -n | tail -n 1'");
    sleep(STANDS_FOR);
    // PostgreSQL itself, which Patroni has started and left to the init.
    visit(&desk, "signal KILL 'sort -n | head -n 1'");
    let finished = running.wait();
    finished.ends_with(2);
    let result = finished.result();
    let seen = result["lab"]["interference"].to_string();
    assert!(seen.contains("\"program\":\"PostgreSQL's "), "{seen}");
    assert!(seen.contains("\"program\":\"postgres\""), "{seen}");
    let reasons = result["reasons"].to_string();
    assert!(reasons.contains("outside the schedule"), "{reasons}");
    contract::holds(&result);
}
