//! The network without its wires: takes frames, decides their fate, gives them back when they arrive. Pure: time and
//! randomness are arguments.
//!
//! What happens to a packet, in this order: block, path MTU, loss, duplication, corruption, the links it crosses one
//! after the other, delay. A segmented frame stays in one piece unless its packets have fates of their own or it would
//! be felt as a burst.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use rand::Rng;

use crate::checksum;
use crate::counters::{Counters, PairCounters};
use crate::fragment::fragments;
use crate::link::LinkCounters;
use crate::overlay::{ImposedId, Part, Treatment};
use crate::packet::{self, FRAME_BYTES_MAX, OnWire, VIRTIO_HEADER_BYTES};
use crate::policy::{Block, Path, Policy, Rule};
use crate::prefix::Prefix;
use crate::queue::{Queue, Travelling};
use crate::reset;
use crate::router::{LastLink, Pair, PortId, Router, Sending, Unroutable};
use crate::segment::{Segments, flip_bit};

/// A frame longer than this is handed on in the buffer it was read into; a shorter one is copied, because it would
/// occupy the whole buffer for as long as it travels.
const COPIED_BYTES_MAX: usize = FRAME_BYTES_MAX / 2;

/// Ports, rules, links, and all packets on their way.
#[derive(Debug, Default)]
pub struct Network {
    router: Router,
    queue: Queue,
    /// What went through so far. The caller counts what it delivers, and what it could not.
    pub counters: Counters,
    /// By the count's number.
    pairs: BTreeMap<usize, PairCounters>,
}

/// From whom to whom, and when.
#[derive(Debug, Clone, Copy)]
struct Departure {
    from: PortId,
    to: PortId,
    now_ns: u64,
}

impl Network {
    /// Adds a port. An address that another port still holds moves to the new one.
    pub fn attach(&mut self, place: Path, addresses: Vec<IpAddr>) -> PortId {
        self.router.attach(place, addresses)
    }

    /// Says which networks lie behind a port, in place of those that did.
    pub fn route(&mut self, port: PortId, behind: Vec<Prefix>) {
        self.router.route(port, behind);
    }

    /// Takes a port away; packets on their way to it are lost, and those that have not left its own network card.
    pub fn detach(&mut self, port: PortId, now_ns: u64) {
        self.router.detach(port);
        let is_lost = |sending: &Sending| {
            sending.to == port || sending.from == port && sending.leaves_sender_ns > now_ns
        };
        self.counters.port_gone_packets += self.queue.forget(is_lost);
    }

    /// A port is at another place from here on; packets on their way to it still reach it.
    pub fn relocate(&mut self, port: PortId, place: Path) {
        self.router.relocate(port, place);
    }

    /// Where a port is; `None` when it is gone.
    #[must_use]
    pub fn place(&self, port: PortId) -> Option<&[String]> {
        self.router.place(port)
    }

    /// Replaces all rules; what is imposed stands. Packets already on their way keep the arrival they were given.
    pub fn set_policy(&mut self, policy: Policy) {
        self.router.set_policy(policy);
    }

    /// Lays rules over everything, later ones over earlier ones. What waits before a link of a way that is blocked now goes no
    /// further.
    pub fn impose(&mut self, rules: Vec<Rule>, now_ns: u64) -> Vec<ImposedId> {
        let blocks = rules.iter().any(|rule| rule.block.is_some_and(|block| block != Block::Open));
        let ids = self.router.impose(rules);
        if blocks {
            let Network { router, queue, counters, .. } = self;
            // For counts of pairs they have passed: all that chance could do to them is done.
            counters.blocked_packets += queue.forget(|sending| {
                sending.is_in_a_link(now_ns)
                    && router
                        .treatment(sending.from, sending.to)
                        .is_some_and(|number| router.treatments[number].block != Block::Open)
            });
        }
        ids
    }

    /// Takes imposed rules away again. What waits before a link that is gone with them goes on at once.
    pub fn lift(&mut self, ids: &[ImposedId], now_ns: u64) {
        let gone = self.router.lift(ids);
        if gone.is_empty() {
            return;
        }
        let is_gone = |last: LastLink| gone.contains(&last.number);
        self.queue
            .hasten(now_ns, |sending| sending.is_in_a_link(now_ns) && sending.last_link.is_some_and(is_gone));
    }

    /// Begins to count the packets of pairs of places, each pair from nothing.
    pub fn count(&mut self, pairs: Vec<(Path, Path)>) -> Vec<usize> {
        let numbers = self.router.count(pairs);
        self.pairs.extend(numbers.iter().map(|number| (*number, PairCounters::default())));
        numbers
    }

    /// What has been counted so far, in the order of the numbers given.
    #[must_use]
    pub fn counted(&self, numbers: &[usize]) -> Vec<PairCounters> {
        numbers.iter().map(|number| self.pairs.get(number).copied().unwrap_or_default()).collect()
    }

    /// Ends counts.
    pub fn end_counts(&mut self, numbers: &[usize]) {
        self.router.end_counts(numbers);
        self.pairs.retain(|number, _| !numbers.contains(number));
    }

    /// The pairs among these ports of whose packets nothing is asked, neither by a rule nor by whoever watches.
    pub fn unconditioned(
        &mut self,
        able: &BTreeSet<PortId>,
        is_watched: impl Fn(&[String], &[String]) -> bool,
    ) -> BTreeSet<Pair> {
        self.router.unconditioned(able, is_watched)
    }

    /// What each link has done by `now_ns`.
    pub fn link_counters(&mut self, now_ns: u64) -> BTreeMap<String, LinkCounters> {
        self.router.overlay.links.counters(now_ns)
    }

    /// How many frames are on their way.
    #[must_use]
    pub fn travelling(&self) -> usize {
        self.queue.len()
    }

    /// When [`Network::arrived`] has something next.
    #[must_use]
    pub fn next_arrival_ns(&self) -> Option<u64> {
        self.queue.next_arrival_ns()
    }

    /// Takes the frame in the first `length` bytes of `buffer`, read from `from`. When it arrives at once and as it is,
    /// the answer says where, and it is still in `buffer`; else it is on its way or has met its end. The buffer may
    /// be another one afterwards, of full length.
    pub fn take(
        &mut self,
        from: PortId,
        buffer: &mut Vec<u8>,
        length: usize,
        now_ns: u64,
        random: &mut impl Rng,
    ) -> Option<Sending> {
        let frame = buffer.get(..length)?;
        let wire = packet::on_wire(frame);
        self.counters.frames += 1;
        self.counters.packets += wire.packets;
        self.counters.bytes += wire.bytes;
        let to = match self.router.destination(from, frame) {
            Ok(to) => to,
            Err(Unroutable::Malformed) => {
                self.counters.malformed_packets += wire.packets;
                return None;
            }
            Err(Unroutable::NoSuchAddress) => {
                self.counters.no_such_address_packets += wire.packets;
                return None;
            }
        };
        let number = self.router.treatment(from, to)?;
        let departure = Departure { from, to, now_ns };
        let treatment = &self.router.treatments[number];
        tally(&mut self.pairs, treatment, |pair| pair.packets += wire.packets);
        let is_burst = wire.bytes > treatment.burst_bytes_max || wire.packets > treatment.burst_packets_max;
        let is_split = wire.packets > 1 && is_burst;
        let is_too_big = treatment.mtu_bytes.is_some_and(|mtu| wire.packet_bytes_max > u64::from(mtu));
        if treatment.block != Block::Open || is_too_big || is_split || treatment.is_by_packet() {
            self.take_apart(departure, number, frame, wire, random);
            return None;
        }
        let mut sending = Sending::new(from, to, wire, treatment.delay_ns);
        let arrives_ns = self.onward(&mut sending, now_ns)?;
        if arrives_ns <= now_ns && sending.is_through {
            return Some(sending);
        }
        if length > COPIED_BYTES_MAX {
            let mut taken = std::mem::replace(buffer, self.queue.large_buffer());
            taken.truncate(length);
            self.queue.push_owned(arrives_ns, sending, taken);
        } else {
            self.queue.push(arrives_ns, sending, &buffer[..length]);
        }
        None
    }

    /// The next frame whose way is over by `now_ns`.
    pub fn arrived(&mut self, now_ns: u64) -> Option<Travelling> {
        loop {
            let mut travelling = self.queue.pop_arrived(now_ns)?;
            if travelling.sending.is_through {
                return Some(travelling);
            }
            // It came to its next link when it left the last one, however late we look.
            match self.onward(&mut travelling.sending, travelling.arrives_ns) {
                Some(next_ns) => self.queue.push_owned(next_ns, travelling.sending, travelling.frame),
                None => self.queue.recycle(travelling.frame),
            }
        }
    }

    /// Takes back the buffer of a frame that has arrived.
    pub fn recycle(&mut self, frame: Vec<u8>) {
        self.queue.recycle(frame);
    }

    /// Sends a packet over the next link, or over its last stretch: when it gets there. `None` when a queue was full.
    fn onward(&mut self, sending: &mut Sending, now_ns: u64) -> Option<u64> {
        let mut at_ns = now_ns;
        // Without the port it came from, nothing is known of its links any more; its delay it has with it.
        let treatment = self.router.treatment(sending.from, sending.to);
        let crossings = treatment.map_or(&[][..], |number| &self.router.treatments[number].crossings);
        let mut next = sending.next_crossing(crossings);
        while let Some(crossing) = crossings.get(next) {
            next += 1;
            let Some(link) = self.router.overlay.links.get(crossing.link) else { continue };
            let Some(leaves_ns) = link.take(sending.wire, crossing.queue_limit, at_ns) else {
                self.counters.queue_full_packets += sending.wire.packets;
                return None;
            };
            sending.last_link = Some(LastLink { number: crossing.link, part: crossing.part, leaves_ns });
            sending.is_freed = false;
            if crossing.part == Part::OfSender {
                sending.leaves_sender_ns = leaves_ns;
            }
            if leaves_ns > at_ns && next < crossings.len() {
                // The next link must not see it before others that come to it sooner.
                return Some(leaves_ns);
            }
            at_ns = leaves_ns;
        }
        sending.is_through = true;
        Some(at_ns.saturating_add(sending.delay_ns))
    }

    /// Decides about a frame that does not simply pass as it is.
    fn take_apart(
        &mut self,
        departure: Departure,
        number: usize,
        frame: &[u8],
        wire: OnWire,
        random: &mut impl Rng,
    ) {
        // Cloned, because fates change the network's state; this is not the way most frames go.
        let treatment = self.router.treatments[number].clone();
        if treatment.block != Block::Open {
            self.counters.blocked_packets += wire.packets;
            tally(&mut self.pairs, &treatment, |pair| pair.blocked_packets += wire.packets);
            let answer = (treatment.block == Block::Reset).then(|| reset::refusal(frame)).flatten();
            self.answer(departure, answer);
            return;
        }
        let Some(segments) = Segments::of(frame) else {
            self.take_packet(departure, &treatment, wire, |buffer| buffer.extend_from_slice(frame), random);
            return;
        };
        let header_bytes = wire.packet_bytes_max.saturating_sub(segments.payload_bytes(0) as u64);
        for index in 0..segments.count() {
            let bytes = header_bytes + segments.payload_bytes(index) as u64;
            let wire = OnWire { packets: 1, bytes, packet_bytes_max: bytes };
            self.take_packet(departure, &treatment, wire, |buffer| segments.write(index, buffer), random);
        }
    }

    /// Decides about one packet, which `write` puts into a buffer when it is needed.
    fn take_packet(
        &mut self,
        departure: Departure,
        treatment: &Treatment,
        wire: OnWire,
        write: impl FnOnce(&mut Vec<u8>),
        random: &mut impl Rng,
    ) {
        let mtu_bytes = treatment.mtu_bytes.filter(|mtu| wire.bytes > u64::from(*mtu));
        if mtu_bytes.is_none() && treatment.loss.happens(random) {
            self.counters.lost_packets += wire.packets;
            tally(&mut self.pairs, treatment, |pair| pair.lost_packets += wire.packets);
            return;
        }
        let mut frame = self.queue.buffer();
        write(&mut frame);
        let Some(mtu_bytes) = mtu_bytes else {
            self.multiply(departure, treatment, wire, frame, random);
            return;
        };
        checksum::complete(&mut frame);
        let whole_only = packet::layout(&frame[VIRTIO_HEADER_BYTES..]).is_none_or(|layout| layout.whole_only);
        let pieces = if whole_only { Vec::new() } else { fragments(&frame, mtu_bytes as usize) };
        if pieces.is_empty() {
            self.counters.too_big_packets += wire.packets;
            tally(&mut self.pairs, treatment, |pair| pair.too_big_packets += wire.packets);
            self.answer(departure, reset::too_big(&frame, mtu_bytes));
        }
        let more = (pieces.len() as u64).saturating_sub(1);
        self.counters.fragment_packets += more;
        tally(&mut self.pairs, treatment, |pair| pair.fragment_packets += more);
        for piece in pieces {
            let bytes = (piece.len() - VIRTIO_HEADER_BYTES) as u64;
            let wire = OnWire { packets: 1, bytes, packet_bytes_max: bytes };
            if treatment.loss.happens(random) {
                self.counters.lost_packets += 1;
                tally(&mut self.pairs, treatment, |pair| pair.lost_packets += 1);
            } else {
                self.multiply(departure, treatment, wire, piece, random);
            }
        }
        self.queue.recycle(frame);
    }

    /// Sends a packet that was not lost on its way, perhaps twice.
    fn multiply(
        &mut self,
        departure: Departure,
        treatment: &Treatment,
        wire: OnWire,
        frame: Vec<u8>,
        random: &mut impl Rng,
    ) {
        if treatment.duplicate.happens(random) {
            self.counters.duplicated_packets += wire.packets;
            tally(&mut self.pairs, treatment, |pair| pair.duplicated_packets += wire.packets);
            let mut second = self.queue.buffer();
            second.extend_from_slice(&frame);
            self.depart(departure, treatment, wire, second, random);
        }
        self.depart(departure, treatment, wire, frame, random);
    }

    fn depart(
        &mut self,
        departure: Departure,
        treatment: &Treatment,
        wire: OnWire,
        mut frame: Vec<u8>,
        random: &mut impl Rng,
    ) {
        if treatment.corrupt.happens(random) {
            self.counters.corrupted_packets += 1;
            tally(&mut self.pairs, treatment, |pair| pair.corrupted_packets += 1);
            flip_bit(&mut frame, random.next_u64());
        }
        let delay_ns = if treatment.reorder.happens(random) {
            self.counters.overtaking_packets += 1;
            tally(&mut self.pairs, treatment, |pair| pair.overtaking_packets += 1);
            0
        } else {
            match treatment.jitter {
                Some(jitter) => jitter.draw_ns(treatment.delay_ns, random),
                None => treatment.delay_ns,
            }
        };
        let Departure { from, to, now_ns } = departure;
        let mut sending = Sending::new(from, to, wire, delay_ns);
        match self.onward(&mut sending, now_ns) {
            Some(arrives_ns) => self.queue.push_owned(arrives_ns, sending, frame),
            None => self.queue.recycle(frame),
        }
    }

    /// Sends the network's own answer back to the sender, at once and over no link.
    fn answer(&mut self, departure: Departure, answer: Option<Vec<u8>>) {
        let Some(frame) = answer else { return };
        self.counters.answer_packets += 1;
        let wire = packet::on_wire(&frame);
        let sending = Sending { is_through: true, ..Sending::new(departure.to, departure.from, wire, 0) };
        self.queue.push_owned(departure.now_ns, sending, frame);
    }
}

/// Enters what became of a packet wherever its pair of places is counted.
fn tally(
    pairs: &mut BTreeMap<usize, PairCounters>,
    treatment: &Treatment,
    enter: impl Fn(&mut PairCounters),
) {
    for number in &treatment.counted_in {
        if let Some(pair) = pairs.get_mut(number) {
            enter(pair);
        }
    }
}
