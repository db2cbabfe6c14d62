//! From whom to whom: addresses to ports, ports to places, pairs of places to what happens between them. Pure.
//!
//! Invariant: a packet is delivered to at most one port, and never to the one it came from.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::net::IpAddr;

use crate::overlay::{Crossing, ImposedId, Overlay, Part, Treatment};
use crate::packet::{self, OnWire};
use crate::policy::{Path, Policy, Rule};
use crate::prefix::Prefix;

/// A port of the fabric. Never reused within a run, so that a late packet cannot reach a successor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub u32);

/// Who sends, and to which address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pair {
    /// The port of the sender.
    pub from: PortId,
    /// An address of the receiver.
    pub to: IpAddr,
}

/// A packet, or a segmented frame of several, that has been let through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sending {
    /// The port it came from.
    pub from: PortId,
    /// The port it goes to.
    pub to: PortId,
    /// What it is on the wire.
    pub wire: OnWire,
    /// The link that it crosses, or has crossed last.
    pub(crate) last_link: Option<LastLink>,
    /// When it leaves the network card of the host that it came from; 0 where that is no link.
    pub(crate) leaves_sender_ns: u64,
    /// Whether no link is left on its way.
    pub(crate) is_through: bool,
    /// Whether the link that it was in is there no more.
    pub(crate) is_freed: bool,
    /// How long it still takes behind the last link.
    pub(crate) delay_ns: u64,
}

/// A link that a packet is in, or was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LastLink {
    /// Its number among the links.
    pub(crate) number: usize,
    pub(crate) part: Part,
    /// When its last bit has left.
    pub(crate) leaves_ns: u64,
}

impl Sending {
    /// At the beginning of its way.
    pub(crate) fn new(from: PortId, to: PortId, wire: OnWire, delay_ns: u64) -> Sending {
        Sending {
            from,
            to,
            wire,
            last_link: None,
            leaves_sender_ns: 0,
            is_through: false,
            is_freed: false,
            delay_ns,
        }
    }

    /// Whether it waits before a link, or is on it.
    pub(crate) fn is_in_a_link(&self, now_ns: u64) -> bool {
        self.last_link.is_some_and(|last| last.leaves_ns > now_ns)
    }

    /// The next link of its way, by its place among them. Where the last one is on the way no more, because a rule has changed, it
    /// goes on behind where that was.
    pub(crate) fn next_crossing(&self, crossings: &[Crossing]) -> usize {
        let Some(last) = self.last_link else { return 0 };
        let behind = |at: usize| at + 1;
        let found = crossings.iter().position(|crossing| crossing.link == last.number).map(behind);
        let goes_on = match last.part {
            Part::OfSender | Part::Above => Some(Part::Own),
            // Where it was freed from the pair's link it comes to the one that the pair has now.
            Part::Own if self.is_freed => Some(Part::Own),
            Part::Own => Some(Part::OfReceiver),
            Part::OfReceiver => None,
        };
        let next = || goes_on.and_then(|part| crossings.iter().position(|crossing| crossing.part >= part));
        found.or_else(next).unwrap_or(crossings.len())
    }
}

/// Why a frame has no destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unroutable {
    /// Nobody has its destination address now: it is lost, as on a network with nobody there.
    NoSuchAddress,
    /// It is no IP packet, or its source address is not one of its port's.
    Malformed,
}

#[derive(Debug)]
struct Port {
    place: Path,
    addresses: Vec<IpAddr>,
    /// Networks that lie behind it.
    behind: Vec<Prefix>,
    /// By number of the other port: which treatment packets to it get; [`NOT_YET`] until one is asked for.
    treatments: Vec<u32>,
}

const NOT_YET: u32 = u32::MAX;

/// Ports, their addresses and places, and the policy between them.
#[derive(Debug, Default)]
pub struct Router {
    /// By number of the port.
    ports: Vec<Option<Port>>,
    by_address: HashMap<IpAddr, PortId>,
    /// Networks and the ports that they lie behind, the narrowest first.
    by_prefix: Vec<(Prefix, PortId)>,
    /// The policy and the faults over it.
    pub(crate) overlay: Overlay,
    /// What pairs of ports are treated to, each kind once: a thousand ports make a million pairs, of few kinds. Filled
    /// as pairs are used, emptied when a rule changes.
    pub(crate) treatments: Vec<Treatment>,
    known: BTreeMap<Treatment, u32>,
}

impl Router {
    /// Adds a port. An address that another port still holds moves to the new one.
    pub fn attach(&mut self, place: Path, addresses: Vec<IpAddr>) -> PortId {
        let port = PortId(u32::try_from(self.ports.len()).unwrap_or(u32::MAX));
        for address in &addresses {
            self.by_address.insert(*address, port);
        }
        self.ports.push(Some(Port { place, addresses, behind: Vec::new(), treatments: Vec::new() }));
        port
    }

    /// Says which networks lie behind a port, in place of those that did: packets to their addresses go to it, unless a port
    /// has the address as its own, and it may send from them. A network that lay behind another port moves to this one.
    pub fn route(&mut self, port: PortId, behind: Vec<Prefix>) {
        let Some(found) = self.ports.get_mut(port.0 as usize).and_then(Option::as_mut) else { return };
        found.behind.clone_from(&behind);
        self.by_prefix.retain(|(prefix, other)| *other != port && !behind.contains(prefix));
        self.by_prefix.extend(behind.into_iter().map(|prefix| (prefix, port)));
        self.by_prefix.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.bits()));
    }

    /// Takes a port away; its addresses fall silent, unless another port has taken them over.
    pub fn detach(&mut self, port: PortId) {
        let Some(gone) = self.ports.get_mut(port.0 as usize).and_then(Option::take) else { return };
        for address in gone.addresses {
            if self.by_address.get(&address) == Some(&port) {
                self.by_address.remove(&address);
            }
        }
        self.by_prefix.retain(|(_, other)| *other != port);
    }

    /// A port is at another place from here on, its addresses with it. Packets already on their way keep the arrival they were
    /// given.
    pub fn relocate(&mut self, port: PortId, place: Path) {
        if let Some(moved) = self.ports.get_mut(port.0 as usize).and_then(Option::as_mut) {
            moved.place = place;
            self.forget_treatments();
        }
    }

    /// Replaces all rules; what is imposed stands. Packets already on their way keep the arrival they were given.
    pub fn set_policy(&mut self, policy: Policy) {
        self.overlay.set_policy(policy);
        self.forget_treatments();
    }

    /// Lays rules over everything, later ones over earlier ones.
    pub fn impose(&mut self, rules: Vec<Rule>) -> Vec<ImposedId> {
        let ids = self.overlay.impose(rules);
        self.forget_treatments();
        ids
    }

    /// Begins to count the packets of pairs of places.
    pub fn count(&mut self, pairs: Vec<(Path, Path)>) -> Vec<usize> {
        let numbers = self.overlay.count(pairs);
        self.forget_treatments();
        numbers
    }

    /// Ends counts.
    pub fn end_counts(&mut self, numbers: &[usize]) {
        self.overlay.end_counts(numbers);
        self.forget_treatments();
    }

    /// Takes imposed rules away again. The numbers of the links that are gone with them.
    pub fn lift(&mut self, ids: &[ImposedId]) -> BTreeSet<usize> {
        let gone = self.overlay.lift(ids);
        self.forget_treatments();
        gone
    }

    /// The port to which a frame read from `from` goes.
    ///
    /// # Errors
    /// When there is none.
    pub fn destination(&self, from: PortId, frame: &[u8]) -> Result<PortId, Unroutable> {
        let addresses = packet::addresses(frame).ok_or(Unroutable::Malformed)?;
        let source = self.port(from).ok_or(Unroutable::Malformed)?;
        let is_own = source.addresses.contains(&addresses.source)
            || source.behind.iter().any(|prefix| prefix.contains(addresses.source));
        if !is_own {
            return Err(Unroutable::Malformed);
        }
        let to = self.by_address.get(&addresses.destination).copied();
        match to.or_else(|| self.behind_which(addresses.destination)) {
            Some(to) if to != from => Ok(to),
            _ => Err(Unroutable::NoSuchAddress),
        }
    }

    fn behind_which(&self, address: IpAddr) -> Option<PortId> {
        self.by_prefix.iter().find(|(prefix, _)| prefix.contains(address)).map(|(_, port)| *port)
    }

    /// The number, among [`Router::treatments`], of what happens to packets from one port to another; `None` when
    /// one of them is gone.
    pub(crate) fn treatment(&mut self, from: PortId, to: PortId) -> Option<usize> {
        let number = self.port(from)?.treatments.get(to.0 as usize).copied().unwrap_or(NOT_YET);
        if number != NOT_YET {
            return Some(number as usize);
        }
        let (source, destination) = (self.port(from)?.place.clone(), self.port(to)?.place.clone());
        let treatment = self.overlay.treatment(&source, &destination);
        let treatments = &mut self.treatments;
        let number = *self.known.entry(treatment).or_insert_with_key(|treatment| {
            treatments.push(treatment.clone());
            (treatments.len() - 1) as u32
        });
        let row = &mut self.ports.get_mut(from.0 as usize)?.as_mut()?.treatments;
        if row.len() <= to.0 as usize {
            row.resize(to.0 as usize + 1, NOT_YET);
        }
        row[to.0 as usize] = number;
        Some(number as usize)
    }

    /// The pairs among these ports to which nothing happens and which nobody watches. Who is gone is in none, nor who has
    /// lost an address to another port: what it says would come from the wrong place.
    pub(crate) fn unconditioned(
        &mut self,
        able: &BTreeSet<PortId>,
        is_watched: impl Fn(&[String], &[String]) -> bool,
    ) -> BTreeSet<Pair> {
        let held = self.by_address.iter().map(|(address, owner)| (*address, *owner));
        let receivers: Vec<(IpAddr, PortId)> = held.filter(|(_, owner)| able.contains(owner)).collect();
        let mut pairs = BTreeSet::new();
        for from in able.iter().copied().filter(|from| self.holds_its_addresses(*from)).collect::<Vec<_>>() {
            for (to, owner) in receivers.iter().copied().filter(|(_, owner)| *owner != from) {
                let Some(number) = self.treatment(from, owner) else { continue };
                let (Some(source), Some(destination)) = (self.place(from), self.place(owner)) else {
                    continue;
                };
                if self.treatments[number].is_nothing() && !is_watched(source, destination) {
                    pairs.insert(Pair { from, to });
                }
            }
        }
        pairs
    }

    fn holds_its_addresses(&self, port: PortId) -> bool {
        let holds = |address| self.by_address.get(address) == Some(&port);
        self.port(port).is_some_and(|found| found.addresses.iter().all(holds))
    }

    /// Where a port is.
    #[must_use]
    pub fn place(&self, port: PortId) -> Option<&[String]> {
        Some(&self.port(port)?.place)
    }

    fn port(&self, port: PortId) -> Option<&Port> {
        self.ports.get(port.0 as usize)?.as_ref()
    }

    fn forget_treatments(&mut self) {
        self.treatments.clear();
        self.known.clear();
        for port in self.ports.iter_mut().flatten() {
            port.treatments.clear();
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::*;
    use crate::packet::Version;
    use crate::packet::tests::tcp;
    use crate::policy::tests::path;

    pub(crate) fn sending_to(port: u32) -> Sending {
        let wire = OnWire { packets: 1, bytes: 1, packet_bytes_max: 1 };
        Sending::new(PortId(0), PortId(port), wire, 0)
    }

    fn address(last: u8) -> IpAddr {
        IpAddr::from([10, 0, 0, last])
    }

    fn two_places() -> (Router, PortId, PortId) {
        let mut router = Router::default();
        let one = router.attach(path("dc1"), vec![address(1)]);
        let two = router.attach(path("dc2"), vec![address(2)]);
        (router, one, two)
    }

    #[test]
    fn a_detached_address_is_silent() {
        let (mut router, one, two) = two_places();
        router.detach(two);
        let found = router.destination(one, &tcp(Version::V4, 1, 2, b""));
        assert_eq!(found, Err(Unroutable::NoSuchAddress));
    }

    #[test]
    fn an_address_keeps_working_after_its_old_port_is_detached_late() {
        let (mut router, one, two) = two_places();
        let again = router.attach(path("dc1"), vec![address(2)]);
        router.detach(two);
        assert_eq!(router.destination(one, &tcp(Version::V4, 1, 2, b"")), Ok(again));
    }

    #[test]
    fn a_forged_source_address_is_not_carried() {
        let (router, one, _) = two_places();
        assert_eq!(router.destination(one, &tcp(Version::V4, 7, 2, b"")), Err(Unroutable::Malformed));
    }

    #[test]
    fn a_port_with_addresses_of_both_versions_is_found_by_either() {
        let (mut router, one, _) = two_places();
        let v6 = |last: u16| IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, last]);
        let three = router.attach(path("dc1"), vec![address(3), v6(3)]);
        let four = router.attach(path("dc1"), vec![address(4), v6(4)]);
        assert_eq!(router.destination(three, &tcp(Version::V6, 3, 4, b"")), Ok(four));
        assert_eq!(router.destination(three, &tcp(Version::V4, 3, 1, b"")), Ok(one));
    }

    fn network(third: u8, bits: u8) -> Prefix {
        Prefix::new(IpAddr::from([10, 0, third, 0]), bits).expect("a range")
    }

    #[test]
    fn a_network_behind_a_port_is_found_there_and_may_send() {
        let (mut router, one, two) = two_places();
        router.route(two, vec![network(0, 29)]);
        assert_eq!(router.destination(one, &tcp(Version::V4, 1, 7, b"")), Ok(two));
        assert_eq!(router.destination(two, &tcp(Version::V4, 7, 1, b"")), Ok(one));
        assert_eq!(router.destination(two, &tcp(Version::V4, 6, 1, b"")), Ok(one));
        let beyond = router.destination(one, &tcp(Version::V4, 1, 9, b""));
        assert_eq!(beyond, Err(Unroutable::NoSuchAddress));
        assert_eq!(router.destination(two, &tcp(Version::V4, 9, 1, b"")), Err(Unroutable::Malformed));
    }

    #[test]
    fn an_address_of_a_port_comes_before_a_network_and_the_narrowest_network_before_others() {
        let (mut router, one, two) = two_places();
        let three = router.attach(path("dc3"), vec![address(30)]);
        router.route(two, vec![network(0, 24)]);
        router.route(three, vec![network(0, 28)]);
        assert_eq!(router.destination(one, &tcp(Version::V4, 1, 7, b"")), Ok(three));
        assert_eq!(router.destination(one, &tcp(Version::V4, 1, 17, b"")), Ok(two));
        assert_eq!(router.destination(three, &tcp(Version::V4, 30, 1, b"")), Ok(one));
    }

    #[test]
    fn a_network_moves_with_its_port_and_falls_silent_without_one() {
        let (mut router, one, two) = two_places();
        router.route(two, vec![network(0, 29)]);
        let again = router.attach(path("dc2"), vec![address(2)]);
        router.route(again, vec![network(0, 29)]);
        router.detach(two);
        assert_eq!(router.destination(one, &tcp(Version::V4, 1, 7, b"")), Ok(again));
        router.detach(again);
        let found = router.destination(one, &tcp(Version::V4, 1, 7, b""));
        assert_eq!(found, Err(Unroutable::NoSuchAddress));
    }

    #[test]
    fn a_new_rule_holds_for_pairs_that_have_been_used() {
        let (mut router, one, two) = two_places();
        let delay_ns = |router: &mut Router| {
            let number = router.treatment(one, two).expect("both are there");
            router.treatments[number].delay_ns
        };
        assert_eq!(delay_ns(&mut router), 0);
        let ids = router.impose(vec![Rule { delay: Some(Duration::from_nanos(5)), ..Rule::default() }]);
        assert_eq!(delay_ns(&mut router), 5);
        router.lift(&ids);
        assert_eq!(delay_ns(&mut router), 0);
    }

    #[test]
    fn a_port_that_is_put_elsewhere_keeps_its_address_and_has_the_rules_of_its_new_place() {
        let (mut router, one, two) = two_places();
        let delay = |to: &str, nanoseconds| Rule {
            to: path(to),
            delay: Some(Duration::from_nanos(nanoseconds)),
            ..Rule::default()
        };
        let _ = router.impose(vec![delay("dc2", 5), delay("dc3", 7)]);
        let delay_ns = |router: &mut Router| {
            let number = router.treatment(one, two).expect("both are there");
            router.treatments[number].delay_ns
        };
        assert_eq!(delay_ns(&mut router), 5);
        router.relocate(two, path("dc3"));
        assert_eq!(delay_ns(&mut router), 7);
        assert_eq!(router.destination(one, &tcp(Version::V4, 1, 2, b"")), Ok(two));
        router.detach(two);
        router.relocate(two, path("dc1"));
        assert_eq!(router.place(two), None, "what is gone stays gone");
    }

    #[test]
    fn equal_pairs_share_one_treatment() {
        let mut router = Router::default();
        let ports: Vec<PortId> = (0..30).map(|last| router.attach(path("r1"), vec![address(last)])).collect();
        for from in &ports {
            for to in &ports {
                let _ = router.treatment(*from, *to);
            }
        }
        assert_eq!(router.treatments.len(), 1);
    }

    proptest! {
        #[test]
        fn any_frame_is_looked_up_without_panic(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let (router, one, _) = two_places();
            let _ = router.destination(one, &bytes);
        }
    }
}
