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
    /// Bytes read, virtio headers left out.
    pub bytes: u64,
    /// Packets delivered.
    pub delivered_packets: u64,
    /// Packets for an address nobody has.
    pub no_such_address_packets: u64,
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

/// Ports, their addresses and places, and the policy between them.
#[derive(Debug, Default)]
pub struct Router {
    ports: BTreeMap<PortId, Port>,
    by_address: HashMap<IpAddr, PortId>,
    policy: Policy,
    /// Delay by pair, filled as pairs are used and emptied when a rule or a port changes.
    delays_ns: HashMap<(PortId, PortId), u64>,
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
        self.delays_ns.retain(|(from, to), _| *from != port && *to != port);
    }

    /// Replaces all rules. Packets already on their way keep the arrival they were given.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
        self.delays_ns.clear();
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
        let delay_ns = self.delay_ns(from, to);
        let sending = Sending { from, to, wire_packets: packet::wire_packets(frame) };
        Routed::Arrives(now_ns.saturating_add(delay_ns), sending)
    }

    fn delay_ns(&mut self, from: PortId, to: PortId) -> u64 {
        if let Some(delay_ns) = self.delays_ns.get(&(from, to)) {
            return *delay_ns;
        }
        let (Some(source), Some(destination)) = (self.ports.get(&from), self.ports.get(&to)) else { return 0 };
        let delay = self.policy.delay(&source.place, &destination.place);
        let delay_ns = u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX);
        self.delays_ns.insert((from, to), delay_ns);
        delay_ns
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
        let rule = Rule { from: vec!["dc1".into()], to: vec!["dc2".into()], delay: Duration::from_millis(50) };
        router.set_policy(Policy { rules: vec![rule] });
        (router, one, two)
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
