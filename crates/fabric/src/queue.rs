//! Packets on their way: ordered by the moment they arrive, and among equals by the order they were sent. Pure.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::router::{PortId, Sending};

/// A packet on its way.
#[derive(Debug, PartialEq, Eq)]
pub struct Travelling {
    /// When it arrives, nanoseconds on the caller's clock.
    pub arrives_ns: u64,
    sequence: u64,
    /// What it is and where it goes.
    pub sending: Sending,
    /// Its bytes.
    pub frame: Vec<u8>,
}

impl Ord for Travelling {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        (self.arrives_ns, self.sequence).cmp(&(other.arrives_ns, other.sequence))
    }
}

impl PartialOrd for Travelling {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// All packets on their way, and spare buffers so that a busy network allocates nothing.
#[derive(Debug, Default)]
pub struct Queue {
    heap: BinaryHeap<Reverse<Travelling>>,
    sequence: u64,
    spare: Vec<Vec<u8>>,
}

/// Buffers kept for reuse at most; beyond that memory goes back.
const SPARE_BUFFERS_MAX: usize = 256;

impl Queue {
    /// Sends a copy of `frame` on its way.
    pub fn push(&mut self, arrives_ns: u64, sending: Sending, frame: &[u8]) {
        let mut buffer = self.spare.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(frame);
        self.sequence += 1;
        self.heap.push(Reverse(Travelling { arrives_ns, sequence: self.sequence, sending, frame: buffer }));
    }

    /// When the next packet arrives.
    #[must_use]
    pub fn next_arrival_ns(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse(travelling)| travelling.arrives_ns)
    }

    /// The next packet that has arrived by `now_ns`.
    pub fn pop_arrived(&mut self, now_ns: u64) -> Option<Travelling> {
        if self.next_arrival_ns()? > now_ns {
            return None;
        }
        self.heap.pop().map(|Reverse(travelling)| travelling)
    }

    /// Takes a packet's buffer back for reuse.
    pub fn recycle(&mut self, frame: Vec<u8>) {
        if self.spare.len() < SPARE_BUFFERS_MAX {
            self.spare.push(frame);
        }
    }

    /// Forgets every packet on its way to `port`: their destination is gone.
    pub fn forget(&mut self, port: PortId) -> usize {
        let before = self.heap.len();
        self.heap.retain(|Reverse(travelling)| travelling.sending.to != port);
        before - self.heap.len()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn to(port: u32) -> Sending {
        Sending { from: PortId(0), to: PortId(port), wire_packets: 1 }
    }

    #[test]
    fn nothing_arrives_before_its_time() {
        let mut queue = Queue::default();
        queue.push(100, to(1), b"x");
        assert!(queue.pop_arrived(99).is_none());
        assert!(queue.pop_arrived(100).is_some());
    }

    #[test]
    fn packets_to_a_port_that_is_gone_are_forgotten() {
        let mut queue = Queue::default();
        queue.push(1, to(1), b"x");
        queue.push(2, to(2), b"y");
        assert_eq!(queue.forget(PortId(1)), 1);
        assert_eq!(queue.pop_arrived(9).map(|travelling| travelling.sending.to), Some(PortId(2)));
    }

    proptest! {
        #[test]
        fn packets_arrive_in_order_of_time_and_then_of_sending(times in proptest::collection::vec(0u64..20, 0..100)) {
            let mut queue = Queue::default();
            for (index, time) in times.iter().enumerate() {
                queue.push(*time, to(1), &(index as u32).to_ne_bytes());
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
