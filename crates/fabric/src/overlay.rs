//! Faults laid over the policy, and what both together say about one pair of places. Pure.
//!
//! For each property by itself the first rule that has an opinion wins: the faults first, latest before earlier,
//! however widely they are drawn; then the policy's rules, the most specific before the wider ones.

use std::collections::{BTreeMap, BTreeSet};

use crate::chance::{Jitter, Probability};
use crate::link::Links;
use crate::policy::{Block, Path, Policy, QueueLimit, Rule, SharedLink, Span};

/// The number of an imposed rule; later ones have greater numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ImposedId(pub u64);

/// Where on a packet's way a link lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The network card of the host that it leaves.
    OfSender,
    /// Around a place above that one, or between two.
    Above,
    /// The pair's own.
    Own,
    /// Around a place that it comes to.
    OfReceiver,
}

/// One link on a packet's way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Crossing {
    /// Its number among the links.
    pub link: usize,
    pub part: Part,
    /// How much waits before it.
    pub queue_limit: Option<QueueLimit>,
}

/// What happens to packets between one pair of places.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Treatment {
    /// Whether they pass at all.
    pub block: Block,
    /// Bytes of the largest packet that passes.
    pub mtu_bytes: Option<u32>,
    /// How likely one is lost.
    pub loss: Probability,
    /// How likely one arrives twice.
    pub duplicate: Probability,
    /// How likely one takes no delay.
    pub reorder: Probability,
    /// How likely one bit is flipped.
    pub corrupt: Probability,
    /// How long they take.
    pub delay_ns: u64,
    /// How much that differs.
    pub jitter: Option<Jitter>,
    /// The links they cross, in order.
    pub crossings: Vec<Crossing>,
    /// Bytes of the largest segmented frame that may pass in one piece,
    pub burst_bytes_max: u64,
    /// and its packets.
    pub burst_packets_max: u64,
    /// The counts that they belong to, by number.
    pub counted_in: Vec<usize>,
}

impl Treatment {
    /// Whether nothing happens to packets and nobody counts them: they need not pass through the network at all. Whatever
    /// property is added to this type is a condition by itself.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        let nothing =
            Treatment { burst_bytes_max: u64::MAX, burst_packets_max: u64::MAX, ..Treatment::default() };
        *self == nothing
    }

    /// Whether every packet has a fate of its own, so that a segmented frame must be split.
    #[must_use]
    pub fn is_by_packet(&self) -> bool {
        let chances = [self.loss, self.duplicate, self.reorder, self.corrupt];
        self.jitter.is_some() || chances.iter().any(|chance| *chance != Probability::NEVER)
    }
}

/// The policy, the faults over it, and the links of both.
#[derive(Debug, Default)]
pub struct Overlay {
    policy: Policy,
    imposed: BTreeMap<ImposedId, Rule>,
    /// By where packets leave: a partition of many places is a rule for each pair of them, too many to look through
    /// for each pair of ports.
    imposed_by_from: BTreeMap<Path, BTreeSet<ImposedId>>,
    imposed_last: u64,
    /// The links; kept up to date with the rules.
    pub links: Links,
    /// By number of the policy's rule.
    rule_links: BTreeMap<usize, usize>,
    /// By number of the policy's shared link.
    shared_links: Vec<usize>,
    imposed_links: BTreeMap<ImposedId, usize>,
    /// Pairs of places whose packets are counted, by the count's number.
    counted: BTreeMap<usize, (Path, Path)>,
    counted_next: usize,
}

impl Overlay {
    /// Replaces the policy; what is imposed stands.
    pub fn set_policy(&mut self, policy: Policy) {
        self.policy = policy;
        self.name_links();
    }

    /// Lays rules over everything, later ones over earlier ones.
    pub fn impose(&mut self, rules: Vec<Rule>) -> Vec<ImposedId> {
        let ids = rules.into_iter().map(|rule| {
            self.imposed_last += 1;
            let id = ImposedId(self.imposed_last);
            self.imposed_by_from.entry(rule.from.clone()).or_default().insert(id);
            self.imposed.insert(id, rule);
            id
        });
        let ids = ids.collect();
        self.name_links();
        ids
    }

    /// Takes imposed rules away again. The numbers of the links that are gone with them.
    pub fn lift(&mut self, ids: &[ImposedId]) -> BTreeSet<usize> {
        for id in ids {
            let Some(rule) = self.imposed.remove(id) else { continue };
            if let Some(from_there) = self.imposed_by_from.get_mut(&rule.from) {
                from_there.remove(id);
                if from_there.is_empty() {
                    self.imposed_by_from.remove(&rule.from);
                }
            }
        }
        self.name_links()
    }

    /// Begins to count the packets of pairs of places: the number of each count.
    pub fn count(&mut self, pairs: Vec<(Path, Path)>) -> Vec<usize> {
        let first = self.counted_next;
        self.counted_next += pairs.len();
        self.counted.extend((first..).zip(pairs));
        (first..self.counted_next).collect()
    }

    /// Ends counts.
    pub fn end_counts(&mut self, numbers: &[usize]) {
        self.counted.retain(|number, _| !numbers.contains(number));
    }

    /// What happens to packets from one place to another.
    #[must_use]
    pub fn treatment(&self, from: &[String], to: &[String]) -> Treatment {
        let imposed = self.imposed_covering(from, to);
        let covering = self.policy.covering(from, to);
        let rules: Vec<&Rule> = imposed
            .iter()
            .map(|(_, rule)| *rule)
            .chain(covering.iter().map(|number| &self.policy.rules[*number]))
            .collect();
        let queue_limit = rules.iter().find_map(|rule| rule.queue_limit);
        let imposed_link = imposed.iter().find_map(|(id, _)| self.imposed_links.get(id));
        let own_link =
            imposed_link.or_else(|| covering.iter().find_map(|number| self.rule_links.get(number))).copied();
        let crossings =
            self.crossings(from, to, own_link.map(|link| Crossing { link, part: Part::Own, queue_limit }));
        let links: Vec<_> = crossings
            .iter()
            .filter_map(|crossing| Some((self.links.look_at(crossing.link)?, crossing.queue_limit)))
            .collect();
        let burst_bytes_max = links.iter().map(|(link, limit)| link.burst_bytes_max(*limit)).min();
        let burst_packets_max = links.iter().map(|(link, limit)| link.burst_packets_max(*limit)).min();
        let chance =
            |of: fn(&Rule) -> Option<Probability>| rules.iter().find_map(|rule| of(rule)).unwrap_or_default();
        let delay = rules.iter().find_map(|rule| rule.delay).unwrap_or_default();
        let counted = self
            .counted
            .iter()
            .filter(|(_, (source, destination))| from.starts_with(source) && to.starts_with(destination));
        Treatment {
            block: rules.iter().find_map(|rule| rule.block).unwrap_or_default(),
            mtu_bytes: rules.iter().find_map(|rule| rule.mtu_bytes),
            loss: chance(|rule| rule.loss),
            duplicate: chance(|rule| rule.duplicate),
            reorder: chance(|rule| rule.reorder),
            corrupt: chance(|rule| rule.corrupt),
            delay_ns: u64::try_from(delay.as_nanos()).unwrap_or(u64::MAX),
            jitter: rules.iter().find_map(|rule| rule.jitter).filter(|jitter| !jitter.spread.is_zero()),
            burst_bytes_max: burst_bytes_max.unwrap_or(u64::MAX),
            burst_packets_max: burst_packets_max.unwrap_or(u64::MAX),
            crossings,
            counted_in: counted.map(|(number, _)| *number).collect(),
        }
    }

    /// The imposed rules that cover a pair, the latest first.
    fn imposed_covering(&self, from: &[String], to: &[String]) -> Vec<(ImposedId, &Rule)> {
        let around = (0..=from.len()).filter_map(|names| self.imposed_by_from.get(&from[..names]));
        let mut covering: Vec<(ImposedId, &Rule)> = around
            .flatten()
            .filter_map(|id| {
                self.imposed.get(id).filter(|rule| rule.covers(from, to)).map(|rule| (*id, rule))
            })
            .collect();
        covering.sort_unstable_by_key(|(id, _)| std::cmp::Reverse(*id));
        covering
    }

    /// The links a packet crosses: uplinks and what is between, the pair's own, downlinks.
    fn crossings(&self, from: &[String], to: &[String], own: Option<Crossing>) -> Vec<Crossing> {
        let shared = self.policy.crossed(from, to);
        let part = |number: usize| match &self.policy.links[number] {
            SharedLink { span: Span::Into(_), .. } => Part::OfReceiver,
            SharedLink { span: Span::OutOf(_), is_network_card: true, .. } => Part::OfSender,
            SharedLink { span: Span::OutOf(_) | Span::Between { .. }, .. } => Part::Above,
        };
        let crossing = |number: usize| Crossing {
            link: self.shared_links[number],
            part: part(number),
            queue_limit: self.policy.links[number].queue_limit,
        };
        let shared = shared.into_iter().map(crossing);
        let (down, up): (Vec<Crossing>, Vec<Crossing>) =
            shared.partition(|crossing| crossing.part == Part::OfReceiver);
        up.into_iter().chain(own).chain(down).collect()
    }

    /// Gives every link its name and number, and drops those nobody names any more, whose numbers it returns.
    fn name_links(&mut self) -> BTreeSet<usize> {
        let mut names = Names::default();
        let links = &mut self.links;
        self.shared_links = self
            .policy
            .links
            .iter()
            .map(|link| links.put(&names.take(&link.name), link.rate_bits_per_s))
            .collect();
        self.rule_links.clear();
        for (number, rule) in self.policy.rules.iter().enumerate() {
            if let Some(rate) = rule.rate_bits_per_s {
                let name = names.take(rule.name.as_deref().unwrap_or(&format!("rule {number}")));
                self.rule_links.insert(number, links.put(&name, Some(rate)));
            }
        }
        self.imposed_links.clear();
        for (id, rule) in &self.imposed {
            if let Some(rate) = rule.rate_bits_per_s {
                let name = names.take(rule.name.as_deref().unwrap_or(&format!("imposed {}", id.0)));
                self.imposed_links.insert(*id, links.put(&name, Some(rate)));
            }
        }
        links.keep_only(|name| names.taken.contains(name))
    }
}

/// Names in use; a second link of the same name becomes `name (2)`.
#[derive(Default)]
struct Names {
    taken: BTreeSet<String>,
}

impl Names {
    fn take(&mut self, wanted: &str) -> String {
        let mut name = wanted.to_owned();
        let mut number = 1;
        while !self.taken.insert(name.clone()) {
            number += 1;
            name = format!("{wanted} ({number})");
        }
        name
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::policy::SharedLink;
    use crate::policy::tests::path;

    fn delay(from: &str, to: &str, delay_ms: u64) -> Rule {
        Rule {
            from: path(from),
            to: path(to),
            delay: Some(Duration::from_millis(delay_ms)),
            ..Rule::default()
        }
    }

    fn impose(overlay: &mut Overlay, rule: Rule) -> ImposedId {
        overlay.impose(vec![rule])[0]
    }

    fn delay_ms(overlay: &mut Overlay) -> u64 {
        overlay.treatment(&path("dc1/a"), &path("dc2/b")).delay_ns / 1_000_000
    }

    #[test]
    fn each_property_is_looked_up_for_itself() {
        let mut overlay = Overlay::default();
        let wide = Rule { loss: Probability::new(0.5), rate_bits_per_s: Some(8), ..delay("dc1", "dc2", 50) };
        overlay.set_policy(Policy { rules: vec![wide, delay("dc1/a", "dc2", 7)], links: Vec::new() });
        let found = overlay.treatment(&path("dc1/a"), &path("dc2/b"));
        assert_eq!((found.delay_ns, Some(found.loss)), (7_000_000, Probability::new(0.5)));
        assert_eq!(found.crossings.len(), 1);
        assert!(overlay.treatment(&path("dc2"), &path("dc1")).is_nothing() && !found.is_nothing());
    }

    #[test]
    fn the_latest_fault_with_an_opinion_wins_and_leaves_no_trace_when_lifted() {
        let mut overlay = Overlay::default();
        overlay.set_policy(Policy { rules: vec![delay("dc1/a", "dc2/b", 1)], links: Vec::new() });
        let first = impose(&mut overlay, delay("dc1", "dc2", 2));
        let second = impose(&mut overlay, delay("", "", 3));
        let silent = impose(&mut overlay, Rule { block: Some(Block::Reset), ..Rule::default() });
        assert_eq!(delay_ms(&mut overlay), 3);
        overlay.lift(&[second]);
        assert_eq!(delay_ms(&mut overlay), 2);
        overlay.lift(&[silent]);
        overlay.lift(&[first]);
        let found = overlay.treatment(&path("dc1/a"), &path("dc2/b"));
        assert_eq!((found.delay_ns, found.block), (1_000_000, Block::Open));
    }

    #[test]
    fn a_place_that_is_spared_keeps_what_is_asked_of_its_own_traffic_elsewhere() {
        let cut = |from: &str, to: &str, spares: &str| Rule {
            from: path(from),
            to: path(to),
            spares: (!spares.is_empty()).then(|| path(spares)),
            block: Some(Block::BlackHole),
            ..Rule::default()
        };
        let mut overlay = Overlay::default();
        let inner = overlay.impose(vec![cut("dc1/a/h1", "", "dc1/a/h1"), cut("", "dc1/a/h1", "dc1/a/h1")]);
        overlay.impose(vec![cut("dc1/a", "", "dc1/a"), cut("", "dc1/a", "dc1/a")]);
        let blocked = |overlay: &Overlay, from: &str, to: &str| {
            overlay.treatment(&path(from), &path(to)).block != Block::Open
        };
        assert!(
            blocked(&overlay, "dc1/a/h1", "dc1/a/h2"),
            "the zone's isolation must not heal that of the host"
        );
        assert!(!blocked(&overlay, "dc1/a/h2", "dc1/a/h3") && blocked(&overlay, "dc1/a/h2", "dc2/b"));
        overlay.lift(&inner);
        assert!(!blocked(&overlay, "dc1/a/h1", "dc1/a/h2") && blocked(&overlay, "dc1/a/h1", "dc2/b"));
    }

    #[test]
    fn a_fault_without_an_opinion_leaves_the_rules_alone() {
        let mut overlay = Overlay::default();
        overlay.set_policy(Policy { rules: vec![delay("dc1", "dc2", 5)], links: Vec::new() });
        let _ = impose(&mut overlay, Rule { loss: Some(Probability::ALWAYS), ..Rule::default() });
        let found = overlay.treatment(&path("dc1"), &path("dc2"));
        assert_eq!((found.delay_ns, found.loss), (5_000_000, Probability::ALWAYS));
    }

    #[test]
    fn links_of_one_name_are_told_apart_and_those_of_faults_go_with_them() {
        let mut overlay = Overlay::default();
        let rated = |name: Option<&str>| Rule {
            name: name.map(str::to_owned),
            rate_bits_per_s: Some(8),
            ..Rule::default()
        };
        let edge = SharedLink {
            name: "edge".into(),
            span: Span::OutOf(path("dc1")),
            rate_bits_per_s: Some(8),
            queue_limit: None,
            is_network_card: false,
        };
        overlay.set_policy(Policy { rules: vec![rated(Some("edge")), rated(None)], links: vec![edge] });
        let fault = impose(&mut overlay, rated(None));
        let names = |overlay: &mut Overlay| overlay.links.counters(0).into_keys().collect::<Vec<_>>();
        assert_eq!(names(&mut overlay), ["edge", "edge (2)", "imposed 1", "rule 1"]);
        overlay.lift(&[fault]);
        assert_eq!(names(&mut overlay), ["edge", "edge (2)", "rule 1"]);
    }
}
