//! The same datacentre over IPv6: the main job passes, and a partition leaks through neither family.

use crate::holdfast::{Desk, RESTART_SOON, SHORT, arguments};
use crate::traces::Before;
use crate::turns::{beside_others, machine};

const IPV6: [&str; 2] = ["--set", "site.ip=6"];

/// A desk on a machine that can. None, and said so, where not.
fn desk(test: &str) -> Option<Desk> {
    if !std::path::Path::new("/proc/sys/net/ipv6").is_dir() {
        eprintln!("skipped: {test}: the kernel knows no IPv6");
        return None;
    }
    Desk::with_a_lab(test)
}

#[test]
#[ignore = "a scenario of its own; part of `cargo xtask test --all`"]
fn a_host_dies_under_the_leader_over_ipv6_and_nothing_acknowledged_is_lost() {
    let _turn = machine();
    let Some(desk) = desk("a_host_dies_under_the_leader_over_ipv6") else { return };
    let before = Before::look(&desk);
    let finished =
        desk.run(&arguments(&[&["run", "scenarios/host-failure.yaml"], &SHORT, &RESTART_SOON, &IPV6]));
    let result = finished.ends_with(0).result();
    let receipt = result["faults"][0]["receipt"]["evidence"].to_string();
    assert!(receipt.contains("(fd00::10:2:0:1)") && !receipt.contains("(10."), "{receipt}");
    let events = std::fs::read_to_string(finished.run_directory().join("events.jsonl")).expect("events");
    assert!(events.contains(r#""address":"fd00::10:2:0:3""#), "{events}");
    let resolved = std::fs::read_to_string(finished.run_directory().join("scenario.yaml")).expect("scenario");
    assert!(resolved.contains("  ip: 6\n"), "{resolved}");
    before.nothing_is_left(&[]);
}

/// Asks the database at each address and prints those that answer.
fn who_answers(desk: &Desk, from: &str, addresses: &[&str]) -> Vec<String> {
    let script = "export PGTARGETSESSIONATTRS=any PGCONNECT_TIMEOUT=2
        for address; do psql -h $address -Atc 'SELECT inet_server_addr()' 2>/dev/null & done; wait";
    let finished = desk.run(&[&["shell", from, "sh", "-c", script, "sh"][..], addresses].concat());
    finished.ends_with(0);
    let mut answers: Vec<String> = finished.stdout.lines().map(str::to_owned).collect();
    answers.sort();
    answers
}

#[test]
fn a_partition_leaks_through_neither_family_either_way() {
    let _turn = beside_others();
    let Some(desk) = desk("a_partition_leaks_through_neither_family") else { return };
    // Time to ask everybody before the cut and while it stands, on a slow machine too.
    let short = "schedule=[{ phase: baseline, for: 5s }, { phase: cut-off, for: 9s, faults: [{ partition: { isolate: leader }, \
                 at: 0s, for: 8s }] }, { phase: recovery, for: 3s }]";
    let ledger = "loads=[{ workload: ledger, clients: 2, from: dc1, rate: 100/s }]";
    let run = ["run", "scenarios/partition.yaml", "--set", short, "--set", ledger];
    let running = desk.start(&arguments(&[&run, &IPV6]));
    assert!(running.says("phase baseline"));
    if desk.run(&["shell", "n1", "psql", "--version"]).code() != Some(0) {
        eprintln!(
            "skipped: a_partition_leaks_through_neither_family: the database was installed without psql"
        );
        return;
    }
    let (leader, another) = (["10.2.0.1", "fd00::10:2:0:1"], ["10.2.0.2", "fd00::10:2:0:2"]);
    assert_eq!(who_answers(&desk, "dc1/clients", &leader), leader, "before the partition both are heard");
    assert_eq!(who_answers(&desk, "n1", &another), another, "before the partition both are heard");
    assert!(running.says("took effect: pass"));
    let (in_both, out_both) = std::thread::scope(|scope| {
        let inward = scope.spawn(|| who_answers(&desk, "dc1/clients", &[leader, another].concat()));
        let outward = scope.spawn(|| who_answers(&desk, "n1", &another));
        (inward.join().expect("inward"), outward.join().expect("outward"))
    });
    // Who is not cut off is heard, so that silence means something.
    assert_eq!(in_both, another, "towards the leader");
    assert_eq!(out_both, [""; 0], "from the leader");
    assert!(running.says("healed: pass"), "the partition stood until after the look");
    let finished = running.wait();
    finished.ends_with(0);
}
