//! Reading frames as a TUN interface with a virtio-net header hands them over. Pure, and safe on any bytes.
//!
//! Sources: RFC 791 (IPv4), RFC 8200 (IPv6), virtio 1.2 section 5.1.6 (`struct virtio_net_hdr`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Bytes of `struct virtio_net_hdr` before each packet.
pub const VIRTIO_HEADER_BYTES: usize = 10;

/// The largest frame a TUN interface hands over: a segmented packet of 64 KiB and its header.
pub const FRAME_BYTES_MAX: usize = 65_536 + VIRTIO_HEADER_BYTES;

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

/// What `frame` is on a wire: a segmented frame stands for several packets, each with headers of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OnWire {
    /// Packets.
    pub packets: u64,
    /// Bytes of all of them, IP headers included.
    pub bytes: u64,
}

/// What `frame` is on a wire.
#[must_use]
pub fn on_wire(frame: &[u8]) -> OnWire {
    let Some(header) = frame.get(..VIRTIO_HEADER_BYTES) else { return OnWire { packets: 0, bytes: 0 } };
    let packet_bytes = frame.len() - VIRTIO_HEADER_BYTES;
    // The bit above the type says ECN; type 0 is an ordinary packet.
    let segmentation_type = header[1] & 0x7f;
    let header_bytes = usize::from(u16::from_ne_bytes([header[2], header[3]]));
    let segment_bytes = usize::from(u16::from_ne_bytes([header[4], header[5]]));
    if segmentation_type == 0 || segment_bytes == 0 {
        return OnWire { packets: 1, bytes: packet_bytes as u64 };
    }
    let packets = packet_bytes.saturating_sub(header_bytes).div_ceil(segment_bytes).max(1);
    OnWire { packets: packets as u64, bytes: (packet_bytes + (packets - 1) * header_bytes) as u64 }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ipv4(source: [u8; 4], destination: [u8; 4]) -> Vec<u8> {
        let mut frame = vec![0; VIRTIO_HEADER_BYTES + 20];
        frame[VIRTIO_HEADER_BYTES] = 0x45;
        frame[VIRTIO_HEADER_BYTES + 12..VIRTIO_HEADER_BYTES + 16].copy_from_slice(&source);
        frame[VIRTIO_HEADER_BYTES + 16..VIRTIO_HEADER_BYTES + 20].copy_from_slice(&destination);
        frame
    }

    #[test]
    fn the_addresses_of_an_ipv4_packet_are_read() {
        let found = addresses(&ipv4([10, 1, 0, 1], [10, 1, 0, 2])).expect("addresses");
        assert_eq!(found.source, IpAddr::from([10, 1, 0, 1]));
        assert_eq!(found.destination, IpAddr::from([10, 1, 0, 2]));
    }

    #[test]
    fn a_segmented_frame_counts_as_the_packets_it_stands_for() {
        let mut frame = vec![0u8; VIRTIO_HEADER_BYTES + 40 + 14_480];
        frame[1] = 1;
        frame[2..4].copy_from_slice(&40u16.to_ne_bytes());
        frame[4..6].copy_from_slice(&1448u16.to_ne_bytes());
        assert_eq!(on_wire(&frame), OnWire { packets: 10, bytes: 14_480 + 10 * 40 });
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_without_panic(frame in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = addresses(&frame);
            let _ = on_wire(&frame);
        }
    }
}
