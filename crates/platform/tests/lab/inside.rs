//! Tests that run as PID 1 of a lab. A panic ends the lab and is told by the log.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use fabric::{Fabric, Policy, Rule};
use lab::protocol::FileAction;
use lab::{Family, probe, supervisor};

use crate::contract::CONTRACT;
use crate::joined::{ALL, By, joined};
use crate::test_lab::{
    Place, TestLab, address, addresses, connects, datagram_arrives, families, leave_running, round_trip,
    shell, transfer,
};
use crate::{clocks, crowd, fates, kernel_path, systems, whole_machines};

/// A test's name, and what it does on fresh ground.
type Test = (&'static str, fn(&TestLab));

pub const TESTS: &[Test] = &[
    ("two_places_reach_each_other_and_exchange_a_megabyte_over_both_families", exchange_a_megabyte),
    ("echo_datagrams_and_connections_pass_over_both_families", everything_passes),
    ("a_place_at_rest_says_nothing", a_place_at_rest_says_nothing),
    ("a_cut_leaks_through_neither_family_and_cuts_one_direction_only", a_cut_leaks_nothing),
    ("a_path_that_carries_less_is_found_out_over_both_families", a_narrow_path_is_found_out),
    ("a_delay_is_felt_in_the_direction_that_has_it", a_delay_is_felt),
    ("a_detached_address_is_silent_and_others_are_not", a_detached_address_is_silent),
    ("a_hundred_hosts_answer", a_hundred_hosts_answer),
    ("a_power_off_leaves_no_process_whatever_it_ignores", a_power_off_leaves_no_process),
    ("a_node_booted_again_has_its_address_and_its_volume", a_node_booted_again),
    ("a_process_of_a_node_holds_nothing_of_the_lab", a_process_holds_nothing_of_the_lab),
    ("a_node_sees_itself_and_nothing_else", a_node_sees_itself),
    ("a_node_with_a_system_of_its_own_sees_that_and_not_the_machine_s", systems::a_node_sees_its_own_system),
    (
        "a_node_that_is_a_whole_machine_changes_what_is_its_own_and_nothing_else",
        whole_machines::a_whole_machine_changes_what_is_its_own,
    ),
    ("what_a_node_puts_in_a_files_place_is_neither_followed_nor_waited_for", nothing_planted_is_followed),
    ("nodes_reach_each_other_by_name_over_the_fabric", nodes_reach_each_other),
    ("a_node_has_a_clock_of_its_own_from_boot_to_boot", clocks::a_node_has_a_clock_of_its_own),
    (
        "a_pair_goes_past_the_fabric_while_nothing_is_asked_of_it_and_each_direction_by_itself",
        kernel_path::each_direction_by_itself,
    ),
    ("a_stream_outlives_every_change_of_its_way", kernel_path::a_stream_outlives_changes),
    ("a_cut_leaks_through_neither_family_past_the_fabric", kernel_path::a_cut_leaks_nothing),
    ("a_place_without_power_is_silent_past_the_fabric", kernel_path::no_power_is_silence),
    ("an_address_that_comes_again_is_found_past_the_fabric", kernel_path::an_address_comes_again),
    ("what_is_counted_or_captured_comes_back_to_the_fabric", kernel_path::what_is_watched_comes_back),
    ("a_place_that_has_just_been_joined_loses_no_packet", kernel_path::the_first_packet_arrives),
    ("two_hundred_hosts_all_to_all_lose_nothing", fates::two_hundred_hosts_lose_nothing),
    ("a_thousand_hosts_come_and_leave_nothing", crowd::a_thousand_hosts_come_and_go),
];

/// Those that give the places they join addresses of their own.
pub const JOINED_TESTS: &[Test] = &[
    ("single_packets_are_lost_as_often_as_asked", fates::single_packets_are_lost_as_asked),
    (
        "segmented_packets_are_lost_each_for_itself_and_as_often_as_asked",
        fates::segmented_packets_are_lost_each_for_itself,
    ),
    ("a_streams_packets_are_lost_as_often_as_asked", fates::a_streams_packets_are_lost_as_asked),
    ("delays_follow_the_distribution_asked_for", fates::delays_follow_the_distribution_asked_for),
    ("a_path_of_small_packets_is_found_out", fates::a_path_of_small_packets_is_found_out),
];

/// Every expectation of the contract, for each way of joining two places.
pub fn contract_names() -> impl Iterator<Item = String> {
    ALL.into_iter().flat_map(|by| CONTRACT.iter().map(move |(name, _)| format!("over_{}::{name}", by.name())))
}

/// Carries out a test of the contract, if the job is one.
fn perform_contract(test_lab: &TestLab, job: &str) -> bool {
    for by in ALL {
        for (name, expectation) in CONTRACT {
            if job == format!("over_{}::{name}", by.name()) {
                let [client, server] = joined(test_lab, by);
                expectation(&client, &server);
                if by == By::KernelPath {
                    let counters = test_lab.fabric.counters().expect("counters");
                    assert_eq!(counters.delivered_packets, 0, "went by the fabric: {counters:?}");
                }
                return true;
            }
        }
    }
    false
}

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
    supervisor::watch_orders(|_| {}, || std::process::exit(255)).expect("a watch");
    let test_lab =
        TestLab { folder: folder.into(), users_mapped, fabric: Fabric::start().expect("a fabric") };
    if job == STAND {
        return stand(&test_lab);
    }
    if perform_contract(&test_lab, &job) {
        return;
    }
    let mut tests = TESTS.iter().chain(JOINED_TESTS);
    let (_, test) = tests.find(|(name, _)| *name == job).expect("a test of this name");
    test(&test_lab);
}

fn exchange_a_megabyte(test_lab: &TestLab) {
    let (one, two) = (test_lab.place("dc1", 1), test_lab.place("dc2", 2));
    assert!(round_trip(&one, address(2)).is_some());
    let bytes: Vec<u8> = (0..1_000_000u32).map(|number| (number * 7 % 251) as u8).collect();
    for family in families("exchange a megabyte") {
        assert!(
            transfer(&one, &two, family, &bytes) == bytes,
            "what arrived over {family} is not what was sent"
        );
    }
    let counters = test_lab.fabric.counters().expect("counters");
    assert!(counters.bytes > 1_000_000, "{counters:?}");
    assert_eq!(counters.malformed_packets, 0, "{counters:?}");
}

/// What of ICMP, UDP and TCP passes from one place to another in a family.
fn passes(from: &Place, to: &Place, family: Family) -> [bool; 3] {
    [
        round_trip(from, to.attachment.addresses.in_family(family)).is_some(),
        datagram_arrives(from, to, family),
        connects(from, to, family),
    ]
}

fn everything_passes(test_lab: &TestLab) {
    let (one, two) = (test_lab.place("dc1", 1), test_lab.place("dc2", 2));
    for family in families("everything passes") {
        assert_eq!(passes(&one, &two, family), [true; 3], "{family}");
        assert_eq!(passes(&two, &one, family), [true; 3], "{family}");
    }
}

/// What a place would say of its own accord (who am I, are there routers, which groups do I listen to) would stand in
/// every capture and be counted as traffic of the database.
fn a_place_at_rest_says_nothing(test_lab: &TestLab) {
    let _places = [1, 2, 3].map(|number| test_lab.place("dc1", number));
    let (_node, _) = test_lab.boot("n1", 4);
    std::thread::sleep(Duration::from_millis(1_500));
    assert_eq!(test_lab.fabric.counters().expect("counters").packets, 0);
}

fn a_cut_leaks_nothing(test_lab: &TestLab) {
    let (one, two) = (test_lab.place("dc1", 1), test_lab.place("dc2", 2));
    let families = families("a cut leaks nothing");
    let cut = test_lab.cut("dc1", "dc2");
    for family in &families {
        assert_eq!(passes(&one, &two, *family), [false; 3], "{family}");
        // Nothing of it needs an answer but the datagram, which is the only one to arrive.
        assert_eq!(passes(&two, &one, *family), [false, true, false], "{family}");
    }
    let back = test_lab.cut("dc2", "dc1");
    for family in &families {
        assert_eq!(passes(&two, &one, *family), [false; 3], "{family}");
    }
    drop((cut, back));
    for family in &families {
        assert_eq!(passes(&one, &two, *family), [true; 3], "{family} after the healing");
    }
}

/// A path for less than the interfaces' 1500 bytes: TCP finds it out by the network's "too big" and gets through.
fn a_narrow_path_is_found_out(test_lab: &TestLab) {
    let (one, two) = (test_lab.place("dc1", 1), test_lab.place("dc2", 2));
    let rule = Rule {
        from: vec!["dc1".to_owned()],
        to: vec!["dc2".to_owned()],
        mtu_bytes: Some(1_300),
        ..Rule::default()
    };
    test_lab.fabric.set_policy(Policy { rules: vec![rule], ..Policy::default() }).expect("a policy");
    let bytes: Vec<u8> = (0..200_000u32).map(|number| (number * 7 % 251) as u8).collect();
    for family in families("a narrow path is found out") {
        let before = test_lab.fabric.counters().expect("counters").too_big_packets;
        assert!(
            transfer(&one, &two, family, &bytes) == bytes,
            "what arrived over {family} is not what was sent"
        );
        let too_big = test_lab.fabric.counters().expect("counters").too_big_packets - before;
        assert!(too_big > 0, "no packet over {family} met the limit");
    }
}

/// A lower bound only: how much longer it takes is the machine's business.
fn a_delay_is_felt(test_lab: &TestLab) {
    let (one, _two) = (test_lab.place("dc1", 1), test_lab.place("dc2", 2));
    let delay = Duration::from_millis(50);
    for (delays, least) in [
        (&[("dc1", "dc2", delay)][..], delay),
        (&[("dc2", "dc1", delay)][..], delay),
        (&[("dc1", "dc2", delay), ("dc2", "dc1", delay)][..], delay * 2),
    ] {
        test_lab.delay(delays);
        let measured = round_trip(&one, address(2)).expect("an answer");
        assert!(measured >= least, "{measured:?} with {delays:?}");
    }
}

fn a_detached_address_is_silent(test_lab: &TestLab) {
    let (one, two, _three) = (test_lab.place("dc1", 1), test_lab.place("dc1", 2), test_lab.place("dc1", 3));
    assert!(round_trip(&one, address(2)).is_some());
    test_lab.fabric.detach(two.port).expect("detached");
    assert_eq!(round_trip(&one, address(2)), None);
    assert!(round_trip(&one, address(3)).is_some());
    let again = two.attachment.tun.try_clone().expect("a second descriptor");
    test_lab.attach("dc1", 2, again);
    assert!(round_trip(&one, address(2)).is_some());
}

fn a_hundred_hosts_answer(test_lab: &TestLab) {
    let hosts: Vec<_> = (1..=100).map(|number| test_lab.place(&format!("dc1/h{number}"), number)).collect();
    for number in 2..=100 {
        assert!(round_trip(&hosts[0], address(number)).is_some(), "host {number} is silent");
    }
    assert!(round_trip(&hosts[99], address(1)).is_some());
}

fn a_power_off_leaves_no_process(test_lab: &TestLab) {
    let watcher = test_lab.place("dc1", 1);
    let (node, port) = test_lab.boot("n1", 2);
    assert!(round_trip(&watcher, address(2)).is_some());
    // One that ignores signals, one in a session of its own, one whose parent is gone.
    leave_running(
        &node,
        "trap '' TERM INT HUP; sleep 1000 & setsid sleep 1001 & (sleep 1002 &) ; sleep 1003",
    );
    let namespaces = probe::NodeNamespaces::of(node.init_pid()).expect("its namespaces");
    let running = |script: &str| shell(&node, script).trim().to_owned();
    while running("grep -l sleep /proc/[0-9]*/comm | wc -l") != "4" {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert!(namespaces.processes().expect("processes").len() >= 6, "the search finds what runs");
    // One that has left the node's PID namespace does not die with its init.
    lab::stray::start(node.init_pid()).expect("a stray");
    // The interface answers by itself for as long as somebody carries its packets.
    test_lab.fabric.detach(port).expect("detached");
    node.power_off();
    let left = namespaces.processes().expect("processes");
    assert_eq!(left.len(), 1, "the stray is found, and nothing else is left: {left:?}");
    // SAFETY: kill(2) takes no pointers; the process is the one that was started above.
    unsafe { libc::kill(left[0].cast_signed(), libc::SIGKILL) };
    while !namespaces.processes().expect("processes").is_empty() {
        std::thread::sleep(Duration::from_millis(10));
    }
    assert_eq!(round_trip(&watcher, address(2)), None);
    assert!(!node.is_on());
}

fn a_node_booted_again(test_lab: &TestLab) {
    let watcher = test_lab.place("dc1", 1);
    let (node, port) = test_lab.boot("n1", 2);
    shell(&node, "echo kept > /run/node/volume/file");
    test_lab.fabric.detach(port).expect("detached");
    node.power_off();
    assert_eq!(round_trip(&watcher, address(2)), None);
    let (node, _port) = test_lab.boot("n1", 2);
    assert!(round_trip(&watcher, address(2)).is_some());
    assert_eq!(shell(&node, "cat /run/node/volume/file"), "kept\n");
}

fn a_process_holds_nothing_of_the_lab(test_lab: &TestLab) {
    let _place = test_lab.place("dc1", 1);
    let (node, _port) = test_lab.boot("n1", 2);
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

fn a_node_sees_itself(test_lab: &TestLab) {
    let (_other, _) = test_lab.boot("n2", 3);
    let (node, _port) = test_lab.boot("n1", 2);
    assert_eq!(shell(&node, "id -u").trim(), "1000");
    assert_eq!(shell(&node, "cat /proc/sys/kernel/hostname").trim(), "n1");
    assert_eq!(shell(&node, "ls /run").trim().replace('\n', " "), "group hosts node passwd");
    let root = shell(&node, "cd /; echo *");
    let known = "bin dev etc gnu lib lib32 lib64 libx32 nix proc run sbin sys tmp usr var";
    let unknown: Vec<&str> = root.split_whitespace().filter(|name| !known.contains(name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    assert_eq!(shell(&node, "cd /run/node; echo *").trim(), "home sockets volume");
    // Without a pipe the shell does all of this by itself: its init and the shell are all there is.
    let processes = shell(&node, "cd /proc; for process in [0-9]*; do echo $process; done");
    assert_eq!(processes.lines().count(), 2, "{processes}");
    assert_eq!(shell(&node, "cd /proc/sys/net/ipv4/conf; echo *").trim(), "all default eth0 lo");
}

/// Links, pipes and endless files where the lab writes and reads.
fn nothing_planted_is_followed(test_lab: &TestLab) {
    let (node, _port) = test_lab.boot("n1", 2);
    let outside = test_lab.folder.join("outside");
    std::fs::write(&outside, "untouched").expect("a file");
    // Inside, a path of the outside leads to nothing; what a link there could lead to is what the node has itself.
    let script = format!(
        "cd /run/node/volume; echo mine > mine; mkdir folder; ln -s {} outside.unfinished; ln -s mine mine.unfinished; \
         ln -s / way; ln -s mine link; mkfifo pipe; head -c 2000000 /dev/zero > huge; ln mine twice",
        outside.display()
    );
    shell(&node, &script);
    let file = |path: &str, action: FileAction| node.file(Path::new(path), action);
    let write = || FileAction::Write { content: "the lab's".to_owned() };
    for path in ["outside", "mine"] {
        file(path, write()).expect("written in the link's place");
        assert_eq!(file(path, FileAction::Read).expect("read"), "the lab's");
    }
    assert_eq!(shell(&node, "cat /run/node/volume/twice").trim(), "mine", "what a link led to stays");
    for path in ["link", "way/etc/passwd"] {
        let refused = file(path, FileAction::Read).expect_err(path);
        assert_eq!(refused.raw_os_error(), Some(libc::ELOOP), "{path}: {refused}");
    }
    for (path, why) in
        [("pipe", "not a plain file"), ("folder", "not a plain file"), ("huge", "larger than 1 MiB")]
    {
        let refused = file(path, FileAction::Read).expect_err(path).to_string();
        assert!(refused.contains(why), "{path}: {refused}");
    }
    assert!(file("way/new", write()).is_err() && file("../new", write()).is_err());
    assert_eq!(file("link", FileAction::Find).expect("found"), "yes");
    assert_eq!(file("missing", FileAction::Find).expect("looked for"), "");
    file("", FileAction::Forget).expect("forgotten, and nothing waited for");
    assert_eq!(std::fs::read_to_string(&outside).expect("a file"), "untouched");
    // What was written is the node's own.
    shell(&node, "echo more >> /run/node/volume/outside && rm /run/node/volume/mine");
}

fn nodes_reach_each_other(test_lab: &TestLab) {
    let (one, _) = test_lab.boot("n1", 2);
    let (_two, _) = test_lab.boot("n2", 3);
    let watcher = test_lab.place("dc1", 1);
    assert!(round_trip(&watcher, address(2)).is_some() && round_trip(&watcher, address(3)).is_some());
    assert_eq!(shell(&one, "getent ahostsv4 n1 | cut -d' ' -f1 | uniq").trim(), address(2).to_string());
    if families("nodes reach each other").contains(&Family::V6) {
        let ipv6 = addresses(2).ipv6().to_string();
        assert_eq!(shell(&one, "getent ahostsv6 n1 | cut -d' ' -f1 | uniq").trim(), ipv6);
    }
}

/// Three hosts, two nodes with something running, until somebody ends it.
fn stand(test_lab: &TestLab) {
    let places = [1, 2, 3].map(|number| test_lab.place("dc1", number));
    let nodes = [("n1", 4), ("n2", 5)].map(|(name, number)| test_lab.boot(name, number));
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
