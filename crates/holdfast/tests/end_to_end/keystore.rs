//! A database whose clients speak keys by a program of its own: a store of one node, through the power-off of its host. One that
//! syncs before it answers loses nothing; one that does not is caught, with the rows that it lost.
//!
//! The store is a stand-in, in `keystore.py`. The engine file, the client program in its place, the checks and the verdict are
//! as for any database.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::Value;

use crate::engines::{check, ended_on};
use crate::holdfast::Desk;
use crate::turns::beside_others;

const STORE: &str = include_str!("keystore.py");
const PYTHON: &str = "/usr/bin/python3";
const ENGINE: &str = r#"
engine: keystore
summary: a store of keys on one node, which syncs each transaction before it answers
find:
  programs: [keystore]
  version: { command: [keystore, --version], after: "keystore " }
  at-least: "1.0"
ports: { client: 7411 }
processes:
  - name: keystore
    command: [keystore, serve, "--log={volume}/log", "--listen={node.address}:{ports.client}"]
    ready: { tcp: client }
roles: none
client: { protocol: process, program: [keystore, client], speaks: keys }
claims: { isolation: serializable, order: real-time }
paper: { commit: each-request, quorum: majority }
tested: { here: false, from: a test }
"#;
const SCENARIO: &str = "
name: keys
site: { regions: { dc1: { zones: { a: { hosts: 1 } } } } }
database: { engine: ./keystore.yaml, nodes: 1 }
loads:
  - { workload: ledger, clients: 3, from: dc1, rate: 100/s }
  - { workload: bank, clients: 2, from: dc1, rate: 100/s }
  - { workload: register, clients: 2, from: dc1, rate: 100/s }
schedule:
  - { phase: baseline, for: 3s }
  - { phase: fault, for: 6s, faults: [{ power-off: { host: dc1/a/h1 }, at: 0s, for: 2s }] }
  - { phase: recovery, for: 3s }
expect: { lost_writes: 0, invented_writes: 0 }
";

/// What the scenario comes to with the store of this engine file, ended with this code; nothing, and said so, where it cannot be
/// run.
fn ended_with(test: &str, engine: &str, code: i32, more: &[&str]) -> Option<Value> {
    let _turn = beside_others();
    let desk = Desk::with_a_lab(test)?;
    if !Path::new(PYTHON).is_file() {
        eprintln!("skipped: {test}: no {PYTHON}");
        return None;
    }
    // Beside the desk, on which nothing is left; readable by the nodes' user.
    let folder = tempfile::tempdir().expect("a folder");
    let at = |name: &str| folder.path().join(name);
    fs::write(at("keystore"), STORE).expect("written");
    fs::write(at("keystore.yaml"), engine).expect("written");
    fs::write(at("keys.yaml"), SCENARIO).expect("written");
    for path in [folder.path(), at("keystore").as_path()] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("permissions");
    }
    let scenario = at("keys.yaml").display().to_string();
    let programs = folder.path().display().to_string();
    let mut run = vec![scenario.as_str(), "--engine-dir", programs.as_str()];
    run.extend(more);
    ended_on(&desk, test, &[], code, &run)
}

#[test]
#[ignore = "second tier: a scenario of its own, a quarter of a minute"]
fn a_store_of_keys_by_a_client_program_of_its_own_keeps_what_it_synced_over_a_power_off() {
    let test = "a_store_of_keys_by_a_client_program_of_its_own_keeps_what_it_synced";
    let Some(result) = ended_with(test, ENGINE, 0, &[]) else { return };
    assert_eq!(result["verdict"], "pass", "{result:#}");
    for name in ["ledger", "bank", "register"] {
        assert_eq!(check(&result, name)["verdict"], "pass", "{result:#}");
    }
    assert!(check(&result, "ledger")["acknowledged"].as_u64() > Some(50), "{result:#}");
    assert_eq!(check(&result, "ledger")["lost"], 0, "{result:#}");
    let fault = &result["faults"][0];
    assert!(fault["recovery_s"]["first_success"].is_number(), "it takes writes again: {fault:#}");
    let load = result["lab"]["cpu_seconds"]["load"].as_f64();
    assert!(load > Some(0.0), "the program's work counts: {result:#}");
}

#[test]
#[ignore = "second tier: a scenario of its own, a quarter of a minute"]
fn a_store_of_keys_that_answers_before_it_syncs_is_caught() {
    let test = "a_store_of_keys_that_answers_before_it_syncs_is_caught";
    let careless = ENGINE.replace("[keystore, serve, ", "[keystore, serve, \"--no-sync\", ");
    assert_ne!(careless, ENGINE);
    let loads = "loads=[{ workload: ledger, clients: 3, from: dc1, rate: 100/s }]";
    let Some(result) = ended_with(test, &careless, 1, &["--set", loads]) else { return };
    assert_eq!(result["verdict"], "fail", "{result:#}");
    let ledger = check(&result, "ledger");
    assert!(ledger["lost"].as_u64() > Some(20), "{ledger:#}");
    assert_eq!(ledger["invented"], 0, "{ledger:#}");
    assert!(ledger["explanation"].to_string().contains("was acknowledged"), "{ledger:#}");
}
