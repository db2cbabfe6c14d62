//! A thousand hosts made and let go: what the kernel keeps of them afterwards.

use std::fs;
use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use lab::attachment::on_own_thread;
use lab::{Addresses, Attachment, Family, probe};
use nix::sched::{CloneFlags, unshare};

use crate::test_lab::TestLab;

/// How many network namespaces this lab may have: the kernel counts those that it has not taken apart yet.
const NAMESPACES_MAX: &str = "/proc/sys/user/max_net_namespaces";
/// Long enough for the kernel to take a thousand apart on any machine.
const PATIENCE: Duration = Duration::from_secs(120);
const HOSTS: u16 = 1000;

/// Whether there are no more than so many, by whether one more can be had when one more is allowed.
fn are_at_most(count: usize) -> bool {
    fs::write(NAMESPACES_MAX, (count + 1).to_string()).expect("a limit");
    match on_own_thread(|| unshare(CloneFlags::CLONE_NEWNET)).expect("a thread") {
        Ok(()) => true,
        Err(nix::Error::ENOSPC) => false,
        Err(error) => panic!("{error}"),
    }
}

fn wait_until_at_most(count: usize) {
    let deadline = Instant::now() + PATIENCE;
    while !are_at_most(count) {
        assert!(Instant::now() < deadline, "the kernel still has more than {count} network namespaces");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn descriptors() -> usize {
    fs::read_dir("/proc/self/fd").expect("descriptors").count()
}

pub fn a_thousand_hosts_come_and_go(test_lab: &TestLab) {
    // The lab's own is there already.
    wait_until_at_most(1);
    fs::write(NAMESPACES_MAX, (HOSTS + 10).to_string()).expect("a limit");
    let descriptors_before = descriptors();
    let make = |number: u16| {
        let [high, low] = number.to_be_bytes();
        let addresses = Addresses::of(Ipv4Addr::new(10, 1, high, low));
        let attachment = Attachment::make(addresses).expect("an attachment");
        let tun = attachment.tun.try_clone().expect("a second descriptor");
        let place = vec![format!("h{number}")];
        let port = test_lab.fabric.attach(place, addresses.all(Family::V4), tun).expect("a port");
        (attachment, port)
    };
    let mut hosts: Vec<_> = (1..=HOSTS).map(make).collect();
    assert!(!are_at_most(usize::from(HOSTS)), "the count finds them, and the lab's own");
    for far in [1, 499, 999] {
        let target = hosts[far].0.addresses.in_family(Family::V4);
        let ask = || {
            lab::attachment::enter(&hosts[0].0.namespace).expect("enter the place");
            probe::echo(target, Duration::from_secs(1), Duration::from_secs(20)).expect("asked")
        };
        assert!(on_own_thread(ask).expect("a thread").is_some(), "{target} is silent");
    }
    let last = hosts.pop().expect("a host");
    for (attachment, port) in hosts {
        test_lab.fabric.detach(port).expect("detached");
        drop(attachment);
    }
    wait_until_at_most(2);
    assert!(!are_at_most(1), "one that is left would be noticed");
    test_lab.fabric.detach(last.1).expect("detached");
    drop(last.0);
    wait_until_at_most(1);
    assert_eq!(descriptors(), descriptors_before, "descriptors are left");
    let ours = probe::NodeNamespaces::of(std::process::id()).expect("ours");
    assert_eq!(ours.processes().expect("processes").len(), 1, "there is only the lab's first process");
}
