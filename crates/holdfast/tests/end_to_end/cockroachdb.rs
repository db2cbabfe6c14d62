//! An engine file for programs that the user points at: CockroachDB's, with a stand-in for its program, through the loss of a
//! host. The stand-in is the crate `engine`'s; what it is strict about, its own tests show.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde_json::Value;

use crate::engines::{check, ended_on};
use crate::holdfast::Desk;
use crate::turns::beside_others;

const STUB: &str = include_str!("../../../engine/tests/stubs/cockroach.py");
const SCENARIO: &str = "
name: pointed-at
site: { regions: { dc1: { zones: { a: { racks: { r1: { hosts: 1 }, r2: { hosts: 1 }, r3: { hosts: 1 } } } } } } }
database: { engine: cockroachdb, nodes: [dc1/a/r1, dc1/a/r2, dc1/a/r3] }
loads:
  - { workload: tpcb, clients: 2, from: dc1, rate: 30/s }
  - { workload: ledger, clients: 3, from: dc1, rate: 30/s }
  - { workload: bank, clients: 3, from: dc1, rate: 30/s }
  - { workload: append, clients: 3, from: dc1, rate: 30/s }
  - { workload: register, clients: 3, from: dc1, rate: 30/s }
schedule:
  - { phase: baseline, for: 3s }
  - { phase: fault, for: 6s, faults: [{ power-off: { host: dc1/a/r3/h1 }, for: 4s }] }
  - { phase: recovery, for: 4s }
expect: { lost_writes: 0, invented_writes: 0 }
";

#[test]
fn programs_that_are_pointed_at_boot_by_their_file_and_the_report_says_that_it_was_not_run_here() {
    let test = "programs_that_are_pointed_at_boot_by_their_file";
    let _turn = beside_others();
    let Some(desk) = Desk::with_a_lab(test) else { return };
    if !Path::new("/usr/bin/python3").is_file() {
        eprintln!("skipped: {test}: no /usr/bin/python3");
        return;
    }
    // Beside the desk, on which nothing is left; readable by the nodes' user.
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("cockroach");
    fs::write(&program, STUB).expect("written");
    for path in [folder.path(), &program] {
        fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("permissions");
    }
    let scenario = folder.path().join("pointed-at.yaml");
    fs::write(&scenario, SCENARIO).expect("written");
    let [folder_path, scenario] = [folder.path(), scenario.as_path()].map(|path| path.display().to_string());

    let on_paper = desk.run(&["check", &scenario]);
    assert!(
        on_paper.stdout.contains("cockroachdb: not run here; from its documentation"),
        "{}",
        on_paper.stdout
    );
    let run = [scenario.as_str(), "--engine-dir", &folder_path];
    let Some(result) = ended_on(&desk, test, &[], 0, &run) else { return };
    for name in ["tpcb-sums", "ledger", "bank", "list-append", "register"] {
        assert_eq!(check(&result, name)["verdict"], "pass", "{result:#}");
    }
    assert!(check(&result, "ledger")["acknowledged"].as_u64() > Some(20), "{result:#}");
    let retries = |load: &Value| load["errors"]["serialization"].as_u64().unwrap_or(0);
    let loads = result["loads"].as_array().expect("loads");
    assert!(loads.iter().map(retries).sum::<u64>() > 0, "the stand-in asks for retries: {result:#}");
    let report = fs::read_to_string(desk.path().join("runs/latest/report.html")).expect("the report");
    assert!(report.contains("not run here; from its documentation"), "the report says so");
}
