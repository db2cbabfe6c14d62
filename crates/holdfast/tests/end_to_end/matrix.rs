//! A scenario over a matrix, compared and exported, end to end: every cell is run, what an interrupt leaves is whole, and
//! nothing stays on the machine.

use std::path::Path;

use serde_json::Value;

use crate::contract;
use crate::holdfast::{Desk, Finished, arguments, read_json};
use crate::traces::Before;
use crate::turns::{beside_others, machine};

/// Two cells on the embedded engine, a second of load each.
const SMALL: &str = "name: small
site: { regions: { dc1: { zones: { a: { hosts: 1 }, b: { hosts: 1 } } } } }
database: { engine: control, nodes: 2 }
loads: [{ workload: ledger, clients: 1 }]
schedule: [{ phase: baseline, for: 1s }]
expect: { lost_writes: 0 }
matrix:
  axes:
    loads.0.clients: [1, 4]
  repeat: 2
";

fn desk_with(text: &str) -> Desk {
    let desk = Desk::new();
    std::fs::write(desk.path().join("scenarios/small.yaml"), text).expect("the scenario is written");
    desk
}

/// None, and said so, where no lab can be had.
fn lab_with(text: &str, test: &str) -> Option<Desk> {
    let desk = desk_with(text);
    desk.can_have_a_lab(test).then_some(desk)
}

fn matrix_of(finished: &Finished) -> Value {
    read_json(&finished.run_directory().join("matrix.json"))
}

#[test]
fn a_matrix_is_run_cell_by_cell_compared_and_exported() {
    let _turn = beside_others();
    let Some(desk) = lab_with(SMALL, "a_matrix_is_run_cell_by_cell_compared_and_exported") else { return };
    let before = Before::look(&desk);
    let running = desk.start(&["run", "scenarios/small.yaml", "--seed", "5"]);
    let pid = running.pid();
    let finished = running.wait();
    finished.ends_with(0);
    before.nothing_is_left(&[pid]);
    let directory = finished.run_directory();
    let matrix = matrix_of(&finished);
    assert_eq!(matrix["verdict"], "pass");
    assert_eq!(matrix["axes"]["loads.0.clients"], serde_json::json!(["1", "4"]));
    let cells = matrix["cells"].as_array().expect("cells");
    assert_eq!(cells.len(), 4);
    for cell in cells {
        let run = Path::new(cell["run_dir"].as_str().expect("a path"));
        assert!(run.starts_with(&directory) && run.join("report.html").is_file());
        assert_eq!(read_json(&run.join("result.json")), cell["result"]);
        contract::holds(&cell["result"]);
        let clients = cell["settings"]["loads.0.clients"].as_str().expect("a setting");
        assert_eq!(cell["result"]["loads"][0]["clients"].to_string(), clients);
        let repetition = cell["repetition"].as_u64().expect("a number");
        assert_eq!(cell["result"]["seed"].as_u64(), Some(5 + repetition - 1), "one seed for a repetition");
    }
    let page = std::fs::read_to_string(directory.join("compare.html")).expect("the page");
    assert!(page.contains("clients = 4"));
    assert_eq!(std::fs::canonicalize(desk.path().join("runs/latest")).expect("latest"), directory);
    compared_and_exported(&desk, &directory, cells);
}

/// `compare --fail-if` on copies of a run, of which the newer ones have half the throughput.
fn a_pipeline_is_told_by_the_exit_code(desk: &Desk, run: &str) {
    for (copy, is_new) in [("old-1", false), ("old-2", false), ("new-1", true), ("new-2", true)] {
        let copy = desk.path().join(copy);
        std::fs::create_dir(&copy).expect("a directory");
        for file in
            std::fs::read_dir(run).expect("the run's files").map(|entry| entry.expect("an entry").path())
        {
            if file.is_file() {
                std::fs::copy(&file, copy.join(file.file_name().expect("a name"))).expect("copied");
            }
        }
        let mut result = read_json(&copy.join("result.json"));
        let throughput = &mut result["loads"][0]["throughput_per_s"];
        if is_new {
            *throughput = (throughput.as_f64().expect("a figure") / 2.0).into();
        }
        std::fs::write(copy.join("result.json"), result.to_string()).expect("written");
    }
    let ends_with = |expression: &str, code: i32| {
        let sides = ["old=old-1", "old=old-2", "new=new-1", "new=new-2"];
        desk.run(&arguments(&[&["compare"], &sides, &["--fail-if", expression]])).ends_with(code);
    };
    ends_with("ledger.throughput_per_s < -80%", 0);
    ends_with("ledger.throughput_per_s < -10%", 1);
    ends_with("fault-1.gap > +1s", 254);
    let one_each = ["compare", "old=old-1", "new=new-1", "--fail-if", "ledger.latency_p99 > +20%"];
    desk.run(&one_each).ends_with(2);
}

/// `compare --with`: one run is enough, one without a fault is told so, and what is no atlas is refused.
fn beside_the_atlas(desk: &Desk, run: &str) {
    let beside = desk.run(&["compare", run, "--with", "atlas"]);
    beside.ends_with(0);
    assert!(beside.stdout.contains("It has no fault"), "{}", beside.stdout);
    desk.run(&["compare", run, "--with", "atlas", "--fail-if", "atlas.gap > +20%"]).ends_with(2);
    desk.run(&["compare", "old=old-1", "new=new-1", "--fail-if", "atlas.gap > +20%"]).ends_with(254);
    std::fs::write(desk.path().join("empty.json"), r#"{"cells": []}"#).expect("written");
    desk.run(&["compare", run, "--with", "empty.json"]).ends_with(0);
    for no_atlas in ["nowhere.json", "old-1/result.json"] {
        desk.run(&["compare", run, "--with", no_atlas]).ends_with(254);
    }
}

fn compared_and_exported(desk: &Desk, directory: &Path, cells: &[Value]) {
    let path = directory.to_str().expect("UTF-8");
    let compared = desk.run(&["compare", path, "--out", "page.html"]);
    compared.ends_with(0);
    assert!(
        compared.stdout.contains("clients = 1") && compared.stdout.contains("throughput"),
        "{}",
        compared.stdout
    );
    let page = compared.stdout.lines().last().expect("a last line");
    assert!(Path::new(page).is_absolute() && Path::new(page).is_file(), "{page}");
    let together = desk.run(&["export", path, "--format", "junit"]);
    together.ends_with(0);
    assert_eq!(together.stdout.matches("the run as a whole").count(), 4, "{}", together.stdout);
    desk.run(&["export", path, "--format", "csv"]).ends_with(254);
    let run = cells[0]["run_dir"].as_str().expect("a path");
    desk.run(&["compare", run]).ends_with(254);
    desk.run(&["compare", run, "nowhere"]).ends_with(254);
    a_pipeline_is_told_by_the_exit_code(desk, run);
    beside_the_atlas(desk, run);
    let exported = |format: &str, ends_with: &str| {
        let finished = desk.run(&["export", run, "--format", format]);
        finished.ends_with(0);
        assert!(finished.stdout.ends_with(ends_with), "{format}: {}", finished.stdout);
        finished.stdout
    };
    exported("openmetrics", "# EOF\n");
    exported("junit", "</testsuites>\n");
    assert!(exported("csv", "\n").starts_with("t_s,load,operation,"));
    std::fs::write(desk.path().join("history.edn"), exported("jepsen", "}\n")).expect("written");
    // The same history by another way: the same verdict.
    desk.run(&["verify", "--model", "ledger", "history.edn"]).ends_with(0);
    desk.run(&["export", run, "--format", "junit", "--rows", "figures"]).ends_with(254);
}

#[test]
#[ignore = "second tier: several runs; part of `cargo xtask test --all`"]
fn an_interrupted_matrix_leaves_what_it_ran_and_begins_nothing_more() {
    let _turn = machine();
    let test = "an_interrupted_matrix_leaves_what_it_ran_and_begins_nothing_more";
    let Some(desk) = lab_with(SMALL, test) else { return };
    let before = Before::look(&desk);
    let running = desk.start(&["run", "scenarios/small.yaml", "--live"]);
    let pid = running.pid();
    assert!(running.says("live at http://127.0.0.1:"));
    assert!(running.says("run 2 of 4"));
    running.signal_group(libc::SIGINT);
    let finished = running.wait();
    finished.ends_with(2);
    before.nothing_is_left(&[pid]);
    let matrix = matrix_of(&finished);
    assert_eq!(matrix["verdict"], "unknown");
    assert!(matrix["interrupted"].as_str().is_some_and(|why| why.contains("signal")), "{matrix:#}");
    let cells = matrix["cells"].as_array().expect("cells");
    assert_eq!(cells[0]["result"]["verdict"], "pass");
    assert!(cells[2]["result"].is_null() && cells[3]["result"].is_null());
    assert!(!finished.stdout.contains("run 3 of 4"));
}

#[test]
fn a_matrix_is_checked_on_paper_cell_by_cell_and_one_lab_cannot_be_kept_of_many() {
    let desk = desk_with(SMALL);
    let checked = desk.run(&["check", "scenarios/small.yaml"]);
    checked.ends_with(0);
    for word in ["2 combinations, 2 each: 4 runs", "clients = 1", "clients = 4", "on paper as clients = 1"] {
        assert!(checked.stdout.contains(word), "`{word}` is not in\n{}", checked.stdout);
    }
    let refused = desk.run(&["run", "scenarios/small.yaml", "--keep"]);
    refused.ends_with(254);
    let wrong =
        desk.run(&["check", "scenarios/small.yaml", "--set", "matrix.axes={ loads.0.clients: [1, none] }"]);
    wrong.ends_with(254);
    assert!(wrong.stderr.contains("must be a whole number"), "{}", wrong.stderr);
    for command in ["check", "run"] {
        let unused = desk.run(&[command, "scenarios/small.yaml", "--set", "loads.0.clients=3"]);
        unused.ends_with(254);
        assert!(unused.stderr.contains("the matrix sets `loads.0.clients` in every"), "{}", unused.stderr);
    }
    assert!(!desk.path().join("runs").exists(), "nothing was begun");
}

#[test]
fn reads_that_go_to_replicas_are_recorded_as_theirs() {
    let _turn = beside_others();
    let Some(desk) = Desk::with_a_lab("reads_that_go_to_replicas_are_recorded_as_theirs") else { return };
    let finished = desk.run(&[
        "run",
        "scenarios/ycsb.yaml",
        "--set=schedule=[{ phase: baseline, for: 2s }]",
        "--set=expect={ lost_writes: 0 }",
        "--set=database.nodes=2",
        "--set=loads.0.options.records=200",
        "--set=loads.0.reads=replicas",
    ]);
    finished.ends_with(0);
    let run = finished.run_directory();
    let exported =
        desk.run(&["export", run.to_str().expect("UTF-8"), "--format", "csv", "--rows", "operations"]);
    let answered_by = |action: &str| {
        let of = exported.stdout.lines().filter(|line| line.contains(action) && line.contains(",ok,"));
        let (n1, n2): (Vec<&str>, Vec<&str>) = of.partition(|line| line.contains(",n1,"));
        (n1.len(), n2.len())
    };
    let (reads, updates) = (answered_by(",transaction,"), answered_by(",cells-write,"));
    assert!(reads.0 == 0 && reads.1 > 0, "reads by the leader and by the replica: {reads:?}");
    assert!(updates.0 > 0 && updates.1 == 0, "updates by the leader and by the replica: {updates:?}");
}

#[test]
fn a_scenario_is_repeated_with_a_seed_for_each_run_and_its_figures_are_told_as_distributions() {
    let _turn = beside_others();
    let alone = SMALL.split_once("matrix:").expect("a matrix").0;
    let Some(desk) = lab_with(alone, "a_scenario_is_repeated_with_a_seed_for_each_run") else { return };
    let finished = desk.run(&["run", "scenarios/small.yaml", "--repeat", "2", "--seed", "5"]);
    finished.ends_with(0);
    let matrix = matrix_of(&finished);
    let seeds: Vec<&Value> =
        matrix["cells"].as_array().expect("runs").iter().map(|run| &run["result"]["seed"]).collect();
    assert_eq!(seeds, [5, 6]);
    // The second begins where the first did.
    for run in matrix["cells"].as_array().expect("runs") {
        assert!(run["lab_dir"].as_str().is_some_and(|lab| lab.ends_with("cells/1/lab-1")), "{run:#}");
        assert_eq!(run["result"]["lab"]["from_snapshot"], true);
    }
    let told = matrix["distributions"].as_array().expect("distributions");
    let lost = told.iter().find(|told| told["figure"] == "lost_writes").expect("lost writes");
    assert_eq!((&lost["runs"], &lost["median"], &lost["worst"]), (&2.into(), &0.0.into(), &0.0.into()));
    let said = format!("{}{}", finished.stdout, finished.stderr);
    assert!(said.contains("over 2 runs"), "{said}");
}
