//! The shipped scenario of each workload, cut down to a few seconds: it passes, its check has judged something, and its
//! operations stand in the result by name.

use serde_json::Value;

use crate::contract;
use crate::holdfast::{Desk, arguments};
use crate::turns::beside_others;

/// No fault and little time: what the faults do to each workload is seen in the scenarios as they are shipped.
const BRIEF: [&str; 3] =
    ["--set=schedule=[{ phase: baseline, for: 3s }]", "--set=expect={ errors: 0 }", "--set=database.nodes=2"];

#[track_caller]
fn passes(scenario: &str, more: &[&str], check: &str, operations: &[&str]) -> Option<Value> {
    let _turn = beside_others();
    let desk = Desk::with_a_lab(&format!("the_scenario_of_{scenario}_passes"))?;
    let path = format!("scenarios/{scenario}.yaml");
    let finished = desk.run(&arguments(&[&["run", &path], &BRIEF, more]));
    let result = finished.ends_with(0).result();
    assert_eq!(result["verdict"], "pass", "{result:#}");
    let checks = result["checks"].as_array().expect("checks");
    assert!(checks.iter().any(|found| found["name"] == check && found["verdict"] == "pass"), "{checks:#?}");
    let load = &result["loads"][0];
    for operation in operations {
        assert!(load["operations"][operation]["count"].as_u64() > Some(0), "{operation}: {load:#}");
    }
    contract::holds(&result);
    contract::timeline_holds(&finished.run_directory());
    Some(result)
}

#[test]
fn the_scenario_of_tpcc_passes() {
    let one_warehouse = ["--set", "loads.0.scale=1"];
    let operations = ["NEW-ORDER", "PAYMENT", "DELIVERY", "transaction"];
    let Some(result) = passes("tpcc", &one_warehouse, "tpcc-conditions", &operations) else { return };
    let figures = &result["loads"][0]["figures"];
    let new_orders = result["loads"][0]["operations"]["NEW-ORDER"]["count"].as_f64().expect("a count");
    let tpmc = figures["tpmC"].as_f64().expect("tpmC");
    assert!(
        tpmc > 0.0
            && (figures["efficiency_percent"].as_f64().expect("efficiency") - tpmc / 12.86 * 100.0).abs()
                < 1e-6
    );
    // Three seconds and a crumb, as a rate a minute.
    assert!(tpmc <= new_orders * 20.0 && tpmc > new_orders * 10.0, "{tpmc} of {new_orders}");
}

/// The condition of the standard itself: two warehouses, no think time, two minutes, the leader's host lost in the midst.
#[test]
#[ignore = "second tier: two minutes of TPC-C"]
fn tpcc_keeps_its_twelve_conditions_over_two_minutes_and_a_host_failure() {
    let failure = "schedule=[{ phase: warm-up, for: 10s }, { phase: baseline, for: 40s }, { phase: fault, for: 40s, \
                   faults: [{ power-off: { host: leader }, at: 0s, for: 30s }] }, { phase: recovery, for: 40s }]";
    let whole = ["--set", failure, "--set", "database.nodes=3", "--set", "expect={ lost_writes: 0 }"];
    let operations = ["NEW-ORDER", "PAYMENT", "ORDER-STATUS", "DELIVERY", "STOCK-LEVEL"];
    let Some(result) = passes("tpcc", &whole, "tpcc-conditions", &operations) else { return };
    let checks = result["checks"].as_array().expect("checks");
    let found = checks.iter().find(|check| check["name"] == "tpcc-conditions").expect("the check");
    assert!(
        found["explanation"].as_str().is_some_and(|told| told.starts_with("12 conditions looked at")),
        "{found:#}"
    );
    assert_eq!(result["faults"][0]["receipt"]["verdict"], "pass", "{result:#}");
    let load = &result["loads"][0];
    assert_eq!((load["name"].as_str(), load["clients"].as_u64()), (Some("tpcc"), Some(4)));
    // The error of a transaction is told with its kind as well.
    let errors = |name: &str| {
        let counts = load["operations"][name]["errors"].as_object();
        counts.map_or(0, |counts| counts.values().filter_map(Value::as_u64).sum::<u64>())
    };
    let of_kinds: u64 = operations.iter().map(|kind| errors(kind)).sum();
    assert!(of_kinds > 0 && of_kinds == errors("transaction"), "{load:#}");
}

/// With the standard's pauses ten terminals keep a warehouse near 12.86 new orders a minute, never much above.
#[test]
#[ignore = "second tier: two minutes of TPC-C with think times"]
fn tpcc_with_think_times_comes_near_what_its_standard_allows() {
    let calm = "schedule=[{ phase: warm-up, for: 20s }, { phase: baseline, for: 90s }]";
    let terminals = ["--set", calm, "--set", "loads.0.clients=20", "--set", "loads.0.options.pauses=on"];
    let Some(result) = passes("tpcc", &terminals, "tpcc-conditions", &["NEW-ORDER", "PAYMENT"]) else {
        return;
    };
    let figures = &result["loads"][0]["figures"];
    let (tpmc, efficiency) = (figures["tpmC"].as_f64(), figures["efficiency_percent"].as_f64());
    // 39 new orders are expected, with a deviation of about 6: four of them either way.
    assert!(efficiency > Some(35.0) && efficiency < Some(165.0), "{figures:#}");
    assert!((tpmc.expect("tpmC") / (12.86 * 2.0) * 100.0 - efficiency.expect("efficiency")).abs() < 1e-6);
}

#[test]
fn the_scenario_of_ycsb_passes() {
    let small = ["--set", "loads.0.options.records=500"];
    passes("ycsb", &small, "last-writes", &["READ", "UPDATE", "operation"]);
}

#[test]
#[ignore = "a scenario of its own; part of `cargo xtask test --all`"]
fn the_scenario_of_kv_passes() {
    passes("kv", &[], "last-writes", &["read", "write", "operation"]);
}

#[test]
#[ignore = "a scenario of its own; part of `cargo xtask test --all`"]
fn the_scenario_of_iot_passes() {
    let small = ["--set", "loads.0.options.preload=100"];
    passes("iot", &small, "last-writes", &["read", "write", "operation"]);
}

#[test]
#[ignore = "a scenario of its own; part of `cargo xtask test --all`"]
fn the_scenario_of_script_passes() {
    passes("script", &[], "script-conditions", &["transfer", "tpcb-like", "transaction"]);
}

#[test]
#[ignore = "second tier: a scenario of its own"]
fn the_open_loop_says_what_waited_while_the_leader_was_gone() {
    let operations = ["transaction", "transaction (service)", "END"];
    let failure = "--set=schedule=[{ phase: baseline, for: 4s }, { phase: fault, for: 12s, \
                   faults: [{ power-off: { host: leader }, at: 0s, for: 10s }] }, { phase: recovery, for: 4s }]";
    let whole = [failure, "--set=database.nodes=3", "--set=expect={ lost_writes: 0, recovery: < 60s }"];
    let Some(result) = passes("open-loop", &whole, "tpcb-sums", &operations) else { return };
    let load = &result["loads"][0];
    let p99_us = |name: &str| load["operations"][name]["latency_us"]["p99"].as_f64().expect("a p99");
    let (response, service) = (p99_us("transaction"), p99_us("transaction (service)"));
    // Whatever fell due while nobody took writes waited; what was sent before and after did not.
    assert!(response > service, "{response} {service}");
    assert_eq!(load["rate_per_s"].as_f64(), Some(200.0));
}

#[test]
#[ignore = "second tier: a scenario of its own"]
fn the_sweep_has_figures_for_each_of_its_steps() {
    let phases = "schedule=[{ phase: warm-up, for: 1s }, { phase: 1-client, for: 3s }, \
                  { phase: 4-clients, for: 3s }, { phase: 16-clients, for: 3s }, { phase: 48-clients, for: 3s }]";
    let Some(result) = passes("sweep", &["--set", phases], "tpcb-sums", &["transaction", "END"]) else {
        return;
    };
    let load = &result["loads"][0];
    assert_eq!((load["clients"].as_u64(), load["clients_least"].as_u64()), (Some(48), Some(1)));
    let phases = load["phases"].as_array().expect("phases");
    let names: Vec<&str> = phases.iter().filter_map(|phase| phase["name"].as_str()).collect();
    assert_eq!(names, ["warm-up", "1-client", "4-clients", "16-clients", "48-clients"]);
    let clients: Vec<Option<u64>> = phases.iter().map(|phase| phase["clients"].as_u64()).collect();
    assert_eq!(clients, [1, 1, 4, 16, 48].map(Some));
    assert!(phases.iter().all(|phase| phase["transactions"].as_u64().is_some_and(|count| count > 0)));
}

#[test]
#[ignore = "second tier: a scenario of its own"]
fn a_ramp_is_told_with_its_ends_and_every_part_of_it_has_transactions() {
    let shorter = [
        "--set=schedule=[{ phase: warm-up, for: 2s }, { phase: first, for: 5s }, { phase: second, for: 5s }, \
         { phase: top, for: 4s }]",
        "--set=loads.0.ramp.over=10s",
        "--set=loads.1.ramp.over=10s",
    ];
    let Some(result) = passes("ramp", &shorter, "tpcb-sums", &["transaction"]) else { return };
    let phase = |load: usize, number: usize| &result["loads"][load]["phases"][number];
    let ends = |phase: &Value| (phase["clients_least"].as_u64(), phase["clients"].as_u64());
    assert_eq!(ends(phase(0, 0)), (None, Some(1)));
    assert_eq!(ends(phase(0, 1)).0, Some(1));
    assert_eq!(ends(phase(0, 3)), (None, Some(24)));
    assert_eq!(ends(&result["loads"][0]), (Some(1), Some(24)));
    assert_eq!(phase(1, 0)["rate_per_s"].as_f64(), Some(20.0));
    // From 20 to 110 a second, and from 110 to 200, on the average.
    for (number, mean) in [(1, 65.0), (2, 155.0)] {
        let rate = phase(1, number)["rate_per_s"].as_f64().expect("a rate");
        assert!((rate - mean).abs() < 1.0, "{rate}");
        assert!(phase(1, number)["rate_range_per_s"][1].as_f64() > Some(rate));
    }
    for (load, number) in [(0, 1), (0, 2), (1, 1), (1, 2)] {
        assert!(phase(load, number)["transactions"].as_u64() > Some(0), "{result:#}");
    }
}

#[test]
fn options_that_only_the_workload_can_judge_are_refused_before_anything_starts() {
    let desk = Desk::new();
    let refused = |scenario: &str, set: &str, words: &[&str]| {
        for command in ["run", "check"] {
            let finished = desk.run(&[command, scenario, "--set", set]);
            finished.ends_with(254);
            for word in words {
                assert!(finished.stderr.contains(word), "`{word}` is not in\n{}", finished.stderr);
            }
        }
    };
    refused(
        "scenarios/kv.yaml",
        "loads.0.options.span=60%",
        &["load kv", "with `read` it is more than 100%"],
    );
    let set = r#"loads.0.options.scripts.0.text="SELECT 1;\n\\set x foo(1)\n""#;
    refused(
        "scenarios/script.yaml",
        set,
        &["script transfer, line 2: there is no function \"foo\"", "       ^"],
    );
    let set = r#"loads.0.options.scripts.0={ file: "own/move.sql" }"#;
    refused("scenarios/script.yaml", set, &["script scenarios/own/move.sql: No such file"]);
    // From then on the file is there, with a mistake that an editor finds by its place.
    let own = desk.path().join("scenarios/own");
    std::fs::create_dir(&own).expect("a folder");
    std::fs::write(own.join("move.sql"), "SELECT 1;\n\\set x foo(1)\n").expect("written");
    let place = "script move (scenarios/own/move.sql:2:8), line 2: there is no function \"foo\"";
    refused("scenarios/script.yaml", set, &[place, "       ^"]);
    std::fs::write(own.join("move.sql"), "SELECT 1;\n").expect("written");
    desk.run(&["check", "scenarios/script.yaml", "--set", set]).ends_with(0);
    assert!(!desk.path().join("runs").exists(), "a refused scenario leaves no run directory");
}

#[test]
#[ignore = "a scenario of its own; part of `cargo xtask test --all`"]
fn the_scenario_of_convergence_reads_every_replica_for_itself() {
    // A compare-and-set that found another value is counted with the errors.
    let more = ["--set", "database.nodes=3", "--set", "expect={ throughput_per_s: \"> 1/s\" }"];
    let Some(result) = passes("convergence", &more, "convergence", &["read", "write"]) else { return };
    let checks = result["checks"].as_array().expect("checks");
    let found = checks.iter().find(|check| check["name"] == "convergence").expect("the check");
    assert_eq!(found["counts"]["replicas"], 3, "{found:#}");
}

#[test]
fn a_volume_is_measured_without_a_database_and_every_block_read_back() {
    let few =
        ["--set=database.nodes=1", "--set=loads.0.options.count=200", "--set=loads.0.options.random=50"];
    let operations = ["sequential-write", "sequential-read", "cached-read", "random-write", "random-read"];
    let Some(result) = passes("rawio", &few, "register", &operations) else { return };
    let load = &result["loads"][0];
    for figure in ["sequential_write_mb_per_s", "sequential_read_mb_per_s", "cached_read_mb_per_s"] {
        assert!(load["figures"][figure].as_f64() > Some(0.0), "{figure}: {load:#}");
    }
    let blocks = load["operations"]["write random 4 KiB"]["count"].as_u64();
    assert!(blocks >= Some(50), "{load:#}");
}
