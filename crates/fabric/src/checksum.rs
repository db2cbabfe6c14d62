//! The internet checksum, and completing those a sender has left to its network card. Pure, and safe on any bytes.
//!
//! Sources: RFC 1071; virtio 1.2 section 5.1.6.2 (`VIRTIO_NET_HDR_F_NEEDS_CSUM`).

use crate::packet::{Layout, PROTOCOL_UDP, VIRTIO_HEADER_BYTES, Version};

/// In the virtio-net header's flags: the checksum still has to be computed.
pub const FLAG_NEEDS_CHECKSUM: u8 = 1;
/// In the virtio-net header's flags: the checksum is known to be right.
pub const FLAG_DATA_VALID: u8 = 2;

/// The ones' complement sum of `bytes`, on top of `sum`; an odd last byte counts as the upper half of a word. Only the
/// last piece of a sum may be odd.
#[must_use]
pub fn add(sum: u64, bytes: &[u8]) -> u64 {
    let mut sum = sum;
    let mut eights = bytes.chunks_exact(8);
    for eight in &mut eights {
        // Words of 32 bits: their carries gather in the upper half of the sum, where 2^32 of them have room.
        let word = u64::from_be_bytes([
            eight[0], eight[1], eight[2], eight[3], eight[4], eight[5], eight[6], eight[7],
        ]);
        sum += (word >> 32) + (word & 0xffff_ffff);
    }
    let mut pairs = eights.remainder().chunks_exact(2);
    for pair in &mut pairs {
        sum += u64::from(u16::from_be_bytes([pair[0], pair[1]]));
    }
    if let [last] = pairs.remainder() {
        sum += u64::from(*last) << 8;
    }
    // Folded to 32 bits, so that a chain of additions never overflows.
    (sum & 0xffff_ffff) + (sum >> 32)
}

/// The checksum that belongs to a sum.
#[must_use]
pub fn finish(sum: u64) -> u16 {
    let mut sum = sum;
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// The sum of a TCP, UDP or ICMPv6 pseudo-header.
#[must_use]
pub fn pseudo_header(packet: &[u8], layout: &Layout, transport_bytes: usize) -> u64 {
    let addresses = match layout.version {
        Version::V4 => packet.get(12..20),
        Version::V6 => packet.get(8..40),
    };
    add(0, addresses.unwrap_or_default()) + transport_bytes as u64 + u64::from(layout.protocol)
}

/// The checksum of the transport header and payload in `packet`, whose own field counts as zero.
#[must_use]
pub fn transport(packet: &[u8], layout: &Layout, field: usize) -> u16 {
    let body = packet.get(layout.transport..).unwrap_or_default();
    let field_sum = packet.get(field..field + 2).map_or(0, |bytes| add(0, bytes));
    // The complement of a number is its negative in this arithmetic.
    let sum = add(pseudo_header(packet, layout, body.len()), body) + (0xffff - field_sum.min(0xffff));
    no_zero_for_udp(layout, finish(sum))
}

/// For UDP zero means that there is no checksum; the other zero of this arithmetic stands for it.
fn no_zero_for_udp(layout: &Layout, checksum: u16) -> u16 {
    if checksum == 0 && layout.protocol == PROTOCOL_UDP { 0xffff } else { checksum }
}

/// Writes the checksum of an IPv4 header into it.
pub fn write_ipv4_header(header: &mut [u8]) {
    if let Some(field) = header.get_mut(10..12) {
        field.fill(0);
        let checksum = finish(add(0, header));
        header[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
}

/// Completes the checksum that the frame's sender left to its network card, and says so in the frame's header. The
/// frame must not be a segmented one.
pub fn complete(frame: &mut [u8]) {
    let Some(header) = frame.get(..VIRTIO_HEADER_BYTES) else { return };
    let needs = header[0] & FLAG_NEEDS_CHECKSUM != 0;
    let start = usize::from(u16::from_ne_bytes([header[6], header[7]]));
    let field = start + usize::from(u16::from_ne_bytes([header[8], header[9]]));
    frame[..VIRTIO_HEADER_BYTES].fill(0);
    let packet = &mut frame[VIRTIO_HEADER_BYTES..];
    if !needs || packet.len() < field + 2 || start > packet.len() {
        return;
    }
    // The field holds the pseudo-header's sum already.
    let checksum = match finish(add(0, &packet[start..])) {
        0 => 0xffff,
        checksum => checksum,
    };
    packet[field..field + 2].copy_from_slice(&checksum.to_be_bytes());
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// RFC 1071 word by word, as plainly as can be: the witness for everything that computes checksums here.
    pub(crate) fn plain(bytes: &[u8]) -> u16 {
        let mut sum: u32 = 0;
        for pair in bytes.chunks(2) {
            sum += u32::from(pair[0]) * 256 + u32::from(pair.get(1).copied().unwrap_or(0));
            if sum > 0xffff {
                sum -= 0xffff;
            }
        }
        !(sum as u16)
    }

    #[test]
    fn the_example_of_rfc_1071_comes_out() {
        assert_eq!(!finish(add(0, &[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7])), 0xddf2);
    }

    #[test]
    fn a_checksum_left_to_the_card_is_completed() {
        let mut frame = vec![0u8; VIRTIO_HEADER_BYTES + 28];
        frame[0] = FLAG_NEEDS_CHECKSUM;
        frame[6..8].copy_from_slice(&20u16.to_ne_bytes());
        frame[8..10].copy_from_slice(&6u16.to_ne_bytes());
        let body = VIRTIO_HEADER_BYTES + 20;
        frame[body..].copy_from_slice(&[1, 2, 3, 4, 0, 8, 0x12, 0x34]);
        complete(&mut frame);
        assert_eq!(frame[0], 0);
        // The pseudo-header's sum was in the field: with it once more in the sum, everything cancels out.
        let mut whole = frame[body..].to_vec();
        whole.extend([0x12, 0x34]);
        assert_eq!(plain(&whole), 0);
    }

    #[test]
    fn a_completed_checksum_is_never_the_zero_that_means_none() {
        let mut frame = vec![0u8; VIRTIO_HEADER_BYTES + 28];
        frame[0] = FLAG_NEEDS_CHECKSUM;
        frame[6..8].copy_from_slice(&20u16.to_ne_bytes());
        frame[8..10].copy_from_slice(&6u16.to_ne_bytes());
        frame[VIRTIO_HEADER_BYTES + 20..VIRTIO_HEADER_BYTES + 22].fill(0xff);
        complete(&mut frame);
        assert_eq!(frame[VIRTIO_HEADER_BYTES + 26..], [0xff, 0xff]);
    }

    proptest! {
        #[test]
        fn the_fast_sum_agrees_with_the_plain_one(bytes in proptest::collection::vec(any::<u8>(), 0..3000)) {
            let (fast, plain) = (finish(add(0, &bytes)), plain(&bytes));
            // The two zeroes of ones' complement mean the same.
            prop_assert!(fast == plain || (fast == 0xffff && plain == 0) || (fast == 0 && plain == 0xffff));
        }

        #[test]
        fn completing_any_bytes_does_not_panic(mut frame in proptest::collection::vec(any::<u8>(), 0..200)) {
            complete(&mut frame);
        }
    }
}
