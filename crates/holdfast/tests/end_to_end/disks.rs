//! Disks go wrong under a real database: each fault has its receipts, a database that keeps its word loses nothing, and a
//! disk that lies is found out.

use serde_json::Value;

use crate::holdfast::{Desk, Finished, ON_CONTROL, arguments};
use crate::traces::Before;
use crate::turns::{beside_others, machine};

/// Runs a shipped scenario with these settings; it must end with this code, every fault shown to have taken effect and to
/// have healed, and nothing may be left of it. With the desk, on which the run directory lies; `None` where there can be no
/// lab.
#[track_caller]
fn check(test: &str, scenario: &str, settings: &[&str], code: i32) -> Option<(Desk, Finished)> {
    let _turn = beside_others();
    let desk = Desk::with_a_lab(test)?;
    let before = Before::look(&desk);
    let path = format!("scenarios/{scenario}.yaml");
    let mut given = vec!["run", path.as_str()];
    for setting in settings {
        given.extend(["--set", setting]);
    }
    let finished = desk.run(&arguments(&[&given]));
    finished.ends_with(code);
    for fault in finished.result()["faults"].as_array().expect("faults") {
        assert_eq!(fault["receipt"]["verdict"], "pass", "{fault:#}");
        assert!(fault["took_effect_s"].is_f64() && fault["healed_s"].is_f64(), "{fault:#}");
    }
    before.nothing_is_left(&[]);
    Some((desk, finished))
}

fn evidence(finished: &Finished, fault: usize) -> String {
    finished.result()["faults"][fault]["receipt"]["evidence"].to_string()
}

/// The log of the only node's database.
fn log(finished: &Finished) -> String {
    std::fs::read_to_string(finished.run_directory().join("logs/n1/postgres")).expect("a log")
}

#[test]
fn rows_acknowledged_on_the_word_of_a_disk_that_loses_flushes_are_found_missing_after_a_power_off() {
    let brief = "schedule=[{ phase: baseline, for: 1s }, { phase: lost-flush, for: 6s, faults: [{ disk: { of: leader, how: \
                 lose-flush }, for: 4s }, { power-off: { host: dc1/a/h1 }, at: 2s, for: 1s }] }]";
    let name = "rows_acknowledged_on_the_word_of_a_disk_that_loses_flushes";
    let Some((_desk, finished)) = check(name, "disk-faults-lost-flush", &[brief], 1) else { return };
    let result = finished.result();
    let ledger = &result["checks"][0];
    assert!(ledger["lost"].as_u64() > Some(0), "{ledger}");
    let evidence = evidence(&finished, 0);
    assert!(evidence.contains("was lost at a power-off of the probe"), "{evidence}");
    assert!(evidence.contains("syncs acknowledged but not durable"), "{evidence}");
}

#[test]
fn a_disk_that_stalls_and_then_fails_for_a_while_costs_no_acknowledged_row() {
    let schedule = "schedule=[{ phase: baseline, for: 1s }, { phase: stall, for: 4s, faults: [{ disk: { of: leader, \
                    how: stall }, for: 3s }] }, { phase: fail, for: 4s, faults: [{ disk: { of: leader, how: fail }, \
                    for: 2s }] }]";
    let name = "a_disk_that_stalls_and_then_fails_for_a_while";
    let Some((_desk, finished)) = check(name, "disk-faults", &[schedule], 0) else { return };
    assert!(finished.result()["checks"][0]["acknowledged"].as_u64() > Some(10));
    let stalled = evidence(&finished, 0);
    assert!(stalled.contains("a sync not answered within"), "{stalled}");
    let failed = evidence(&finished, 1);
    assert!(failed.contains("a write refused with EIO"), "{failed}");
    assert!(log(&finished).contains("Input/output error"), "the database met no error");
}

#[test]
#[ignore = "second tier: the shipped scenario as it is, most of a minute"]
fn a_disk_may_stall_slow_down_fill_up_and_fail_and_nothing_acknowledged_is_lost() {
    let name = "a_disk_may_stall_slow_down_fill_up_and_fail";
    let Some((_desk, finished)) = check(name, "disk-faults", &[], 0) else { return };
    assert!(log(&finished).contains("No space left on device"), "the database met no full disk");
}

#[test]
#[ignore = "second tier: the shipped scenario as it is, half a minute"]
fn wrong_reads_are_noticed_by_the_databases_checksums_and_are_right_again_when_the_disk_is() {
    let name = "wrong_reads_are_noticed_by_the_databases_checksums";
    let Some((_desk, finished)) = check(name, "disk-faults-corruption", &[], 0) else { return };
    let evidence = evidence(&finished, 0);
    assert!(evidence.contains("returned wrong data"), "{evidence}");
    assert!(log(&finished).contains("page verification failed"), "no checksum noticed anything: {evidence}");
}

#[test]
#[ignore = "second tier: the shipped scenario as it is, more than a minute"]
fn a_cache_disk_takes_its_group_and_a_standby_takes_over_without_loss() {
    let name = "a_cache_disk_takes_its_group_and_a_standby_takes_over";
    let Some((_desk, finished)) = check(name, "fr2-disks", &[], 0) else { return };
    let hit = &finished.result()["faults"][1];
    assert!(evidence(&finished, 1).matches("a write refused with EIO").count() == 4, "{hit:#}");
    let events = std::fs::read_to_string(finished.run_directory().join("events.jsonl")).expect("events");
    let actions: Vec<String> = events
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .filter(|event| event["event"] == "platform")
        .filter_map(|event| event["action"].as_str().map(str::to_owned))
        .collect();
    for wanted in ["fence", "promote", "rejoin"] {
        assert!(actions.iter().any(|action| action == wanted), "{wanted}: {actions:?}");
    }
}

#[test]
#[ignore = "second tier: a scenario of its own, most of a minute"]
fn of_two_faults_at_once_on_the_disks_of_a_group_each_has_its_receipts() {
    let name = "of_two_faults_at_once_on_the_disks_of_a_group";
    let Some((_desk, finished)) = check(name, "disk-groups", &[], 0) else { return };
    let beside = evidence(&finished, 1);
    assert!(beside.contains("returned wrong data"), "{beside}");
    assert!(beside.contains("beside this fault it is 5 ms slower"), "{beside}");
    let hidden = evidence(&finished, 7);
    assert!(hidden.contains("an append refused with ENOSPC"), "{hidden}");
}

#[test]
#[ignore = "second tier: a run of its own"]
fn the_same_fault_twice_on_one_disk_is_not_taken_for_healed_while_one_of_them_stands() {
    let _turn = machine();
    let Some(desk) = Desk::with_a_lab("the_same_fault_twice_on_one_disk") else { return };
    // The second begins while the first stands and ends before it, so that nobody can ever see it.
    let schedule = "schedule=[{ phase: baseline, for: 1s }, { phase: full, for: 6s, faults: [{ disk: { disk: h1/d1, how: \
                    full }, for: 4s }, { disk: { disk: h1/d1, how: full }, at: 1s, for: 1s }] }]";
    let finished = desk.run(&["run", "scenarios/disk-faults.yaml", "--set", schedule]);
    finished.ends_with(2);
    let fault = |number: usize| finished.result()["faults"][number].clone();
    assert_eq!(fault(0)["receipt"]["verdict"], "pass", "{:#}", fault(0));
    assert_eq!(fault(1)["receipt"]["verdict"], "unknown", "{:#}", fault(1));
    let told = fault(1)["receipt"]["evidence"].to_string();
    assert!(told.contains("no difference that the probe can measure"), "{told}");
}

#[test]
fn a_disk_fault_that_is_announced_and_not_made_has_no_receipt_and_the_run_no_verdict() {
    let _turn = beside_others();
    let Some(desk) = Desk::with_a_lab("a_disk_fault_that_is_announced_and_not_made") else { return };
    let schedule = "schedule=[{ phase: baseline, for: 1s }, { phase: fault, for: 2s, faults: [{ disk: { of: leader, how: \
                    fail }, for: 1s }] }]";
    let given = ["run", "scenarios/disk-faults.yaml", "--set", schedule, "--prevent-faults"];
    let fault = &desk.run(&arguments(&[&given, &ON_CONTROL])).ends_with(2).result()["faults"][0];
    assert_eq!(fault["took_effect_s"], Value::Null, "{fault:#}");
    assert_eq!(fault["receipt"]["verdict"], "fail", "{fault:#}");
}
