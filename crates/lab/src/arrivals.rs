//! Packets as they arrive at the interfaces of places, by the receiving kernel's own word: when, from where, how many bytes.
//!
//! The kernel hands a copy of every packet to a packet socket and notes when it came, so nothing need be awake to see it.
//! Owns seeing; whose packets they are is for the caller to say.
//! Sources: packet(7) for `PACKET_VNET_HDR`, `PACKET_STATISTICS` and `MSG_TRUNC`; the kernel's timestamping document.

use std::io::{self, ErrorKind, IoSliceMut};
use std::net::IpAddr;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant, SystemTime};

use nix::sys::socket::{ControlMessageOwned, MsgFlags, recvmsg, setsockopt, sockopt};
use nix::sys::time::TimeSpec;

use crate::attachment::{enter, on_own_thread};
use crate::interface::INTERFACE_NAME;

/// What may wait in a socket; beyond it nothing is known.
const RECEIVE_BUFFER_BYTES: usize = 32 << 20;
/// `struct virtio_net_hdr`, before each packet.
const VIRTIO_HEADER_BYTES: usize = 10;
/// Headers of IPv6 and TCP with all options, and what stands before them.
const SEEN_BYTES: usize = VIRTIO_HEADER_BYTES + 40 + 60;
const PACKET_STATISTICS: libc::c_int = 6;
const PACKET_VNET_HDR: libc::c_int = 15;
const UDP_HEADER_BYTES: usize = 8;

/// One packet, or several that the kernel was given in one piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrived {
    /// When the kernel was given it.
    pub at: Instant,
    /// At which of the places, by number.
    pub place: usize,
    /// From where.
    pub from: IpAddr,
    /// Packets on the wire,
    pub packets: u64,
    /// and their bytes, IP headers included.
    pub bytes: u64,
    /// Bytes of a datagram's content, where it is UDP.
    pub datagram_bytes: Option<usize>,
}

/// A watch on interfaces.
#[derive(Debug)]
pub struct Arrivals {
    sockets: Vec<OwnedFd>,
}

impl Arrivals {
    /// Sees from now on what arrives over IPv4, or else IPv6, at places with these network namespaces.
    ///
    /// # Errors
    /// When a namespace cannot be entered or a socket cannot be had.
    pub fn watch(places: &[&OwnedFd], over_ipv4: bool) -> io::Result<Arrivals> {
        let protocol = if over_ipv4 { libc::ETH_P_IP } else { libc::ETH_P_IPV6 };
        let open = |namespace: &&OwnedFd| enter(namespace).and_then(|()| packet_socket(protocol as u16));
        let sockets = on_own_thread(|| places.iter().map(open).collect::<io::Result<Vec<_>>>())
            .map_err(io::Error::other)??;
        Ok(Arrivals { sockets })
    }

    /// What has arrived, place by place.
    ///
    /// # Errors
    /// When a socket cannot be read, or more arrived than it had room for.
    pub fn collect(self) -> io::Result<Vec<Arrived>> {
        let (now, wall_clock) = (Instant::now(), SystemTime::now());
        let at = |stamp: SystemTime| now - wall_clock.duration_since(stamp).unwrap_or_default();
        let mut arrived = Vec::new();
        for (place, socket) in self.sockets.iter().enumerate() {
            while let Some((bytes, length, stamp)) = next(socket)? {
                let seen = read(&bytes, length);
                arrived.extend(seen.map(|seen| Arrived { at: at(stamp), place, ..seen.at(now) }));
            }
            if dropped(socket)? > 0 {
                return Err(io::Error::other("more packets arrived than could be kept"));
            }
        }
        Ok(arrived)
    }
}

/// A packet's headers say so much.
#[derive(Debug, PartialEq)]
struct Seen {
    from: IpAddr,
    packets: u64,
    bytes: u64,
    datagram_bytes: Option<usize>,
}

impl Seen {
    fn at(self, at: Instant) -> Arrived {
        let Seen { from, packets, bytes, datagram_bytes } = self;
        Arrived { at, place: 0, from, packets, bytes, datagram_bytes }
    }
}

/// Reads the headers of `length` bytes, of which the first are here.
fn read(bytes: &[u8], length: usize) -> Option<Seen> {
    let (virtio, packet) = bytes.split_at_checked(VIRTIO_HEADER_BYTES)?;
    let length = length.checked_sub(VIRTIO_HEADER_BYTES)?;
    let segment_bytes = usize::from(u16::from_le_bytes([virtio[4], virtio[5]]));
    let (from, protocol, network_bytes): (IpAddr, u8, usize) = match packet.first()? >> 4 {
        4 => {
            let from: [u8; 4] = packet.get(12..16)?.try_into().ok()?;
            (from.into(), *packet.get(9)?, usize::from(packet.first()? & 0x0f) * 4)
        }
        6 => {
            let from: [u8; 16] = packet.get(8..24)?.try_into().ok()?;
            (from.into(), *packet.get(6)?, 40)
        }
        _ => return None,
    };
    let is_udp = i32::from(protocol) == libc::IPPROTO_UDP;
    let transport_bytes = if is_udp {
        UDP_HEADER_BYTES
    } else {
        packet.get(network_bytes + 12).map_or(0, |offset| usize::from(offset >> 4) * 4)
    };
    let header_bytes = network_bytes + transport_bytes;
    let content_bytes = length.saturating_sub(header_bytes);
    let packets = if segment_bytes == 0 { 1 } else { content_bytes.div_ceil(segment_bytes).max(1) };
    let datagram_bytes = is_udp.then_some(if segment_bytes == 0 { content_bytes } else { segment_bytes });
    let bytes = (length + (packets - 1) * header_bytes) as u64;
    Some(Seen { from, packets: packets as u64, bytes, datagram_bytes })
}

fn packet_socket(protocol: u16) -> io::Result<OwnedFd> {
    let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK;
    // SAFETY: socket(2) takes no pointers. With no protocol it receives nothing yet.
    let descriptor = unsafe { libc::socket(libc::AF_PACKET, kind, 0) };
    if descriptor < 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has just given this descriptor to nobody else.
    let socket = unsafe { OwnedFd::from_raw_fd(descriptor) };
    if setsockopt(&socket, sockopt::RcvBufForce, &RECEIVE_BUFFER_BYTES).is_err() {
        setsockopt(&socket, sockopt::RcvBuf, &RECEIVE_BUFFER_BYTES)?;
    }
    setsockopt(&socket, sockopt::ReceiveTimestampns, &true)?;
    let (yes, length): (libc::c_int, _) = (1, size_of::<libc::c_int>() as libc::socklen_t);
    // SAFETY: the descriptor is the socket's own, and `yes` is a live local of the length given.
    let set = unsafe {
        let option = (&raw const yes).cast();
        libc::setsockopt(socket.as_raw_fd(), libc::SOL_PACKET, PACKET_VNET_HDR, option, length)
    };
    if set != 0 {
        return Err(io::Error::last_os_error());
    }
    let index = nix::net::if_::if_nametoindex(INTERFACE_NAME)?;
    let address = libc::sockaddr_ll {
        sll_family: libc::AF_PACKET as u16,
        sll_protocol: protocol.to_be(),
        sll_ifindex: i32::try_from(index).map_err(io::Error::other)?,
        sll_hatype: 0,
        sll_pkttype: 0,
        sll_halen: 0,
        sll_addr: [0; 8],
    };
    let length = size_of::<libc::sockaddr_ll>() as libc::socklen_t;
    // SAFETY: the descriptor is the socket's own, and `address` is a live local of the length given.
    let bound = unsafe { libc::bind(socket.as_raw_fd(), (&raw const address).cast(), length) };
    if bound == 0 { Ok(socket) } else { Err(io::Error::last_os_error()) }
}

/// The next packet that waits: its first bytes, how many it has, and when it came.
fn next(socket: &OwnedFd) -> io::Result<Option<([u8; SEEN_BYTES], usize, SystemTime)>> {
    let mut bytes = [0; SEEN_BYTES];
    let mut control = nix::cmsg_space!(TimeSpec);
    let mut parts = [IoSliceMut::new(&mut bytes)];
    let message = match recvmsg::<()>(socket.as_raw_fd(), &mut parts, Some(&mut control), MsgFlags::MSG_TRUNC)
    {
        Ok(message) => message,
        Err(error) if io::Error::from(error).kind() == ErrorKind::WouldBlock => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let length = message.bytes;
    let stamp = message.cmsgs()?.find_map(|control| match control {
        ControlMessageOwned::ScmTimestampns(stamp) => Some(SystemTime::UNIX_EPOCH + Duration::from(stamp)),
        _ => None,
    });
    let stamp = stamp.ok_or_else(|| io::Error::other("the kernel did not say when a packet came"))?;
    Ok(Some((bytes, length, stamp)))
}

/// Packets that the socket had no room for.
fn dropped(socket: &OwnedFd) -> io::Result<u32> {
    // `struct tpacket_stats`: packets, and of them those dropped.
    let mut counts = [0_u32; 2];
    let mut length = size_of_val(&counts) as libc::socklen_t;
    // SAFETY: the descriptor is the socket's own; `counts` and `length` are live locals, and `length` says how long `counts` is.
    let got = unsafe {
        let option = counts.as_mut_ptr().cast();
        libc::getsockopt(socket.as_raw_fd(), libc::SOL_PACKET, PACKET_STATISTICS, option, &raw mut length)
    };
    if got == 0 { Ok(counts[1]) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    use super::*;
    use crate::addresses::Addresses;
    use crate::attachment::Attachment;

    /// Headers as the kernel hands them over: a virtio header with this segment size, IPv4, then TCP or UDP.
    fn headers(protocol: u8, segment_bytes: u16) -> Vec<u8> {
        let mut bytes = vec![0; SEEN_BYTES];
        bytes[4..6].copy_from_slice(&segment_bytes.to_le_bytes());
        bytes[10] = 0x45;
        bytes[19] = protocol;
        bytes[22..26].copy_from_slice(&[10, 0, 0, 7]);
        bytes[42] = 0x50;
        bytes
    }

    #[test]
    fn packets_in_one_piece_are_counted_as_on_the_wire() {
        let from = IpAddr::from([10, 0, 0, 7]);
        let single = read(&headers(6, 0), 10 + 40 + 100);
        assert_eq!(single, Some(Seen { from, packets: 1, bytes: 140, datagram_bytes: None }));
        let several = read(&headers(6, 1_460), 10 + 40 + 3_000);
        assert_eq!(several, Some(Seen { from, packets: 3, bytes: 3_120, datagram_bytes: None }));
        let datagram = read(&headers(17, 0), 10 + 28 + 32);
        assert_eq!(datagram, Some(Seen { from, packets: 1, bytes: 60, datagram_bytes: Some(32) }));
        assert_eq!(read(&[0; 4], 4), None);
    }

    #[test]
    fn what_arrives_at_an_interface_is_seen_with_its_sender_and_its_bytes() {
        let here = Addresses::of([10, 99, 0, 1].into());
        let place = match Attachment::make(here) {
            Ok(place) => place,
            Err(error) => return eprintln!("skipped: what_arrives_at_an_interface_is_seen: {error}"),
        };
        let arrivals = Arrivals::watch(&[&place.namespace], true).expect("a watch");
        let begun = Instant::now();
        // The other end of the interface is in our hands: a datagram of 32 bytes from somebody else.
        let mut packet = headers(17, 0);
        packet.truncate(10 + 28);
        packet.extend([7; 32]);
        packet[12..14].copy_from_slice(&60_u16.to_be_bytes());
        packet[18] = 64;
        packet[26..30].copy_from_slice(&[10, 99, 0, 1]);
        packet[34..36].copy_from_slice(&40_u16.to_be_bytes());
        assert_eq!(nix::unistd::write(place.tun.as_fd(), &packet), Ok(packet.len()));
        let arrived = arrivals.collect().expect("nothing lost");
        let (from, at) = (IpAddr::from([10, 0, 0, 7]), arrived.first().map_or(begun, |one| one.at));
        let expected = Arrived { at, place: 0, from, packets: 1, bytes: 60, datagram_bytes: Some(32) };
        assert_eq!(arrived, [expected]);
        assert!(UdpSocket::bind("127.0.0.1:0").is_ok(), "the caller's own namespace is as it was");
    }
}
