//! How often the lead passed from one node to another, and how often several had it.
//!
//! Owns how that is read from a run's events. Whether it was expected is the verdict's business.

use history::{Event, EventKind};
use serde::{Deserialize, Serialize};

/// How often the lead passed on while loads ran.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LeadershipResult {
    /// Times that another node came to lead.
    pub changes: u64,
    /// Times that several nodes said that they led, two of them in two looks in a row; absent where nodes do not elect their leader,
    /// because then the platform alone says who leads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split_brains: Option<u64>,
    /// Longest time in which no node said that it led and one did not answer, or nobody was asked, seconds; absent where nodes do
    /// not elect.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub longest_pause_s: Option<f64>,
}

impl LeadershipResult {
    /// Of nodes that elect their leader, as the monitor of the leaders told it. None where it never knew who led, or did not last to
    /// the end.
    #[must_use]
    pub fn of_electing(events: &[Event]) -> Option<LeadershipResult> {
        let (changes, longest_pause_s) = events.iter().rev().find_map(|event| match event.kind {
            EventKind::LeadersMonitored { changes, longest_pause_s } => Some((changes, longest_pause_s)),
            _ => None,
        })?;
        let several = events.iter().filter(|event| matches!(event.kind, EventKind::LeadersAtOnce { .. }));
        let split_brains = Some(several.count() as u64);
        Some(LeadershipResult { changes, split_brains, longest_pause_s: Some(longest_pause_s) })
    }

    /// Of nodes of which the platform promotes one: its promotions before the loads ended.
    #[must_use]
    pub fn of_promoted(events: &[Event], ended_s: f64) -> LeadershipResult {
        let is_one = |event: &&Event| event.t_s < ended_s && matches!(event.kind, EventKind::Leader { .. });
        let changes = events.iter().filter(is_one).count() as u64;
        LeadershipResult { changes, split_brains: None, longest_pause_s: None }
    }
}

#[cfg(test)]
mod tests {
    use history::LeadersAtOnce;

    use super::*;

    fn at(t_s: f64, kind: EventKind) -> Event {
        Event { t_s, kind }
    }

    fn leads(t_s: f64, node: &str) -> Event {
        at(t_s, EventKind::Leader { node: node.to_owned() })
    }

    #[test]
    fn of_nodes_that_elect_it_is_known_only_where_they_were_asked_to_the_end() {
        let nodes = vec!["n1".to_owned(), "n2".to_owned()];
        let seen = LeadersAtOnce { nodes, for_s: 1.0, to_the_end: false };
        let mut events = vec![leads(1.0, "n2"), at(2.0, EventKind::LeadersAtOnce { seen })];
        assert_eq!(LeadershipResult::of_electing(&events), None);
        events.push(at(3.0, EventKind::LeadersMonitored { changes: 1, longest_pause_s: 0.3 }));
        let elected = LeadershipResult { changes: 1, split_brains: Some(1), longest_pause_s: Some(0.3) };
        assert_eq!(LeadershipResult::of_electing(&events), Some(elected));
    }

    #[test]
    fn a_promotion_after_the_loads_is_none_under_them() {
        let events = [leads(1.0, "n2"), leads(5.0, "n3"), leads(9.0, "n1")];
        let changes = |ended_s| LeadershipResult::of_promoted(&events, ended_s).changes;
        assert_eq!((changes(0.5), changes(6.0), changes(10.0)), (0, 2, 3));
    }
}
