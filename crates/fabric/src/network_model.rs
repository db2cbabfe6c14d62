//! The network against a model of it: any sequence of ports coming and going, rules, faults and packets; every packet
//! arrives exactly when and where the rules say, and none is unaccounted for.
//!
//! The model knows nothing of caches, queues or split frames: it looks everything up anew for every packet.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::time::Duration;

use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::chance::{Distribution, Jitter, Probability};
use crate::network::Network;
use crate::overlay::ImposedId;
use crate::packet::tests::{make_segmented, tcp, udp};
use crate::packet::{VIRTIO_HEADER_BYTES, Version, layout};
use crate::policy::{Block, Path, Policy, QueueLimit, Rule, SharedLink, Span};
use crate::router::PortId;

const PLACES: [&str; 6] = ["", "a", "b", "a/1", "a/2", "b/1"];
/// Only these have ports.
const PORT_PLACES: [&str; 3] = ["a/1", "a/2", "b/1"];

fn place(number: usize) -> Path {
    crate::policy::tests::path(PLACES[number])
}

#[derive(Debug, Clone)]
enum Step {
    Attach { address: u8, place: usize },
    Detach { address: u8 },
    Policy(Vec<Rule>),
    Impose(Box<Rule>),
    LiftOldest,
    Wait { ns: u64 },
    Send { from: u8, to: u8, payload_bytes: usize },
}

/// Rules whose effect the model knows to the nanosecond.
fn exact_rule() -> impl Strategy<Value = Rule> {
    let property = prop_oneof![
        (0u64..5).prop_map(|us| Rule { delay: Some(Duration::from_micros(us)), ..Rule::default() }),
        // Whole nanoseconds a byte.
        prop_oneof![Just(8_000_000u64), Just(80_000_000), Just(8_000_000_000)]
            .prop_map(|rate| Rule { rate_bits_per_s: Some(rate), ..Rule::default() }),
        prop_oneof![Just(Block::Open), Just(Block::BlackHole)]
            .prop_map(|block| Rule { block: Some(block), ..Rule::default() }),
    ];
    (0..PLACES.len(), 0..PLACES.len(), property).prop_map(|(from, to, rule)| Rule {
        from: place(from),
        to: place(to),
        ..rule
    })
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        2 => (1u8..5, 0..PORT_PLACES.len()).prop_map(|(address, place)| Step::Attach { address, place }),
        1 => (1u8..5).prop_map(|address| Step::Detach { address }),
        1 => proptest::collection::vec(exact_rule(), 0..6).prop_map(Step::Policy),
        1 => exact_rule().prop_map(|rule| Step::Impose(Box::new(rule))),
        1 => Just(Step::LiftOldest),
        3 => (0u64..10_000).prop_map(|ns| Step::Wait { ns }),
        10 => (1u8..5, 1u8..5, 0usize..100)
            .prop_map(|(from, to, payload_bytes)| Step::Send { from, to, payload_bytes }),
    ]
}

/// What is there, as plainly as can be.
#[derive(Default)]
struct Model {
    ports: BTreeMap<u8, (PortId, Path)>,
    policy: Vec<Rule>,
    imposed: Vec<(ImposedId, Rule)>,
    /// By name of the link: when it is free.
    free_ns: BTreeMap<String, u64>,
    /// By number of the packet.
    expected: BTreeMap<u32, Expected>,
}

/// A packet on its way.
#[derive(Clone)]
struct Expected {
    from: PortId,
    to: PortId,
    bytes: u64,
    /// The link it is in, and when it leaves that.
    link: Option<(String, u64)>,
    delay_ns: u64,
    arrives_ns: u64,
}

impl Model {
    fn opinion<T: Copy>(
        &self,
        from: &Path,
        to: &Path,
        of: impl Fn(&Rule) -> Option<T>,
    ) -> Option<(String, T)> {
        let mut best: Option<((u8, usize, usize), String, T)> = None;
        let policy = self.policy.iter().enumerate().map(|(number, rule)| {
            ((0, rule.from.len() + rule.to.len(), number), format!("rule {number}"), rule)
        });
        let imposed = self
            .imposed
            .iter()
            .enumerate()
            .map(|(number, (id, rule))| ((1, number, 0), format!("imposed {}", id.0), rule));
        for (rank, name, rule) in policy.chain(imposed) {
            let covers = from.starts_with(&rule.from) && to.starts_with(&rule.to);
            if let (true, Some(value)) = (covers, of(rule))
                && best.as_ref().is_none_or(|(best, ..)| rank > *best)
            {
                best = Some((rank, name, value));
            }
        }
        best.map(|(_, name, value)| (name, value))
    }

    /// Where these two ports are; none where one is gone.
    fn places(&self, from: PortId, to: PortId) -> Option<(Path, Path)> {
        let place =
            |wanted| self.ports.values().find(|(port, _)| *port == wanted).map(|(_, place)| place.clone());
        Some((place(from)?, place(to)?))
    }

    /// A packet comes to the link between two places, if there is one.
    fn cross(&mut self, places: Option<(Path, Path)>, packet: &mut Expected, now_ns: u64) {
        let rate = places.and_then(|(from, to)| self.opinion(&from, &to, |rule| rule.rate_bits_per_s));
        let mut at_ns = now_ns;
        packet.link = rate.map(|(name, rate)| {
            let free_ns = self.free_ns.entry(name.clone()).or_default();
            at_ns = at_ns.max(*free_ns) + packet.bytes * 8_000_000_000 / rate;
            *free_ns = at_ns;
            (name, at_ns)
        });
        packet.arrives_ns = at_ns + packet.delay_ns;
    }

    /// What is in a link whose way is blocked now goes no further.
    fn cut(&mut self, now_ns: u64) {
        let expected = std::mem::take(&mut self.expected);
        let is_cut = |packet: &Expected| {
            packet.link.as_ref().is_some_and(|(_, leaves_ns)| *leaves_ns > now_ns)
                && self.places(packet.from, packet.to).is_some_and(|(from, to)| {
                    self.opinion(&from, &to, |rule| rule.block).is_some_and(|(_, block)| block != Block::Open)
                })
        };
        self.expected = expected.into_iter().filter(|(_, packet)| !is_cut(packet)).collect();
    }

    /// What is in a link that is gone goes on at once, in its order.
    fn free(&mut self, gone: &str, now_ns: u64) {
        let is_freed = |packet: &Expected| {
            packet.link.as_ref().is_some_and(|(name, leaves_ns)| *leaves_ns > now_ns && name == gone)
        };
        let mut freed: Vec<(u32, Expected)> = self
            .expected
            .iter()
            .filter(|(_, packet)| is_freed(packet))
            .map(|(number, packet)| (*number, packet.clone()))
            .collect();
        freed.sort_by_key(|(_, packet)| packet.link.as_ref().map(|(_, leaves_ns)| *leaves_ns));
        for (number, mut packet) in freed {
            let places = self.places(packet.from, packet.to);
            self.cross(places, &mut packet, now_ns);
            self.expected.insert(number, packet);
        }
    }

    fn names_of_links(&self) -> BTreeSet<String> {
        let policy = self.policy.iter().enumerate();
        let mut names: BTreeSet<String> = policy
            .filter(|(_, rule)| rule.rate_bits_per_s.is_some())
            .map(|(number, _)| format!("rule {number}"))
            .collect();
        names.extend(self.imposed.iter().map(|(id, _)| format!("imposed {}", id.0)));
        names
    }

    fn forget_links(&mut self) {
        let names = self.names_of_links();
        self.free_ns.retain(|name, _| names.contains(name));
    }

    fn send(&mut self, number: u32, from: u8, to: u8, bytes: u64, now_ns: u64) {
        let (Some((source, from_place)), Some((port, to_place))) =
            (self.ports.get(&from), self.ports.get(&to))
        else {
            return;
        };
        let (source, port) = (*source, *port);
        let places = (from_place.clone(), to_place.clone());
        let block = self.opinion(&places.0, &places.1, |rule| rule.block);
        if from == to || block.is_some_and(|(_, block)| block != Block::Open) {
            return;
        }
        let delay =
            self.opinion(&places.0, &places.1, |rule| rule.delay).map_or(Duration::ZERO, |found| found.1);
        let delay_ns = delay.as_nanos() as u64;
        let mut packet = Expected { from: source, to: port, bytes, link: None, delay_ns, arrives_ns: 0 };
        self.cross(Some(places), &mut packet, now_ns);
        self.expected.insert(number, packet);
    }
}

struct Both {
    network: Network,
    model: Model,
    random: ChaCha8Rng,
    now_ns: u64,
    found: BTreeMap<u32, (u64, PortId)>,
}

impl Both {
    fn new() -> Both {
        Both {
            network: Network::default(),
            model: Model::default(),
            random: ChaCha8Rng::seed_from_u64(1),
            now_ns: 0,
            found: BTreeMap::new(),
        }
    }

    fn step(&mut self, number: u32, step: Step) {
        let Both { network, model, now_ns, .. } = self;
        match step {
            Step::Attach { address, place } => {
                let path = crate::policy::tests::path(PORT_PLACES[place]);
                let port = network.attach(path.clone(), vec![IpAddr::from([10, 0, 0, address])]);
                if let Some((old, _)) = model.ports.insert(address, (port, path)) {
                    network.detach(old, *now_ns);
                    model.expected.retain(|_, packet| packet.to != old || packet.arrives_ns <= *now_ns);
                }
            }
            Step::Detach { address } => {
                if let Some((old, _)) = model.ports.remove(&address) {
                    network.detach(old, *now_ns);
                    model.expected.retain(|_, packet| packet.to != old || packet.arrives_ns <= *now_ns);
                }
            }
            Step::Policy(rules) => {
                model.policy = rules.clone();
                network.set_policy(Policy { rules, links: Vec::new() });
                model.forget_links();
            }
            Step::Impose(rule) => {
                let id = network.impose(vec![(*rule).clone()], *now_ns)[0];
                let blocks = rule.block.is_some_and(|block| block != Block::Open);
                model.imposed.push((id, *rule));
                if blocks {
                    model.cut(*now_ns);
                }
            }
            Step::LiftOldest => {
                if !model.imposed.is_empty() {
                    let id = model.imposed.remove(0).0;
                    network.lift(&[id], *now_ns);
                    model.free(&format!("imposed {}", id.0), *now_ns);
                    model.forget_links();
                    self.advance(self.now_ns);
                }
            }
            Step::Wait { ns } => self.advance(self.now_ns + ns),
            Step::Send { from, to, payload_bytes } => self.send(number, from, to, payload_bytes),
        }
    }

    fn send(&mut self, number: u32, from: u8, to: u8, payload_bytes: usize) {
        let mut payload = number.to_ne_bytes().to_vec();
        payload.resize(4 + payload_bytes, 0);
        let mut frame = udp(Version::V4, from, to, &payload);
        let length = frame.len();
        let Some((port, _)) = self.model.ports.get(&from) else { return };
        if let Some(sending) = self.network.take(*port, &mut frame, length, self.now_ns, &mut self.random) {
            self.found.insert(number, (self.now_ns, sending.to));
            self.network.counters.delivered_packets += sending.wire.packets;
        }
        self.model.send(number, from, to, (length - VIRTIO_HEADER_BYTES) as u64, self.now_ns);
        // What arrives at this very moment is delivered before anything else happens, as the thread does it.
        self.advance(self.now_ns);
    }

    fn advance(&mut self, to_ns: u64) {
        while let Some(next_ns) = self.network.next_arrival_ns().filter(|next_ns| *next_ns <= to_ns) {
            while let Some(travelling) = self.network.arrived(next_ns) {
                let packet = &travelling.frame[VIRTIO_HEADER_BYTES..];
                let payload = layout(packet).expect("a whole packet").payload;
                let number = u32::from_ne_bytes(packet[payload..payload + 4].try_into().expect("four bytes"));
                self.found.insert(number, (travelling.arrives_ns, travelling.sending.to));
                self.network.counters.delivered_packets += travelling.sending.wire.packets;
            }
        }
        self.now_ns = to_ns;
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn every_packet_arrives_exactly_when_and_where_the_rules_say(steps in proptest::collection::vec(step(), 0..120)) {
        let mut both = Both::new();
        for address in 1..4u8 {
            both.step(0, Step::Attach { address, place: usize::from(address) - 1 });
        }
        for (number, step) in steps.into_iter().enumerate() {
            both.step(number as u32, step);
        }
        both.advance(u64::MAX);
        let expected = both.model.expected.iter().map(|(number, packet)| (*number, (packet.arrives_ns, packet.to)));
        prop_assert_eq!(&both.found, &expected.collect::<BTreeMap<_, _>>());
        prop_assert_eq!(both.network.counters.begun_packets(), both.network.counters.ended_packets());
    }

    #[test]
    fn no_packet_is_unaccounted_for_whatever_the_rules(
        rules in proptest::collection::vec(any_rule(), 0..4),
        frames in proptest::collection::vec((any::<bool>(), any::<bool>(), 1usize..30_000, 500u16..3000, 0u64..100_000), 1..40),
    ) {
        let mut both = Both::new();
        let v6 = |last: u16| IpAddr::from([0xfd00, 0, 0, 0, 0, 0, 0, last]);
        let ports: Vec<PortId> = (1..3u8)
            .map(|last| both.network.attach(vec!["a".into()], vec![IpAddr::from([10, 0, 0, last]), v6(last.into())]))
            .collect();
        let edge = SharedLink { name: "edge".into(), span: Span::Between { from: vec![], to: vec![] }, rate_bits_per_s: Some(1_000_000_000), queue_limit: None, is_network_card: false };
        both.network.set_policy(Policy { rules, links: vec![edge] });
        for (over_udp, is_v6, payload_bytes, segment_bytes, wait_ns) in frames {
            let version = if is_v6 { Version::V6 } else { Version::V4 };
            let payload = vec![7; payload_bytes];
            let whole = if over_udp { udp(version, 1, 2, &payload) } else { tcp(version, 1, 2, &payload) };
            let mut frame = make_segmented(whole, segment_bytes);
            let length = frame.len();
            both.now_ns += wait_ns;
            if let Some(sending) = both.network.take(ports[0], &mut frame, length, both.now_ns, &mut both.random) {
                both.network.counters.delivered_packets += sending.wire.packets;
            }
        }
        while let Some(travelling) = both.network.arrived(u64::MAX) {
            prop_assert!(travelling.frame.len() >= VIRTIO_HEADER_BYTES + 20);
            both.network.counters.delivered_packets += travelling.sending.wire.packets;
        }
        prop_assert_eq!(both.network.counters.begun_packets(), both.network.counters.ended_packets());
        prop_assert_eq!(both.network.travelling(), 0);
        let edge = both.network.link_counters(u64::MAX)["edge"];
        prop_assert_eq!(edge.waiting_bytes, 0);
    }
}

/// Any rule at all.
fn any_rule() -> impl Strategy<Value = Rule> {
    let chance =
        || proptest::option::of((0.0..=1.0f64).prop_map(|value| Probability::new(value).expect("in range")));
    let jitter = proptest::option::of(
        (0u64..1_000_000)
            .prop_map(|ns| Jitter { spread: Duration::from_nanos(ns), distribution: Distribution::Normal }),
    );
    let block = proptest::option::weighted(
        0.2,
        prop_oneof![Just(Block::Open), Just(Block::BlackHole), Just(Block::Reset)],
    );
    let limit = proptest::option::of(prop_oneof![
        (0u64..100).prop_map(QueueLimit::Packets),
        (0u64..100_000).prop_map(QueueLimit::Bytes)
    ]);
    let rate = proptest::option::of(1u64..10_000_000_000);
    let mtu_bytes = proptest::option::of(0u32..3000);
    ((chance(), chance(), chance(), chance()), jitter, block, limit, rate, mtu_bytes).prop_map(
        |((loss, duplicate, reorder, corrupt), jitter, block, queue_limit, rate_bits_per_s, mtu_bytes)| {
            Rule {
                loss,
                duplicate,
                reorder,
                corrupt,
                jitter,
                block,
                queue_limit,
                rate_bits_per_s,
                mtu_bytes,
                delay: Some(Duration::from_micros(100)),
                ..Rule::default()
            }
        },
    )
}
