//! Repetitions that share a lab: each is a run of its own from the same volumes, nothing of one is in another, and a lab in doubt
//! is thrown away.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::contract;
use crate::holdfast::{Desk, Finished, arguments, read_json};
use crate::traces::Before;
use crate::turns::machine;

/// The leader's host loses power under a load of unique inserts.
const POWER_OFF: &str = "name: small
site: { regions: { dc1: { zones: { a: { hosts: 3 } } } } }
database: { engine: control, nodes: 3, replication: { synchronous: any 1 }, failover: none }
loads: [{ workload: ledger, clients: 2, rate: 100/s }]
schedule:
  - { phase: baseline, for: 2s }
  - { phase: fault, for: 4s, faults: [{ power-off: { host: leader }, at: 500ms, for: 2s }] }
  - { phase: recovery, for: 3s }
expect: { lost_writes: 0, invented_writes: 0 }
";

/// Two nodes of PostgreSQL, and no fault.
const POSTGRES: &str = "name: small
site: { regions: { dc1: { zones: { a: { hosts: 2 } } } } }
database: { engine: postgres, nodes: 2, replication: { synchronous: any 1 } }
loads: [{ workload: tpcb, scale: 1, clients: 1 }, { workload: ledger, clients: 1 }]
schedule: [{ phase: baseline, for: 3s }]
expect: { lost_writes: 0, invented_writes: 0 }
";

fn run(desk: &Desk, text: &str, more: &[&str]) -> Finished {
    std::fs::write(desk.path().join("scenarios/small.yaml"), text).expect("the scenario is written");
    let before = Before::look(desk);
    let running = desk.start(&arguments(&[&["run", "scenarios/small.yaml", "--seed", "5"], more]));
    let pid = running.pid();
    let finished = running.wait();
    before.nothing_is_left(&[pid]);
    finished
}

/// The runs of a series, as `matrix.json` tells them; none has left volumes, nor has a lab.
fn runs(finished: &Finished) -> Vec<Value> {
    let directory = finished.run_directory();
    for folder in std::fs::read_dir(directory.join("cells/1")).expect("a folder") {
        let folder = folder.expect("an entry").path();
        assert!(!folder.join("volumes").exists(), "{}", folder.display());
    }
    let matrix = read_json(&directory.join("matrix.json"));
    matrix["cells"].as_array().expect("runs").clone()
}

fn path(run: &Value, key: &str) -> PathBuf {
    PathBuf::from(run[key].as_str().unwrap_or_else(|| panic!("no {key} in {run:#}")))
}

/// That the run has a whole directory of its own, from which its report can be made elsewhere.
fn is_whole(desk: &Desk, run: &Value) {
    let directory = path(run, "run_dir");
    for file in ["scenario.yaml", "events.jsonl", "history.jsonl.zst", "timeline.csv", "report.html"] {
        assert!(directory.join(file).is_file(), "{file} of {}", directory.display());
    }
    let result = read_json(&directory.join("result.json"));
    assert_eq!(result, run["result"]);
    assert_eq!(result["lab"]["from_snapshot"], true, "{:#}", result["lab"]);
    contract::holds(&result);
    let elsewhere = desk.path().join("elsewhere");
    std::fs::create_dir(&elsewhere).expect("a folder");
    for file in std::fs::read_dir(&directory).expect("its files").map(|entry| entry.expect("one").path()) {
        if file.is_file() && !file.ends_with("report.html") {
            std::fs::copy(&file, elsewhere.join(file.file_name().expect("a name"))).expect("copied");
        }
    }
    desk.run(&["report", "elsewhere"]).ends_with(0);
    assert!(elsewhere.join("report.html").is_file());
    std::fs::remove_dir_all(&elsewhere).expect("removed");
}

/// That the final read found as many rows as this run was told of, and no other.
fn has_no_row_of_another(desk: &Desk, run: &Value) {
    let check = &run["result"]["checks"].as_array().expect("checks")[..];
    let ledger = check.iter().find(|check| check["name"] == "ledger").expect("the ledger's");
    assert_eq!((&ledger["invented"], &ledger["lost"]), (&0.into(), &0.into()), "{ledger:#}");
    let directory = path(run, "run_dir");
    let exported = desk.run(&["export", directory.to_str().expect("UTF-8"), "--format", "jepsen"]);
    exported.ends_with(0);
    std::fs::write(desk.path().join("history.edn"), &exported.stdout).expect("written");
    desk.run(&["verify", "--model", "ledger", "history.edn"]).ends_with(0);
    std::fs::remove_file(desk.path().join("history.edn")).expect("removed");
    // A row that an earlier run left would be in the way of the same client's first inserts.
    let baseline = &run["result"]["loads"].as_array().expect("loads");
    let of_ledger = baseline.iter().find(|load| load["name"] == "ledger").expect("the ledger");
    let phase =
        of_ledger["phases"].as_array().expect("phases").iter().find(|phase| phase["name"] == "baseline");
    let phase = phase.expect("the baseline");
    assert_eq!(phase["errors"], serde_json::json!({}), "{phase:#}");
    assert!(phase["transactions"].as_u64() > Some(0), "{phase:#}");
}

fn ends_with(path: &Path, last: &str) {
    assert!(path.ends_with(last), "{} does not end with {last}", path.display());
}

#[test]
#[ignore = "second tier: three runs with a power-off each; part of `cargo xtask test --all`"]
fn repetitions_in_a_kept_lab_are_runs_of_their_own_from_the_same_volumes() {
    let _turn = machine();
    let test = "repetitions_in_a_kept_lab_are_runs_of_their_own_from_the_same_volumes";
    let Some(desk) = Desk::with_a_lab(test) else { return };
    let finished = run(&desk, POWER_OFF, &["--repeat", "3"]);
    let runs = runs(&finished);
    let seeds: Vec<&Value> = runs.iter().map(|run| &run["result"]["seed"]).collect();
    assert_eq!(seeds, [5, 6, 7]);
    for run in &runs {
        ends_with(&path(run, "lab_dir"), "cells/1/lab-1");
        assert!(run["lab_discarded"].is_null(), "{run:#}");
        assert_eq!(run["result"]["verdict"], "pass", "{:#}", run["result"]["reasons"]);
        let receipt = &run["result"]["faults"][0]["receipt"];
        assert_eq!(receipt["verdict"], "pass", "{receipt:#}");
        assert!(receipt["evidence"].to_string().contains("synced marks are there"), "{receipt:#}");
        is_whole(&desk, run);
        has_no_row_of_another(&desk, run);
    }
    finished.ends_with(0);
}

#[test]
#[ignore = "second tier: two runs with a power-off each; part of `cargo xtask test --all`"]
fn a_lab_in_which_a_process_is_left_is_thrown_away_and_the_next_run_boots_anew() {
    let _turn = machine();
    let test = "a_lab_in_which_a_process_is_left_is_thrown_away_and_the_next_run_boots_anew";
    let Some(desk) = Desk::with_a_lab(test) else { return };
    let finished = run(&desk, POWER_OFF, &["--repeat", "2", "--plant", "process-left"]);
    finished.ends_with(2);
    let runs = runs(&finished);
    for (run, lab) in runs.iter().zip(["cells/1/lab-1", "cells/1/lab-2"]) {
        ends_with(&path(run, "lab_dir"), lab);
        let discarded = run["lab_discarded"].to_string();
        assert!(discarded.contains("processes are left in the lab: sleep"), "{discarded}");
        assert!(discarded.contains("fault 1 (power-off) has no receipt"), "{discarded}");
    }
    let said = format!("{}{}", finished.stdout, finished.stderr);
    assert!(said.contains("the lab is discarded: "), "{said}");
}

#[test]
#[ignore = "second tier: boots PostgreSQL; part of `cargo xtask test --all`"]
fn postgres_starts_again_from_a_snapshot_as_the_leader_and_standby_that_it_was() {
    let _turn = machine();
    let test = "postgres_starts_again_from_a_snapshot_as_the_leader_and_standby_that_it_was";
    let Some(desk) = Desk::with_a_lab(test) else { return };
    let finished = run(&desk, POSTGRES, &["--repeat", "2"]);
    finished.ends_with(0);
    for run in &runs(&finished) {
        ends_with(&path(run, "lab_dir"), "cells/1/lab-1");
        has_no_row_of_another(&desk, run);
    }
    // The lab that was kept, and both runs.
    let said = format!("{}{}", finished.stdout, finished.stderr);
    assert_eq!(said.matches("n1 leads, n2 follows").count(), 3, "{said}");
}

#[test]
fn where_no_lab_can_be_kept_it_is_said_why() {
    let _turn = crate::turns::beside_others();
    let Some(desk) = Desk::with_a_lab("where_no_lab_can_be_kept_it_is_said_why") else { return };
    let short = "schedule=[{ phase: baseline, for: 1s }]";
    let plain = ["--repeat", "2", "--set", "database.volumes=directory", "--set", short];
    let finished = run(&desk, POWER_OFF, &plain);
    finished.ends_with(0);
    let said = format!("{}{}", finished.stdout, finished.stderr);
    assert!(said.contains("every run boots a lab of its own: its volumes are plain directories"), "{said}");
    for run in &runs(&finished) {
        assert!(run["lab_dir"].is_null() && run["result"]["lab"]["from_snapshot"].is_null(), "{run:#}");
    }
}
