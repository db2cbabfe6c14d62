//! The shipped scenario of each workload, cut down to a few seconds: it passes, its check has judged something, and its
//! operations stand in the result by name.

use serde_json::Value;

use crate::contract;
use crate::holdfast::{Desk, arguments, machine};

/// No fault and little time: what the faults do to each workload is seen in the scenarios as they are shipped.
const BRIEF: [&str; 6] = [
    "--set",
    "schedule=[{ phase: baseline, for: 3s }]",
    "--set",
    "expect={ errors: 0 }",
    "--set",
    "database.nodes=2",
];

#[track_caller]
fn passes(scenario: &str, more: &[&str], check: &str, operations: &[&str]) -> Option<Value> {
    let _turn = machine();
    let desk = Desk::new();
    if !desk.can_have_a_lab(&format!("the_scenario_of_{scenario}_passes")) {
        return None;
    }
    let path = format!("scenarios/{scenario}.yaml");
    let finished = desk.run(&arguments(&[&["run", &path], &BRIEF, more]));
    finished.ends_with(0);
    let result = finished.result();
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
    let failure = "schedule=[{ phase: baseline, for: 4s }, { phase: fault, for: 12s, \
                   faults: [{ power-off: { host: leader }, at: 0s, for: 10s }] }, { phase: recovery, for: 4s }]";
    let whole = [
        "--set",
        failure,
        "--set",
        "database.nodes=3",
        "--set",
        "expect={ lost_writes: 0, recovery: < 60s }",
    ];
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
    let phases = result["loads"][0]["phases"].as_array().expect("phases");
    let names: Vec<&str> = phases.iter().filter_map(|phase| phase["name"].as_str()).collect();
    assert_eq!(names, ["warm-up", "1-client", "4-clients", "16-clients", "48-clients"]);
    assert!(phases.iter().all(|phase| phase["transactions"].as_u64().is_some_and(|count| count > 0)));
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
    let few = [
        "--set",
        "database.nodes=1",
        "--set",
        "loads.0.options.count=200",
        "--set",
        "loads.0.options.random=50",
    ];
    let operations = ["sequential-write", "sequential-read", "cached-read", "random-write", "random-read"];
    let Some(result) = passes("rawio", &few, "register", &operations) else { return };
    let load = &result["loads"][0];
    for figure in ["sequential_write_mb_per_s", "sequential_read_mb_per_s", "cached_read_mb_per_s"] {
        assert!(load["figures"][figure].as_f64() > Some(0.0), "{figure}: {load:#}");
    }
    let blocks = load["operations"]["write random 4 KiB"]["count"].as_u64();
    assert!(blocks >= Some(50), "{load:#}");
}
