//! Which pairs may go past the fabric, against a model that knows rules only: whatever comes and goes, a pair of which
//! anything is asked is never among them, and one of which nothing is asked always is.
//!
//! What the fabric would do to packets of a pair that may go past it is tried out as well: nothing.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::chance::{Distribution, Jitter, Probability};
use crate::network::Network;
use crate::overlay::ImposedId;
use crate::packet::Version;
use crate::packet::tests::tcp;
use crate::policy::{Block, Path, Policy, Rule, SharedLink, Span};
use crate::router::{Pair, PortId};

const PLACES: [&str; 6] = ["", "a", "b", "a/1", "a/2", "b/1"];
/// Only these have ports.
const PORT_PLACES: [&str; 3] = ["a/1", "a/2", "b/1"];

fn place(name: &str) -> Path {
    crate::policy::tests::path(name)
}

#[derive(Debug, Clone)]
enum Step {
    Attach { address: u8, place: usize },
    Detach { address: u8 },
    Relocate { address: u8, place: usize },
    Policy { rules: Vec<Rule>, links: Vec<SharedLink> },
    Impose(Rule),
    LiftOldest,
    Count { from: usize, to: usize },
    EndOldestCount,
}

/// Rules with one property that is a condition, or one that says that there is none.
fn any_rule() -> impl Strategy<Value = Rule> {
    let chance = prop_oneof![Just(Probability::NEVER), Just(Probability::ALWAYS)].prop_map(Some);
    let spread = |us| Jitter { spread: Duration::from_micros(us), distribution: Distribution::Uniform };
    let property = prop_oneof![
        (0u64..2).prop_map(|us| Rule { delay: Some(Duration::from_micros(us)), ..Rule::default() }),
        (0u64..2).prop_map(move |us| Rule { jitter: Some(spread(us)), ..Rule::default() }),
        (0usize..4, chance).prop_map(|(which, chance)| match which {
            0 => Rule { loss: chance, ..Rule::default() },
            1 => Rule { duplicate: chance, ..Rule::default() },
            2 => Rule { reorder: chance, ..Rule::default() },
            _ => Rule { corrupt: chance, ..Rule::default() },
        }),
        Just(Rule { rate_bits_per_s: Some(1_000_000_000), ..Rule::default() }),
        Just(Rule { mtu_bytes: Some(1400), ..Rule::default() }),
        prop_oneof![Just(Block::Open), Just(Block::BlackHole), Just(Block::Reset)]
            .prop_map(|block| Rule { block: Some(block), ..Rule::default() }),
    ];
    (0..PLACES.len(), 0..PLACES.len(), property).prop_map(|(from, to, rule)| Rule {
        from: place(PLACES[from]),
        to: place(PLACES[to]),
        ..rule
    })
}

fn any_link() -> impl Strategy<Value = SharedLink> {
    let span = prop_oneof![
        (0..PLACES.len()).prop_map(|number| Span::OutOf(place(PLACES[number]))),
        (0..PLACES.len()).prop_map(|number| Span::Into(place(PLACES[number]))),
    ];
    let rate = prop_oneof![Just(None), Just(Some(1_000_000_000))];
    (span, rate).prop_map(|(span, rate_bits_per_s)| SharedLink {
        name: "edge".to_owned(),
        span,
        rate_bits_per_s,
        queue_limit: None,
        is_network_card: false,
    })
}

fn step() -> impl Strategy<Value = Step> {
    let policy = (proptest::collection::vec(any_rule(), 0..3), proptest::collection::vec(any_link(), 0..2));
    prop_oneof![
        4 => (1u8..5, 0..PORT_PLACES.len()).prop_map(|(address, place)| Step::Attach { address, place }),
        1 => (1u8..5).prop_map(|address| Step::Detach { address }),
        1 => (1u8..5, 0..PORT_PLACES.len()).prop_map(|(address, place)| Step::Relocate { address, place }),
        1 => policy.prop_map(|(rules, links)| Step::Policy { rules, links }),
        1 => any_rule().prop_map(Step::Impose),
        2 => Just(Step::LiftOldest),
        1 => (0..PLACES.len(), 0..PLACES.len()).prop_map(|(from, to)| Step::Count { from, to }),
        2 => Just(Step::EndOldestCount),
    ]
}

/// A port by the last part of its address, and where it is.
#[derive(Debug, Clone)]
struct Known {
    address: u8,
    port: PortId,
    place: Path,
}

#[derive(Default)]
struct Story {
    network: Network,
    /// Every port that is there, also one whose address another port has taken.
    ports: Vec<Known>,
    policy: Policy,
    imposed: Vec<(ImposedId, Rule)>,
    counts: Vec<(usize, (Path, Path))>,
}

fn address(last: u8) -> IpAddr {
    IpAddr::from([10, 0, 0, last])
}

impl Story {
    fn take(&mut self, step: Step) {
        match step {
            Step::Attach { address: last, place: at } => {
                let at = place(PORT_PLACES[at]);
                let port = self.network.attach(at.clone(), vec![address(last)]);
                self.ports.push(Known { address: last, port, place: at });
            }
            Step::Detach { address } => {
                if let Some(index) = self.ports.iter().rposition(|known| known.address == address) {
                    self.network.detach(self.ports.remove(index).port, 0);
                }
            }
            Step::Relocate { address, place: to } => {
                if let Some(known) = self.ports.iter_mut().rfind(|known| known.address == address) {
                    known.place = place(PORT_PLACES[to]);
                    self.network.relocate(known.port, known.place.clone());
                }
            }
            Step::Policy { rules, links } => {
                self.policy = Policy { rules, links };
                self.network.set_policy(self.policy.clone());
            }
            Step::Impose(rule) => {
                let ids = self.network.impose(vec![rule.clone()], 0);
                self.imposed.extend(ids.into_iter().map(|id| (id, rule.clone())));
            }
            Step::LiftOldest => {
                if !self.imposed.is_empty() {
                    let (id, _) = self.imposed.remove(0);
                    self.network.lift(&[id], 0);
                }
            }
            Step::Count { from, to } => {
                let pair = (place(PLACES[from]), place(PLACES[to]));
                let numbers = self.network.count(vec![pair.clone()]);
                self.counts.extend(numbers.into_iter().map(|number| (number, pair.clone())));
            }
            Step::EndOldestCount => {
                if !self.counts.is_empty() {
                    let (number, _) = self.counts.remove(0);
                    self.network.end_counts(&[number]);
                }
            }
        }
    }

    /// Whether the last rule with an opinion asks for something: imposed ones before the policy's, later before earlier, the
    /// most specific of the policy before wider ones.
    fn asks<T>(
        &self,
        (from, to): (&Path, &Path),
        of: impl Fn(&Rule) -> Option<T>,
        is: impl Fn(T) -> bool,
    ) -> bool {
        let covers = |rule: &&Rule| from.starts_with(&rule.from) && to.starts_with(&rule.to);
        let imposed = self.imposed.iter().rev().map(|(_, rule)| rule);
        let mut policy: Vec<(usize, &Rule)> = self.policy.rules.iter().enumerate().collect();
        policy.sort_by_key(|(number, rule)| std::cmp::Reverse((rule.from.len() + rule.to.len(), *number)));
        let in_order = imposed.chain(policy.into_iter().map(|(_, rule)| rule));
        in_order.filter(covers).find_map(of).is_some_and(is)
    }

    /// Whether anything is asked of the packets of a pair.
    fn has_condition(&self, from: &Path, to: &Path) -> bool {
        let pair = (from, to);
        let chance = |of: fn(&Rule) -> Option<Probability>| {
            self.asks(pair, of, |chance: Probability| chance != Probability::NEVER)
        };
        let crossed = self.policy.links.iter().any(|link| match &link.span {
            Span::Between { .. } => true,
            Span::OutOf(place) => from.starts_with(place) && !to.starts_with(place),
            Span::Into(place) => to.starts_with(place) && !from.starts_with(place),
        });
        let is_counted = |source: &Path, target: &Path| from.starts_with(source) && to.starts_with(target);
        let counted = self.counts.iter().any(|(_, (source, target))| is_counted(source, target));
        crossed
            || counted
            || self.asks(pair, |rule| rule.delay, |delay: Duration| !delay.is_zero())
            || self.asks(pair, |rule| rule.jitter, |jitter: Jitter| !jitter.spread.is_zero())
            || self.asks(pair, |rule| rule.rate_bits_per_s, |_: u64| true)
            || self.asks(pair, |rule| rule.mtu_bytes, |_: u32| true)
            || self.asks(pair, |rule| rule.block, |block: Block| block != Block::Open)
            || chance(|rule| rule.loss)
            || chance(|rule| rule.duplicate)
            || chance(|rule| rule.reorder)
            || chance(|rule| rule.corrupt)
    }

    /// The port that answers to an address: the last that came with it, if it is there still.
    fn owner(&self, last: u8) -> Option<&Known> {
        // A later port that has gone took the address with it, whoever had it before.
        self.ports.iter().filter(|known| known.address == last).max_by_key(|known| known.port)
    }

    /// What may go past the fabric by the model alone, where every address has been given to one port only.
    fn expected(&self) -> BTreeSet<Pair> {
        let mut pairs = BTreeSet::new();
        for from in &self.ports {
            for to in &self.ports {
                if from.port != to.port && !self.has_condition(&from.place, &to.place) {
                    pairs.insert(Pair { from: from.port, to: address(to.address) });
                }
            }
        }
        pairs
    }

    fn has_shared_addresses(&self) -> bool {
        let addresses: BTreeSet<u8> = self.ports.iter().map(|known| known.address).collect();
        addresses.len() < self.ports.len()
    }

    fn unconditioned(&mut self) -> BTreeSet<Pair> {
        let able = self.ports.iter().map(|known| known.port).collect();
        self.network.unconditioned(&able, |_, _| false)
    }

    /// Sends a packet of a pair through the network after all: it must arrive at once, as it is, seen by nobody.
    fn passes_untouched(&mut self, pair: Pair, random: &mut ChaCha8Rng) -> bool {
        let found = self.ports.iter().find(|known| known.port == pair.from);
        let Some(from) = found.cloned() else { return false };
        let IpAddr::V4(to) = pair.to else { return false };
        let Some(owner) = self.owner(to.octets()[3]).map(|known| known.port) else { return false };
        let numbers: Vec<usize> = self.counts.iter().map(|(number, _)| *number).collect();
        let before = (self.network.counted(&numbers), self.network.link_counters(0));
        let frame = tcp(Version::V4, from.address, to.octets()[3], b"hello");
        let mut buffer = frame.clone();
        let sending = self.network.take(from.port, &mut buffer, frame.len(), 0, random);
        let after = (self.network.counted(&numbers), self.network.link_counters(0));
        sending.is_some_and(|sending| sending.to == owner) && buffer == frame && before == after
    }
}

proptest! {
    #[test]
    fn a_pair_of_which_anything_is_asked_never_goes_past_the_fabric(
        steps in proptest::collection::vec(step(), 0..40),
        seed in any::<u64>(),
    ) {
        let mut story = Story::default();
        let mut random = ChaCha8Rng::seed_from_u64(seed);
        for step in steps {
            story.take(step);
            let found = story.unconditioned();
            for pair in &found {
                let from = story.ports.iter().find(|known| known.port == pair.from).cloned();
                let IpAddr::V4(to) = pair.to else { unreachable!("only IPv4 here") };
                let to = story.owner(to.octets()[3]).cloned();
                let (Some(from), Some(to)) = (from, to) else {
                    return Err(TestCaseError::fail("somebody is not there"));
                };
                prop_assert!(!story.has_condition(&from.place, &to.place), "{from:?} to {to:?}");
                prop_assert!(story.passes_untouched(*pair, &mut random), "{pair:?} of {from:?} to {to:?}");
            }
            if !story.has_shared_addresses() {
                prop_assert!(found.is_subset(&story.expected()));
            }
        }
    }

    #[test]
    fn a_pair_of_which_nothing_is_asked_goes_past_the_fabric(
        steps in proptest::collection::vec(step(), 0..40),
    ) {
        let mut story = Story::default();
        for step in steps {
            // An address that two ports were given belongs to one of them for ever: that is the first property's business.
            let is_given = |last: u8| story.ports.iter().any(|known| known.address == last);
            if matches!(step, Step::Attach { address, .. } if is_given(address)) {
                continue;
            }
            story.take(step);
            prop_assert_eq!(story.unconditioned(), story.expected());
        }
    }
}

#[test]
fn who_is_watched_or_cannot_go_past_goes_through() {
    let mut story = Story::default();
    for (address, place) in [(1, 0), (2, 1), (3, 2)] {
        story.take(Step::Attach { address, place });
    }
    let [one, two, three] = [0, 1, 2].map(|index| story.ports[index].port);
    let able = BTreeSet::from([one, two]);
    let pair = |from, last| Pair { from, to: address(last) };
    let found = story.network.unconditioned(&able, |_, _| false);
    assert_eq!(found, BTreeSet::from([pair(one, 2), pair(two, 1)]));
    let able = BTreeSet::from([one, two, three]);
    let found = story.network.unconditioned(&able, |from, to| from == place("a/1") || to == place("a/1"));
    assert_eq!(found, BTreeSet::from([pair(two, 3), pair(three, 2)]));
}
