//! What a fault is, wherever it strikes and whatever its place is called: by this a fault of a run finds its cell.
//!
//! How long it stands and how strong it is are left out: faults that differ only in these are alike and not comparable,
//! which is shown with both values. Where it is not sure whom a fault struck, it is like none.

use std::collections::BTreeSet;

use history::{FaultId, HostId, NodeId};
use scenario::{Aim, FaultTarget, Level, NodeTarget, Place, Scenario};

/// What a fault is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Likeness {
    /// Its kind: `power-off`.
    pub kind: &'static str,
    /// Which of its kind: `isolate` of partitions; empty where there is only one.
    pub form: String,
    /// Whom it strikes.
    pub whom: Whom,
}

/// Whom a fault strikes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whom {
    /// The node that leads, alone.
    Leader,
    /// One of the others, alone.
    Follower,
    /// One node of a database in which all are alike.
    AnyNode,
    /// Some of them.
    Some {
        /// How many.
        nodes: usize,
        /// Whether the one that leads is among them.
        with_leader: bool,
    },
    /// All of them.
    All,
    /// What is between nodes.
    Between {
        /// Nodes at one end.
        from: usize,
        /// Nodes at the other.
        to: usize,
    },
}

impl Likeness {
    /// That of this fault of the scenario. The node that led when it struck is needed where the fault names a place
    /// or a node and not a role.
    #[must_use]
    pub fn of(scenario: &Scenario, number: FaultId, leader: Option<NodeId>) -> Option<Likeness> {
        let fault = scenario.faults().nth(number.index())?;
        // After a first fault nodes may run elsewhere than the scenario has them.
        let around = Around { scenario, leader, is_first: number == FaultId::FIRST };
        let form = fault.action.form()?;
        Some(Likeness { kind: fault.action.kind_name(), whom: around.whom(form.aim)?, form: form.name })
    }
}

/// What a fault's target is held against.
struct Around<'s> {
    scenario: &'s Scenario,
    leader: Option<NodeId>,
    is_first: bool,
}

impl Around<'_> {
    fn whom(&self, aim: Aim<'_>) -> Option<Whom> {
        match aim {
            Aim::Target(target) => self.of_target(target),
            Aim::Host(host) => self.of_place(host),
            Aim::Node(node) => self.of_node(node),
            Aim::AllNodes => Some(Whom::All),
            Aim::Between(from, to) => self.between(from, to),
        }
    }

    fn is_leaderless(&self) -> bool {
        self.scenario.database.engine.is_leaderless()
    }

    /// Nodes that start in a place.
    fn nodes_in(&self, place: &Place) -> BTreeSet<NodeId> {
        let (hosts, nodes) = (&self.scenario.site.hosts, &self.scenario.database.nodes);
        let stands = |host: &HostId| hosts.get(*host).is_some_and(|host| host.is_in(place));
        nodes.numbered().filter(|(_, host)| stands(host)).map(|(node, _)| node).collect()
    }

    fn of_target(&self, target: &FaultTarget) -> Option<Whom> {
        match target {
            FaultTarget::Place(place) => self.of_place(place),
            FaultTarget::Leader(Level::Host) => Some(Whom::Leader),
            FaultTarget::AFollower(Level::Host) => Some(Whom::Follower),
            FaultTarget::Coordinator(Level::Host) => Some(Whom::AnyNode),
            FaultTarget::Random(Level::Host) => self.is_leaderless().then_some(Whom::AnyNode),
            // What else is in the zone, rack or region of a role depends on who has it.
            FaultTarget::Leader(_)
            | FaultTarget::AFollower(_)
            | FaultTarget::Coordinator(_)
            | FaultTarget::Random(_) => None,
        }
    }

    fn of_place(&self, place: &Place) -> Option<Whom> {
        if self.is_first { self.of_nodes(&self.nodes_in(place)) } else { None }
    }

    fn of_nodes(&self, struck: &BTreeSet<NodeId>) -> Option<Whom> {
        let all = self.scenario.database.nodes.len();
        match struck.len() {
            0 => None,
            nodes if nodes == all && all > 1 => Some(Whom::All),
            1 if self.is_leaderless() => Some(Whom::AnyNode),
            1 => Some(if struck.contains(&self.leader?) { Whom::Leader } else { Whom::Follower }),
            nodes if self.is_leaderless() => Some(Whom::Some { nodes, with_leader: false }),
            nodes => Some(Whom::Some { nodes, with_leader: struck.contains(&self.leader?) }),
        }
    }

    fn of_node(&self, target: NodeTarget) -> Option<Whom> {
        match target {
            NodeTarget::Named(node) => self.of_nodes(&BTreeSet::from([node])),
            NodeTarget::Leader => Some(Whom::Leader),
            NodeTarget::AFollower => Some(Whom::Follower),
            NodeTarget::Random => self.is_leaderless().then_some(Whom::AnyNode),
        }
    }

    fn between(&self, from: &FaultTarget, to: &FaultTarget) -> Option<Whom> {
        let nodes = |end: &FaultTarget| match end {
            FaultTarget::Place(place) => self.is_first.then(|| self.nodes_in(place).len()),
            FaultTarget::Leader(Level::Host)
            | FaultTarget::AFollower(Level::Host)
            | FaultTarget::Coordinator(Level::Host) => Some(1),
            _ => None,
        };
        Some(Whom::Between { from: nodes(from)?, to: nodes(to)? })
    }
}

#[cfg(test)]
mod tests {
    use scenario::Source;

    use super::*;

    const NODES: [NodeId; 3] = [NodeId::FIRST, NodeId::new(1), NodeId::new(2)];

    fn scenario(engine: &str, faults: &str) -> Scenario {
        let text = format!(
            "\
name: alike
site:
  regions:
    dc1: {{ zones: {{ a: {{ hosts: 1 }}, b: {{ hosts: 2 }}, c: {{ hosts: 1 }} }} }}
database: {{ engine: {engine}, nodes: [dc1/a/h1, dc1/b/h1, dc1/b/h2] }}
loads: [{{ workload: ledger, clients: 2, from: dc1 }}]
schedule:
  - {{ phase: baseline, for: 8s }}
  - {{ phase: fault, for: 60s, faults: [{faults}] }}
"
        );
        let source = Source { name: "alike".to_owned(), text };
        scenario::parse(&source, &[]).unwrap_or_else(|rejection| panic!("{faults}: {rejection}"))
    }

    #[track_caller]
    fn check(engine: &str, fault: &str, leader: Option<NodeId>, expected: Option<(&str, &str, Whom)>) {
        let told = Likeness::of(&scenario(engine, fault), FaultId::FIRST, leader);
        let told = told.as_ref().map(|told| (told.kind, told.form.as_str(), told.whom));
        assert_eq!(told, expected, "{engine}: {fault}");
    }

    #[test]
    fn a_place_is_the_leaders_where_the_leader_runs_there_and_its_name_decides_nothing() {
        let off = |whom| Some(("power-off", "", whom));
        check("etcd", "{ power-off: { host: leader }, for: 5s }", None, off(Whom::Leader));
        check("etcd", "{ power-off: { host: a-follower }, for: 5s }", None, off(Whom::Follower));
        check("etcd", "{ power-off: { host: dc1/a/h1 }, for: 5s }", Some(NODES[0]), off(Whom::Leader));
        check("etcd", "{ power-off: { host: dc1/a/h1 }, for: 5s }", Some(NODES[2]), off(Whom::Follower));
        check("etcd", "{ power-off: { zone: dc1/a }, for: 5s }", Some(NODES[0]), off(Whom::Leader));
        let two = |with_leader| off(Whom::Some { nodes: 2, with_leader });
        check("etcd", "{ power-off: { zone: dc1/b }, for: 5s }", Some(NODES[0]), two(false));
        check("etcd", "{ power-off: { zone: dc1/b }, for: 5s }", Some(NODES[1]), two(true));
        check("etcd", "{ power-off: { region: dc1 }, for: 5s }", None, off(Whom::All));
        check("galera", "{ power-off: { host: dc1/b/h1 }, for: 5s }", None, off(Whom::AnyNode));
        check("galera", "{ power-off: { host: coordinator }, for: 5s }", None, off(Whom::AnyNode));
    }

    #[test]
    fn a_fault_of_which_nobody_knows_whom_it_struck_is_like_none() {
        check("etcd", "{ power-off: { host: random }, for: 5s }", None, None);
        check("etcd", "{ power-off: { host: dc1/a/h1 }, for: 5s }", None, None);
        check("etcd", "{ power-off: { host: dc1/c/h1 }, for: 5s }", Some(NODES[0]), None);
        check("etcd", "{ power-off: { zone: leader }, for: 5s }", Some(NODES[0]), None);
        check("etcd", "{ process: { of: random, how: stop }, for: 5s }", None, None);
        let twice =
            "{ power-off: { host: dc1/a/h1 }, for: 5s }, { power-off: { host: dc1/a/h1 }, at: 30s, for: 5s }";
        let of = |index| Likeness::of(&scenario("etcd", twice), FaultId::new(index), Some(NODES[0]));
        assert!(of(0).is_some());
        assert!(of(1).is_none(), "nodes may have moved since");
        assert!(of(2).is_none());
    }

    #[test]
    fn forms_of_a_kind_are_told_apart_and_strength_is_not() {
        let between = |from, to| Whom::Between { from, to };
        check(
            "etcd",
            "{ partition: { isolate: leader }, for: 5s }",
            None,
            Some(("partition", "isolate", Whom::Leader)),
        );
        check(
            "etcd",
            "{ partition: { from: dc1/a, to: dc1/b }, for: 5s }",
            None,
            Some(("partition", "one way", between(1, 2))),
        );
        check(
            "etcd",
            "{ partition: { between: [dc1/a, dc1/b] }, for: 5s }",
            None,
            Some(("partition", "both ways", between(1, 2))),
        );
        for delay in ["50ms", "70ms"] {
            check(
                "etcd",
                &format!("{{ network: {{ from: dc1/a, to: dc1/b, delay: {delay} }}, for: 10s }}"),
                None,
                Some(("network", "one way: delay", between(1, 2))),
            );
        }
        for (how, form) in [("fail", "fail"), ("stall", "stall")] {
            check(
                "etcd",
                &format!("{{ disk: {{ of: leader, how: {how} }}, for: 5s }}"),
                None,
                Some(("disk", form, Whom::Leader)),
            );
        }
        check(
            "etcd",
            "{ process: { of: leader, how: kill } }",
            None,
            Some(("process", "kill", Whom::Leader)),
        );
        for (by, form) in [("5s", "ahead"), ("7s", "ahead"), ("-5s", "behind")] {
            check(
                "etcd",
                &format!("{{ clock-jump: {{ node: leader, by: {by} }}, for: 5s }}"),
                None,
                Some(("clock-jump", form, Whom::Leader)),
            );
        }
    }
}
