//! The network's command files on two machines that are network namespaces with a cable between them, with the real `nft` and
//! `ping`. Skipped, loudly, where one of these is missing.

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use history::Verdict;
use remote::receipt::Doubt;
use remote::strike::{Patience, StrikeError};
use remote::{Filled, Journal, Reach, Transport};

use crate::striking::{LATE, lacks, shipped, struck, tried};

const PATIENCE: Patience = Patience { stands: Duration::from_secs(30), gone: Duration::from_secs(60) };
/// Rules that are not ours.
const FOREIGN: &str = "add table inet firewall; add set inet firewall friends { type ipv4_addr; }; \
                       add element inet firewall friends { 10.9.0.1, 10.9.0.2 }; \
                       add chain inet firewall input { type filter hook input priority 0; policy accept; }; \
                       add rule inet firewall input ip saddr @friends accept; \
                       add rule inet firewall input tcp dport 5432 accept";

/// A process in a network namespace of its own.
struct Machine {
    child: Child,
}

impl Drop for Machine {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Machine {
    fn new(command: &[String]) -> Option<Machine> {
        let child = Command::new(&command[0]).args(&command[1..]).stdin(Stdio::null()).spawn().ok()?;
        let machine = Machine { child };
        let own = std::fs::read_link("/proc/self/ns/net").ok()?;
        let its = format!("/proc/{}/ns/net", machine.child.id());
        (0..600).find_map(|_| {
            std::thread::sleep(Duration::from_millis(10));
            std::fs::read_link(&its).is_ok_and(|its| its != own).then_some(())
        })?;
        Some(machine)
    }

    fn enter(&self) -> Vec<String> {
        let pid = self.child.id().to_string();
        ["nsenter", "-t", &pid, "--user", "--net", "--preserve-credentials", "--"].map(str::to_owned).to_vec()
    }

    fn reach(&self) -> Reach {
        Reach::Local { through: self.enter() }
    }

    fn run(&self, script: &str) -> String {
        let path = "PATH=$PATH:/usr/sbin:/sbin\nset -e\n";
        let output = self.reach().run(&format!("{path}{script}\n"), Duration::from_secs(60)).expect("it ran");
        assert_eq!(output.exit, 0, "{script}: {}", output.text);
        output.text
    }
}

/// Two machines, 10.9.0.1 and 10.9.0.2; none where the machine lacks something.
fn machines(test: &str) -> Option<(Machine, Machine)> {
    if lacks(test, &["nft", "ping", "ip", "unshare", "nsenter", "setsid", "timeout"]) {
        return None;
    }
    let made = |command: &str| Machine::new(&command.split(' ').map(str::to_owned).collect::<Vec<_>>());
    let both = made("unshare --user --map-root-user --net sleep 1000").and_then(|one| {
        // In the first one's user namespace, so that a cable between the two may be made; in a network of its own.
        let enter = format!("nsenter -t {} --user --preserve-credentials --", one.child.id());
        Some((made(&format!("{enter} unshare --net sleep 1000"))?, one))
    });
    let Some((other, one)) = both else {
        eprintln!("skipped: {test}: this machine gives no user and network namespaces");
        return None;
    };
    let peer = other.child.id();
    one.run(&format!("ip link add left type veth peer name right netns {peer}\nip addr add 10.9.0.1/24 dev left\nip link set left up\nip link set lo up"));
    other.run("ip addr add 10.9.0.2/24 dev right\nip link set right up");
    Some((one, other))
}

fn partition(name: &str) -> Filled {
    shipped(name, &[("peers", "10.9.0.2"), ("probe", "10.9.0.2")])
}

/// Whether one datagram of the machine arrives at the other.
fn answers(machine: &Machine, address: &str) -> bool {
    let script = format!("ping -n -c 1 -W 1 {address} >/dev/null\n");
    machine.reach().run(&script, Duration::from_secs(60)).expect("it ran").exit == 0
}

#[test]
fn a_partition_stands_heals_and_leaves_the_rules_of_others_byte_for_byte() {
    let test = "a_partition_stands_heals_and_leaves_the_rules_of_others_byte_for_byte";
    stands_and_heals(test, "nftables-partition");
}

#[test]
#[ignore = "second tier: waits for pings, ten seconds"]
fn partitions_in_one_direction_do_so_as_well() {
    stands_and_heals("partitions_in_one_direction_do_so_as_well", "nftables-partition-in");
    stands_and_heals("partitions_in_one_direction_do_so_as_well", "nftables-partition-out");
}

fn stands_and_heals(test: &str, name: &str) {
    let Some((one, other)) = machines(test) else { return };
    one.run(&format!("nft '{FOREIGN}'"));
    let before = one.run("nft -s list ruleset");
    let folder = tempfile::tempdir().expect("a folder");
    let journal = Journal::open(folder.path()).expect("a journal");
    let standing = struck(partition(name), &one.reach(), &journal, PATIENCE);
    assert!(!answers(&other, "10.9.0.1"), "{name}: the other side sees it as well");
    let during = one.run("nft -s list ruleset");
    assert!(during.contains("holdfast_") && during.contains(before.trim()), "{name}: {during}");
    let receipt = standing.undo(&one.reach(), &journal, PATIENCE);
    assert_eq!((receipt.verdict(), &receipt.doubts[..]), (Verdict::Pass, &[][..]), "{name}");
    assert!(receipt.version.starts_with("nftables v"), "{}", receipt.version);
    assert_eq!(one.run("nft -s list ruleset"), before, "{name}");
    assert!(answers(&other, "10.9.0.1"), "{name}: healed");
}

#[test]
fn two_partitions_at_once_do_not_undo_each_other() {
    let Some((one, _other)) = machines("two_partitions_at_once_do_not_undo_each_other") else { return };
    one.run("ip addr add 10.9.0.3/24 dev left");
    let folder = tempfile::tempdir().expect("a folder");
    let journal = Journal::open(folder.path()).expect("a journal");
    let first = struck(partition("nftables-partition-in"), &one.reach(), &journal, PATIENCE);
    // Of an address of the machine itself, which answers although the first one stands.
    let own = shipped("nftables-partition-in", &[("peers", "10.9.0.3"), ("probe", "10.9.0.3")]);
    let second = struck(own, &one.reach(), &journal, PATIENCE);
    let receipt = second.undo(&one.reach(), &journal, PATIENCE);
    assert_eq!((receipt.verdict(), &receipt.doubts[..]), (Verdict::Pass, &[][..]));
    assert!(!answers(&one, "10.9.0.2"), "the first one stands still");
    let receipt = first.undo(&one.reach(), &journal, PATIENCE);
    assert_eq!((receipt.verdict(), &receipt.doubts[..]), (Verdict::Pass, &[][..]));
}

#[test]
fn a_partition_whose_rules_match_nothing_fails_and_one_with_a_silent_probe_is_not_struck() {
    let test = "a_partition_whose_rules_match_nothing_fails_and_one_with_a_silent_probe_is_not_struck";
    let Some((one, _other)) = machines(test) else { return };
    let folder = tempfile::tempdir().expect("a folder");
    let journal = Journal::open(folder.path()).expect("a journal");
    // nft says that all is well, and the table is there.
    let wrong = shipped("nftables-partition", &[("peers", "10.9.0.77"), ("probe", "10.9.0.2")]);
    let short = Patience { stands: Duration::ZERO, ..PATIENCE };
    let standing = struck(wrong, &one.reach(), &journal, short);
    let receipt = standing.undo(&one.reach(), &journal, PATIENCE);
    assert!(receipt.strike.iter().all(remote::receipt::Claim::is_success));
    assert_eq!(receipt.verdict(), Verdict::Fail);
    let pinged =
        |doubt: &Doubt| matches!(doubt, Doubt::DoesNotStand(seen) if seen.command.starts_with("ping"));
    assert!(receipt.doubts.iter().any(pinged), "{:?}", receipt.doubts);
    let silent = shipped("nftables-partition", &[("peers", "10.9.0.77"), ("probe", "10.9.0.77")]);
    let error = tried(silent, &one.reach(), &journal, (LATE, short)).expect_err("no baseline");
    assert!(matches!(&error, StrikeError::NoBaseline { when, .. } if when.contains("ping")), "{error}");
}

#[test]
#[ignore = "second tier: waits for pings, ten seconds"]
fn a_partition_that_cuts_off_more_than_it_should_fails() {
    let Some((one, _other)) = machines("a_partition_that_cuts_off_more_than_it_should_fails") else { return };
    one.run("ip addr add 10.9.0.3/24 dev left");
    let folder = tempfile::tempdir().expect("a folder");
    let journal = Journal::open(folder.path()).expect("a journal");
    let given = [("peers", "10.9.0.2, 10.9.0.3"), ("probe", "10.9.0.2"), ("control", "10.9.0.3")];
    let short = Patience { stands: Duration::ZERO, ..PATIENCE };
    let wide = shipped("nftables-partition-in", &given);
    let standing = struck(wide, &one.reach(), &journal, short);
    let receipt = standing.undo(&one.reach(), &journal, PATIENCE);
    assert_eq!(receipt.verdict(), Verdict::Fail);
    let control =
        |doubt: &Doubt| matches!(doubt, Doubt::DoesNotStand(seen) if seen.command.ends_with("10.9.0.3"));
    assert!(receipt.doubts.iter().all(control), "{:?}", receipt.doubts);
}

#[test]
fn netem_is_refused_where_the_kernel_has_none_and_stands_where_it_has() {
    let test = "netem_is_refused_where_the_kernel_has_none_and_stands_where_it_has";
    let Some((one, _other)) = machines(test) else { return };
    if !Path::new("/sbin/tc").exists() && !Path::new("/usr/sbin/tc").exists() {
        eprintln!("skipped: {test}: no `tc` on this machine");
        return;
    }
    let folder = tempfile::tempdir().expect("a folder");
    let journal = Journal::open(folder.path()).expect("a journal");
    let before = one.run("tc qdisc show dev left");
    let netem = shipped("netem", &[("interface", "left"), ("delay", "50ms")]);
    let short = Patience { stands: Duration::from_secs(5), ..PATIENCE };
    one.run("ping -q -c 60 -i 0.2 10.9.0.2 >/dev/null 2>&1 &");
    let standing = struck(netem, &one.reach(), &journal, short);
    let receipt = standing.undo(&one.reach(), &journal, PATIENCE);
    if receipt.strike[0].is_success() {
        assert_eq!((receipt.verdict(), &receipt.doubts[..]), (Verdict::Pass, &[][..]));
    } else {
        eprintln!("skipped: {test}: the kernel has no netem; that its strike fails was seen");
        assert!(matches!(receipt.doubts[0], Doubt::StrikeFailed(_)), "{:?}", receipt.doubts);
        assert_ne!(receipt.verdict(), Verdict::Pass);
    }
    assert_eq!(one.run("tc qdisc show dev left"), before);
}
