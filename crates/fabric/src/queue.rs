//! Packets on their way: ordered by the moment they arrive, and among equals by the order they were sent. Pure.
//!
//! A binary heap of small keys, the packets themselves in slots beside it. No timing wheel: with 100, 10 000 and a
//! million packets on their way, one packet through the whole network takes 0.4, 0.7 and 0.8 us (`cargo bench -p
//! fabric`), of which 0.2 us is not the heap's; the system calls that bring a packet in and out take 5 us. A wheel
//! would also round what here is exact to the nanosecond.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::packet::FRAME_BYTES_MAX;
use crate::router::{LastLink, Sending};

/// A packet on its way.
#[derive(Debug, PartialEq, Eq)]
pub struct Travelling {
    /// When it arrives, nanoseconds on the caller's clock.
    pub arrives_ns: u64,
    /// What it is and where it goes.
    pub sending: Sending,
    /// Its bytes.
    pub frame: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    arrives_ns: u64,
    sequence: u64,
    slot: usize,
}

/// All packets on their way, and spare buffers so that a busy network allocates nothing.
#[derive(Debug, Default)]
pub struct Queue {
    heap: BinaryHeap<Reverse<Key>>,
    slots: Vec<Option<(Sending, Vec<u8>)>>,
    free_slots: Vec<usize>,
    sequence: u64,
    spare: Vec<Vec<u8>>,
    spare_large: Vec<Vec<u8>>,
}

/// Buffers kept for reuse at most; beyond that memory goes back.
const SPARE_BUFFERS_MAX: usize = 256;

impl Queue {
    /// Sends a copy of `frame` on its way.
    pub fn push(&mut self, arrives_ns: u64, sending: Sending, frame: &[u8]) {
        let mut buffer = self.buffer();
        buffer.extend_from_slice(frame);
        self.push_owned(arrives_ns, sending, buffer);
    }

    /// Sends `frame` itself on its way.
    pub fn push_owned(&mut self, arrives_ns: u64, sending: Sending, frame: Vec<u8>) {
        let slot = match self.free_slots.pop() {
            Some(slot) => slot,
            None => {
                self.slots.push(None);
                self.slots.len() - 1
            }
        };
        self.slots[slot] = Some((sending, frame));
        self.sequence += 1;
        self.heap.push(Reverse(Key { arrives_ns, sequence: self.sequence, slot }));
    }

    /// When the next packet arrives.
    #[must_use]
    pub fn next_arrival_ns(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(key)| key.arrives_ns)
    }

    /// The next packet that has arrived by `now_ns`.
    pub fn pop_arrived(&mut self, now_ns: u64) -> Option<Travelling> {
        if self.next_arrival_ns()? > now_ns {
            return None;
        }
        let Reverse(key) = self.heap.pop()?;
        let (sending, frame) = self.slots[key.slot].take()?;
        self.free_slots.push(key.slot);
        Some(Travelling { arrives_ns: key.arrives_ns, sending, frame })
    }

    /// How many packets are on their way.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free_slots.len()
    }

    /// Whether nothing is on its way.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// An empty buffer.
    pub fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// A buffer in which the largest frame fits, whatever its length is now.
    pub fn large_buffer(&mut self) -> Vec<u8> {
        let mut buffer = self.spare_large.pop().unwrap_or_default();
        buffer.resize(FRAME_BYTES_MAX, 0);
        buffer
    }

    /// Takes a packet's buffer back for reuse.
    pub fn recycle(&mut self, mut frame: Vec<u8>) {
        if frame.capacity() >= FRAME_BYTES_MAX {
            if self.spare_large.len() < SPARE_BUFFERS_MAX {
                self.spare_large.push(frame);
            }
        } else if self.spare.len() < SPARE_BUFFERS_MAX {
            frame.clear();
            self.spare.push(frame);
        }
    }

    /// Forgets every packet that is lost. How many they were on the wire.
    pub fn forget(&mut self, mut is_lost: impl FnMut(&Sending) -> bool) -> u64 {
        let mut packets = 0;
        let Queue { heap, slots, free_slots, .. } = self;
        heap.retain(|Reverse(key)| {
            let Some((sending, _)) = slots[key.slot].take_if(|(sending, _)| is_lost(sending)) else {
                return true;
            };
            packets += sending.wire.packets;
            free_slots.push(key.slot);
            false
        });
        packets
    }

    /// Lets packets go on at `now_ns` from where they are: the link that they were in is there no more. Their order stays.
    pub fn hasten(&mut self, now_ns: u64, is_freed: impl Fn(&Sending) -> bool) {
        let mut keys = std::mem::take(&mut self.heap).into_vec();
        for Reverse(key) in &mut keys {
            let Some((sending, _)) = &mut self.slots[key.slot] else { continue };
            if is_freed(sending) {
                (sending.is_through, sending.is_freed) = (false, true);
                sending.last_link = sending.last_link.map(|last| LastLink { leaves_ns: now_ns, ..last });
                key.arrives_ns = now_ns;
            }
        }
        self.heap = keys.into();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::router::PortId;
    use crate::router::tests::sending_to;

    #[test]
    fn nothing_arrives_before_its_time() {
        let mut queue = Queue::default();
        queue.push(100, sending_to(1), b"x");
        assert!(queue.pop_arrived(99).is_none());
        assert!(queue.pop_arrived(100).is_some());
    }

    #[test]
    fn packets_that_are_lost_are_forgotten() {
        let mut queue = Queue::default();
        queue.push(1, sending_to(1), b"x");
        queue.push(2, sending_to(2), b"y");
        assert_eq!(queue.forget(|sending| sending.to == PortId(1)), 1);
        assert_eq!(queue.len(), 1);
        assert_eq!(queue.pop_arrived(9).map(|travelling| travelling.sending.to), Some(PortId(2)));
        assert!(queue.is_empty());
    }

    proptest! {
        #[test]
        fn packets_arrive_in_order_of_time_and_then_of_sending(times in proptest::collection::vec(0u64..20, 0..100)) {
            let mut queue = Queue::default();
            for (index, time) in times.iter().enumerate() {
                queue.push(*time, sending_to(1), &(index as u32).to_ne_bytes());
            }
            let mut expected: Vec<(u64, u32)> =
                times.iter().enumerate().map(|(index, time)| (*time, index as u32)).collect();
            expected.sort_unstable();
            let mut found = Vec::new();
            while let Some(travelling) = queue.pop_arrived(u64::MAX) {
                let index = u32::from_ne_bytes(travelling.frame.as_slice().try_into().expect("four bytes"));
                found.push((travelling.arrives_ns, index));
                queue.recycle(travelling.frame);
            }
            prop_assert_eq!(found, expected);
        }
    }
}
