//! Galera, where every node takes writes: one node is cut off from the others.

use serde_json::Value;

use crate::engines::{check, ended};

#[test]
#[ignore = "second tier: a scenario of its own, and Galera may have to be fetched"]
fn a_galera_node_that_is_alone_refuses_to_work_and_the_majority_goes_on() {
    let test = "a_galera_node_that_is_alone_refuses_to_work";
    let Some(result) = ended(test, "galera", 0, &["scenarios/galera.yaml"]) else { return };
    assert!(check(&result, "ledger")["acknowledged"].as_u64() > Some(500), "{result:#}");
    for name in ["ledger", "bank", "list-append"] {
        assert_eq!(check(&result, name)["verdict"], "pass", "{result:#}");
    }
    let story = check(&result, "list-append")["explanation"].to_string();
    let (_, strongest) =
        story.split_once("the strongest level this history allows is ").expect("it is named");
    for level in ["snapshot-isolation", "repeatable-read", "serializable"] {
        assert!(!strongest.contains(level), "each node reads its own state: {story}");
    }
    let refused = |load: &Value| load["errors"]["read-only"].as_u64().unwrap_or(0);
    let loads = result["loads"].as_array().expect("loads");
    assert!(loads.iter().map(refused).sum::<u64>() > 0, "the node that is alone refuses: {result:#}");
}

#[test]
#[ignore = "second tier: two minutes of TPC-C, and Galera may have to be fetched"]
fn tpcc_keeps_its_conditions_where_terminals_of_a_warehouse_write_at_every_node_and_one_is_cut_off() {
    let test = "tpcc_keeps_its_conditions_where_every_node_takes_writes";
    let of_tpcc =
        ["--set", "loads=[{ workload: tpcc, scale: 1, clients: 6, from: dc1 }]", "--set", "expect={}"];
    let arguments = [&["scenarios/galera.yaml"], of_tpcc.as_slice()].concat();
    let Some(result) = ended(test, "galera", 0, &arguments) else { return };
    let found = check(&result, "tpcc-conditions");
    assert_eq!(found["verdict"], "pass", "{result:#}");
    assert!(found["explanation"].as_str().is_some_and(|told| told.starts_with("12 conditions looked at")));
    let operations = &result["loads"][0]["operations"];
    for kind in ["NEW-ORDER", "PAYMENT", "ORDER-STATUS", "DELIVERY", "STOCK-LEVEL", "retry"] {
        assert!(operations[kind]["count"].as_u64() > Some(0), "{kind}: {operations:#}");
    }
    assert!(operations.get("PAYMENT: SELECT warehouse").is_some(), "{operations:#}");
    assert!(operations.get("DELIVERY: SELECT new_order").is_some(), "{operations:#}");
}
