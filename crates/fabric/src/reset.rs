//! What a network answers in a receiver's stead: TCP resets, ICMP unreachable and "too big". Pure, and safe on any
//! bytes.
//!
//! An answer carries the addresses of the packet it answers, swapped: a flat network has no routers to speak for
//! themselves. Sources: RFC 9293 section 3.5.2 (reset), RFC 792 and RFC 1191 (ICMP), RFC 4443 (ICMPv6); Linux
//! `nf_reject` for the same choice of codes.

use crate::checksum;
use crate::packet::{
    self, Layout, PROTOCOL_ICMP, PROTOCOL_ICMPV6, PROTOCOL_TCP, VIRTIO_HEADER_BYTES, Version,
};

const TCP_FIN: u8 = 0x01;
const TCP_SYN: u8 = 0x02;
const TCP_RST: u8 = 0x04;
const TCP_ACK: u8 = 0x10;

/// An ICMPv6 message may make its packet no larger than every link must carry.
const ICMPV6_PACKET_BYTES_MAX: usize = 1280;
/// RFC 1812 asks for as much of the packet as fits into this.
const ICMP_PACKET_BYTES_MAX: usize = 576;
const IPV4_HEADER_BYTES: usize = 20;
const IPV6_HEADER_BYTES: usize = 40;
const ICMP_HEADER_BYTES: usize = 8;

/// The frame that refuses the packet in `frame` to its sender: a reset for TCP, "port unreachable" for all else. `None`
/// where an answer is forbidden: to a reset, to an ICMP message that is itself an error, to a later fragment.
#[must_use]
pub fn refusal(frame: &[u8]) -> Option<Vec<u8>> {
    let packet = frame.get(VIRTIO_HEADER_BYTES..)?;
    let layout = packet::layout(packet)?;
    if layout.later_fragment {
        return None;
    }
    match (layout.protocol, layout.version) {
        (PROTOCOL_TCP, _) => reset(packet, &layout),
        (_, Version::V4) => icmp(packet, &layout, 3, 3, 0),
        (_, Version::V6) => icmp(packet, &layout, 1, 4, 0),
    }
}

/// The frame that tells a packet's sender how large its packets may be. `packet_frame` holds one packet as on the wire.
#[must_use]
pub fn too_big(packet_frame: &[u8], mtu_bytes: u32) -> Option<Vec<u8>> {
    let packet = packet_frame.get(VIRTIO_HEADER_BYTES..)?;
    let layout = packet::layout(packet)?;
    match layout.version {
        _ if layout.later_fragment => None,
        Version::V4 => icmp(packet, &layout, 3, 4, mtu_bytes.min(0xffff)),
        Version::V6 => icmp(packet, &layout, 2, 0, mtu_bytes),
    }
}

fn reset(packet: &[u8], layout: &Layout) -> Option<Vec<u8>> {
    let tcp = packet.get(layout.transport..layout.transport + 20)?;
    let flags = tcp[13];
    if flags & TCP_RST != 0 {
        return None;
    }
    let mut answer = [0u8; 20];
    answer[0..2].copy_from_slice(&tcp[2..4]);
    answer[2..4].copy_from_slice(&tcp[0..2]);
    answer[12] = 5 << 4;
    if flags & TCP_ACK != 0 {
        // What the sender expects next: nothing else would be inside its window for certain.
        answer[4..8].copy_from_slice(&tcp[8..12]);
        answer[13] = TCP_RST;
    } else {
        let sequence = u32::from_be_bytes([tcp[4], tcp[5], tcp[6], tcp[7]]);
        let taken = (packet.len() - layout.payload) as u32
            + u32::from(flags & TCP_SYN != 0)
            + u32::from(flags & TCP_FIN != 0);
        answer[8..12].copy_from_slice(&sequence.wrapping_add(taken).to_be_bytes());
        answer[13] = TCP_RST | TCP_ACK;
    }
    Some(answer_to(packet, layout.version, PROTOCOL_TCP, &answer, 16))
}

fn icmp(packet: &[u8], layout: &Layout, kind: u8, code: u8, mtu_bytes: u32) -> Option<Vec<u8>> {
    let asked = packet.get(layout.transport).copied();
    let is_error = match layout.protocol {
        // Destination unreachable, source quench, redirect, time exceeded, parameter problem.
        PROTOCOL_ICMP => matches!(asked, None | Some(3 | 4 | 5 | 11 | 12)),
        PROTOCOL_ICMPV6 => asked.is_none_or(|kind| kind < 128),
        _ => false,
    };
    if is_error {
        return None;
    }
    let (protocol, room) = match layout.version {
        Version::V4 => (PROTOCOL_ICMP, ICMP_PACKET_BYTES_MAX - IPV4_HEADER_BYTES - ICMP_HEADER_BYTES),
        Version::V6 => (PROTOCOL_ICMPV6, ICMPV6_PACKET_BYTES_MAX - IPV6_HEADER_BYTES - ICMP_HEADER_BYTES),
    };
    let mut message = vec![kind, code, 0, 0];
    message.extend(mtu_bytes.to_be_bytes());
    message.extend_from_slice(&packet[..packet.len().min(room)]);
    Some(answer_to(packet, layout.version, protocol, &message, 2))
}

/// A frame with `body` from the packet's destination to its source; `field` is where the body's checksum belongs.
fn answer_to(packet: &[u8], version: Version, protocol: u8, body: &[u8], field: usize) -> Vec<u8> {
    let mut frame = vec![0; VIRTIO_HEADER_BYTES];
    let transport = match version {
        Version::V4 => {
            let length = ((IPV4_HEADER_BYTES + body.len()) as u16).to_be_bytes();
            let mut header = vec![0x45, 0, length[0], length[1], 0, 0, 0x40, 0, 64, protocol, 0, 0];
            header.extend_from_slice(&packet[16..20]);
            header.extend_from_slice(&packet[12..16]);
            checksum::write_ipv4_header(&mut header);
            frame.extend(header);
            IPV4_HEADER_BYTES
        }
        Version::V6 => {
            let length = (body.len() as u16).to_be_bytes();
            frame.extend([0x60, 0, 0, 0, length[0], length[1], protocol, 64]);
            frame.extend_from_slice(&packet[24..40]);
            frame.extend_from_slice(&packet[8..24]);
            IPV6_HEADER_BYTES
        }
    };
    frame.extend_from_slice(body);
    let answer = &mut frame[VIRTIO_HEADER_BYTES..];
    let sum = if protocol == PROTOCOL_ICMP {
        checksum::finish(checksum::add(0, body))
    } else {
        packet::layout(answer).map_or(0, |layout| checksum::transport(answer, &layout, transport + field))
    };
    answer[transport + field..transport + field + 2].copy_from_slice(&sum.to_be_bytes());
    frame
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::packet::addresses;
    use crate::packet::tests::{tcp, udp};
    use crate::segment::tests::checksums_are_right;

    const VERSIONS: [Version; 2] = [Version::V4, Version::V6];

    fn body(frame: &[u8]) -> &[u8] {
        let packet = &frame[VIRTIO_HEADER_BYTES..];
        &packet[packet::layout(packet).expect("a layout").transport..]
    }

    #[test]
    fn a_tcp_segment_is_refused_with_a_reset_its_sender_must_believe() {
        for version in VERSIONS {
            let refused = tcp(version, 1, 2, b"hello");
            let answer = refusal(&refused).expect("a reset");
            let (there, back) = (addresses(&refused).expect("there"), addresses(&answer).expect("back"));
            assert_eq!((there.source, there.destination), (back.destination, back.source));
            assert!(checksums_are_right(&answer));
            let reset = body(&answer);
            assert_eq!(reset[13], TCP_RST);
            assert_eq!(reset[4..8], body(&refused)[8..12], "the number its sender expects next");
            assert_eq!((&reset[0..2], &reset[2..4]), (&body(&refused)[2..4], &body(&refused)[0..2]));
            assert_eq!(refusal(&answer), None, "a reset is not answered");
        }
    }

    #[test]
    fn a_connection_attempt_is_refused_with_its_number_acknowledged() {
        let mut attempt = tcp(Version::V4, 1, 2, b"");
        attempt[VIRTIO_HEADER_BYTES + 33] = TCP_SYN;
        let answer = refusal(&attempt).expect("a reset");
        let reset = body(&answer);
        assert_eq!(reset[13], TCP_RST | TCP_ACK);
        assert_eq!(u32::from_be_bytes(reset[8..12].try_into().expect("four bytes")), 0x1001);
    }

    #[test]
    fn a_datagram_is_refused_with_port_unreachable() {
        for (version, kind, code) in [(Version::V4, 3, 3), (Version::V6, 1, 4)] {
            let refused = udp(version, 1, 2, &[7; 2000]);
            let answer = refusal(&refused).expect("an ICMP message");
            assert!(checksums_are_right(&answer));
            assert_eq!(body(&answer)[..2], [kind, code]);
            let quoted = &body(&answer)[8..];
            assert_eq!(quoted, &refused[VIRTIO_HEADER_BYTES..][..quoted.len()]);
            assert_eq!(refusal(&answer), None, "an ICMP error is not answered");
        }
    }

    #[test]
    fn a_packet_too_big_is_answered_with_the_size_that_passes() {
        for (version, kind, code) in [(Version::V4, 3, 4), (Version::V6, 2, 0)] {
            let answer = too_big(&tcp(version, 1, 2, &[0; 1400]), 1300).expect("an ICMP message");
            assert!(checksums_are_right(&answer));
            assert_eq!(body(&answer)[..2], [kind, code]);
            assert_eq!(u32::from_be_bytes(body(&answer)[4..8].try_into().expect("four bytes")), 1300);
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_answered_without_panic(frame in proptest::collection::vec(any::<u8>(), 0..200), mtu: u32) {
            let _ = refusal(&frame);
            let _ = too_big(&frame, mtu);
        }
    }
}
