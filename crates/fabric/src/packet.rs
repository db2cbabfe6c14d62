//! Reading frames as a TUN interface with a virtio-net header hands them over. Pure, and safe on any bytes.
//!
//! Sources: RFC 791 (IPv4), RFC 8200 (IPv6), RFC 9293 (TCP), virtio 1.2 section 5.1.6 (`struct virtio_net_hdr`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bytes of `struct virtio_net_hdr` before each packet.
pub const VIRTIO_HEADER_BYTES: usize = 10;

/// The largest frame a TUN interface hands over: a segmented packet of 64 KiB and its header.
pub const FRAME_BYTES_MAX: usize = 65_536 + VIRTIO_HEADER_BYTES;

/// Protocol number of ICMP.
pub const PROTOCOL_ICMP: u8 = 1;
/// Protocol number of TCP.
pub const PROTOCOL_TCP: u8 = 6;
/// Protocol number of UDP.
pub const PROTOCOL_UDP: u8 = 17;
/// Protocol number of ICMP for IPv6.
pub const PROTOCOL_ICMPV6: u8 = 58;

/// Where a packet comes from and goes to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Addresses {
    /// Source address.
    pub source: IpAddr,
    /// Destination address.
    pub destination: IpAddr,
}

/// The addresses of the IP packet in `frame`; `None` when it holds no whole IP header.
#[must_use]
pub fn addresses(frame: &[u8]) -> Option<Addresses> {
    let packet = frame.get(VIRTIO_HEADER_BYTES..)?;
    match packet.first()? >> 4 {
        4 => {
            let source: [u8; 4] = packet.get(12..16)?.try_into().ok()?;
            let destination: [u8; 4] = packet.get(16..20)?.try_into().ok()?;
            Some(Addresses {
                source: Ipv4Addr::from(source).into(),
                destination: Ipv4Addr::from(destination).into(),
            })
        }
        6 => {
            let source: [u8; 16] = packet.get(8..24)?.try_into().ok()?;
            let destination: [u8; 16] = packet.get(24..40)?.try_into().ok()?;
            Some(Addresses {
                source: Ipv6Addr::from(source).into(),
                destination: Ipv6Addr::from(destination).into(),
            })
        }
        _ => None,
    }
}

/// Version of the internet protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Version {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

/// Where the parts of an IP packet are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    /// Version of the internet protocol.
    pub version: Version,
    /// The protocol of what follows the IP header and its extensions.
    pub protocol: u8,
    /// Where that begins.
    pub transport: usize,
    /// Where its payload begins: behind the transport header where that is TCP or UDP and whole.
    pub payload: usize,
    /// It is a fragment other than the first: no transport header follows.
    pub later_fragment: bool,
    /// Routers may not fragment it.
    pub whole_only: bool,
}

/// Where the parts of an IP packet are; `None` when its IP header is not whole.
#[must_use]
pub fn layout(packet: &[u8]) -> Option<Layout> {
    let (version, protocol, transport, later_fragment, whole_only) = match packet.first()? >> 4 {
        4 => {
            let header_bytes = usize::from(packet[0] & 0x0f) * 4;
            if header_bytes < 20 || packet.len() < header_bytes {
                return None;
            }
            let fragment = u16::from_be_bytes([packet[6], packet[7]]);
            (Version::V4, packet[9], header_bytes, fragment & 0x1fff != 0, fragment & 0x4000 != 0)
        }
        6 => {
            let (protocol, transport, later_fragment) = skip_extensions(packet)?;
            (Version::V6, protocol, transport, later_fragment, true)
        }
        _ => return None,
    };
    let header_bytes = match protocol {
        _ if later_fragment => 0,
        PROTOCOL_TCP => packet.get(transport + 12).map_or(0, |offset| usize::from(offset >> 4) * 4).max(20),
        PROTOCOL_UDP => 8,
        _ => 0,
    };
    let payload = (transport + header_bytes).min(packet.len());
    Some(Layout { version, protocol, transport, payload, later_fragment, whole_only })
}

/// Protocol, place and whether it is a later fragment, of what follows an IPv6 header and its extensions.
fn skip_extensions(packet: &[u8]) -> Option<(u8, usize, bool)> {
    packet.get(..40)?;
    let mut protocol = packet[6];
    let mut at = 40;
    let mut later_fragment = false;
    loop {
        match protocol {
            // Hop-by-hop options, routing, destination options: length in units of 8 bytes, the first not counted.
            0 | 43 | 60 => {
                let header = packet.get(at..at + 8)?;
                protocol = header[0];
                at += usize::from(header[1]) * 8 + 8;
            }
            44 => {
                let header = packet.get(at..at + 8)?;
                later_fragment |= u16::from_be_bytes([header[2], header[3]]) & 0xfff8 != 0;
                protocol = header[0];
                at += 8;
            }
            _ => return (at <= packet.len()).then_some((protocol, at, later_fragment)),
        }
        if later_fragment {
            return (at <= packet.len()).then_some((protocol, at, true));
        }
    }
}

/// What `frame` is on a wire: a segmented frame stands for several packets, each with headers of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnWire {
    pub packets: u64,
    /// Bytes of all of them, IP headers included.
    pub bytes: u64,
    /// Bytes of the largest.
    pub packet_bytes_max: u64,
}

/// The parts of a segmented frame's packet and the payload bytes of each packet it stands for; `None` when it is one
/// ordinary packet, or nothing that can be split.
#[must_use]
pub fn segmented(frame: &[u8]) -> Option<(Layout, usize)> {
    let (header, packet) = frame.split_at_checked(VIRTIO_HEADER_BYTES)?;
    let segment_bytes = usize::from(u16::from_ne_bytes([header[4], header[5]]));
    // The bit above the type says ECN; type 0 is an ordinary packet.
    if header[1] & 0x7f == 0 || segment_bytes == 0 {
        return None;
    }
    // The virtio header's own header length is a hint that may include payload; the headers tell better.
    let layout = layout(packet)?;
    let header_bytes = match layout.protocol {
        _ if layout.later_fragment => return None,
        PROTOCOL_TCP => 20,
        PROTOCOL_UDP => 8,
        _ => return None,
    };
    (layout.payload >= layout.transport + header_bytes).then_some((layout, segment_bytes))
}

/// What `frame` is on a wire.
#[must_use]
pub fn on_wire(frame: &[u8]) -> OnWire {
    let packet = frame.get(VIRTIO_HEADER_BYTES..).unwrap_or_default();
    let bytes = packet.len() as u64;
    let Some((layout, segment_bytes)) = segmented(frame) else {
        return OnWire { packets: 1, bytes, packet_bytes_max: bytes };
    };
    let packets = (packet.len() - layout.payload).div_ceil(segment_bytes).max(1) as u64;
    let header_bytes = layout.payload as u64;
    OnWire {
        packets,
        bytes: bytes + (packets - 1) * header_bytes,
        packet_bytes_max: bytes.min(header_bytes + segment_bytes as u64),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::checksum;

    /// A frame of one TCP packet, checksums complete, from and to 10.0.0.x or fd00::x.
    pub(crate) fn tcp(version: Version, source: u8, destination: u8, payload: &[u8]) -> Vec<u8> {
        let mut segment =
            vec![0x9c, 0x40, 0x15, 0x38, 0, 0, 0x10, 0, 0, 0, 0x20, 0, 0x50, 0x18, 1, 0, 0, 0, 0, 0];
        segment.extend_from_slice(payload);
        ip(version, source, destination, PROTOCOL_TCP, segment, 16)
    }

    /// A frame of one UDP packet, like [`tcp`].
    pub(crate) fn udp(version: Version, source: u8, destination: u8, payload: &[u8]) -> Vec<u8> {
        let mut datagram = vec![0x9c, 0x40, 0x15, 0x38, 0, 0, 0, 0];
        datagram.extend_from_slice(payload);
        let length = (datagram.len() as u16).to_be_bytes();
        datagram[4..6].copy_from_slice(&length);
        ip(version, source, destination, PROTOCOL_UDP, datagram, 6)
    }

    fn ip(
        version: Version,
        source: u8,
        destination: u8,
        protocol: u8,
        body: Vec<u8>,
        field: usize,
    ) -> Vec<u8> {
        let mut packet = match version {
            Version::V4 => {
                let mut header = vec![0x45, 0, 0, 0, 0x12, 0x34, 0x40, 0, 64, protocol, 0, 0];
                header.extend([10, 0, 0, source, 10, 0, 0, destination]);
                let length = (20 + body.len()) as u16;
                header[2..4].copy_from_slice(&length.to_be_bytes());
                checksum::write_ipv4_header(&mut header);
                header
            }
            Version::V6 => {
                let mut header = vec![0x60, 0, 0, 0, 0, 0, protocol, 64];
                for last in [source, destination] {
                    header.extend(Ipv6Addr::new(0xfd00, 0, 0, 0, 0, 0, 0, u16::from(last)).octets());
                }
                header[4..6].copy_from_slice(&(body.len() as u16).to_be_bytes());
                header
            }
        };
        let transport = packet.len();
        packet.extend(body);
        let layout = layout(&packet).expect("a whole packet");
        let sum = checksum::transport(&packet, &layout, transport + field);
        packet[transport + field..transport + field + 2].copy_from_slice(&sum.to_be_bytes());
        let mut frame = vec![0; VIRTIO_HEADER_BYTES];
        frame.extend(packet);
        frame
    }

    /// Makes the frame a segmented one, as the kernel would hand it over.
    pub(crate) fn make_segmented(mut frame: Vec<u8>, segment_bytes: u16) -> Vec<u8> {
        let layout = layout(&frame[VIRTIO_HEADER_BYTES..]).expect("a whole packet");
        let kind = match (layout.protocol, layout.version) {
            (PROTOCOL_UDP, _) => 5,
            (_, Version::V4) => 1,
            (_, Version::V6) => 4,
        };
        frame[0] = checksum::FLAG_NEEDS_CHECKSUM;
        frame[1] = kind;
        frame[2..4].copy_from_slice(&(layout.payload as u16).to_ne_bytes());
        frame[4..6].copy_from_slice(&segment_bytes.to_ne_bytes());
        frame[6..8].copy_from_slice(&(layout.transport as u16).to_ne_bytes());
        let offset: u16 = if layout.protocol == PROTOCOL_UDP { 6 } else { 16 };
        frame[8..10].copy_from_slice(&offset.to_ne_bytes());
        frame
    }

    #[test]
    fn the_addresses_of_a_packet_are_read() {
        let found = addresses(&tcp(Version::V4, 1, 2, b"")).expect("addresses");
        assert_eq!(found.source, IpAddr::from([10, 0, 0, 1]));
        assert_eq!(found.destination, IpAddr::from([10, 0, 0, 2]));
        let found = addresses(&tcp(Version::V6, 1, 2, b"")).expect("addresses");
        assert_eq!(found.destination, IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, 2]));
    }

    #[test]
    fn the_parts_of_a_packet_are_found_behind_ipv6_extensions() {
        let plain = udp(Version::V6, 1, 2, b"hello");
        let mut packet = plain[VIRTIO_HEADER_BYTES..].to_vec();
        packet[6] = 60;
        let mut options = vec![0; 16];
        (options[0], options[1]) = (PROTOCOL_UDP, 1);
        packet.splice(40..40, options);
        let found = layout(&packet).expect("a layout");
        assert_eq!((found.protocol, found.transport, found.payload), (PROTOCOL_UDP, 56, 64));
    }

    #[test]
    fn a_segmented_frame_counts_as_the_packets_it_stands_for() {
        let frame = make_segmented(tcp(Version::V4, 1, 2, &[0; 14_480]), 1448);
        let expected = OnWire { packets: 10, bytes: 14_480 + 10 * 40, packet_bytes_max: 1488 };
        assert_eq!(on_wire(&frame), expected);
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(frame in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = addresses(&frame);
            let _ = on_wire(&frame);
            let _ = layout(&frame);
        }
    }
}
