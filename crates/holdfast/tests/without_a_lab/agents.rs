//! A load spread over agents: three processes of this program on this machine, a real PostgreSQL on loopback, and what becomes of
//! the run when one of them is lost.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;

use crate::folder::{Folder, Running, json, until};
use crate::server::{self, Server};

/// A scenario on a database, in a folder of its own.
struct Desk {
    _server: Server,
    folder: Folder,
}

impl Desk {
    fn new() -> Option<Desk> {
        let programs = server::programs()?;
        let server = client::reactor::block_on(Server::start(&programs, &[])).expect("an event loop");
        let scenario = format!(
            "name: mine
target: external
cluster:
  engine: postgres
  members: {{ db1: {{ endpoint: \"{}\" }} }}
  agents:
    a1: {{ reach: {{ local: [] }} }}
    a2: {{ reach: {{ local: [] }} }}
    a3: {{ reach: {{ local: [] }} }}
loads: [{{ workload: ledger, clients: 7, agents: [a1, a2, a3], timeout: 5s, think_time: 5ms }}]
schedule: [{{ phase: warm-up, for: 1s }}, {{ phase: baseline, for: 3s }}]
expect: {{ lost_writes: 0, invented_writes: 0 }}
",
            server.address(),
        );
        Some(Desk { _server: server, folder: Folder::with(&scenario) })
    }

    /// What the run has recorded by now.
    fn events(&self) -> String {
        let read = |directory: PathBuf| fs::read_to_string(directory.join("events.jsonl")).ok();
        self.folder.newest_run().and_then(read).unwrap_or_default()
    }

    /// A run under way, in its first phase.
    fn begun(&self, further: &[&str]) -> Running {
        let running = self.folder.started(&[&["run", "mine.yaml"], further].concat());
        until("begun", || self.events().contains("\"event\":\"phase\""));
        running
    }
}

impl Running {
    /// The process that conducts the run.
    pub fn conductor(&self) -> u32 {
        *children(self.id()).first().expect("a conductor")
    }

    pub fn agents(&self) -> Vec<u32> {
        children(self.conductor()).into_iter().filter(is_agent).collect()
    }
}

fn children(parent: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{parent}/task")).into_iter().flatten().flatten();
    let of_each = tasks.map(|task| fs::read_to_string(task.path().join("children")).unwrap_or_default());
    of_each.collect::<String>().split_whitespace().filter_map(|word| word.parse().ok()).collect()
}

fn is_agent(process: &u32) -> bool {
    fs::read(format!("/proc/{process}/cmdline")).is_ok_and(|words| words.ends_with(b"\0agent\0"))
}

pub fn end(process: u32) {
    kill(Pid::from_raw(process.cast_signed()), Signal::SIGKILL).expect("killed");
}

#[test]
fn three_agents_do_one_load_and_the_run_is_judged_as_any_other() {
    let Some(desk) = Desk::new() else { return };
    let (code, said) = desk.folder.said(&["run", "mine.yaml"]);
    assert_eq!(code, 0, "{said}");
    let directory = desk.folder.run_directory();
    let result = json(&directory.join("result.json"));
    let agents = result["agents"].as_array().expect("agents");
    let parts: Vec<_> = agents
        .iter()
        .map(|agent| {
            (
                agent["agent"].as_str().unwrap_or_default(),
                agent["first_client"].as_u64(),
                agent["clients"].as_u64(),
            )
        })
        .collect();
    assert_eq!(
        parts,
        [("a1", Some(0), Some(3)), ("a2", Some(3), Some(2)), ("a3", Some(5), Some(2))],
        "{result:#}"
    );
    for agent in agents {
        for when in ["before", "after"] {
            let figure = |name: &str| agent["clock"][when][name].as_f64().expect("compared");
            // All are on one machine: the clocks are one.
            assert!(figure("ahead_us").abs() <= figure("uncertainty_us"), "{agent:#}");
        }
        assert!(agent["clock"]["off_by_at_most_us"].as_f64() > Some(0.0), "{agent:#}");
    }
    let load = &result["loads"][0];
    let history = directory.join("history.jsonl.zst").display().to_string();
    let operations = zstd::decode_all(fs::File::open(&history).expect("a history")).expect("compressed");
    let operations: Vec<Value> = operations
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).expect("JSON"))
        .filter(|operation: &Value| operation["f"] == "ledger-insert")
        .collect();
    let clients: BTreeSet<u64> =
        operations.iter().filter_map(|operation| operation["client"].as_u64()).collect();
    assert_eq!(clients, (0..7).collect());
    let acknowledged = operations.iter().filter(|operation| operation["outcome"] == "ok").count() as u64;
    assert_eq!(result["checks"][0]["acknowledged"].as_u64(), Some(acknowledged), "{result:#}");
    assert_eq!(load["phases"][1]["operations"]["insert"]["count"], load["transactions"], "{load:#}");
    let (code, said) = desk.folder.said(&["verify", "--model", "ledger", &history]);
    assert_eq!(code, 0, "{said}");
    let page = fs::read_to_string(directory.join("report.html")).expect("a report");
    assert!(page.contains("Agents and their clocks") && page.contains("Times off by at most"), "{page}");
}

#[test]
fn a_run_that_loses_an_agent_is_unknown_and_says_which() {
    let Some(desk) = Desk::new() else { return };
    let running = desk.begun(&["--set", "schedule.1.for=4s"]);
    let agents = running.agents();
    assert_eq!(agents.len(), 3);
    end(agents[1]);
    assert_eq!(running.exit_code(), Some(2));
    let result = json(&desk.folder.run_directory().join("result.json"));
    let reasons = result["reasons"].to_string();
    assert!(reasons.contains("agent a") && reasons.contains("was lost"), "{result:#}");
    assert_eq!(result["checks"][0]["verdict"], "unknown", "what it last did is not recorded: {result:#}");
}

#[test]
#[ignore = "second tier: ten seconds of load"]
fn a_run_that_may_go_on_without_an_agent_is_judged_by_what_is_recorded() {
    let Some(desk) = Desk::new() else { return };
    let running = desk.begun(&["--set", "cluster.agent-lost=go-on", "--set", "schedule.1.for=10s"]);
    end(running.agents()[1]);
    let code = running.exit_code();
    let directory = desk.folder.run_directory();
    let result = json(&directory.join("result.json"));
    assert_eq!(code, Some(0), "{}", result["reasons"]);
    let lost: Vec<&Value> = result["agents"]
        .as_array()
        .expect("agents")
        .iter()
        .filter(|agent| agent["lost"]["went_on"] == true)
        .collect();
    assert_eq!(lost.len(), 1, "{result:#}");
    assert!(result["lab"]["warnings"].to_string().contains("went on without agent"), "{result:#}");
    let last = result["loads"][0]["phases"][1]["transactions"].as_u64();
    assert!(last > Some(0), "{result:#}");
    let history = directory.join("history.jsonl.zst").display().to_string();
    let (code, said) = desk.folder.said(&["verify", "--model", "ledger", &history]);
    assert_eq!(code, 0, "{said}");
}

#[test]
#[ignore = "second tier: several seconds of load"]
fn agents_whose_conductor_is_gone_end_by_themselves() {
    let Some(desk) = Desk::new() else { return };
    let running = desk.begun(&["--set", "schedule.1.for=120s"]);
    let agents = running.agents();
    assert_eq!(agents.len(), 3);
    end(running.conductor());
    until("gone", || !agents.iter().any(is_agent));
}

#[test]
#[ignore = "second tier: several seconds of load"]
fn a_clock_that_goes_its_own_way_during_the_run_leaves_the_run_in_doubt() {
    let Some(desk) = Desk::new() else { return };
    let liar = desk.folder.path().join("liar");
    let script = format!(
        "#!/bin/sh\n'{}' \"$@\" | sed -u '/\"news\":\"begun\"/,$ s/\"at_ns\":/\"at_ns\":9/'\n",
        env!("CARGO_BIN_EXE_holdfast")
    );
    fs::write(&liar, script).expect("written");
    fs::set_permissions(&liar, fs::Permissions::from_mode(0o755)).expect("executable");
    let program = format!("cluster.agents.a2.program={}", liar.display());
    let (code, said) = desk.folder.said(&["run", "mine.yaml", "--set", &program]);
    assert_eq!(code, 2, "{said}");
    let result = json(&desk.folder.run_directory().join("result.json"));
    let reasons = result["reasons"].to_string();
    assert!(reasons.contains("times of agent a2 may be off by"), "{result:#}");
    assert!(!reasons.contains("agent a1") && !reasons.contains("agent a3"), "{result:#}");
}

#[test]
fn an_agent_that_cannot_be_had_is_told_before_anything_is_made() {
    let Some(desk) = Desk::new() else { return };
    let (code, said) =
        desk.folder.said(&["run", "mine.yaml", "--set", "cluster.agents.a2.program=/nowhere/holdfast"]);
    assert_eq!(code, 255, "{said}");
    assert!(said.contains("agent a2") && said.contains("/nowhere/holdfast"), "{said}");
}
