//! A link with a rate and a queue, and what it has carried. Pure: time is an argument.
//!
//! A packet is taken when it comes, waits behind all taken before it, and has left when its last bit has. A full queue
//! drops what comes. Order in time is expected of the caller, not required.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::packet::OnWire;
use crate::policy::QueueLimit;

/// A link's queue holds at least so much where no limit is asked for,
const QUEUE_BYTES_MIN: u64 = 256 * 1024;
/// and at least what the link carries in this time: what a router of the field has as a rule.
const QUEUE_TIME_NS: u64 = 50_000_000;
/// Bytes a packet is thought to have where a limit counts packets.
const PACKET_BYTES: u64 = 1500;
/// A segmented frame may occupy a link in one piece for this long; a longer one is sent packet by packet.
const BURST_NS: u64 = 1_000_000;

const NS_PER_S: u128 = 1_000_000_000;

/// What a link has done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Its capacity; without one it only counts.
    pub rate_bits_per_s: Option<u64>,
    /// Packets it has taken.
    pub taken_packets: u64,
    /// Bytes of IP packets it has taken.
    pub taken_bytes: u64,
    /// Packets that found its queue full.
    pub dropped_packets: u64,
    /// Bytes of IP packets that found its queue full.
    pub dropped_bytes: u64,
    /// Bytes taken that have not left yet.
    pub waiting_bytes: u64,
    /// How long it has been sending, in nanoseconds: utilisation is this over time.
    pub busy_ns: u64,
}

/// A batch of packets on its way over the link.
#[derive(Debug, Clone, Copy)]
struct Leaving {
    leaves_ns: u64,
    packets: u64,
    bytes: u64,
}

/// A link that many pairs may share.
#[derive(Debug, Clone)]
pub struct Link {
    rate_bits_per_s: Option<u64>,
    /// When all it has taken has left,
    free_ns: u64,
    /// and what of the last nanosecond is left over, in bits times 10^9 below the rate: so that no rate drifts.
    left_over: u128,
    leaving: VecDeque<Leaving>,
    waiting_packets: u64,
    waiting_bytes: u64,
    sent_ns: u64,
    counters: LinkCounters,
}

impl Link {
    /// An idle link.
    #[must_use]
    pub fn new(rate_bits_per_s: Option<u64>) -> Link {
        Link {
            // A link of no bits a second would divide by it; nobody outlives one bit a second.
            rate_bits_per_s: rate_bits_per_s.map(|rate| rate.max(1)),
            free_ns: 0,
            left_over: 0,
            leaving: VecDeque::new(),
            waiting_packets: 0,
            waiting_bytes: 0,
            sent_ns: 0,
            counters: LinkCounters::default(),
        }
    }

    /// What it carries; without one it only counts.
    #[must_use]
    pub fn rate_bits_per_s(&self) -> Option<u64> {
        self.rate_bits_per_s
    }

    /// What it may have waiting: the limit asked for, or what it has room for where none is.
    #[must_use]
    pub fn room(&self, limit: Option<QueueLimit>) -> Option<QueueLimit> {
        let rate = self.rate_bits_per_s?;
        Some(limit.unwrap_or(QueueLimit::Bytes(QUEUE_BYTES_MIN.max(bytes_in(QUEUE_TIME_NS, rate)))))
    }

    /// When the last bit of what comes at `now_ns` has left; `None` when its queue has no room.
    pub fn take(&mut self, wire: OnWire, limit: Option<QueueLimit>, now_ns: u64) -> Option<u64> {
        let Some(rate) = self.rate_bits_per_s else {
            self.count(wire);
            return Some(now_ns);
        };
        self.settle(now_ns);
        if !self.has_room(wire, limit, rate) {
            self.counters.dropped_packets += wire.packets;
            self.counters.dropped_bytes += wire.bytes;
            return None;
        }
        if self.free_ns <= now_ns {
            (self.free_ns, self.left_over) = (now_ns, 0);
        }
        let bits = u128::from(wire.bytes) * 8 * NS_PER_S + self.left_over;
        let takes_ns = u64::try_from(bits / u128::from(rate)).unwrap_or(u64::MAX);
        self.left_over = bits % u128::from(rate);
        self.free_ns = self.free_ns.saturating_add(takes_ns);
        self.sent_ns = self.sent_ns.saturating_add(takes_ns);
        self.leaving.push_back(Leaving { leaves_ns: self.free_ns, packets: wire.packets, bytes: wire.bytes });
        self.waiting_packets += wire.packets;
        self.waiting_bytes += wire.bytes;
        self.count(wire);
        Some(self.free_ns)
    }

    /// Bytes of the largest segmented frame that may cross in one piece: beyond it the burst would be felt.
    #[must_use]
    pub fn burst_bytes_max(&self, limit: Option<QueueLimit>) -> u64 {
        let Some(rate) = self.rate_bits_per_s else { return u64::MAX };
        // A frame that is a good part of the whole queue would be dropped where its packets would have fitted.
        let of_queue = match limit {
            None => u64::MAX,
            Some(QueueLimit::Bytes(bytes)) => bytes / 4,
            Some(QueueLimit::Packets(packets)) => packets.saturating_mul(PACKET_BYTES) / 4,
        };
        of_queue.min(bytes_in(BURST_NS, rate))
    }

    /// Packets of the largest segmented frame that may cross in one piece: of small ones many stand in few bytes.
    #[must_use]
    pub fn burst_packets_max(&self, limit: Option<QueueLimit>) -> u64 {
        match (self.rate_bits_per_s, limit) {
            (Some(_), Some(QueueLimit::Packets(packets))) => packets / 4,
            _ => u64::MAX,
        }
    }

    /// What it has done by `now_ns`.
    pub fn counters(&mut self, now_ns: u64) -> LinkCounters {
        self.settle(now_ns);
        LinkCounters {
            rate_bits_per_s: self.rate_bits_per_s,
            waiting_bytes: self.waiting_bytes,
            busy_ns: self.sent_ns - self.sent_ns.min(self.free_ns.saturating_sub(now_ns)),
            ..self.counters
        }
    }

    fn count(&mut self, wire: OnWire) {
        self.counters.taken_packets += wire.packets;
        self.counters.taken_bytes += wire.bytes;
    }

    /// Forgets what has left by `now_ns`.
    fn settle(&mut self, now_ns: u64) {
        while let Some(first) = self.leaving.front().copied().filter(|first| first.leaves_ns <= now_ns) {
            self.waiting_packets -= first.packets;
            self.waiting_bytes -= first.bytes;
            self.leaving.pop_front();
        }
    }

    fn has_room(&self, wire: OnWire, limit: Option<QueueLimit>, rate: u64) -> bool {
        // What is on the wire already is not in the queue: an idle link takes anything.
        let on_wire = self.leaving.front().copied();
        let queued_bytes = self.waiting_bytes - on_wire.map_or(0, |leaving| leaving.bytes);
        let queued_packets = self.waiting_packets - on_wire.map_or(0, |leaving| leaving.packets);
        match limit {
            _ if on_wire.is_none() => true,
            Some(QueueLimit::Packets(limit)) => queued_packets + wire.packets <= limit,
            Some(QueueLimit::Bytes(limit)) => queued_bytes + wire.bytes <= limit,
            None => queued_bytes + wire.bytes <= QUEUE_BYTES_MIN.max(bytes_in(QUEUE_TIME_NS, rate)),
        }
    }
}

fn bytes_in(time_ns: u64, rate_bits_per_s: u64) -> u64 {
    let bytes = u128::from(time_ns) * u128::from(rate_bits_per_s) / 8 / NS_PER_S;
    u64::try_from(bytes).unwrap_or(u64::MAX)
}

/// All links of the network, by number and by name. A link keeps its number, what waits for it and what it has
/// counted for as long as its name is in use.
#[derive(Debug, Default)]
pub struct Links {
    links: Vec<Option<Link>>,
    by_name: BTreeMap<String, usize>,
}

impl Links {
    /// The number of the link with this name, which from now on has this rate.
    pub fn put(&mut self, name: &str, rate_bits_per_s: Option<u64>) -> usize {
        if let Some(number) = self.by_name.get(name).copied() {
            if let Some(link) = self.links[number].as_mut() {
                link.rate_bits_per_s = rate_bits_per_s.map(|rate| rate.max(1));
            }
            return number;
        }
        self.links.push(Some(Link::new(rate_bits_per_s)));
        self.by_name.insert(name.to_owned(), self.links.len() - 1);
        self.links.len() - 1
    }

    /// The link with this number, if it is still there.
    pub fn get(&mut self, number: usize) -> Option<&mut Link> {
        self.links.get_mut(number)?.as_mut()
    }

    /// The same, only to look at.
    #[must_use]
    pub fn look_at(&self, number: usize) -> Option<&Link> {
        self.links.get(number)?.as_ref()
    }

    /// Removes every link whose name is not wanted any more. Their numbers.
    pub fn keep_only(&mut self, wanted: impl Fn(&str) -> bool) -> BTreeSet<usize> {
        let mut gone = BTreeSet::new();
        let links = &mut self.links;
        self.by_name.retain(|name, number| {
            let stays = wanted(name);
            if !stays {
                links[*number] = None;
                gone.insert(*number);
            }
            stays
        });
        gone
    }

    /// What each link has done by `now_ns`.
    pub fn counters(&mut self, now_ns: u64) -> BTreeMap<String, LinkCounters> {
        let links = &mut self.links;
        let named = self.by_name.iter().filter_map(|(name, number)| {
            let link = links[*number].as_mut()?;
            Some((name.clone(), link.counters(now_ns)))
        });
        named.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(packets: u64, bytes: u64) -> OnWire {
        OnWire { packets, bytes, packet_bytes_max: bytes }
    }

    #[test]
    fn a_link_carries_its_rate_within_two_percent_at_every_size() {
        for rate in [1_000_000, 10_000_000, 1_000_000_000, 5_000_000_000u64] {
            for bytes in [40, 1500, 9000] {
                let mut link = Link::new(Some(rate));
                // Offered half as much again as it can carry, for the time of 10 000 packets.
                let interval_ns = (bytes * 8) as f64 * 1e9 / (rate as f64 * 1.5);
                let end_ns = (interval_ns * 1.5 * 10_000.0) as u64;
                let mut sent_bytes = 0;
                for offered in 0..15_000 {
                    let now_ns = (f64::from(offered) * interval_ns) as u64;
                    let leaves_ns = link.take(wire(1, bytes), Some(QueueLimit::Packets(10)), now_ns);
                    if leaves_ns.is_some_and(|leaves_ns| leaves_ns <= end_ns) {
                        sent_bytes += bytes;
                    }
                }
                let ratio = (sent_bytes * 8) as f64 * 1e9 / end_ns as f64 / rate as f64;
                assert!((0.98..=1.02).contains(&ratio), "{rate} bit/s in {bytes} bytes: {ratio}");
            }
        }
    }

    #[test]
    fn a_link_that_has_been_idle_owes_nothing() {
        let mut link = Link::new(Some(8));
        assert_eq!(link.take(wire(1, 1), None, 0), Some(1_000_000_000));
        assert_eq!(link.take(wire(1, 1), None, 9_000_000_000), Some(10_000_000_000));
    }

    #[test]
    fn a_full_queue_takes_nothing_more_until_something_has_left() {
        for limit in [QueueLimit::Packets(2), QueueLimit::Bytes(25)] {
            let mut link = Link::new(Some(80));
            // One on the wire, two waiting.
            let taken: Vec<bool> = (0..5).map(|_| link.take(wire(1, 10), Some(limit), 0).is_some()).collect();
            assert_eq!(taken, [true, true, true, false, false], "{limit:?}");
            assert_eq!(link.take(wire(1, 10), Some(limit), 1_000_000_000), Some(4_000_000_000));
            let counters = link.counters(1_500_000_000);
            assert_eq!((counters.taken_packets, counters.dropped_packets), (4, 2));
            assert_eq!((counters.waiting_bytes, counters.busy_ns), (30, 1_500_000_000));
        }
    }

    #[test]
    fn a_queue_without_a_limit_holds_what_a_router_would() {
        let mut link = Link::new(Some(8));
        let taken = (0..1000).filter(|_| link.take(wire(1, 1000), None, 0).is_some()).count() as u64;
        assert_eq!(taken, 1 + QUEUE_BYTES_MIN / 1000);
    }

    #[test]
    fn a_rate_that_divides_badly_does_not_drift() {
        let mut link = Link::new(Some(3_000_000_000));
        let last =
            (0..3_000_000).filter_map(|_| link.take(wire(1, 1), Some(QueueLimit::Bytes(u64::MAX)), 0)).last();
        assert_eq!(last, Some(8_000_000));
    }

    #[test]
    fn a_link_keeps_its_counters_while_its_name_is_in_use() {
        let mut links = Links::default();
        let number = links.put("edge", None);
        let _ = links.get(number).and_then(|link| link.take(wire(1, 100), None, 0));
        assert_eq!(links.put("edge", Some(8)), number);
        links.keep_only(|name| name == "edge");
        assert_eq!(links.counters(0)["edge"].taken_bytes, 100);
        links.keep_only(|_| false);
        assert!(links.counters(0).is_empty() && links.get(number).is_none());
    }
}
