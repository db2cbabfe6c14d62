//! Evidence, gathered independently of what made the fault: which processes are left, and who answers.
//!
//! Sources: RFC 792 (ICMP echo), pid_namespaces(7).

use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::sync::atomic::{AtomicU16, Ordering};
use std::time::{Duration, Instant};

/// Numbers the probes of this process.
static PROBES: AtomicU16 = AtomicU16::new(0x4846);

/// The processes, by number as the lab sees them, that live in this PID namespace (or in one inside it).
///
/// # Errors
/// When `/proc` cannot be listed.
pub fn processes_in(pid_namespace: u64) -> io::Result<Vec<u32>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        let entry = entry?;
        let Some(pid) = entry.file_name().to_str().and_then(|name| name.parse::<u32>().ok()) else {
            continue;
        };
        // A process that ends while we look has no namespace left to read; a zombie has none either.
        if std::fs::metadata(entry.path().join("ns/pid")).is_ok_and(|file| file.ino() == pid_namespace) {
            found.push(pid);
        }
    }
    Ok(found)
}

/// Sends ICMP echo requests, one every `interval`, from the calling thread's network namespace, until one is answered or
/// `patience` is over. Returns the round trip of the first answer, or `None` for silence.
///
/// # Errors
/// When no raw socket is to be had or sending fails for another reason than that there is no way to the address.
pub fn echo(address: Ipv4Addr, interval: Duration, patience: Duration) -> io::Result<Option<Duration>> {
    let socket = raw_socket()?;
    // Every socket hears every answer. One to an earlier probe, still under way on a long link, is none to this one.
    let identifier = PROBES.fetch_add(1, Ordering::Relaxed);
    let deadline = Instant::now() + patience;
    let mut sequence: u16 = 0;
    let mut sent = Vec::new();
    while Instant::now() < deadline {
        sequence = sequence.wrapping_add(1);
        sent.push((sequence, Instant::now()));
        send_echo(&socket, address, identifier, sequence)?;
        let until = deadline.min(Instant::now() + interval);
        if let Some(answered) = await_answer(&socket, address, identifier, until)? {
            let answer = sent.iter().find(|(number, _)| *number == answered);
            return Ok(answer.map(|(_, at)| at.elapsed()));
        }
    }
    Ok(None)
}

fn raw_socket() -> io::Result<OwnedFd> {
    // SAFETY: socket(2) takes no pointers; a descriptor it returns is ours alone.
    unsafe {
        let socket = libc::socket(libc::AF_INET, libc::SOCK_RAW | libc::SOCK_CLOEXEC, libc::IPPROTO_ICMP);
        if socket < 0 { Err(io::Error::last_os_error()) } else { Ok(OwnedFd::from_raw_fd(socket)) }
    }
}

fn send_echo(socket: &OwnedFd, address: Ipv4Addr, identifier: u16, sequence: u16) -> io::Result<()> {
    let mut packet = [0u8; 16];
    packet[0] = 8;
    packet[4..6].copy_from_slice(&identifier.to_be_bytes());
    packet[6..8].copy_from_slice(&sequence.to_be_bytes());
    packet[8..].copy_from_slice(b"holdfast");
    let sum = checksum(&packet);
    packet[2..4].copy_from_slice(&sum.to_be_bytes());
    let target = nix::sys::socket::SockaddrIn::from(SocketAddrV4::new(address, 0));
    match nix::sys::socket::sendto(socket.as_raw_fd(), &packet, &target, nix::sys::socket::MsgFlags::empty())
    {
        Ok(_) | Err(nix::Error::EHOSTUNREACH | nix::Error::ENETUNREACH) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn await_answer(
    socket: &OwnedFd,
    from: Ipv4Addr,
    identifier: u16,
    until: Instant,
) -> io::Result<Option<u16>> {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use std::os::fd::AsFd;
    let mut packet = [0u8; 256];
    loop {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Ok(None);
        }
        let timeout = PollTimeout::try_from(left.as_millis().max(1)).unwrap_or(PollTimeout::MAX);
        let mut waiting = [PollFd::new(socket.as_fd(), PollFlags::POLLIN)];
        match poll(&mut waiting, timeout) {
            Ok(0) | Err(nix::Error::EINTR) => continue,
            Ok(_) => {}
            Err(error) => return Err(error.into()),
        }
        let length = nix::unistd::read(socket, &mut packet).map_err(io::Error::from)?;
        if let Some(sequence) = answer_in(&packet[..length], from, identifier) {
            return Ok(Some(sequence));
        }
    }
}

/// The sequence number of an echo reply from `from` to us, where the packet (IP header first) is one.
fn answer_in(packet: &[u8], from: Ipv4Addr, identifier: u16) -> Option<u16> {
    let header_bytes = usize::from(packet.first()? & 0x0f) * 4;
    let source: [u8; 4] = packet.get(12..16)?.try_into().ok()?;
    let message = packet.get(header_bytes..)?;
    let is_reply = message.first() == Some(&0) && Ipv4Addr::from(source) == from;
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

    #[test]
    fn an_answer_from_somebody_else_is_no_answer() {
        let mut packet = vec![0x45u8; 20];
        packet[12..16].copy_from_slice(&[10, 0, 0, 1]);
        packet.extend([0, 0, 0, 0, 0, 7, 0, 3]);
        assert_eq!(answer_in(&packet, Ipv4Addr::new(10, 0, 0, 1), 7), Some(3));
        assert_eq!(answer_in(&packet, Ipv4Addr::new(10, 0, 0, 2), 7), None);
        assert_eq!(answer_in(&packet, Ipv4Addr::new(10, 0, 0, 1), 8), None);
        assert_eq!(answer_in(&packet[..21], Ipv4Addr::new(10, 0, 0, 1), 7), None);
    }
}
