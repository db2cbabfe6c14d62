//! A power-off takes what was not synced: a database that syncs before it acknowledges loses nothing, one that does not
//! is caught; and where volumes are plain directories, the run says so.

use serde_json::Value;

use crate::holdfast::{Desk, Finished, SHORT, arguments};
use crate::traces::Before;
use crate::turns::{beside_others, machine};

/// Two power-offs instead of six.
const TWO_POWER_OFFS: [&str; 2] = [
    "--set=schedule=[{ phase: baseline, for: 2s }, { phase: power-offs, for: 10s, faults: [{ power-off: { host: dc1/a/h1 }, \
     at: 0s, for: 1s }, { power-off: { host: dc1/a/h1 }, at: 5s, for: 1s }] }]",
    "--set=loads.0.clients=3",
];

fn evidence(finished: &Finished) -> String {
    finished.result()["faults"][0]["receipt"]["evidence"].to_string()
}

#[test]
fn a_database_that_syncs_before_it_acknowledges_loses_nothing_over_repeated_power_offs() {
    let _turn = beside_others();
    let Some(desk) = Desk::with_a_lab("a_database_that_syncs_before_it_acknowledges") else { return };
    let before = Before::look(&desk);
    let finished = desk.run(&arguments(&[&["run", "scenarios/power-loss.yaml"], &TWO_POWER_OFFS]));
    let result = finished.ends_with(0).result();
    assert!(result["checks"][0]["acknowledged"].as_u64() > Some(100), "{}", result["checks"]);
    assert_eq!(result["volumes"][0]["replicas"], 1, "{}", result["volumes"]);
    assert!(result["lab"]["cpu_seconds"]["disk"].as_f64() > Some(0.0), "{}", result["lab"]);
    let evidence = evidence(&finished);
    assert!(evidence.contains("the volume of n1 lost what was not synced"), "{evidence}");
    for fault in result["faults"].as_array().expect("faults") {
        let marks = fault["receipt"]["evidence"].to_string();
        assert!(
            marks.contains("n1: 4 synced marks are there") && marks.contains("unsynced marks are gone"),
            "{marks}"
        );
    }
    let page = std::fs::read_to_string(finished.run_directory().join("report.html")).expect("a report");
    assert!(!page.contains("Whether unsynced data survives"), "the report still says that it proves nothing");
    before.nothing_is_left(&[]);
}

#[test]
#[ignore = "second tier: fifty power-offs take three minutes"]
fn every_row_acknowledged_over_fifty_power_offs_under_load_is_there() {
    let _turn = machine();
    let Some(desk) = Desk::with_a_lab("every_row_acknowledged_over_fifty_power_offs") else { return };
    let before = Before::look(&desk);
    // Not in step with anything the database does.
    let at = |number: u32| number * 3400 + number * 37 % 7 * 100;
    let off = |number: u32| format!("{{ power-off: {{ host: dc1/a/h1 }}, at: {}ms, for: 1s }}", at(number));
    let faults: Vec<String> = (0..50).map(off).collect();
    let schedule = format!(
        "schedule=[{{ phase: baseline, for: 2s }}, {{ phase: power-offs, for: 171s, faults: [{}] }}, {{ phase: recovery, \
         for: 3s }}]",
        faults.join(", ")
    );
    let result = desk.run(&["run", "scenarios/power-loss.yaml", "--set", &schedule]).ends_with(0).result();
    assert_eq!(result["faults"].as_array().map(Vec::len), Some(50));
    let ledger = &result["checks"][0];
    assert!(ledger["acknowledged"].as_u64() > Some(1000) && ledger["lost"] == 0, "{ledger}");
    eprintln!("fifty power-offs: {ledger}");
    before.nothing_is_left(&[]);
}

#[test]
fn a_database_that_acknowledges_before_it_syncs_is_caught_with_the_rows_it_lost() {
    let _turn = beside_others();
    let Some(desk) = Desk::with_a_lab("a_database_that_acknowledges_before_it_syncs") else { return };
    let before = Before::look(&desk);
    let brief = "schedule=[{ phase: baseline, for: 3s }, { phase: power-off, for: 5s, faults: [{ power-off: { host: dc1/a/h1 \
                 }, at: 0s, for: 1s }] }]";
    let finished = desk.run(&["run", "scenarios/power-loss-no-fsync.yaml", "--set", brief]);
    let result = finished.ends_with(1).result();
    let ledger = &result["checks"][0];
    assert!(ledger["lost"].as_u64() > Some(100), "{ledger}");
    assert!(ledger["explanation"].to_string().contains("was acknowledged"), "{ledger}");
    let fault = &result["faults"][0];
    assert_eq!(fault["lost_writes"], ledger["lost"], "{fault}");
    before.nothing_is_left(&[]);
}

#[test]
#[ignore = "a scenario of its own; part of `cargo xtask test --all`"]
fn on_plain_directories_nothing_is_lost_and_the_report_says_that_this_proves_nothing() {
    let _turn = machine();
    let Some(desk) = Desk::with_a_lab("on_plain_directories_nothing_is_lost") else { return };
    let plain = ["--set", "database.volumes=directory"];
    let finished = desk.run(&arguments(&[&["run", "scenarios/power-loss-no-fsync.yaml"], &SHORT, &plain]));
    let result = finished.ends_with(0).result();
    assert_eq!(result["volumes"], Value::Array(Vec::new()));
    let evidence = evidence(&finished);
    assert!(evidence.contains("its volume is a plain directory, which loses nothing"), "{evidence}");
    assert!(!evidence.contains("the volume of"), "{evidence}");
    let page = std::fs::read_to_string(finished.run_directory().join("report.html")).expect("a report");
    assert!(page.contains("Whether unsynced data survives"), "the report promises what was not tested");
}

#[test]
fn an_ordinary_user_has_virtual_disks_as_well() {
    let _turn = beside_others();
    let test = "an_ordinary_user_has_virtual_disks_as_well";
    let Some(desk) = Desk::of_an_ordinary_user(test).filter(|desk| desk.has_fuse(test)) else { return };
    let before = Before::look(&desk);
    let finished = desk.run(&arguments(&[&["run", "scenarios/power-loss.yaml"], &TWO_POWER_OFFS]));
    finished.ends_with(0);
    assert_ne!(finished.result()["volumes"], Value::Array(Vec::new()), "on virtual disks");
    before.nothing_is_left(&[]);
}
