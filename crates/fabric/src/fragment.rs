//! Fragmenting an IPv4 packet whose sender allows it where a path carries only smaller ones. Pure.
//!
//! Source: RFC 791 section 3.2. Options are copied into every fragment: more than asked, never less.

use crate::checksum;
use crate::packet::VIRTIO_HEADER_BYTES;

const MORE_FRAGMENTS: u16 = 0x2000;
const OFFSET: u16 = 0x1fff;

/// The fragments of the packet in `frame`, none larger than `mtu_bytes`, as frames; empty when it cannot be split. The
/// packet's checksums must be complete.
#[must_use]
pub fn fragments(frame: &[u8], mtu_bytes: usize) -> Vec<Vec<u8>> {
    let Some(packet) =
        frame.get(VIRTIO_HEADER_BYTES..).filter(|packet| packet.len() >= 20 && packet[0] >> 4 == 4)
    else {
        return Vec::new();
    };
    let header_bytes = usize::from(packet[0] & 0x0f) * 4;
    // Offsets count units of eight bytes.
    let piece_bytes = mtu_bytes.saturating_sub(header_bytes) & !7;
    if header_bytes < 20 || packet.len() < header_bytes || piece_bytes == 0 {
        return Vec::new();
    }
    let (header, body) = packet.split_at(header_bytes);
    let field = u16::from_be_bytes([header[6], header[7]]);
    let mut out = Vec::new();
    for (number, piece) in body.chunks(piece_bytes).enumerate() {
        let is_last = (number + 1) * piece_bytes >= body.len();
        let offset = (field & OFFSET).wrapping_add((number * piece_bytes / 8) as u16) & OFFSET;
        let flags = if is_last { field & MORE_FRAGMENTS } else { MORE_FRAGMENTS };
        let mut fragment = vec![0; VIRTIO_HEADER_BYTES];
        fragment.extend_from_slice(header);
        fragment.extend_from_slice(piece);
        let packet = &mut fragment[VIRTIO_HEADER_BYTES..];
        packet[2..4].copy_from_slice(&((header_bytes + piece.len()) as u16).to_be_bytes());
        packet[6..8].copy_from_slice(&(flags | offset).to_be_bytes());
        checksum::write_ipv4_header(&mut packet[..header_bytes]);
        out.push(fragment);
    }
    out
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::checksum::tests::plain;
    use crate::packet::Version;
    use crate::packet::tests::udp;

    proptest! {
        #[test]
        fn fragments_put_together_are_the_packet(payload in proptest::collection::vec(any::<u8>(), 0..5000), mtu in 28usize..1500) {
            let frame = udp(Version::V4, 1, 2, &payload);
            let packet = &frame[VIRTIO_HEADER_BYTES..];
            let mut joined = Vec::new();
            let pieces = fragments(&frame, mtu);
            for (number, piece) in pieces.iter().enumerate() {
                let piece = &piece[VIRTIO_HEADER_BYTES..];
                prop_assert!(piece.len() <= mtu && plain(&piece[..20]) == 0);
                let field = u16::from_be_bytes([piece[6], piece[7]]);
                prop_assert_eq!(usize::from(field & OFFSET) * 8, joined.len());
                prop_assert_eq!(field & MORE_FRAGMENTS != 0, number + 1 < pieces.len());
                joined.extend_from_slice(&piece[20..]);
            }
            prop_assert_eq!(&joined[..], &packet[20..]);
        }

        #[test]
        fn any_bytes_are_fragmented_without_panic(frame in proptest::collection::vec(any::<u8>(), 0..200), mtu in 0usize..200) {
            let _ = fragments(&frame, mtu);
        }
    }
}
