//! Splitting a segmented frame (TSO, USO) into the packets it stands for, as a network card would. Pure, and safe on
//! any bytes.
//!
//! Sources: virtio 1.2 section 5.1.6.2; Linux `tcp_gso_segment` and `__udp_gso_segment` for what changes from packet
//! to packet.

use crate::checksum::{self, FLAG_DATA_VALID};
use crate::packet::{self, Layout, PROTOCOL_TCP, VIRTIO_HEADER_BYTES, Version};

const TCP_FIN: u8 = 0x01;
const TCP_PSH: u8 = 0x08;
const TCP_CWR: u8 = 0x80;

/// A segmented frame, seen as the packets it stands for.
#[derive(Debug, Clone, Copy)]
pub struct Segments<'frame> {
    packet: &'frame [u8],
    layout: Layout,
    segment_bytes: usize,
}

impl<'frame> Segments<'frame> {
    /// `None` when the frame is no segmented one of TCP or UDP: it is one packet then.
    #[must_use]
    pub fn of(frame: &'frame [u8]) -> Option<Segments<'frame>> {
        let (layout, segment_bytes) = packet::segmented(frame)?;
        Some(Segments { packet: frame.get(VIRTIO_HEADER_BYTES..)?, layout, segment_bytes })
    }

    /// How many packets.
    #[must_use]
    pub fn count(&self) -> usize {
        (self.packet.len() - self.layout.payload).div_ceil(self.segment_bytes).max(1)
    }

    /// Bytes of payload in the packet with this number.
    #[must_use]
    pub fn payload_bytes(&self, number: usize) -> usize {
        let payload_bytes = self.packet.len() - self.layout.payload;
        payload_bytes.saturating_sub(number.saturating_mul(self.segment_bytes)).min(self.segment_bytes)
    }

    /// Writes the packet with this number, from 0, as a frame of its own with right checksums.
    pub fn write(&self, number: usize, frame: &mut Vec<u8>) {
        let payload = &self.packet[self.layout.payload..];
        let first = number.saturating_mul(self.segment_bytes).min(payload.len());
        let end = first + self.payload_bytes(number);
        frame.clear();
        frame.resize(VIRTIO_HEADER_BYTES, 0);
        frame[0] = FLAG_DATA_VALID;
        frame.extend_from_slice(&self.packet[..self.layout.payload]);
        frame.extend_from_slice(&payload[first..end]);
        let packet = &mut frame[VIRTIO_HEADER_BYTES..];
        match self.layout.protocol {
            PROTOCOL_TCP => self.fix_tcp(packet, first, number),
            _ => self.fix_udp(packet),
        }
        self.fix_ip(packet, number);
    }

    fn fix_tcp(&self, packet: &mut [u8], first: usize, number: usize) {
        let tcp = self.layout.transport;
        let sequence =
            u32::from_be_bytes([packet[tcp + 4], packet[tcp + 5], packet[tcp + 6], packet[tcp + 7]]);
        packet[tcp + 4..tcp + 8].copy_from_slice(&sequence.wrapping_add(first as u32).to_be_bytes());
        if number + 1 < self.count() {
            packet[tcp + 13] &= !(TCP_FIN | TCP_PSH);
        }
        if number > 0 {
            packet[tcp + 13] &= !TCP_CWR;
        }
        self.write_checksum(packet, tcp + 16);
    }

    fn fix_udp(&self, packet: &mut [u8]) {
        let udp = self.layout.transport;
        let length = (packet.len() - udp) as u16;
        packet[udp + 4..udp + 6].copy_from_slice(&length.to_be_bytes());
        self.write_checksum(packet, udp + 6);
    }

    fn write_checksum(&self, packet: &mut [u8], field: usize) {
        let sum = checksum::transport(packet, &self.layout, field);
        packet[field..field + 2].copy_from_slice(&sum.to_be_bytes());
    }

    fn fix_ip(&self, packet: &mut [u8], number: usize) {
        let length = packet.len();
        match self.layout.version {
            Version::V4 => {
                packet[2..4].copy_from_slice(&(length as u16).to_be_bytes());
                let identification = u16::from_be_bytes([packet[4], packet[5]]).wrapping_add(number as u16);
                packet[4..6].copy_from_slice(&identification.to_be_bytes());
                let header_bytes = usize::from(packet[0] & 0x0f) * 4;
                checksum::write_ipv4_header(&mut packet[..header_bytes]);
            }
            Version::V6 => packet[4..6].copy_from_slice(&((length - 40) as u16).to_be_bytes()),
        }
    }
}

/// Flips one bit of the packet's payload, or of its transport header where there is no payload, and leaves the
/// checksums as they would have been: what a receiver's checksum is there to notice. `bit` chooses among all.
pub fn flip_bit(frame: &mut [u8], bit: u64) {
    checksum::complete(frame);
    let Some(packet) = frame.get_mut(VIRTIO_HEADER_BYTES..) else { return };
    let Some(layout) = packet::layout(packet) else { return };
    let from = if layout.payload < packet.len() { layout.payload } else { layout.transport };
    let body = &mut packet[from..];
    if !body.is_empty() {
        let bit = bit % (body.len() as u64 * 8);
        body[(bit / 8) as usize] ^= 1 << (bit % 8);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::checksum::tests::plain;
    use crate::packet::tests::{make_segmented, tcp, udp};

    /// Whether both checksums of the packet in `frame` are right, by another way than the one that wrote them.
    pub(crate) fn checksums_are_right(frame: &[u8]) -> bool {
        let packet = &frame[VIRTIO_HEADER_BYTES..];
        let layout = packet::layout(packet).expect("a whole packet");
        let body = &packet[layout.transport..];
        let mut witness = match layout.version {
            Version::V4 => packet[12..20].to_vec(),
            Version::V6 => packet[8..40].to_vec(),
        };
        if layout.protocol != packet::PROTOCOL_ICMP {
            witness.extend((body.len() as u32).to_be_bytes());
            witness.extend([0, 0, 0, layout.protocol]);
        } else {
            witness.clear();
        }
        witness.extend_from_slice(body);
        let header_right = layout.version == Version::V6 || plain(&packet[..20]) == 0;
        header_right && plain(&witness) == 0
    }

    fn split(frame: &[u8]) -> Vec<Vec<u8>> {
        let segments = Segments::of(frame).expect("a segmented frame");
        (0..segments.count())
            .map(|number| {
                let mut out = Vec::new();
                segments.write(number, &mut out);
                out
            })
            .collect()
    }

    fn check_pieces(pieces: &[Vec<u8>], payload: &[u8], segment_bytes: usize) {
        let mut joined = Vec::new();
        for (number, piece) in pieces.iter().enumerate() {
            let packet = &piece[VIRTIO_HEADER_BYTES..];
            let layout = packet::layout(packet).expect("a whole packet");
            let body = &packet[layout.payload..];
            assert!(body.len() <= segment_bytes && checksums_are_right(piece), "packet {number}");
            if layout.protocol == PROTOCOL_TCP {
                let sequence =
                    u32::from_be_bytes(packet[layout.transport + 4..][..4].try_into().expect("4 bytes"));
                assert_eq!(sequence, 0x1000 + joined.len() as u32);
                let pushes = packet[layout.transport + 13] & TCP_PSH != 0;
                assert_eq!(pushes, number + 1 == pieces.len(), "PSH belongs on the last");
            }
            if layout.version == Version::V4 {
                assert_eq!(usize::from(u16::from_be_bytes([packet[2], packet[3]])), packet.len());
                assert_eq!(u16::from_be_bytes([packet[4], packet[5]]), 0x1234 + number as u16);
            }
            joined.extend_from_slice(body);
        }
        assert_eq!(joined, payload);
    }

    #[test]
    fn the_witness_notices_one_wrong_bit() {
        let mut frame = tcp(Version::V4, 1, 2, b"hello");
        assert!(checksums_are_right(&frame));
        flip_bit(&mut frame, 13);
        assert!(!checksums_are_right(&frame));
    }

    #[test]
    fn a_flipped_bit_is_noticed_even_when_the_checksum_was_left_to_the_card() {
        let whole = tcp(Version::V4, 1, 2, b"hello");
        let mut frame = make_segmented(whole.clone(), 1448);
        let packet = &frame[VIRTIO_HEADER_BYTES..];
        let layout = packet::layout(packet).expect("a layout");
        let pseudo = !checksum::finish(checksum::pseudo_header(packet, &layout, 25));
        frame[VIRTIO_HEADER_BYTES + 36..VIRTIO_HEADER_BYTES + 38].copy_from_slice(&pseudo.to_be_bytes());
        flip_bit(&mut frame, 3);
        assert_eq!(frame[0], 0, "the receiver has to look at the checksum");
        let differing = whole.iter().zip(&frame).map(|(one, other)| (one ^ other).count_ones()).sum::<u32>();
        assert_eq!(differing, 1);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_packets_of_a_segmented_frame_are_the_frame(
            payload in proptest::collection::vec(any::<u8>(), 1..20_000),
            segment_bytes in 100u16..9000,
            v6: bool,
            over_udp: bool,
        ) {
            let version = if v6 { Version::V6 } else { Version::V4 };
            let whole = if over_udp { udp(version, 1, 2, &payload) } else { tcp(version, 1, 2, &payload) };
            let frame = make_segmented(whole, segment_bytes);
            let pieces = split(&frame);
            check_pieces(&pieces, &payload, usize::from(segment_bytes));
            let wire = packet::on_wire(&frame);
            let bytes: usize = pieces.iter().map(|piece| piece.len() - VIRTIO_HEADER_BYTES).sum();
            prop_assert_eq!((wire.packets, wire.bytes), (pieces.len() as u64, bytes as u64));
        }

        #[test]
        fn any_bytes_are_split_and_bent_without_panic(mut frame in proptest::collection::vec(any::<u8>(), 0..300), bit: u64) {
            if let Some(segments) = Segments::of(&frame) {
                let mut out = Vec::new();
                for number in 0..segments.count().min(400) {
                    segments.write(number, &mut out);
                }
            }
            flip_bit(&mut frame, bit);
        }
    }
}
