//! The running fabric between pairs of sockets that stand for TUN interfaces: a frame is a message on either.
//!
//! What the real interfaces add (offloads, the kernel's network stack) is tested where namespaces are to be had.

mod past;

use std::fs::File;
use std::io::{Read, Seek};
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::{AsFd, OwnedFd};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use fabric::{Block, Fabric, Options, Policy, PortId, Rule, SharedLink, Span, Tap};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};

const HEADER_BYTES: usize = 10;
/// Long enough for any machine; a test that waits for it has failed.
const PATIENCE: Duration = Duration::from_secs(20);

/// A place with one address, seen from inside.
struct Place {
    port: PortId,
    inside: OwnedFd,
    address: Ipv4Addr,
}

/// Both ends of an interface: the inner, and the one that the fabric has.
fn interface() -> (OwnedFd, OwnedFd) {
    let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
    socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags).expect("a pair of sockets")
}

fn place(fabric: &Fabric, path: &str, last: u8) -> Place {
    let (inside, outside) = interface();
    let address = Ipv4Addr::new(10, 0, 0, last);
    let path = path.split('/').map(str::to_owned).collect();
    let port = fabric.attach(path, vec![address.into()], outside).expect("attached");
    Place { port, inside, address }
}

/// A UDP packet, its checksum left out, with a frame header that asks for nothing.
fn frame(from: &Place, to: &Place, payload: &[u8]) -> Vec<u8> {
    let length = (28 + payload.len()) as u16;
    let mut packet = vec![0x45, 0, 0, 0, 0, 0, 0x40, 0, 64, 17, 0, 0];
    packet[2..4].copy_from_slice(&length.to_be_bytes());
    packet.extend(from.address.octets());
    packet.extend(to.address.octets());
    let sum: u32 = packet.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    let checksum = !(((sum & 0xffff) + (sum >> 16)) as u16);
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    packet.extend([0x30, 0x39, 0x30, 0x39]);
    packet.extend((length - 20).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend_from_slice(payload);
    [&[0; HEADER_BYTES][..], &packet].concat()
}

fn send(from: &Place, to: &Place, payload: &[u8]) {
    nix::unistd::write(&from.inside, &frame(from, to, payload)).expect("sent");
}

/// The next frame that comes out, within the time given.
fn receive(place: &Place, within: Duration) -> Option<Vec<u8>> {
    let deadline = Instant::now() + within;
    loop {
        let mut buffer = vec![0; 70_000];
        match nix::unistd::read(&place.inside, &mut buffer) {
            Ok(length) => {
                buffer.truncate(length);
                return Some(buffer);
            }
            Err(nix::Error::EAGAIN) => {}
            Err(error) => panic!("read: {error}"),
        }
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return None;
        }
        let mut watched = [PollFd::new(place.inside.as_fd(), PollFlags::POLLIN)];
        let timeout = PollTimeout::try_from(left.as_millis() + 1).expect("a short time");
        poll(&mut watched, timeout).expect("poll");
    }
}

fn receive_payload(place: &Place) -> Option<Vec<u8>> {
    receive(place, PATIENCE).map(|frame| frame[HEADER_BYTES + 28..].to_vec())
}

/// Whether a packet crosses, known as soon as the fabric has counted its end.
fn crosses(fabric: &Fabric, from: &Place, to: &Place) -> bool {
    let ended = || fabric.counters().expect("counters").ended_packets();
    let before = ended();
    send(from, to, b"?");
    let deadline = Instant::now() + PATIENCE;
    while ended() == before {
        assert!(Instant::now() < deadline, "the packet is neither delivered nor dropped");
        std::thread::yield_now();
    }
    receive(to, Duration::ZERO).is_some()
}

#[test]
fn a_packet_sent_is_the_packet_received() {
    let fabric = Fabric::start().expect("a fabric");
    let (one, two) = (place(&fabric, "a", 1), place(&fabric, "b", 2));
    let sent = frame(&one, &two, b"hello");
    send(&one, &two, b"hello");
    assert_eq!(receive(&two, PATIENCE), Some(sent));
    assert_eq!(fabric.counters().expect("counters").delivered_packets, 1);
}

#[test]
fn the_cpu_time_of_receivers_is_a_part_of_the_threads() {
    let fabric = Fabric::start().expect("a fabric");
    let (a, b) = (place(&fabric, "a", 1), place(&fabric, "b", 2));
    for number in 0..100_u8 {
        send(&a, &b, &[number]);
        assert_eq!(receive_payload(&b), Some(vec![number]));
    }
    let (receivers, all) = (fabric.cpu_time_of_receivers(), fabric.cpu_time());
    assert!(receivers > Duration::ZERO && receivers < all, "{receivers:?} of {all:?}");
}

#[test]
fn a_packet_never_arrives_before_its_delay_has_passed() {
    let fabric = Fabric::start().expect("a fabric");
    let (one, two) = (place(&fabric, "a", 1), place(&fabric, "b", 2));
    let delay = Duration::from_millis(20);
    let rule = Rule { delay: Some(delay), ..Rule::default() };
    fabric.set_policy(Policy { rules: vec![rule], links: vec![] }).expect("set");
    // A large frame and a small one, because they are kept in different ways.
    for payload in [vec![1; 10], vec![2; 60_000]] {
        let sent = Instant::now();
        send(&one, &two, &payload);
        assert_eq!(receive_payload(&two), Some(payload));
        assert!(sent.elapsed() >= delay);
    }
}

#[test]
fn a_fault_holds_when_imposed_and_no_longer_when_its_guard_is_gone() {
    let fabric = Fabric::start().expect("a fabric");
    let (one, two) = (place(&fabric, "a", 1), place(&fabric, "b", 2));
    let cut = Rule {
        from: vec!["a".to_owned()],
        to: vec!["b".to_owned()],
        block: Some(Block::BlackHole),
        ..Rule::default()
    };
    assert!(crosses(&fabric, &one, &two));
    let guard = fabric.impose(cut).expect("imposed");
    assert!(!crosses(&fabric, &one, &two) && crosses(&fabric, &two, &one));
    let second = fabric.impose(Rule { block: Some(Block::BlackHole), ..Rule::default() }).expect("imposed");
    drop(guard);
    assert!(!crosses(&fabric, &one, &two), "the other fault still stands");
    second.lift().expect("lifted");
    assert!(crosses(&fabric, &one, &two));
}

#[test]
fn a_guard_may_outlive_the_fabric() {
    let fabric = Fabric::start().expect("a fabric");
    let guard = fabric.impose(Rule::default()).expect("imposed");
    drop(fabric);
    drop(guard);
}

#[test]
fn a_link_says_what_it_has_carried() {
    let fabric = Fabric::start().expect("a fabric");
    let (one, two) = (place(&fabric, "a", 1), place(&fabric, "b", 2));
    let edge = SharedLink {
        name: "edge".into(),
        span: Span::OutOf(vec!["a".into()]),
        rate_bits_per_s: Some(1_000_000_000),
        queue_limit: None,
        is_network_card: false,
    };
    fabric.set_policy(Policy { rules: vec![], links: vec![edge] }).expect("set");
    send(&one, &two, &[0; 972]);
    assert!(receive_payload(&two).is_some());
    let counters = fabric.link_counters().expect("counters")["edge"];
    assert_eq!((counters.taken_packets, counters.taken_bytes, counters.waiting_bytes), (1, 1000, 0));
    assert_eq!(counters.busy_ns, 8_000);
}

#[test]
fn busy_polling_carries_as_sleeping_does() {
    let options = Options { busy_poll: Duration::from_micros(50), ..Options::default() };
    let fabric = Fabric::start_with(options).expect("a fabric");
    let (one, two) = (place(&fabric, "a", 1), place(&fabric, "b", 2));
    for _ in 0..100 {
        assert!(crosses(&fabric, &one, &two));
    }
    let rule = Rule { delay: Some(Duration::from_millis(5)), ..Rule::default() };
    fabric.set_policy(Policy { rules: vec![rule], links: vec![] }).expect("set");
    send(&one, &two, b"later");
    assert_eq!(receive_payload(&two), Some(b"later".to_vec()));
}

#[test]
fn a_capture_holds_what_the_port_sent_and_received() {
    let fabric = Fabric::start().expect("a fabric");
    let (one, two, three) = (place(&fabric, "a", 1), place(&fabric, "b", 2), place(&fabric, "c", 3));
    let mut file = tempfile::tempfile().expect("a file");
    let capture =
        fabric.capture(Tap::Node("a".to_owned()), file.try_clone().expect("a copy")).expect("begun");
    for (from, to) in [(&one, &two), (&two, &one), (&two, &three)] {
        send(from, to, b"hello");
        assert!(receive_payload(to).is_some());
    }
    assert_eq!(capture.finish().expect("finished"), 2, "not what passes between others");
    send(&one, &two, b"after the end");
    assert!(receive_payload(&two).is_some());
    let mut written = Vec::new();
    file.rewind().expect("rewound");
    file.read_to_end(&mut written).expect("read");
    assert_eq!(written.len(), 24 + 2 * (16 + 33));
    let there = frame(&one, &two, b"hello");
    let back = frame(&two, &one, b"hello");
    assert_eq!(written[40..73], there[HEADER_BYTES..]);
    assert_eq!(written[89..122], back[HEADER_BYTES..]);
    let seconds = u32::from_le_bytes(written[24..28].try_into().expect("four bytes"));
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().expect("after 1970").as_secs();
    assert!(now.abs_diff(u64::from(seconds)) < 600, "written at {seconds}, now {now}");
    check_with_tshark(file);
}

/// Lets Wireshark's reader have its say, where it is installed.
fn check_with_tshark(mut file: File) {
    file.rewind().expect("rewound");
    let arguments = "-r - -T fields -e ip.src -e ip.checksum.status -o ip.check_checksum:TRUE".split(' ');
    let run = Command::new("tshark").args(arguments).stdin(file).stderr(Stdio::null()).output();
    match run {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout).into_owned();
            assert_eq!(text, "10.0.0.1\t1\n10.0.0.2\t1\n", "address and checksum status");
        }
        Err(error) => eprintln!(
            "skipped: a_capture_holds_what_the_port_sent_and_received, its check with tshark: {error}"
        ),
    }
}

#[test]
fn an_address_that_moves_is_reached_where_it_is() {
    let fabric = Fabric::start().expect("a fabric");
    let (one, two) = (place(&fabric, "a", 1), place(&fabric, "b", 2));
    fabric.detach(two.port).expect("detached");
    let again = place(&fabric, "a", 2);
    send(&one, &again, b"hello");
    assert_eq!(receive_payload(&again), Some(b"hello".to_vec()));
    assert_eq!(IpAddr::from(again.address), IpAddr::from(two.address));
}

#[test]
fn what_an_interface_sent_before_it_was_joined_is_not_carried() {
    let fabric = Fabric::start().expect("a fabric");
    let two = place(&fabric, "b", 2);
    let (inside, outside) = interface();
    let mut one = Place { port: two.port, inside, address: Ipv4Addr::new(10, 0, 0, 1) };
    send(&one, &two, b"said without power");
    let addresses = vec![one.address.into()];
    one.port = fabric.attach(vec!["a".to_owned()], addresses, outside).expect("attached");
    send(&one, &two, b"said with power");
    assert_eq!(receive_payload(&two), Some(b"said with power".to_vec()));
}
