//! Tests that run as PID 1 of a lab. A panic ends the lab and is told by the log.

use std::collections::BTreeSet;
use std::time::Duration;

use fabric::Fabric;
use lab::{probe, supervisor};

use crate::ground::{Ground, address, leave_running, round_trip, shell, transfer};

/// A test's name, and what it does on fresh ground.
type Test = (&'static str, fn(&Ground));

/// All of them.
pub const TESTS: &[Test] = &[
    ("two_places_reach_each_other_and_exchange_a_megabyte", exchange_a_megabyte),
    ("a_delay_is_felt_in_the_direction_that_has_it", a_delay_is_felt),
    ("a_detached_address_is_silent_and_others_are_not", a_detached_address_is_silent),
    ("a_hundred_hosts_answer", a_hundred_hosts_answer),
    ("a_power_off_leaves_no_process_whatever_it_ignores", a_power_off_leaves_no_process),
    ("a_node_booted_again_has_its_address_and_its_volume", a_node_booted_again),
    ("a_process_of_a_node_holds_nothing_of_the_lab", a_process_holds_nothing_of_the_lab),
    ("a_node_sees_itself_and_nothing_else", a_node_sees_itself),
    ("nodes_reach_each_other_by_name_over_the_fabric", nodes_reach_each_other),
];

/// The job that is no test: stands until it is killed.
pub const STAND: &str = "stand";

/// The whole life of a supervisor: enters the lab and does its job.
pub fn perform() {
    let users_mapped = supervisor::enter().expect("a lab").users_mapped;
    // The watch needs the input to itself from then on.
    let line = || {
        let mut line = String::new();
        std::io::stdin().read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    };
    let (job, folder) = (line(), line());
    supervisor::watch_orders(|_| {}).expect("a watch");
    let ground = Ground { folder: folder.into(), users_mapped, fabric: Fabric::start().expect("a fabric") };
    if job == STAND {
        return stand(&ground);
    }
    let (_, test) = TESTS.iter().find(|(name, _)| *name == job).expect("a test of this name");
    test(&ground);
}

fn exchange_a_megabyte(ground: &Ground) {
    let (one, two) = (ground.place("dc1", 1), ground.place("dc2", 2));
    assert!(round_trip(&one, address(2)).is_some());
    let bytes: Vec<u8> = (0..1_000_000u32).map(|number| (number * 7 % 251) as u8).collect();
    assert!(transfer(&one, &two, &bytes) == bytes, "what arrived is not what was sent");
    let counters = ground.fabric.counters().expect("counters");
    assert!(counters.bytes > 1_000_000, "{counters:?}");
    assert_eq!(counters.malformed_packets, 0, "{counters:?}");
}

/// A lower bound only: how much longer it takes is the machine's business.
fn a_delay_is_felt(ground: &Ground) {
    let (one, _two) = (ground.place("dc1", 1), ground.place("dc2", 2));
    let delay = Duration::from_millis(50);
    for (delays, least) in [
        (&[("dc1", "dc2", delay)][..], delay),
        (&[("dc2", "dc1", delay)][..], delay),
        (&[("dc1", "dc2", delay), ("dc2", "dc1", delay)][..], delay * 2),
    ] {
        ground.delay(delays);
        let measured = round_trip(&one, address(2)).expect("an answer");
        assert!(measured >= least, "{measured:?} with {delays:?}");
    }
}

fn a_detached_address_is_silent(ground: &Ground) {
    let (one, two, _three) = (ground.place("dc1", 1), ground.place("dc1", 2), ground.place("dc1", 3));
    assert!(round_trip(&one, address(2)).is_some());
    ground.fabric.detach(two.port).expect("detached");
    assert_eq!(round_trip(&one, address(2)), None);
    assert!(round_trip(&one, address(3)).is_some());
    let again = two.attachment.tun.try_clone().expect("a second descriptor");
    ground.attach("dc1", address(2), again);
    assert!(round_trip(&one, address(2)).is_some());
}

fn a_hundred_hosts_answer(ground: &Ground) {
    let hosts: Vec<_> = (1..=100).map(|number| ground.place(&format!("dc1/h{number}"), number)).collect();
    for number in 2..=100 {
        assert!(round_trip(&hosts[0], address(number)).is_some(), "host {number} is silent");
    }
    assert!(round_trip(&hosts[99], address(1)).is_some());
}

fn a_power_off_leaves_no_process(ground: &Ground) {
    let watcher = ground.place("dc1", 1);
    let (node, port) = ground.boot("n1", 2);
    assert!(round_trip(&watcher, address(2)).is_some());
    // One that ignores signals, one in a session of its own, one whose parent is gone.
    leave_running(
        &node,
        "trap '' TERM INT HUP; sleep 1000 & setsid sleep 1001 & (sleep 1002 &) ; sleep 1003",
    );
    let namespace = node.pid_namespace();
    let running = |script: &str| shell(&node, script).trim().to_owned();
    while running("grep -l sleep /proc/[0-9]*/comm | wc -l") != "4" {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(probe::processes_in(namespace).expect("processes").len() >= 6, "the search finds what runs");
    // The interface answers by itself for as long as somebody carries its packets.
    ground.fabric.detach(port).expect("detached");
    node.power_off();
    assert_eq!(probe::processes_in(namespace).expect("processes"), Vec::<u32>::new());
    assert_eq!(round_trip(&watcher, address(2)), None);
    assert!(!node.is_on());
}

fn a_node_booted_again(ground: &Ground) {
    let watcher = ground.place("dc1", 1);
    let (node, port) = ground.boot("n1", 2);
    shell(&node, "echo kept > /run/node/volume/file");
    ground.fabric.detach(port).expect("detached");
    node.power_off();
    assert_eq!(round_trip(&watcher, address(2)), None);
    let (node, _port) = ground.boot("n1", 2);
    assert!(round_trip(&watcher, address(2)).is_some());
    assert_eq!(shell(&node, "cat /run/node/volume/file"), "kept\n");
}

fn a_process_holds_nothing_of_the_lab(ground: &Ground) {
    let _place = ground.place("dc1", 1);
    let (node, _port) = ground.boot("n1", 2);
    // 3 is the folder being listed.
    assert_eq!(shell(&node, "ls /proc/self/fd").split_whitespace().collect::<Vec<_>>(), ["0", "1", "2", "3"]);
    assert_eq!(shell(&node, "readlink /proc/self/fd/0").trim(), "/dev/null");
    let names: BTreeSet<String> = shell(&node, "env")
        .lines()
        .filter_map(|line| line.split_once('='))
        .map(|pair| pair.0.to_owned())
        .collect();
    // What the shell itself sets, and nothing else.
    let known = ["PATH", "PWD", "OLDPWD", "SHLVL", "_"];
    assert!(names.iter().all(|name| known.contains(&name.as_str())), "{names:?}");
    assert_eq!(shell(&node, "grep -h SigBlk /proc/self/status").trim(), "SigBlk:\t0000000000000000");
}

fn a_node_sees_itself(ground: &Ground) {
    let (_other, _) = ground.boot("n2", 3);
    let (node, _port) = ground.boot("n1", 2);
    assert_eq!(shell(&node, "id -u").trim(), "1000");
    assert_eq!(shell(&node, "cat /proc/sys/kernel/hostname").trim(), "n1");
    assert_eq!(shell(&node, "ls /run").trim().replace('\n', " "), "group hosts node passwd");
    assert_eq!(
        shell(&node, "ls /sys/class/net 2>/dev/null | wc -l; ls /run/node | wc -l").lines().last(),
        Some("3")
    );
    // Without a pipe the shell does all of this by itself: its init and the shell are all there is.
    let processes = shell(&node, "cd /proc; for process in [0-9]*; do echo $process; done");
    assert_eq!(processes.lines().count(), 2, "{processes}");
    assert_eq!(shell(&node, "cd /proc/sys/net/ipv4/conf; echo *").trim(), "all default eth0 lo");
}

fn nodes_reach_each_other(ground: &Ground) {
    let (one, _) = ground.boot("n1", 2);
    let (_two, _) = ground.boot("n2", 3);
    let watcher = ground.place("dc1", 1);
    assert!(round_trip(&watcher, address(2)).is_some() && round_trip(&watcher, address(3)).is_some());
    assert_eq!(shell(&one, "getent hosts n1 | cut -d' ' -f1").trim(), address(2).to_string());
}

/// Three hosts, two nodes with something running, until somebody ends it.
fn stand(ground: &Ground) {
    let places = [1, 2, 3].map(|number| ground.place("dc1", number));
    let nodes = [("n1", 4), ("n2", 5)].map(|(name, number)| ground.boot(name, number));
    for (node, _) in &nodes {
        leave_running(node, "trap '' TERM; setsid sleep 1000 & sleep 1001");
        shell(node, "echo something > /run/node/volume/file");
    }
    assert!(round_trip(&places[0], address(5)).is_some());
    println!("up");
    loop {
        std::thread::park();
    }
}
