//! The kernel's own path beside the fabric: who takes it, and what becomes of packets when that changes.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use fabric::{Rule, RuleGuard, Tap};
use lab::{Family, RoutingNamespace};

use crate::test_lab::{
    Place, TestLab, address, at, connects, datagram_arrives, families, round_trip, transfer,
};

/// How long to wait for an answer that must not come.
const SILENCE: Duration = Duration::from_millis(700);
/// How long to wait for a packet that must come.
const LONG: Duration = Duration::from_secs(10);

fn routing() -> RoutingNamespace {
    RoutingNamespace::make().expect("a routing namespace")
}

fn two_places(test_lab: &TestLab, routing: &RoutingNamespace) -> [Place; 2] {
    [("dc1", 1), ("dc2", 2)].map(|(name, number)| test_lab.place_past(routing, name, number).0)
}

fn path(name: &str) -> Vec<String> {
    name.split('/').map(str::to_owned).collect()
}

/// A rule that changes nothing that a test could see but the way.
fn barely_delayed(from: &str, to: &str) -> Rule {
    Rule { from: path(from), to: path(to), delay: Some(Duration::from_nanos(1)), ..Rule::default() }
}

fn impose(test_lab: &TestLab, rules: Vec<Rule>) -> RuleGuard {
    test_lab.fabric.impose_all(rules).expect("rules")
}

fn delivered(test_lab: &TestLab) -> u64 {
    test_lab.fabric.counters().expect("counters").delivered_packets
}

/// Pairs that go past the fabric now, as `dc1 > dc2`.
fn past(test_lab: &TestLab) -> BTreeSet<String> {
    let ways = test_lab.fabric.ways().expect("ways");
    assert_eq!((ways.places_lost, ways.places_unshut), (0, 0), "{ways:?}");
    ways.past.iter().map(|(from, to)| format!("{} > {}", from.join("/"), to.join("/"))).collect()
}

fn pairs(expected: &[&str]) -> BTreeSet<String> {
    expected.iter().map(|pair| (*pair).to_owned()).collect()
}

/// What of ICMP, UDP and TCP passes from one place to another in a family.
fn passes(from: &Place, to: &Place, family: Family) -> [bool; 3] {
    [
        round_trip(from, to.attachment.addresses.in_family(family)).is_some(),
        datagram_arrives(from, to, family),
        connects(from, to, family),
    ]
}

pub fn each_direction_by_itself(test_lab: &TestLab) {
    let routing = routing();
    let [one, two] = two_places(test_lab, &routing);
    for family in families("each direction by itself") {
        assert_eq!(passes(&one, &two, family), [true; 3], "{family}");
        assert_eq!(passes(&two, &one, family), [true; 3], "{family}");
    }
    assert_eq!((past(test_lab), delivered(test_lab)), (pairs(&["dc1 > dc2", "dc2 > dc1"]), 0));
    assert!(routing.carried().expect("its counts").frames > 0);
    let delay = Duration::from_millis(50);
    let guard = impose(test_lab, vec![Rule { delay: Some(delay), ..barely_delayed("dc1", "dc2") }]);
    assert_eq!(past(test_lab), pairs(&["dc2 > dc1"]));
    for family in families("each direction by itself") {
        let before = delivered(test_lab);
        let to = two.attachment.addresses.in_family(family);
        let measured = round_trip(&one, to).expect("an answer");
        assert!(measured >= delay, "{family}: {measured:?}");
        assert!(delivered(test_lab) > before, "{family}: the request did not go through the fabric");
        assert_eq!(passes(&two, &one, family), [true; 3], "{family}");
    }
    guard.lift().expect("lifted");
    assert_eq!(past(test_lab).len(), 2);
    let before = routing.carried().expect("its counts").frames;
    assert!(round_trip(&one, address(2)).is_some());
    assert!(routing.carried().expect("its counts").frames >= before + 2, "there and back");
    // A place that has no way past the fabric is reached through it, and reaches others through it.
    let three = test_lab.place("dc3", 3);
    let before = delivered(test_lab);
    assert!(round_trip(&one, address(3)).is_some() && round_trip(&three, address(1)).is_some());
    assert!(delivered(test_lab) >= before + 4);
}

/// Bytes in which nothing repeats soon.
fn content(turns: usize) -> Vec<u8> {
    (0..turns * BYTES_A_TURN).map(|number| ((number * 7 + number / 251) % 251) as u8).collect()
}

const BYTES_A_TURN: usize = 40_000;

pub fn a_stream_outlives_changes(test_lab: &TestLab) {
    const TURNS: usize = 1_000;
    let routing = routing();
    let [one, two] = two_places(test_lab, &routing);
    let sent = content(TURNS);
    for family in families("a stream outlives changes") {
        let here = two.attachment.addresses.in_family(family);
        let listener = at(&two, || TcpListener::bind((here, 0)).expect("a listener"));
        let target = listener.local_addr().expect("its address");
        let before = delivered(test_lab);
        let received = std::thread::scope(|scope| {
            let receiver = scope.spawn(|| {
                let mut received = Vec::new();
                listener.accept().expect("a connection").0.read_to_end(&mut received).expect("no reset");
                received
            });
            let mut stream = at(&one, || TcpStream::connect(target).expect("a connection"));
            let mut guard = None;
            for (turn, part) in sent.chunks(BYTES_A_TURN).enumerate() {
                // What has been written is on its way when the way changes: one direction, the other, both, none.
                stream.write_all(part).expect("no reset");
                let mut rules = Vec::new();
                if turn % 4 == 0 || turn % 4 == 2 {
                    rules.push(barely_delayed("dc1", "dc2"));
                }
                if turn % 4 == 1 || turn % 4 == 2 {
                    rules.push(barely_delayed("dc2", "dc1"));
                }
                let next = (!rules.is_empty()).then(|| impose(test_lab, rules));
                drop(std::mem::replace(&mut guard, next));
            }
            drop(stream);
            receiver.join().expect("the receiver")
        });
        assert!(received == sent, "{family}: what arrived is not what was sent");
        assert!(delivered(test_lab) > before, "{family}: nothing went through the fabric");
    }
    let ways = test_lab.fabric.ways().expect("ways");
    assert_eq!((ways.past.len(), ways.places_lost), (2, 0));
    assert!(ways.moved_to_fabric >= TURNS as u64 / 2, "{ways:?}");
    eprintln!(
        "{} moves to the fabric, {} back, the longest change {} us",
        ways.moved_to_fabric, ways.moved_to_kernel, ways.longest_change_us
    );
}

pub fn a_cut_leaks_nothing(test_lab: &TestLab) {
    let routing = routing();
    let [one, two] = two_places(test_lab, &routing);
    let families = families("a cut leaks nothing past the fabric");
    for family in &families {
        assert_eq!(passes(&one, &two, *family), [true; 3], "{family}");
    }
    let cut = test_lab.cut("dc1", "dc2");
    for family in &families {
        assert_eq!(passes(&one, &two, *family), [false; 3], "{family}");
        assert_eq!(passes(&two, &one, *family), [false, true, false], "{family}");
    }
    cut.lift().expect("lifted");
    for family in &families {
        assert_eq!(passes(&one, &two, *family), [true; 3], "{family}");
    }
}

pub fn no_power_is_silence(test_lab: &TestLab) {
    let routing = routing();
    let [(one, _), (two, end), (three, _)] = [("dc1", 1), ("dc2", 2), ("dc3", 3)]
        .map(|(name, number)| test_lab.place_past(&routing, name, number));
    let families = families("no power is silence");
    for family in &families {
        assert_eq!(passes(&one, &two, *family), [true; 3], "{family}");
    }
    test_lab.fabric.detach(two.port).expect("detached");
    assert_eq!(past(test_lab), pairs(&["dc1 > dc3", "dc3 > dc1"]));
    for family in &families {
        let target = SocketAddr::new(two.attachment.addresses.in_family(*family), 7);
        let error = at(&one, || TcpStream::connect_timeout(&target, SILENCE)).expect_err("no power");
        assert_eq!(error.kind(), ErrorKind::TimedOut, "{family}: {error}");
        assert!(!datagram_arrives(&two, &three, *family), "{family}: it speaks without power");
        assert_eq!(passes(&one, &three, *family), [true; 3], "{family}");
    }
    let _ = test_lab.attach_past("dc2", &two.attachment, &end);
    assert_eq!(past(test_lab).len(), 6);
    for family in &families {
        assert_eq!(passes(&one, &two, *family), [true; 3], "{family}");
        assert_eq!(passes(&two, &three, *family), [true; 3], "{family}");
    }
}

pub fn an_address_comes_again(test_lab: &TestLab) {
    let routing = routing();
    let (one, _) = test_lab.place_past(&routing, "dc1", 1);
    let (before, _) = test_lab.place_past(&routing, "dc2/n1", 2);
    assert!(round_trip(&one, address(2)).is_some());
    test_lab.fabric.detach(before.port).expect("detached");
    // The interfaces of the first are still there when the second gets its own.
    let (again, _) = test_lab.place_past(&routing, "dc3/n1", 2);
    assert!(round_trip(&one, address(2)).is_some());
    drop(before);
    for family in families("an address comes again") {
        assert_eq!(passes(&one, &again, family), [true; 3], "{family}");
        assert_eq!(passes(&again, &one, family), [true; 3], "{family}");
    }
    assert_eq!((past(test_lab), delivered(test_lab)), (pairs(&["dc1 > dc3/n1", "dc3/n1 > dc1"]), 0));
}

pub fn the_first_packet_arrives(test_lab: &TestLab) {
    const PLACES: u8 = 40;
    let routing = routing();
    let (one, _) = test_lab.place_past(&routing, "dc1", 1);
    let families = families("the first packet arrives");
    for number in 2..2 + PLACES {
        let family = families[usize::from(number) % families.len()];
        let here = one.attachment.addresses.in_family(family);
        let receiver = at(&one, || UdpSocket::bind((here, 0)).expect("a socket to receive at"));
        receiver.set_read_timeout(Some(LONG)).expect("a timeout");
        let target = receiver.local_addr().expect("its address");
        let (joined, _) = test_lab.place_past(&routing, &format!("dc2/n{number}"), number);
        let there = joined.attachment.addresses.in_family(family);
        at(&joined, || {
            let sender = UdpSocket::bind((there, 0)).expect("a socket to send from");
            sender.send_to(b"first", target).expect("sent");
        });
        let (_, from) = receiver.recv_from(&mut [0; 16]).expect("the first packet");
        assert_eq!(from.ip(), there, "{family}");
    }
    assert_eq!(delivered(test_lab), 0, "the first packets went through the fabric");
}

pub fn what_is_watched_comes_back(test_lab: &TestLab) {
    let routing = routing();
    let [one, two] = two_places(test_lab, &routing);
    let bytes = vec![7; 100_000];
    assert!(transfer(&one, &two, Family::V4, &bytes) == bytes);
    assert_eq!(delivered(test_lab), 0);
    let count = test_lab.fabric.count(vec![(path("dc1"), path("dc2"))]).expect("a count");
    assert_eq!(past(test_lab), pairs(&["dc2 > dc1"]));
    assert!(round_trip(&one, address(2)).is_some());
    assert!(count.counted().expect("counted")[0].packets > 0);
    drop(count);
    assert_eq!(past(test_lab).len(), 2);
    let file = File::create(test_lab.folder.join("capture.pcap")).expect("a file");
    let capture = test_lab.fabric.capture(Tap::Place(path("dc1")), file).expect("a capture");
    assert!(past(test_lab).is_empty());
    assert!(round_trip(&one, address(2)).is_some());
    assert!(capture.finish().expect("written") >= 2, "there and back");
    assert_eq!(past(test_lab).len(), 2);
    let before = test_lab.fabric.counters().expect("counters").bytes;
    assert!(transfer(&one, &two, Family::V4, &bytes) == bytes);
    let through = test_lab.fabric.counters().expect("counters").bytes - before;
    assert!(through < bytes.len() as u64, "{through} bytes went through the fabric");
}
