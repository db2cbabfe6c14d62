//! What the network does to packets between two places: the rules, and which of them wins.
//!
//! A rule covers an ordered pair of places; a place covers everything inside it. For each property by itself the most
//! specific rule that has an opinion wins, of equally specific ones the last. Pure.

use std::time::Duration;

use crate::chance::{Jitter, Probability};

/// A place by its names, outermost first: region, zone, rack, host, node.
pub type Path = Vec<String>;

/// Whether packets pass at all.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Block {
    /// They pass: an exception to a wider block.
    #[default]
    Open,
    /// They vanish.
    BlackHole,
    /// They vanish and their sender is told so: a reset for TCP, ICMP "unreachable" for all else.
    Reset,
}

/// How much waits before a link with a rate; what comes on top is dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum QueueLimit {
    /// Bytes of IP packets.
    Bytes(u64),
    Packets(u64),
}

/// What happens to packets from one place to another. A property that is absent is none of this rule's business.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rule {
    /// What its link is called in the counters; a number of its own when absent.
    pub name: Option<String>,
    /// Where packets leave. No names at all is everywhere.
    pub from: Path,
    /// Where they arrive.
    pub to: Path,
    /// The place whose own traffic it leaves alone: pairs with both ends there.
    pub spares: Option<Path>,
    /// How long they take.
    pub delay: Option<Duration>,
    /// How much that differs from packet to packet.
    pub jitter: Option<Jitter>,
    /// How likely a packet is lost.
    pub loss: Option<Probability>,
    /// How likely a packet arrives twice.
    pub duplicate: Option<Probability>,
    /// How likely a packet takes no delay and so overtakes those before it.
    pub reorder: Option<Probability>,
    /// How likely one bit of a packet is flipped.
    pub corrupt: Option<Probability>,
    /// What everything that crosses here shares, bits a second of IP packets.
    pub rate_bits_per_s: Option<u64>,
    /// How much waits for that rate.
    pub queue_limit: Option<QueueLimit>,
    /// Whether packets pass at all.
    pub block: Option<Block>,
    /// Bytes of the largest IP packet that passes.
    pub mtu_bytes: Option<u32>,
}

impl Rule {
    /// Whether it speaks of packets from one place to another.
    #[must_use]
    pub fn covers(&self, from: &[String], to: &[String]) -> bool {
        let is_within = |place: &Path| from.starts_with(place) && to.starts_with(place);
        from.starts_with(&self.from)
            && to.starts_with(&self.to)
            && !self.spares.as_ref().is_some_and(is_within)
    }

    /// How closely it names its pair: the number of path components it fixes.
    fn specificity(&self) -> usize {
        self.from.len() + self.to.len()
    }
}

/// What a link carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Span {
    /// Everything from one place to another.
    Between {
        /// Where packets leave.
        from: Path,
        /// Where they arrive.
        to: Path,
    },
    /// Everything that leaves a place for elsewhere: its uplink.
    OutOf(Path),
    /// Everything that comes to a place from elsewhere: its downlink.
    Into(Path),
}

impl Span {
    /// Whether packets from one place to another cross it.
    #[must_use]
    pub fn covers(&self, source: &[String], destination: &[String]) -> bool {
        match self {
            Span::Between { from, to } => source.starts_with(from) && destination.starts_with(to),
            Span::OutOf(place) => source.starts_with(place) && !destination.starts_with(place),
            Span::Into(place) => destination.starts_with(place) && !source.starts_with(place),
        }
    }

    /// Uplinks first, inner before outer; then what is between; then downlinks, outer before inner.
    fn order(&self) -> (u8, i64) {
        match self {
            Span::OutOf(place) => (0, -(place.len() as i64)),
            Span::Between { .. } => (1, 0),
            Span::Into(place) => (2, place.len() as i64),
        }
    }
}

/// A link that many pairs share: an edge between zones, a host's uplink. A packet crosses every link on its way, one
/// after the other, besides what the rules do to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SharedLink {
    /// What it is called in the counters.
    pub name: String,
    /// What it carries.
    pub span: Span,
    /// Its capacity, bits a second of IP packets; without one it only counts.
    pub rate_bits_per_s: Option<u64>,
    /// How much waits before it.
    pub queue_limit: Option<QueueLimit>,
    /// Whether it is the network card of a host, which loses its power with it: what waits in it is lost then.
    pub is_network_card: bool,
}

/// The whole network on paper.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// The rules, in the order given.
    pub rules: Vec<Rule>,
    /// The links that pairs share.
    pub links: Vec<SharedLink>,
}

impl Policy {
    /// The rules that cover a pair, by their numbers, the one whose opinion counts most first.
    #[must_use]
    pub fn covering(&self, from: &[String], to: &[String]) -> Vec<usize> {
        let covering = self.rules.iter().enumerate().filter(|(_, rule)| rule.covers(from, to));
        let mut numbers: Vec<usize> = covering.map(|(number, _)| number).collect();
        numbers.sort_by_key(|number| std::cmp::Reverse((self.rules[*number].specificity(), *number)));
        numbers
    }

    /// The links that packets between a pair cross, by their numbers, in the order they are crossed.
    #[must_use]
    pub fn crossed(&self, from: &[String], to: &[String]) -> Vec<usize> {
        let crossed = self.links.iter().enumerate().filter(|(_, link)| link.span.covers(from, to));
        let mut numbers: Vec<usize> = crossed.map(|(number, _)| number).collect();
        numbers.sort_by_key(|number| (self.links[*number].span.order(), *number));
        numbers
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn path(text: &str) -> Path {
        text.split('/').filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }

    fn pair(text: &str) -> (Path, Path) {
        let (from, to) = text.split_once(" > ").expect("from > to");
        (path(from.trim()), path(to.trim()))
    }

    /// Rules as `from > to`; the question as `from > to`; the answer as rule numbers.
    fn check(rules: &[&str], asked: &str, expected: &[usize]) {
        let rules = rules.iter().map(|line| {
            let (from, to) = pair(line);
            Rule { from, to, ..Rule::default() }
        });
        let policy = Policy { rules: rules.collect(), links: Vec::new() };
        let (from, to) = pair(asked);
        assert_eq!(policy.covering(&from, &to), expected, "{asked}");
    }

    #[test]
    fn a_rule_between_regions_covers_the_nodes_inside() {
        check(&["dc1 > dc2"], "dc1/a/h1/n1 > dc2/b/h1", &[0]);
    }

    #[test]
    fn a_rule_has_one_direction() {
        check(&["dc1 > dc2"], "dc2/a > dc1/a", &[]);
    }

    #[test]
    fn the_more_specific_rule_wins_wherever_it_stands() {
        check(&["dc1/a > dc2/b", "dc1 > dc2"], "dc1/a/h1 > dc2/b/h1", &[0, 1]);
        check(&["dc1 > dc2", "dc1/a > dc2/b"], "dc1/a/h1 > dc2/b/h1", &[1, 0]);
        check(&["dc1/a > dc2/b", "dc1 > dc2"], "dc1/c/h1 > dc2/b/h1", &[1]);
    }

    #[test]
    fn of_equally_specific_rules_the_last_wins() {
        check(&["dc1 > dc2", "dc1 > dc2"], "dc1/a > dc2/a", &[1, 0]);
    }

    #[test]
    fn a_name_is_not_a_prefix_of_a_longer_name() {
        check(&["dc1 > dc2"], "dc11/a > dc2/a", &[]);
    }

    #[test]
    fn a_rule_without_names_covers_everything() {
        check(&[" > ", "dc1 > "], "dc1/a > dc2/a", &[1, 0]);
    }

    #[test]
    fn links_are_crossed_from_the_inside_out_and_in_again() {
        let spans = [
            Span::Into(path("b")),
            Span::Into(path("b/h2")),
            Span::Between { from: path("a"), to: path("b") },
            Span::OutOf(path("a")),
            Span::OutOf(path("a/h1")),
        ];
        let link = |span| SharedLink {
            name: String::new(),
            span,
            rate_bits_per_s: None,
            queue_limit: None,
            is_network_card: false,
        };
        let policy = Policy { rules: Vec::new(), links: spans.into_iter().map(link).collect() };
        assert_eq!(policy.crossed(&path("a/h1"), &path("b/h2")), [4, 3, 2, 0, 1]);
        assert_eq!(policy.crossed(&path("a/h1"), &path("a/h2")), [4]);
        assert_eq!(policy.crossed(&path("a/h1/n1"), &path("a/h1/n2")), [0usize; 0]);
    }
}
