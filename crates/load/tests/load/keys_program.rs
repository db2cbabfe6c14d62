//! Loads by a client program that speaks keys: every workload of keys and values runs by it, and its final read tells what is
//! there. The program is the stub of the crate `client`; it is no database.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use client::Endpoint;
use client::process::{GREETING_WITHIN, Settings, Speaks, Starter};
use load::{ClientProgram, LoadPlan, Protocol};

use crate::real_loads;

const STUB: &str = include_str!("../../../client/tests/stubs/keys.py");
const PYTHON: &str = "/usr/bin/python3";

/// A load by the stub, which is told what it is by the driver's name and keeps its keys in the folder.
fn plan(workload: &str, driver: &str, folder: &Path) -> LoadPlan {
    let starter: Starter = Arc::new(|socket: OwnedFd| {
        let output = socket.try_clone()?;
        Command::new(PYTHON).args(["-I", "-c", STUB]).stdin(socket).stdout(output).spawn()
    });
    let settings = Settings {
        name: "stub".to_owned(),
        starter,
        driver: driver.to_owned(),
        folder: folder.display().to_string(),
        log: None,
        patience: GREETING_WITHIN,
        accountant: None,
    };
    let program = ClientProgram {
        settings,
        speaks: Speaks::Keys,
        targets: BTreeMap::new(),
        takes_writes: None,
        prepare: Vec::new(),
    };
    let address = SocketAddr::from(([127, 0, 0, 1], 1)).into();
    let endpoints = vec![Endpoint { node: "n1".to_owned(), address }];
    let plan = real_loads::plan_at(workload, &BTreeMap::new(), 4, endpoints);
    LoadPlan { protocol: Protocol::Process, program: Some(program), user: String::new(), ..plan }
}

fn every_workload_runs(driver: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    real_loads::every_workload_of_keys_runs(500, |workload| {
        let own = folder.path().join(workload);
        std::fs::create_dir(&own).expect("a folder");
        plan(workload, driver, &own)
    });
}

#[test]
fn every_workload_of_keys_and_values_runs_by_a_program_and_its_final_read_tells_what_is_there() {
    if !Path::new(PYTHON).is_file() {
        eprintln!("skipped: every_workload_of_keys_and_values_runs_by_a_program: no {PYTHON}");
        return;
    }
    // Lists as such, and a key for each row; at once, for a load waits most of its time for a second to end.
    std::thread::scope(|scope| {
        for driver in ["", "rewrites"] {
            scope.spawn(move || every_workload_runs(driver));
        }
    });
}
