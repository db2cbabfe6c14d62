//! Evidence, gathered independently of what made the fault: which processes are left, and who answers.
//!
//! Sources: RFC 792 and RFC 4443 (ICMP echo), ipv6(7), raw(7), pid_namespaces(7).

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

use nix::sys::socket::{MsgFlags, SockaddrStorage, recvfrom, sendto};

/// Numbers the probes of this process.
static PROBES: AtomicU16 = AtomicU16::new(0x4846);

/// Messages read at most once the time for an answer is over: more than wait in a socket's buffer, which holds a few hundred by
/// default.
const LATE_MAX: usize = 4_096;

/// The kinds of namespaces that every boot of a node has of its own.
const KINDS: [&str; 5] = ["pid", "mnt", "net", "uts", "ipc"];

/// The namespaces of one boot of a node. While this lives, the kernel gives their numbers to no others.
#[derive(Debug)]
pub struct NodeNamespaces {
    held: Vec<File>,
    numbers: BTreeSet<u64>,
}

impl NodeNamespaces {
    /// Those of the node whose init has this process number.
    ///
    /// # Errors
    /// When they cannot be opened: the init has ended.
    pub fn of(init: u32) -> io::Result<NodeNamespaces> {
        let open = |kind: &&str| File::open(format!("/proc/{init}/ns/{kind}"));
        let held = KINDS.iter().map(open).collect::<io::Result<Vec<File>>>()?;
        let numbers = held.iter().map(|file| Ok(file.metadata()?.ino())).collect::<io::Result<_>>()?;
        Ok(NodeNamespaces { held, numbers })
    }

    /// How many there are.
    #[must_use]
    pub fn count(&self) -> usize {
        self.held.len()
    }

    /// The processes, by number as the lab sees them, that are in any of them: a process that has left one of the node's
    /// namespaces is still the node's.
    ///
    /// # Errors
    /// When `/proc` cannot be listed.
    pub fn processes(&self) -> io::Result<Vec<u32>> {
        let mut found = Vec::new();
        for entry in std::fs::read_dir("/proc")? {
            let entry = entry?;
            let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
                continue;
            };
            // A process that ends while we look has no namespaces left to read; a zombie has none either.
            let is_in = |kind: &&str| {
                let namespace = std::fs::metadata(entry.path().join("ns").join(kind));
                namespace.is_ok_and(|file| self.numbers.contains(&file.ino()))
            };
            if KINDS.iter().any(is_in) {
                found.push(pid);
            }
        }
        Ok(found)
    }
}

/// Sends ICMP echo requests, one every `interval`, from the calling thread's network namespace, until one is answered or
/// `patience` is over. Returns the round trip of the first answer, or `None` for silence.
///
/// # Errors
/// When no raw socket is to be had or sending fails for another reason than that there is no way to the address.
pub fn echo(address: IpAddr, interval: Duration, patience: Duration) -> io::Result<Option<Duration>> {
    let socket = raw_socket(address)?;
    // Every socket hears every answer. One to an earlier probe, still under way on a long link, is none to this one.
    let identifier = PROBES.fetch_add(1, Ordering::Relaxed);
    let deadline = Instant::now() + patience;
    let mut sequence: u16 = 0;
    let mut sent = Vec::new();
    // One at least: a caller that has waited for a processor until then has asked nobody yet.
    loop {
        sequence = sequence.wrapping_add(1);
        sent.push((sequence, Instant::now()));
        send_echo(&socket, address, identifier, sequence)?;
        let until = deadline.min(Instant::now() + interval);
        if let Some(answered) = await_answer(&socket, address, identifier, (until, LATE_MAX))? {
            return Ok(asked_at(&sent, answered).map(|at| at.elapsed()));
        }
        if Instant::now() >= deadline {
            return Ok(None);
        }
    }
}

/// When that was sent which is answered. A flipped bit can make the number of none of them of it; that somebody answers stays true.
fn asked_at(sent: &[(u16, Instant)], answered: u16) -> Option<Instant> {
    let asked = sent.iter().find(|(number, _)| *number == answered).or(sent.first());
    asked.map(|(_, at)| *at)
}

/// What an echo is made of in each family: the number of the protocol, and of its two kinds of message.
struct Echo {
    family: libc::c_int,
    protocol: libc::c_int,
    request: u8,
    reply: u8,
}

fn echo_toward(address: IpAddr) -> Echo {
    match address {
        IpAddr::V4(_) => Echo { family: libc::AF_INET, protocol: libc::IPPROTO_ICMP, request: 8, reply: 0 },
        IpAddr::V6(_) => {
            Echo { family: libc::AF_INET6, protocol: libc::IPPROTO_ICMPV6, request: 128, reply: 129 }
        }
    }
}

fn raw_socket(address: IpAddr) -> io::Result<OwnedFd> {
    let Echo { family, protocol, .. } = echo_toward(address);
    // SAFETY: socket(2) takes no pointers; a descriptor it returns is ours alone.
    unsafe {
        let socket = libc::socket(family, libc::SOCK_RAW | libc::SOCK_CLOEXEC, protocol);
        if socket < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(socket)) }
    }
}

fn send_echo(socket: &OwnedFd, address: IpAddr, identifier: u16, sequence: u16) -> io::Result<()> {
    let mut packet = [0u8; 16];
    packet[0] = echo_toward(address).request;
    packet[4..6].copy_from_slice(&identifier.to_be_bytes());
    packet[6..8].copy_from_slice(&sequence.to_be_bytes());
    packet[8..].copy_from_slice(b"holdfast");
    if address.is_ipv4() {
        // That of IPv6 covers the addresses as well, and the kernel fills it in.
        let sum = checksum(&packet);
        packet[2..4].copy_from_slice(&sum.to_be_bytes());
    }
    let target = SockaddrStorage::from(SocketAddr::new(address, 0));
    match sendto(socket.as_raw_fd(), &packet, &target, MsgFlags::empty()) {
        Ok(_) | Err(nix::Error::EHOSTUNREACH | nix::Error::ENETUNREACH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// Looks on when the time is over, at so many messages: what came while this thread waited for a processor has come. Others may
/// come without end.
fn await_answer(
    socket: &OwnedFd,
    from: IpAddr,
    identifier: u16,
    (until, mut late_left): (Instant, usize),
) -> io::Result<Option<u16>> {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use std::os::fd::AsFd;
    let mut packet = [0u8; 256];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let timeout = match left.is_zero() {
            true => PollTimeout::ZERO,
            false => PollTimeout::try_from(left.as_millis().max(1)).unwrap_or(PollTimeout::MAX),
        };
        let mut waiting = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
        match poll(&mut waiting, timeout) {
            Ok(0) if left.is_zero() => return Ok(None),
            Ok(_) if left.is_zero() && late_left == 0 => return Ok(None),
            Ok(0) | Err(nix::Error::EINTR) => continue,
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        if left.is_zero() {
            late_left -= 1;
        }
        let (length, sender) = recvfrom::<SockaddrStorage>(socket.as_raw_fd(), &mut packet)?;
        let sender = sender.as_ref().and_then(address_in);
        let answered =
            message_in(&packet[..length], from).and_then(|message| answer_in(message, from, identifier));
        if let Some(sequence) = answered.filter(|_| sender == Some(from)) {
            return Ok(Some(sequence));
        }
    }
}

fn address_in(sender: &SockaddrStorage) -> Option<IpAddr> {
    let v4 = sender.as_sockaddr_in().map(|address| IpAddr::V4(address.ip()));
    v4.or_else(|| sender.as_sockaddr_in6().map(|address| IpAddr::V6(address.ip())))
}

/// The ICMP message in what a raw socket gives: its IP header comes along in IPv4, and does not in IPv6.
fn message_in(packet: &[u8], from: IpAddr) -> Option<&[u8]> {
    match from {
        IpAddr::V4(_) => packet.get(usize::from(packet.first()? & 0x0f) * 4..),
        IpAddr::V6(_) => Some(packet),
    }
}

/// The sequence number of an echo reply to us, where the message is one.
fn answer_in(message: &[u8], from: IpAddr, identifier: u16) -> Option<u16> {
    let is_reply = *message.first()? == echo_toward(from).reply;
    let ours = message.get(4..6)? == identifier.to_be_bytes();
    let sequence: [u8; 2] = message.get(6..8)?.try_into().ok()?;
    (is_reply && ours).then(|| u16::from_be_bytes(sequence))
}

/// The internet checksum (RFC 1071).
fn checksum(bytes: &[u8]) -> u16 {
    let sum = bytes.chunks(2).fold(0u32, |sum, pair| {
        sum + u32::from(u16::from_be_bytes([pair[0], pair.get(1).copied().unwrap_or(0)]))
    });
    let folded = (sum & 0xffff) + (sum >> 16);
    !((folded & 0xffff) as u16).wrapping_add((folded >> 16) as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_of_a_message_with_its_checksum_is_zero() {
        let mut packet = [8u8, 0, 0, 0, 1, 2, 3, 4, 9, 9];
        let sum = checksum(&packet);
        packet[2..4].copy_from_slice(&sum.to_be_bytes());
        assert_eq!(checksum(&packet), 0);
    }

    /// Which sequence number is read in a packet, in answer to probe 7.
    fn check(from: &str, packet: &[u8], expected: Option<u16>) {
        let from: IpAddr = from.parse().expect("an address");
        let found = message_in(packet, from).and_then(|message| answer_in(message, from, 7));
        assert_eq!(found, expected, "{packet:?}");
    }

    #[test]
    fn an_answer_that_came_in_time_is_one_though_it_is_read_late() {
        use std::net::UdpSocket;
        let socket = || UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let (near, far) = (socket(), socket());
        let address = near.local_addr().expect("its address");
        // What a raw socket would give: the IP header, and the message behind it.
        far.send_to(&[&[0x45_u8; 20][..], &[0, 0, 0, 0, 0, 7, 0, 3]].concat(), address).expect("sent");
        near.peek(&mut [0; 64]).expect("it has come");
        let near = OwnedFd::from(near);
        let answered = || await_answer(&near, address.ip(), 7, (Instant::now(), LATE_MAX)).expect("polled");
        assert_eq!((answered(), answered()), (Some(3), None));
    }

    #[test]
    fn a_flood_of_other_messages_is_not_looked_through_without_end_when_the_time_is_over() {
        use std::net::UdpSocket;
        let socket = || UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let (near, far) = (socket(), socket());
        let address = near.local_addr().expect("its address");
        for identifier in [8, 9, 7] {
            let message = [&[0x45_u8; 20][..], &[0, 0, 0, 0, 0, identifier, 0, 3]].concat();
            far.send_to(&message, address).expect("sent");
        }
        near.peek(&mut [0; 64]).expect("it has come");
        let near = OwnedFd::from(near);
        let answered = |until: Instant, late: usize| {
            await_answer(&near, address.ip(), 7, (until, late)).expect("polled")
        };
        assert_eq!(answered(Instant::now(), 2), None, "both were others'");
        assert_eq!(answered(Instant::now() + Duration::from_secs(60), 0), Some(3));
    }

    #[test]
    fn an_answer_whose_number_lost_a_bit_on_its_way_is_no_silence() {
        let begun = Instant::now();
        let sent = [(1, begun), (2, begun + Duration::from_millis(100))];
        assert_eq!(asked_at(&sent, 2), Some(sent[1].1));
        assert_eq!(asked_at(&sent, 2 | 1 << 9), Some(begun));
    }

    #[test]
    fn only_an_answer_to_this_probe_is_one() {
        let header = [0x45u8; 20];
        check("10.0.0.1", &[&header[..], &[0, 0, 0, 0, 0, 7, 0, 3]].concat(), Some(3));
        check("10.0.0.1", &[&header[..], &[0, 0, 0, 0, 0, 8, 0, 3]].concat(), None);
        check("10.0.0.1", &[&header[..], &[8, 0, 0, 0, 0, 7, 0, 3]].concat(), None);
        check("10.0.0.1", &header[..19], None);
        check("10.0.0.1", &[], None);
        check("fd00::1", &[129, 0, 0, 0, 0, 7, 0, 3], Some(3));
        check("fd00::1", &[128, 0, 0, 0, 0, 7, 0, 3], None);
        check("fd00::1", &[0, 0, 0, 0, 0, 7, 0, 3], None);
        check("fd00::1", &[129, 0, 0, 0, 0, 7, 0], None);
    }
}
