//! What the network does to packets between two places: the rules, and which of them wins.
//!
//! A rule covers an ordered pair of places; a place covers everything inside it. The most specific pair wins, of
//! equally specific ones the last. Pure.

use std::time::Duration;

/// A place by its names, outermost first: region, zone, rack, host, node.
pub type Path = Vec<String>;

/// What happens to packets from one place to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// Where packets leave.
    pub from: Path,
    /// Where they arrive.
    pub to: Path,
    /// How long they take; the rule has no opinion when absent.
    pub delay: Option<Duration>,
    /// What everything that crosses here shares, bits a second of IP packets; the rule has no opinion when absent.
    pub rate_bits_per_s: Option<u64>,
}

impl Rule {
    /// How closely the rule names the pair: the number of path components it fixes. `None` when it does not cover it.
    fn specificity(&self, from: &[String], to: &[String]) -> Option<usize> {
        (from.starts_with(&self.from) && to.starts_with(&self.to)).then_some(self.from.len() + self.to.len())
    }
}

/// All rules of the network.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Policy {
    /// The rules, in the order given.
    pub rules: Vec<Rule>,
}

impl Policy {
    /// The delay from one place to another; none where no rule speaks of one.
    #[must_use]
    pub fn delay(&self, from: &[String], to: &[String]) -> Duration {
        let rule = self.most_specific(from, to, |rule| rule.delay.is_some());
        rule.and_then(|rule| self.rules[rule].delay).unwrap_or_default()
    }

    /// The rule, by its number, whose rate holds from one place to another. Pairs with the same rule share it.
    #[must_use]
    pub fn rate_rule(&self, from: &[String], to: &[String]) -> Option<usize> {
        self.most_specific(from, to, |rule| rule.rate_bits_per_s.is_some())
    }

    fn most_specific(&self, from: &[String], to: &[String], speaks: fn(&Rule) -> bool) -> Option<usize> {
        let speaking = self.rules.iter().enumerate().filter(|(_, rule)| speaks(rule));
        speaking
            .filter_map(|(number, rule)| rule.specificity(from, to).map(|specificity| (specificity, number)))
            // Of equally specific ones the greater number is the later rule, which is the order promised.
            .max()
            .map(|(_, number)| number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Path {
        text.split('/').map(str::to_owned).collect()
    }

    /// Rules as `from > to = milliseconds`; the question as `from > to`.
    fn check(rules: &[&str], pair: &str, expected_ms: u64) {
        let split = |text: &str| {
            let (from, to) = text.split_once(" > ").expect("from > to");
            (path(from.trim()), path(to.trim()))
        };
        let rules = rules
            .iter()
            .map(|line| {
                let (pair, delay) = line.split_once(" = ").expect("pair = ms");
                let (from, to) = split(pair);
                let delay = Some(Duration::from_millis(delay.parse().expect("ms")));
                Rule { from, to, delay, rate_bits_per_s: None }
            })
            .collect();
        let (from, to) = split(pair);
        assert_eq!(Policy { rules }.delay(&from, &to), Duration::from_millis(expected_ms), "{pair}");
    }

    #[test]
    fn a_rule_between_regions_covers_the_nodes_inside() {
        check(&["dc1 > dc2 = 50"], "dc1/a/h1/n1 > dc2/b/h1", 50);
    }

    #[test]
    fn a_rule_has_one_direction() {
        check(&["dc1 > dc2 = 50"], "dc2/a > dc1/a", 0);
    }

    #[test]
    fn the_more_specific_rule_wins_wherever_it_stands() {
        check(&["dc1/a > dc2/b = 7", "dc1 > dc2 = 50"], "dc1/a/h1 > dc2/b/h1", 7);
        check(&["dc1/a > dc2/b = 7", "dc1 > dc2 = 50"], "dc1/c/h1 > dc2/b/h1", 50);
    }

    #[test]
    fn of_equally_specific_rules_the_last_wins() {
        check(&["dc1 > dc2 = 50", "dc1 > dc2 = 20"], "dc1/a > dc2/a", 20);
    }

    #[test]
    fn a_name_is_not_a_prefix_of_a_longer_name() {
        check(&["dc1 > dc2 = 50"], "dc11/a > dc2/a", 0);
    }

    #[test]
    fn delay_and_rate_are_looked_up_each_for_itself() {
        let rule = |from: &str, delay_ms: Option<u64>, rate_bits_per_s| Rule {
            from: path(from),
            to: path("dc2"),
            delay: delay_ms.map(Duration::from_millis),
            rate_bits_per_s,
        };
        let policy = Policy { rules: vec![rule("dc1", Some(50), Some(8)), rule("dc1/a", Some(7), None)] };
        assert_eq!(policy.delay(&path("dc1/a"), &path("dc2")), Duration::from_millis(7));
        assert_eq!(policy.rate_rule(&path("dc1/a"), &path("dc2")), Some(0));
        assert_eq!(policy.rate_rule(&path("dc2"), &path("dc1")), None);
    }
}
