//! Writing what one port sends and receives as a pcap file that Wireshark's tools read. Pure but for the file it is
//! given.
//!
//! Sources: the pcap file format of the tcpdump group (draft-ietf-opsawg-pcap): nanosecond variant, LINKTYPE_RAW.

use std::io::{self, Write};

use crate::checksum;
use crate::packet::VIRTIO_HEADER_BYTES;
use crate::segment::Segments;

const MAGIC_NANOSECONDS: u32 = 0xa1b2_3c4d;
const LINKTYPE_RAW: u32 = 101;
const PACKET_BYTES_MAX: u32 = 65_536;

/// A pcap file being written. Segmented frames are written as the packets they stand for, checksums complete: as a
/// wire would show them.
#[derive(Debug)]
pub struct Capture<W> {
    out: W,
    packets: u64,
    buffer: Vec<u8>,
}

impl<W: Write> Capture<W> {
    /// Begins the file.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn begin(mut out: W) -> io::Result<Capture<W>> {
        let mut header = Vec::with_capacity(24);
        header.extend(MAGIC_NANOSECONDS.to_le_bytes());
        header.extend(2u16.to_le_bytes());
        header.extend(4u16.to_le_bytes());
        header.extend([0; 8]);
        header.extend(PACKET_BYTES_MAX.to_le_bytes());
        header.extend(LINKTYPE_RAW.to_le_bytes());
        out.write_all(&header)?;
        Ok(Capture { out, packets: 0, buffer: Vec::new() })
    }

    /// Writes a frame that passed at `wall_ns`, nanoseconds since 1970.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write(&mut self, frame: &[u8], wall_ns: u64) -> io::Result<()> {
        let mut buffer = std::mem::take(&mut self.buffer);
        let written = match Segments::of(frame) {
            Some(segments) => (0..segments.count()).try_for_each(|number| {
                segments.write(number, &mut buffer);
                self.write_packet(&buffer, wall_ns)
            }),
            None => {
                buffer.clear();
                buffer.extend_from_slice(frame);
                checksum::complete(&mut buffer);
                self.write_packet(&buffer, wall_ns)
            }
        };
        self.buffer = buffer;
        written
    }

    /// Hands everything to the file, and says how many packets that is so far.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn flush(&mut self) -> io::Result<u64> {
        self.out.flush()?;
        Ok(self.packets)
    }

    fn write_packet(&mut self, frame: &[u8], wall_ns: u64) -> io::Result<()> {
        let Some(packet) = frame.get(VIRTIO_HEADER_BYTES..) else { return Ok(()) };
        let length = (packet.len() as u32).to_le_bytes();
        let mut header = [0; 16];
        header[0..4].copy_from_slice(&((wall_ns / 1_000_000_000) as u32).to_le_bytes());
        header[4..8].copy_from_slice(&((wall_ns % 1_000_000_000) as u32).to_le_bytes());
        header[8..12].copy_from_slice(&length);
        header[12..16].copy_from_slice(&length);
        self.out.write_all(&header)?;
        self.out.write_all(packet)?;
        self.packets += 1;
        Ok(())
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::packet::Version;
    use crate::packet::tests::{make_segmented, tcp, udp};
    use crate::segment::tests::checksums_are_right;

    /// Moments and packets of a capture, read by the format's description.
    pub(crate) fn read(file: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().expect("four bytes"));
        assert_eq!((word(0), word(20)), (0xa1b2_3c4d, 101), "magic and link type");
        let mut at = 24;
        let mut packets = Vec::new();
        while at < file.len() {
            let moment_ns = u64::from(word(at)) * 1_000_000_000 + u64::from(word(at + 4));
            let length = word(at + 8) as usize;
            assert_eq!(word(at + 12) as usize, length);
            packets.push((moment_ns, file[at + 16..at + 16 + length].to_vec()));
            at += 16 + length;
        }
        packets
    }

    #[test]
    fn a_capture_holds_the_packets_of_the_wire() {
        let mut capture = Capture::begin(Vec::new()).expect("in memory");
        let datagram = udp(Version::V4, 1, 2, b"hello");
        capture.write(&datagram, 1_700_000_000_123_456_789).expect("in memory");
        capture.write(&make_segmented(tcp(Version::V6, 1, 2, &[9; 3000]), 1400), 5).expect("in memory");
        assert_eq!(capture.flush().expect("in memory"), 4);
        let found = read(&capture.out);
        assert_eq!(found[0], (1_700_000_000_123_456_789, datagram[VIRTIO_HEADER_BYTES..].to_vec()));
        assert_eq!(found[1..].iter().map(|(_, packet)| packet.len()).collect::<Vec<_>>(), [1460, 1460, 260]);
        for (_, packet) in &found {
            assert!(checksums_are_right(&[&[0; VIRTIO_HEADER_BYTES][..], packet].concat()));
        }
    }
}
