//! The shipped jobs with the kernel's own path: pairs of which nothing is asked go past the lab's network, and every fault has
//! its receipt all the same.

use serde_json::Value;

use crate::contract;
use crate::holdfast::{Desk, RESTART_SOON, SHORT, arguments};
use crate::traces::Before;
use crate::turns::{beside_others, machine};

const BY_KERNEL: [&str; 2] = ["--set", "site.network={ path: kernel }"];

/// What the result says of the kernel's own path, which nobody has left for good.
fn kernel_path(result: &Value) -> &Value {
    let path = &result["lab"]["kernel_path"];
    assert_eq!(path["places_lost"], 0, "{path:#}");
    assert_eq!(path["places_unshut"], 0, "{path:#}");
    assert!(path["frames"].as_u64() > Some(1_000), "the loads took another way: {path:#}");
    path
}

fn receipts_pass(result: &Value) {
    for fault in result["faults"].as_array().expect("faults") {
        assert_eq!(fault["receipt"]["verdict"], "pass", "{fault:#}");
    }
}

#[test]
#[ignore = "a scenario of its own; part of `cargo xtask test --all`"]
fn a_host_dies_beside_the_kernels_own_path_and_nothing_acknowledged_is_lost() {
    let _turn = machine();
    let Some(desk) = Desk::with_a_lab("a_host_dies_beside_the_kernels_own_path") else { return };
    let before = Before::look(&desk);
    let finished =
        desk.run(&arguments(&[&["run", "scenarios/host-failure.yaml"], &SHORT, &RESTART_SOON, &BY_KERNEL]));
    let result = finished.ends_with(0).result();
    receipts_pass(&result);
    let path = kernel_path(&result);
    // Five hosts, three nodes and the clients, all of them with power at the end.
    assert_eq!(path["pairs_by_kernel"], 9 * 8, "{path:#}");
    assert_eq!(path["pairs_by_fabric"], Value::Array(Vec::new()), "{path:#}");
    let resolved = std::fs::read_to_string(finished.run_directory().join("scenario.yaml")).expect("scenario");
    assert!(resolved.contains("  network: { path: kernel }\n"), "{resolved}");
    contract::holds(&result);
    before.nothing_is_left(&[]);
}

#[test]
fn a_partition_holds_beside_the_kernels_own_path_and_its_pairs_come_back() {
    let _turn = beside_others();
    let Some(desk) = Desk::with_a_lab("a_partition_holds_beside_the_kernels_own_path") else { return };
    let schedule = "schedule=[{ phase: baseline, for: 3s }, { phase: cut-off, for: 6s, faults: [{ partition: { isolate: leader }, \
                    at: 0s, for: 4s }] }, { phase: recovery, for: 4s }]";
    let run = ["run", "scenarios/partition.yaml", "--set", schedule];
    let finished = desk.run(&arguments(&[&run, &BY_KERNEL]));
    let result = finished.ends_with(0).result();
    receipts_pass(&result);
    let path = kernel_path(&result);
    assert!(path["moved_to_fabric"].as_u64() > Some(0), "{path:#}");
    assert!(path["moved_to_kernel"].as_u64() > path["moved_to_fabric"].as_u64(), "{path:#}");
    assert_eq!(path["pairs_by_fabric"], Value::Array(Vec::new()), "{path:#}");
}

#[test]
fn a_pair_that_keeps_to_the_kernels_own_path_is_found_out() {
    let _turn = beside_others();
    let Some(desk) = Desk::with_a_lab("a_pair_that_keeps_to_the_kernels_own_path") else { return };
    let lying = desk.run(&["run", "scenarios/lies/kernel-path.yaml", "--plant", "path-kept"]);
    let told = lying.ends_with(2).result()["reasons"].to_string();
    for part in ["has no receipt", "although the fault blocks this direction"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    // Routes are a sender's own: one that lies alone is found out as well.
    let lying = desk.run(&["run", "scenarios/lies/kernel-path.yaml", "--plant", "path-kept-by-one"]);
    let told = lying.ends_with(2).result()["reasons"].to_string();
    for part in ["has no receipt", "from n3 to n1", "the delay is too short"] {
        assert!(told.contains(part), "{part}: {told}");
    }
    let honest = desk.run(&["run", "scenarios/lies/kernel-path.yaml"]).ends_with(0).result();
    receipts_pass(&honest);
    assert!(honest["lab"]["kernel_path"]["moved_to_fabric"].as_u64() > Some(0), "{honest:#}");
}
