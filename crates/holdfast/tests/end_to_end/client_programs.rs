//! A database that is reached by a driver in a program of its own: Patroni by pg8000 and by pgJDBC, as the guide has them, through the loss of
//! its primary's host; and what becomes of a run whose program is killed.

use std::fs;
use std::path::Path;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tempfile::TempDir;

use crate::engines::{check, ended_on};
use crate::holdfast::{Desk, arguments};
use crate::traces::Before;
use crate::turns::beside_others;

const PATRONI: &str = include_str!("../../../../engines/patroni.yaml");
const OWN_CLIENT: &str = "client: { protocol: postgres, user: postgres, database: postgres }\n";
const GUIDE: &str = include_str!("../../../../docs/guide/client-programs.md");

/// What the guide says to write under `client`; the blocks in their order.
fn clients_of_the_guide() -> Vec<&'static str> {
    GUIDE.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

/// A scenario on Patroni whose clients are spoken for by a program, in a folder of its own.
fn scenario(desk: &Desk, client: &str) -> (TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let engine = PATRONI.replace(OWN_CLIENT, client);
    assert!(engine.contains("protocol: process"), "{engine}");
    fs::write(folder.path().join("by-driver.yaml"), engine).expect("written");
    let scenario = fs::read_to_string(desk.path().join("scenarios/patroni.yaml")).expect("the scenario");
    let scenario = scenario.replace("engine: patroni\n", "engine: ./by-driver.yaml\n");
    assert!(scenario.contains("by-driver"), "{scenario}");
    let path = folder.path().join("scenario.yaml");
    fs::write(&path, scenario).expect("written");
    let path = path.display().to_string();
    (folder, path)
}

fn nothing_acknowledged_is_lost(test: &str, client: &str) {
    let _turn = beside_others();
    let Some(desk) = Desk::with_a_lab(test) else { return };
    let (_folder, path) = scenario(&desk, client);
    let Some(result) = ended_on(&desk, test, &["patroni", "the driver of the client program"], 0, &[&path])
    else {
        return;
    };
    assert!(check(&result, "ledger")["acknowledged"].as_u64() > Some(500), "{result:#}");
    assert_eq!(check(&result, "ledger")["lost"], 0, "{result:#}");
    assert_eq!(check(&result, "tpcb-sums")["verdict"], "pass", "{result:#}");
    assert!(
        result["lab"]["cpu_seconds"]["load"].as_f64() > Some(1.0),
        "the program's work counts: {result:#}"
    );
}

#[test]
#[ignore = "second tier: a scenario of its own, and Patroni and a driver may have to be fetched"]
fn patroni_by_a_driver_in_python_keeps_what_it_acknowledged() {
    nothing_acknowledged_is_lost("patroni_by_a_driver_in_python", clients_of_the_guide()[0]);
}

#[test]
#[ignore = "second tier: a scenario of its own, and Patroni and a driver may have to be fetched"]
fn patroni_by_a_driver_in_java_keeps_what_it_acknowledged() {
    nothing_acknowledged_is_lost("patroni_by_a_driver_in_java", clients_of_the_guide()[1]);
}

/// Processes of this program's run whose command has this text.
fn of_the_run(run: u32, text: &str) -> Vec<i32> {
    let all = fs::read_dir("/proc").expect("processes").flatten();
    let numbers = all.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let has_text = |pid: &i32| {
        let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains(text)
    };
    numbers.filter(has_text).filter(|pid| descends_from(*pid, run)).collect()
}

fn descends_from(mut pid: i32, ancestor: u32) -> bool {
    while pid > 1 {
        if u32::try_from(pid) == Ok(ancestor) {
            return true;
        }
        let stat =
            fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).unwrap_or_default();
        let parent = stat.rsplit(')').next().and_then(|rest| rest.split_whitespace().nth(1)?.parse().ok());
        pid = parent.unwrap_or(0);
    }
    false
}

#[test]
#[ignore = "second tier: a scenario of its own, and Patroni and a driver may have to be fetched"]
fn a_run_whose_client_program_is_killed_never_passes_and_says_why() {
    let test = "a_run_whose_client_program_is_killed_never_passes_and_says_why";
    let _turn = beside_others();
    let Some(desk) = Desk::with_a_lab(test) else { return };
    let (_folder, path) = scenario(&desk, clients_of_the_guide()[0]);
    let before = Before::look(&desk);
    let loads = "loads=[{ workload: ledger, clients: 2, from: dc1, rate: 100/s }]";
    let running = desk.start(&arguments(&[&["run", &path, "--set", loads]]));
    if !running.says("phase baseline") {
        let finished = running.wait();
        assert!(finished.stderr.contains("could not be installed"), "{}", finished.stderr);
        eprintln!("skipped: {test}: Patroni or a driver is not here, and cannot be fetched");
        return;
    }
    let programs = of_the_run(running.pid(), "DB-API 2 (PEP 249)");
    assert_eq!(programs.len(), 1, "one program serves all clients of a load: {programs:?}");
    kill(Pid::from_raw(programs[0]), Signal::SIGKILL).expect("killed");
    let finished = running.wait();
    assert!(!matches!(finished.code(), Some(0) | None), "{}", finished.stdout);
    let all = format!("{}{}", finished.stdout, finished.stderr);
    assert!(all.contains("the client program dbapi ended (signal: 9 (SIGKILL))"), "{all}");
    before.nothing_is_left(&[]);
}
