//! The running fabric between pairs of sockets that stand for TUN interfaces: how late a delayed packet is, and how long
//! a small one takes there and back. `cargo bench -p fabric` prints it; nothing is asserted.

use std::net::IpAddr;
use std::os::fd::{AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use fabric::packet::VIRTIO_HEADER_BYTES;
use fabric::{Fabric, Options, Policy, Rule};
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socketpair};

/// Attaches a port with this last part of its address; the socket's other end blocks.
fn place(fabric: &Fabric, last: u8) -> OwnedFd {
    let (inside, outside) =
        socketpair(AddressFamily::Unix, SockType::SeqPacket, None, SockFlag::SOCK_CLOEXEC).expect("sockets");
    // SAFETY: the descriptor is open, and the call takes no pointers.
    unsafe { libc::fcntl(outside.as_raw_fd(), libc::F_SETFL, libc::O_NONBLOCK) };
    fabric.attach(vec![last.to_string()], vec![IpAddr::from([10, 0, 0, last])], outside).expect("attached");
    inside
}

fn frame(from: u8, to: u8) -> Vec<u8> {
    let mut frame = vec![0; VIRTIO_HEADER_BYTES + 29];
    let packet = &mut frame[VIRTIO_HEADER_BYTES..];
    (packet[0], packet[9]) = (0x45, 17);
    packet[12..20].copy_from_slice(&[10, 0, 0, from, 10, 0, 0, to]);
    frame
}

fn print(what: &str, mut times: Vec<Duration>) {
    times.sort_unstable();
    let at = |share: f64| times[((times.len() - 1) as f64 * share) as usize].as_nanos() as f64 / 1e3;
    println!("  {what:32} p50 {:8.1}  p99 {:8.1}  max {:8.1}", at(0.5), at(0.99), at(1.0));
}

/// How much later than asked packets arrive that are sent one a millisecond.
fn lateness(options: Options) -> Vec<Duration> {
    let fabric = Fabric::start_with(options).expect("a fabric");
    let (one, two) = (place(&fabric, 1), place(&fabric, 2));
    let delay = Duration::from_millis(50);
    let rules = vec![Rule { delay: Some(delay), ..Rule::default() }];
    fabric.set_policy(Policy { rules, ..Policy::default() }).expect("set");
    let packets = 3000;
    let receiver = std::thread::spawn(move || {
        let mut buffer = [0; 100];
        let arrived = (0..packets).map(|_| {
            nix::unistd::read(&two, &mut buffer).expect("read");
            Instant::now()
        });
        arrived.collect::<Vec<_>>()
    });
    let sent: Vec<Instant> = (0..packets)
        .map(|_| {
            std::thread::sleep(Duration::from_millis(1));
            let sent = Instant::now();
            nix::unistd::write(&one, &frame(1, 2)).expect("written");
            sent
        })
        .collect();
    let arrived = receiver.join().expect("the receiver");
    sent.iter().zip(arrived).map(|(sent, arrived)| (arrived - *sent).saturating_sub(delay)).collect()
}

fn round_trips(options: Options) -> Vec<Duration> {
    let fabric = Fabric::start_with(options).expect("a fabric");
    let (one, two) = (place(&fabric, 1), place(&fabric, 2));
    let rounds = 20_000;
    let echo = std::thread::spawn(move || {
        let mut buffer = [0; 100];
        for _ in 0..rounds {
            nix::unistd::read(&two, &mut buffer).expect("read");
            nix::unistd::write(&two, &frame(2, 1)).expect("written");
        }
    });
    let mut buffer = [0; 100];
    let times = (0..rounds)
        .map(|_| {
            let sent = Instant::now();
            nix::unistd::write(&one, &frame(1, 2)).expect("written");
            nix::unistd::read(&one, &mut buffer).expect("read");
            sent.elapsed()
        })
        .collect();
    echo.join().expect("the echo");
    times
}

fn main() {
    let busy = Options { busy_poll: Duration::from_micros(50), ..Options::default() };
    println!("between sockets, microseconds:");
    print("later than a delay of 50 ms", lateness(Options::default()));
    print("the same, busy polling", lateness(busy));
    print("there and back", round_trips(Options::default()));
    print("there and back, busy polling", round_trips(busy));
}
