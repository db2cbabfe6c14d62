//! `holdfast run` against a cluster that exists: a real PostgreSQL and its standby on loopback, whose processes a command file
//! stops. No lab is needed.

use std::fs;
use std::process::Command;
use std::time::Duration;

use crate::folder::{Folder, json, until};
use crate::server::{self, Server};

/// A postmaster is stopped, so that it starts no other backends, and all its children.
const STOP: &str = "fault: stop-postgresql
summary: a process and all its children are stopped
written-for: { tool: procps-ng, version: \"4\", asked-by: { run: [pkill, --version] } }
parameters:
  postmaster: { kind: count, meaning: the process, example: \"77\" }
do:
  - { run: [kill, -STOP, \"{postmaster}\"] }
  - { run: [pkill, -STOP, -P, \"{postmaster}\"] }
undo:
  - { run: [pkill, -CONT, -P, \"{postmaster}\"] }
  - { run: [kill, -CONT, \"{postmaster}\"] }
stands: [{ run: [pgrep, -P, \"{postmaster}\", --runstates, T] }]
gone: [{ run: [pgrep, -P, \"{postmaster}\", --runstates, T], exit: 1 }]
tested: { here: false, from: this test }
";

/// A cluster of two with a scenario beside a command file.
struct Cluster {
    leader: Server,
    standby: Server,
    folder: Folder,
}

impl Cluster {
    fn new(command_file: &str) -> Option<Cluster> {
        let programs = server::programs()?;
        for program in ["pkill", "pgrep", "setsid", "timeout"] {
            if !Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success()) {
                eprintln!("SKIPPED: no `{program}` on this machine");
                return None;
            }
        }
        let servers = client::reactor::block_on(async {
            let leader = Server::start(&programs, &[]).await;
            let standby = Server::standby_of(&leader).await;
            (leader, standby)
        });
        let (leader, standby) = servers.expect("an event loop");
        let scenario = format!(
            "name: mine
target: external
cluster:
  engine: postgres
  may-break: [db1, db2]
  members:
    db2: {{ endpoint: \"{}\", reach: {{ local: [] }}, facts: {{ postmaster: {} }} }}
    db1: {{ endpoint: \"{}\", reach: {{ local: [] }}, facts: {{ postmaster: {}, rack: r1 }} }}
loads: [{{ workload: ledger, clients: 2, timeout: 1s, think_time: 10ms }}]
schedule:
  - {{ phase: baseline, for: 4s }}
  - {{ phase: fault, for: 6s, faults: [{{ external: {{ command: ./stop.yaml, of: leader }}, for: 4s }}] }}
  - {{ phase: recovery, for: 3s }}
expect: {{ lost_writes: 0, invented_writes: 0 }}
",
            standby.address(),
            standby.pid(),
            leader.address(),
            leader.pid(),
        );
        let folder = Folder::with(&scenario);
        fs::write(folder.path().join("stop.yaml"), command_file).expect("written");
        Some(Cluster { leader, standby, folder })
    }

    /// The states of the leader's backends, as letters.
    fn states(&self) -> String {
        let parent = self.leader.pid().to_string();
        let output = Command::new("ps").args(["-o", "stat=", "--ppid", &parent]).output().expect("ps");
        String::from_utf8(output.stdout)
            .expect("text")
            .lines()
            .filter_map(|line| line.chars().next())
            .collect()
    }

    fn is_stopped(&self) -> bool {
        self.states().contains('T')
    }
}

#[test]
fn a_leader_that_stands_still_for_a_while_is_shown_and_loses_nothing() {
    let Some(cluster) = Cluster::new(STOP) else { return };
    let (code, said) = cluster.folder.said(&["check", "mine.yaml"]);
    assert_eq!(code, 0, "{said}");
    let kill = format!("pkill -STOP -P {}", cluster.leader.pid());
    assert!(said.contains("--yes-break mine") && said.contains(&kill), "{said}");
    let (code, said) = cluster.folder.said(&["run", "mine.yaml"]);
    assert!(code == 254 && said.contains("--yes-break mine"), "{code}: {said}");
    assert!(!cluster.folder.path().join("runs").exists() && !cluster.is_stopped());
    let (code, said) = cluster.folder.said(&["run", "mine.yaml", "--yes-break", "mine"]);
    assert_eq!(code, 0, "{said}");
    let result = json(&cluster.folder.run_directory().join("result.json"));
    let fault = &result["faults"][0];
    assert_eq!(
        (&fault["kind"], &fault["receipt"]["verdict"]),
        (&"external".into(), &"pass".into()),
        "{fault:#}"
    );
    assert_eq!(fault["hits"][0], "cluster/members/db1", "the leader is the second member: {fault:#}");
    assert!(fault["gap_s"].as_f64() > Some(2.0), "{fault:#}");
    assert!(result["checks"][0]["acknowledged"].as_u64() > Some(20), "{result:#}");
    assert_eq!(result["facts"]["site"]["nodes"][1]["role"], "leader", "{result:#}");
    let page = fs::read_to_string(cluster.folder.run_directory().join("report.html")).expect("a report");
    assert!(page.contains("The cluster existed before the run"), "{page}");
    assert!(!cluster.is_stopped());
    let directory = cluster.folder.run_directory().display().to_string();
    let (code, said) = cluster.folder.said(&["heal", &directory]);
    assert!(code == 0 && said.contains("nothing stands"), "{code}: {said}");
}

#[test]
fn what_is_refused_of_one_run_is_refused_of_a_series_before_it_begins() {
    let scenario = |command: &str| {
        format!(
            "name: mine\ntarget: external\ncluster:\n  engine: postgres\n  may-break: [db1]\n  members:\n    db1: {{ \
             endpoint: \"127.0.0.1:1\", reach: {{ local: [] }}, facts: {{ unit: x.service }} }}\nloads: [{{ workload: ledger, \
             clients: 1 }}]\nschedule:\n  - {{ phase: baseline, for: 1s }}\n  - {{ phase: fault, for: 2s, faults: [{{ \
             external: {{ command: {command}, of: db1 }}, for: 1s }}] }}\n"
        )
    };
    for (command, told) in
        [("systemd-kil", "no command file `systemd-kil` ships"), ("systemd-kill", "--yes-break mine")]
    {
        let folder = Folder::with(&scenario(command));
        let (code, said) = folder.said(&["run", "mine.yaml", "--repeat", "2"]);
        assert!(code == 254 && said.contains(told), "{code}: {said}");
        assert!(!folder.path().join("runs").exists(), "{command}");
    }
}

#[test]
fn a_command_that_ends_with_0_and_does_nothing_makes_no_pass() {
    let idle = STOP.replace("[pkill, -STOP, -P,", "[pgrep, -P,").replace("[kill, -STOP,", "[kill, -0,");
    let Some(cluster) = Cluster::new(&idle) else { return };
    let (code, said) = cluster.folder.said(&["run", "mine.yaml", "--yes-break", "mine"]);
    assert_eq!(code, 2, "{said}");
    let result = json(&cluster.folder.run_directory().join("result.json"));
    assert_eq!(result["faults"][0]["receipt"]["verdict"], "fail", "{result:#}");
    assert!(
        result["faults"][0]["receipt"]["evidence"].to_string().contains("the fault does not stand"),
        "{result:#}"
    );
}

#[test]
fn a_member_that_takes_connections_and_does_not_say_whether_it_leads_makes_no_pass() {
    let Some(cluster) = Cluster::new(STOP) else { return };
    let path = cluster.folder.path().join("mine.yaml");
    let text = fs::read_to_string(&path).expect("the scenario");
    let until_schedule = text.split("schedule:").next().expect("what stands before");
    let schedule = "schedule: [{ phase: baseline, for: 2s }]\nexpect: { lost_writes: 0 }\n";
    fs::write(&path, format!("{until_schedule}{schedule}")).expect("written");
    let signal = |name: &str| {
        let standby = cluster.standby.pid().to_string();
        assert!(Command::new("kill").args([name, &standby]).status().is_ok_and(|status| status.success()));
    };
    signal("-STOP");
    let (code, said) = cluster.folder.said(&["run", "mine.yaml"]);
    signal("-CONT");
    assert_eq!(code, 2, "{said}");
    assert!(said.contains("n1 did not say whether it leads"), "{said}");
    let result = json(&cluster.folder.run_directory().join("result.json"));
    assert_eq!(result["silent_at_the_end"][0], "n1", "{result:#}");
    assert_eq!(result["checks"][0]["verdict"], "unknown", "{result:#}");
    let (code, said) = cluster.folder.said(&["run", "mine.yaml"]);
    assert_eq!(code, 0, "both answer: {said}");
}

/// A run that goes on until it is ended.
const LONG: [&str; 6] = [
    "run",
    "mine.yaml",
    "--yes-break",
    "mine",
    "--set=schedule.1.for=300s",
    "--set=schedule.1.faults.0.for=300s",
];

#[test]
fn what_stands_is_undone_when_the_program_is_killed() {
    let Some(cluster) = Cluster::new(STOP) else { return };
    let running = cluster.folder.started(&LONG);
    until("stopped", || cluster.is_stopped());
    drop(running);
    until("going on", || !cluster.is_stopped());
    let directory = cluster.folder.run_directory().display().to_string();
    // The run's own process may still be about to disarm the timer.
    until("healed", || cluster.folder.said(&["heal", &directory]).0 == 0);
    assert!(!cluster.is_stopped());
}

#[test]
fn what_stands_is_undone_before_the_program_ends_though_it_was_interrupted_twice() {
    let Some(cluster) = Cluster::new(STOP) else { return };
    let running = cluster.folder.started(&LONG);
    until("stopped", || cluster.is_stopped());
    for _ in 0..2 {
        let told = Command::new("kill").args(["-INT", &running.id().to_string()]).status();
        assert!(told.is_ok_and(|status| status.success()));
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(running.exit_code(), Some(2));
    assert!(!cluster.is_stopped());
}
