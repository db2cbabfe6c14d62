//! Where a packet goes and how long it takes: addresses to ports, and the policy between their places. Pure.
//!
//! Invariant: a packet is delivered to at most one port, and never to the one it came from.

use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;

use crate::packet;
use crate::policy::{Path, Policy};

/// A port of the fabric. Never reused within a run, so that a late packet cannot reach a successor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub u32);

/// A packet that has been let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sending {
    /// The port it came from.
    pub from: PortId,
    /// The port it goes to.
    pub to: PortId,
    /// How many packets it is on the wire.
    pub wire_packets: u64,
}

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Routed {
    /// It arrives at this moment, nanoseconds on the caller's clock.
    Arrives(u64, Sending),
    /// The queue before a link with a rate is full.
    QueueFull,
    /// Nobody has its destination address now: it is lost, as on a network with nobody there.
    NoSuchAddress,
    /// It is no IP packet, or its source address is not one of its port's.
    Malformed,
}

/// What went through the fabric and what did not. Packets are counted as on the wire.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames read (a segmented frame is one).
    pub frames: u64,
    /// Packets read.
    pub packets: u64,
    /// Bytes read, as on the wire, IP headers included.
    pub bytes: u64,
    /// Packets delivered.
    pub delivered_packets: u64,
    /// Packets for an address nobody has.
    pub no_such_address_packets: u64,
    /// Packets for which a link's queue had no room.
    pub queue_full_packets: u64,
    /// Packets on their way to a port that went away.
    pub port_gone_packets: u64,
    /// Packets the receiving interface refused.
    pub refused_packets: u64,
    /// Frames that made no sense.
    pub malformed_frames: u64,
}

#[derive(Debug)]
struct Port {
    place: Path,
    addresses: Vec<IpAddr>,
}

/// What the policy says about one pair of ports.
#[derive(Debug, Clone, Copy)]
struct Pair {
    delay_ns: u64,
    /// Number of the rule whose rate holds.
    rate_rule: Option<usize>,
}

/// A link's queue holds at least so much,
const QUEUE_BYTES_MIN: u64 = 256 * 1024;
/// and at least what the link carries in this time: what a router of the field has as a rule.
const QUEUE_TIME_NS: u64 = 50_000_000;

/// Ports, their addresses and places, and the policy between them.
#[derive(Debug, Default)]
pub struct Router {
    ports: BTreeMap<PortId, Port>,
    by_address: HashMap<IpAddr, PortId>,
    policy: Policy,
    /// By pair, filled as pairs are used and emptied when a rule or a port changes.
    pairs: HashMap<(PortId, PortId), Pair>,
    /// By rule: when its link has sent all it has taken.
    free_ns: HashMap<usize, u64>,
    next_port: u32,
}

impl Router {
    /// Adds a port. An address that another port still holds moves to the new one.
    pub fn attach(&mut self, place: Path, addresses: Vec<IpAddr>) -> PortId {
        let port = PortId(self.next_port);
        self.next_port += 1;
        for address in &addresses {
            self.by_address.insert(*address, port);
        }
        self.ports.insert(port, Port { place, addresses });
        port
    }

    /// Takes a port away; its addresses fall silent, unless another port has taken them over.
    pub fn detach(&mut self, port: PortId) {
        let Some(gone) = self.ports.remove(&port) else { return };
        for address in gone.addresses {
            if self.by_address.get(&address) == Some(&port) {
                self.by_address.remove(&address);
            }
        }
        self.pairs.retain(|(from, to), _| *from != port && *to != port);
    }

    /// Replaces all rules. Packets already on their way keep the arrival they were given.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
        self.pairs.clear();
        self.free_ns.clear();
    }

    /// Decides about one frame read from `from` at `now_ns`.
    pub fn route(&mut self, from: PortId, frame: &[u8], now_ns: u64) -> Routed {
        let Some(addresses) = packet::addresses(frame) else { return Routed::Malformed };
        let Some(source) = self.ports.get(&from) else { return Routed::Malformed };
        if !source.addresses.contains(&addresses.source) {
            return Routed::Malformed;
        }
        let Some(&to) = self.by_address.get(&addresses.destination) else { return Routed::NoSuchAddress };
        if to == from {
            return Routed::NoSuchAddress;
        }
        let wire = packet::on_wire(frame);
        let pair = self.pair(from, to);
        let sent_ns = match pair.rate_rule {
            None => now_ns,
            Some(rule) => match self.send_over(rule, wire.bytes, now_ns) {
                Some(sent_ns) => sent_ns,
                None => return Routed::QueueFull,
            },
        };
        let sending = Sending { from, to, wire_packets: wire.packets };
        Routed::Arrives(sent_ns.saturating_add(pair.delay_ns), sending)
    }

    fn pair(&mut self, from: PortId, to: PortId) -> Pair {
        if let Some(pair) = self.pairs.get(&(from, to)) {
            return *pair;
        }
        let (Some(source), Some(destination)) = (self.ports.get(&from), self.ports.get(&to)) else {
            return Pair { delay_ns: 0, rate_rule: None };
        };
        let delay = self.policy.delay(&source.place, &destination.place);
        let rate_rule = self.policy.rate_rule(&source.place, &destination.place);
        let pair = Pair { delay_ns: u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX), rate_rule };
        self.pairs.insert((from, to), pair);
        pair
    }

    /// When the last bit of so many bytes has left over the rule's link, behind everything it has taken before;
    /// `None` when its queue has no room.
    fn send_over(&mut self, rule: usize, bytes: u64, now_ns: u64) -> Option<u64> {
        let rate = self.policy.rules.get(rule)?.rate_bits_per_s?.max(1);
        let bits_in = |time_ns: u64| u128::from(time_ns) * u128::from(rate) / 1_000_000_000;
        let begins_ns = self.free_ns.get(&rule).copied().unwrap_or(0).max(now_ns);
        let room_bits = u128::from(QUEUE_BYTES_MIN * 8).max(bits_in(QUEUE_TIME_NS));
        if bits_in(begins_ns - now_ns) > room_bits {
            return None;
        }
        let takes_ns = u128::from(bytes) * 8 * 1_000_000_000 / u128::from(rate);
        let ends_ns = begins_ns.saturating_add(u64::try_from(takes_ns).unwrap_or(u64::MAX));
        self.free_ns.insert(rule, ends_ns);
        Some(ends_ns)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::packet::VIRTIO_HEADER_BYTES;
    use crate::policy::Rule;

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    fn frame(source: u8, destination: u8) -> Vec<u8> {
        let mut frame = vec![0; VIRTIO_HEADER_BYTES + 20];
        let packet = &mut frame[VIRTIO_HEADER_BYTES..];
        packet[0] = 0x45;
        packet[12..16].copy_from_slice(&[10, 0, 0, source]);
        packet[16..20].copy_from_slice(&[10, 0, 0, destination]);
        frame
    }

    /// Ports 1 and 2 in dc1 and dc2, 50 ms from the first to the second only.
    fn two_places() -> (Router, PortId, PortId) {
        let mut router = Router::default();
        let one = router.attach(vec!["dc1".into()], vec![address(1)]);
        let two = router.attach(vec!["dc2".into()], vec![address(2)]);
        router.set_policy(dc1_to_dc2(Some(Duration::from_millis(50)), None));
        (router, one, two)
    }

    fn dc1_to_dc2(delay: Option<Duration>, rate_bits_per_s: Option<u64>) -> Policy {
        let rule = Rule { from: vec!["dc1".into()], to: vec!["dc2".into()], delay, rate_bits_per_s };
        Policy { rules: vec![rule] }
    }

    #[test]
    fn a_link_carries_what_its_rate_says_and_no_more() {
        let (mut router, one, _) = two_places();
        // 20 bytes at 160 bit/s take a second each.
        router.set_policy(dc1_to_dc2(None, Some(160)));
        let arrivals: Vec<u64> = (0..3)
            .map(|_| match router.route(one, &frame(1, 2), 5) {
                Routed::Arrives(at, _) => at,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(arrivals, [1_000_000_005, 2_000_000_005, 3_000_000_005]);
    }

    #[test]
    fn a_link_that_has_been_idle_owes_nothing() {
        let (mut router, one, two) = two_places();
        router.set_policy(dc1_to_dc2(None, Some(160)));
        let _ = router.route(one, &frame(1, 2), 0);
        let sending = Sending { from: one, to: two, wire_packets: 1 };
        assert_eq!(router.route(one, &frame(1, 2), 9_000_000_000), Routed::Arrives(10_000_000_000, sending));
    }

    #[test]
    fn a_full_queue_takes_nothing_more() {
        let (mut router, one, _) = two_places();
        router.set_policy(dc1_to_dc2(None, Some(160)));
        let taken =
            (0..20_000).filter(|_| router.route(one, &frame(1, 2), 0) != Routed::QueueFull).count() as u64;
        let room = QUEUE_BYTES_MIN / 20;
        assert!((room..=room + 2).contains(&taken), "{taken} of {room}");
    }

    #[test]
    fn a_packet_takes_as_long_as_its_direction_says() {
        let (mut router, one, two) = two_places();
        let there = router.route(one, &frame(1, 2), 1_000);
        assert_eq!(there, Routed::Arrives(50_001_000, Sending { from: one, to: two, wire_packets: 1 }));
        let back = router.route(two, &frame(2, 1), 1_000);
        assert_eq!(back, Routed::Arrives(1_000, Sending { from: two, to: one, wire_packets: 1 }));
    }

    #[test]
    fn a_detached_address_is_silent() {
        let (mut router, one, two) = two_places();
        router.detach(two);
        assert_eq!(router.route(one, &frame(1, 2), 0), Routed::NoSuchAddress);
    }

    #[test]
    fn an_address_keeps_working_after_its_old_port_is_detached_late() {
        let (mut router, one, two) = two_places();
        let again = router.attach(vec!["dc1".into()], vec![address(2)]);
        router.detach(two);
        let sending = Sending { from: one, to: again, wire_packets: 1 };
        assert_eq!(router.route(one, &frame(1, 2), 0), Routed::Arrives(0, sending));
    }

    #[test]
    fn a_forged_source_address_is_not_carried() {
        let (mut router, one, _) = two_places();
        assert_eq!(router.route(one, &frame(7, 2), 0), Routed::Malformed);
    }

    proptest! {
        #[test]
        fn any_frame_is_routed_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100), now in any::<u64>()) {
            let (mut router, one, _) = two_places();
            let _ = router.route(one, &bytes, now);
        }
    }
}
