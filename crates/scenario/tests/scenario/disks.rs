//! What the language says of disks: how many a host has, which one a fault means, how it goes wrong, and where that is
//! refused.

use std::time::Duration;

use scenario::{
    DiskDefect, DiskFault, DiskSync, DiskTarget, Disks, FaultAction, FaultTarget, Level, Place, Scenario,
};

use crate::reading::read_and_written;

const BASE: &str = "\
name: base
site:
  regions:
    dc1: { zones: { a: { racks: { r1: { hosts: 2 }, r2: { hosts: 1 } } } } }
  DISKS
database: { engine: postgres, nodes: NODES }
loads:
  - { workload: ledger, clients: 4 }
schedule:
  - { phase: baseline, for: 15s }
  - { phase: fault, for: 25s, faults: [FAULT] }
";

fn read(disks: &str, nodes: &str, fault: &str) -> Result<Scenario, Vec<String>> {
    read_and_written(&BASE.replace("DISKS", disks).replace("NODES", nodes).replace("FAULT", fault))
}

const THREE: &str = "disks: { capacity: 3, groups: 2, cache: true }";

/// What a disk fault with this map in it becomes, of hosts with three capacity disks and two cache disks.
fn check(fault: &str, expected: (DiskTarget, DiskDefect)) {
    let scenario = read(THREE, "3", &format!("{{ disk: {{ {fault} }} }}"))
        .unwrap_or_else(|problems| panic!("{fault}: {problems:?}"));
    let (target, defect) = expected;
    assert_eq!(
        scenario.schedule[1].faults[0].action,
        FaultAction::Disk(DiskFault { target, defect }),
        "{fault}"
    );
}

/// A fault is refused, with these problems.
fn check_refused(disks: &str, nodes: &str, fault: &str, expected: &[&str]) {
    let refused = read(disks, nodes, fault).expect_err(fault);
    assert_eq!(refused, expected, "{disks} {fault}");
}

fn named(rack: &str, host: &str, disk: &str) -> DiskTarget {
    let path = ["dc1", "a", rack, host].map(str::to_owned).to_vec();
    DiskTarget::Named { host: Place { level: Level::Host, path }, disk: disk.to_owned() }
}

fn of(node: FaultTarget, cache: bool) -> DiskTarget {
    DiskTarget::Of { node, cache }
}

#[test]
fn a_host_has_one_capacity_disk_unless_the_site_says_more() {
    let disks = |text| read(text, "3", "").expect("accepted").site.disks;
    assert_eq!(disks(""), Disks { capacity: 1, groups: 1, cache: false, ..Disks::default() });
    assert_eq!(
        disks("disks: { capacity: 4 }"),
        Disks { capacity: 4, groups: 1, cache: false, ..Disks::default() }
    );
    assert_eq!(disks(THREE), Disks { capacity: 3, groups: 2, cache: true, ..Disks::default() });
    let group = |names: &[&str], cache: &str| {
        (names.iter().map(ToString::to_string).collect::<Vec<_>>(), Some(cache.to_owned()))
    };
    assert_eq!(disks(THREE).grouped(), [group(&["d1"], "c1"), group(&["d2", "d3"], "c2")]);
    assert_eq!(disks(THREE).names(), ["d1", "d2", "d3", "c1", "c2"]);
}

#[test]
fn a_sync_costs_what_the_machine_takes_unless_the_site_describes_a_medium() {
    let of_sync = |sync: &str| {
        let scenario = read(&format!("disks: {{ sync: {sync} }}"), "3", "").expect("accepted");
        scenario.site.disks.sync
    };
    let modelled = |latency_us, at_once, bytes_per_second| DiskSync::Modelled {
        latency: Duration::from_micros(latency_us),
        at_once,
        bytes_per_second,
    };
    for (sync, expected) in [
        ("machine", DiskSync::Machine),
        ("modelled", modelled(0, 32, None)),
        ("{ latency: 400us }", modelled(400, 32, None)),
        ("{ latency: 8ms, at-once: 1, per-second: 150MiB }", modelled(8_000, 1, Some(150 << 20))),
    ] {
        assert_eq!(of_sync(sync), expected, "{sync}");
    }
}

#[test]
fn a_disk_is_meant_by_its_name_or_by_the_role_of_the_node_above_it() {
    check("disk: r1/h2/d3, how: fail", (named("r1", "h2", "d3"), DiskDefect::Fail));
    check("disk: dc1/a/r2/h1/c2, how: stall", (named("r2", "h1", "c2"), DiskDefect::Stall));
    let leader = FaultTarget::Leader(Level::Host);
    check("of: leader, how: full", (of(leader.clone(), false), DiskDefect::Full));
    check("cache-of: leader, how: lose-flush", (of(leader, true), DiskDefect::LoseFlush));
    check("of: random, how: read-only", (of(FaultTarget::Random(Level::Host), false), DiskDefect::ReadOnly));
}

#[test]
fn ways_to_go_wrong_with_a_figure_have_it() {
    let (follower, by) = (of(FaultTarget::AFollower(Level::Host), false), Duration::from_millis(20));
    check("of: a-follower, how: { slow: 20ms }", (follower.clone(), DiskDefect::Slow { by }));
    let after = DiskDefect::FailAfter { operations: 500 };
    check("of: a-follower, how: { fail-after: 500 }", (follower.clone(), after));
    let corrupt = |checksums| DiskDefect::Corrupt { share: 0.01, checksums };
    check("of: a-follower, how: { corrupt: { reads: 1% } }", (follower.clone(), corrupt(false)));
    check("of: a-follower, how: { corrupt: { reads: 1%, checksums: true } }", (follower, corrupt(true)));
}

#[test]
fn what_makes_no_sense_is_refused_where_it_stands() {
    let disk = |inside: &str| format!("{{ disk: {{ {inside} }} }}");
    let refused = |inside: &str, expected: &[&str]| check_refused(THREE, "3", &disk(inside), expected);
    refused("disk: r1/h2/d4, how: fail", &["unknown-disk `r1/h2/d4`"]);
    refused("disk: d1, how: fail", &["unknown-disk `d1`"]);
    refused("disk: r1/h9/d1, how: fail", &["unknown-place `r1/h9/d1`"]);
    refused("disk: r1/d1, how: fail", &["wrong-level `r1/d1`"]);
    refused("of: leader, how: slow", &["no-value `slow`"]);
    refused("of: leader, how: broken", &["unknown-word `broken`"]);
    refused("of: leader, how: { slow: 1us }", &["too-small `1us`"]);
    refused("of: leader, how: { slow: 1m }", &["too-large `1m`"]);
    refused("of: leader, how: { corrupt: { reads: 0.01% } }", &["too-small `0.01%`"]);
    refused("of: leader, how: { corrupt: { reads: 101% } }", &["too-large `101%`"]);
    refused("of: leader, how: { corrupt: { reads: 1%, checksums: yes } }", &["not-a-flag `yes`"]);
    refused("of: leader, how: { fail-after: 0 }", &["too-small `0`"]);
    check_refused("", "3", &disk("cache-of: leader, how: fail"), &["no-cache-disk `cache-of`"]);
    check_refused("", "1", &disk("of: a-follower, how: fail"), &["no-follower `a-follower`"]);
    check_refused("disks: { groups: 2 }", "3", "", &["missing-key `groups`"]);
    check_refused("disks: { groups: 2, cache: true }", "3", "", &["too-large `groups`"]);
    let plain = "3, volumes: directory";
    check_refused("", plain, &disk("of: leader, how: fail"), &["no-disks `disk`"]);
    let flapping = "{ disk: { of: leader, how: fail }, flap: { down: 1s, up: 1s } }";
    check_refused("", "3", flapping, &["bad-flap `flap`"]);
}
