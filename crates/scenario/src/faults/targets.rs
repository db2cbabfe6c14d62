//! Whom faults are aimed at: places, roles and nodes, found by what a user wrote.

use std::fmt;

use capabilities::Capabilities;
use history::{NodeId, PerNode};
use serde::Serialize;

use super::receipts;
use crate::catalogue::ROLES;
use crate::network::EndsDocument;
use crate::places::{Places, word};
use crate::quoted::quoted;
use crate::rejection::{Findings, Spanned, Spot};
use crate::resolved::{Cluster, Disks, Host, Level, Place, RunsOn};
use crate::wording::{nearest, shortened};

/// What a fault is aimed at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultTarget {
    /// A place by name.
    Place(Place),
    /// The place of this level where the leader is when the fault strikes.
    Leader(Level),
    /// The place of this level where a follower is; which one, the seed decides.
    AFollower(Level),
    /// The place of this level where one of the nodes is that take writes, none of which leads; which one, the seed decides.
    Coordinator(Level),
    /// A place of this level that holds a node; which one, the seed decides.
    Random(Level),
}

/// A role that nodes have only while one of them leads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ElectedRole {
    /// It leads.
    Leader,
    /// It is one of the others.
    Follower,
}

impl FaultTarget {
    /// Whose place it is, where an election decides that.
    pub(super) fn elected(&self) -> Option<ElectedRole> {
        match self {
            FaultTarget::Leader(_) => Some(ElectedRole::Leader),
            FaultTarget::AFollower(_) => Some(ElectedRole::Follower),
            FaultTarget::Place(_) | FaultTarget::Coordinator(_) | FaultTarget::Random(_) => None,
        }
    }
}

impl NodeTarget {
    /// Which node it is, where an election decides that.
    pub(super) fn elected(self) -> Option<ElectedRole> {
        match self {
            NodeTarget::Leader => Some(ElectedRole::Leader),
            NodeTarget::AFollower => Some(ElectedRole::Follower),
            NodeTarget::Named(_) | NodeTarget::Random => None,
        }
    }
}

/// A node of the database that a fault is aimed at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeTarget {
    /// This one.
    Named(NodeId),
    /// The one that leads when the fault strikes.
    Leader,
    /// One of the others; which one, the seed decides.
    AFollower,
    /// Any; which one, the seed decides.
    Random,
}

impl fmt::Display for NodeTarget {
    /// As it is written in a scenario.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NodeTarget::Named(node) => node.fmt(f),
            NodeTarget::Leader => f.write_str("leader"),
            NodeTarget::AFollower => f.write_str("a-follower"),
            NodeTarget::Random => f.write_str("random"),
        }
    }
}

/// What faults are held against.
pub(crate) struct Surroundings<'s> {
    /// Every place of the site.
    pub(crate) places: &'s Places,
    /// Every host of the site.
    pub(crate) hosts: &'s [Host],
    /// The hosts the database's nodes start on; `None` when the database could not be read.
    pub(crate) nodes: Option<PerNode<&'s Host>>,
    /// Every host's disks.
    pub(crate) disks: Disks,
    /// Whether volumes lie on them, and not in plain directories.
    pub(crate) volumes_on_disks: bool,
    pub(crate) engine: &'static Capabilities,
    /// What starts the database's processes.
    pub(crate) on: RunsOn,
    /// What is between the places.
    pub(crate) network: receipts::Network<'s>,
    /// The cluster that exists, where there is one.
    pub(crate) cluster: Option<&'s Cluster>,
}

impl Surroundings<'_> {
    /// Both ends of what lies between places.
    pub(super) fn ends(
        &self,
        document: &EndsDocument,
        what: &str,
        findings: &mut Findings,
    ) -> Option<(FaultTarget, FaultTarget)> {
        let [one, other] = &document.ends;
        // Both are looked up before either is given up, so that both may be reported.
        let (from, to) = (self.end(one, findings), self.end(other, findings));
        let (from, to) = (from?, to?);
        let same = from == to;
        let overlap = match (&from, &to) {
            (FaultTarget::Place(from), FaultTarget::Place(to)) => from.overlaps(to),
            _ => same,
        };
        if overlap {
            let (from, to) = (written(&from), written(&to));
            let message = if same {
                format!("{what} between `{from}` and itself")
            } else {
                format!("{what} between `{from}` and `{to}`, one of which contains the other")
            };
            let help = "name two places that share no host";
            findings.add("bad-ends", other.at, message, "the same place, or a part of it", help);
            return None;
        }
        Some((from, to))
    }

    /// One end of what lies between places: a place, or the host of a role.
    pub(super) fn end(&self, written: &Spanned<String>, findings: &mut Findings) -> Option<FaultTarget> {
        self.target(written, Level::Host, None, findings)
    }

    /// Whether the nodes run a database.
    pub(super) fn has_processes(&self, at: Spot, findings: &mut Findings) -> bool {
        if !self.engine.is_database() {
            findings.add(
                "no-processes",
                at,
                format!("the nodes of `{}` run no database processes", self.engine.name),
                "there are none",
                "remove this fault, or name a database under `database.engine`",
            );
        }
        self.engine.is_database()
    }

    /// Whether the engine has that role; a place is none.
    fn has_role(&self, written: &Spanned<String>, findings: &mut Findings) -> bool {
        let engine = self.engine.name;
        let (message, help) = match (written.value.as_str(), self.engine.is_leaderless()) {
            (role @ ("leader" | "a-follower"), true) => (
                format!("the engine `{engine}` has no `{role}`: every node takes writes"),
                "write `coordinator`, one of the nodes that take writes, or name a place",
            ),
            ("coordinator", false) => (
                format!("the engine `{engine}` has no `coordinator`: only the leader takes writes"),
                "write `leader`, or `a-follower`",
            ),
            _ => return true,
        };
        findings.add("no-such-role", written.at, message, "there is none", help);
        false
    }

    /// A place (of that level, where one is asked for), or a role, which is then of `role_level`.
    pub(super) fn target(
        &self,
        written: &Spanned<String>,
        role_level: Level,
        place_level: Option<Level>,
        findings: &mut Findings,
    ) -> Option<FaultTarget> {
        if !self.has_role(written, findings) {
            return None;
        }
        match written.value.as_str() {
            "coordinator" => Some(FaultTarget::Coordinator(role_level)),
            "leader" => Some(FaultTarget::Leader(role_level)),
            "random" => Some(FaultTarget::Random(role_level)),
            "a-follower" if self.nodes.as_ref().is_some_and(|nodes| nodes.len() < 2) => {
                findings.add(
                    "no-follower",
                    written.at,
                    "a single node has no follower",
                    "there is none",
                    "ask for at least 2 nodes, or aim at `leader`",
                );
                None
            }
            "a-follower" => Some(FaultTarget::AFollower(role_level)),
            other => {
                let roles = ROLES.iter().map(|role| role.name);
                // A misspelt role reads like an unknown place; say so instead.
                if !self.places.has_name(other)
                    && let Some(role) = nearest(other, roles)
                {
                    findings.add(
                        "unknown-place",
                        written.at,
                        format!("there is no place and no role `{other}`"),
                        "unknown",
                        format!("did you mean the role `{role}`?"),
                    );
                    return None;
                }
                self.places.find(written, place_level, findings).map(FaultTarget::Place)
            }
        }
    }

    /// The node that is meant.
    pub(super) fn node(&self, written: &Spanned<String>, findings: &mut Findings) -> Option<NodeTarget> {
        let has_one = self.nodes.as_ref().is_some_and(|nodes| nodes.len() == 1);
        // Of a cluster that exists its own servers are asked who leads.
        let nobody_leads = self.engine.is_leaderless() && self.cluster.is_none();
        match written.value.as_str() {
            role @ ("leader" | "a-follower") if nobody_leads => {
                let message =
                    format!("the engine `{}` has no `{role}`: every node takes writes", self.engine.name);
                let help = "write `random`, or name a node, such as n1";
                findings.add("no-such-role", written.at, message, "there is none", help);
                return None;
            }
            "leader" => return Some(NodeTarget::Leader),
            "random" => return Some(NodeTarget::Random),
            "a-follower" if !has_one => return Some(NodeTarget::AFollower),
            "a-follower" => {
                findings.add(
                    "no-follower",
                    written.at,
                    "a single node has no follower",
                    "there is none",
                    "ask for at least 2 nodes, or aim at `leader`",
                );
                return None;
            }
            _ => {}
        }
        let nodes = self.nodes.as_ref()?;
        let member = |cluster: &Cluster| cluster.member_named(&written.value);
        if let Some(node) = nodes.named(&written.value).or_else(|| self.cluster.and_then(member)) {
            return Some(NodeTarget::Named(node));
        }
        let count = nodes.len();
        let last = NodeId::new(count.saturating_sub(1)).to_string();
        let nodes = if count == 1 { last } else { format!("n1 to {last}") };
        let role = nearest(&written.value, ["leader", "a-follower", "random"]);
        let near = role.map(|role| format!("did you mean `{role}`? ")).unwrap_or_default();
        findings.add(
            "unknown-node",
            written.at,
            format!("there is no node `{}`", shortened(&written.value)),
            "unknown",
            format!("{near}The nodes are {nodes}; the roles leader, a-follower and random"),
        );
        None
    }
}

/// A target as written in a scenario, without its level.
fn written(target: &FaultTarget) -> String {
    match target {
        FaultTarget::Place(place) => Place::to_string(place),
        FaultTarget::Leader(_) => "leader".to_owned(),
        FaultTarget::AFollower(_) => "a-follower".to_owned(),
        FaultTarget::Coordinator(_) => "coordinator".to_owned(),
        FaultTarget::Random(_) => "random".to_owned(),
    }
}

/// A target as it is written in a scenario.
pub(super) fn end(target: &FaultTarget) -> String {
    quoted(&written(target))
}

/// Two ends, both ways.
pub(super) fn both(one: &FaultTarget, other: &FaultTarget) -> String {
    format!("between: [{}, {}]", end(one), end(other))
}

/// Two ends, one way.
pub(super) fn one_way(from: &FaultTarget, to: &FaultTarget) -> String {
    format!("from: {}, to: {}", end(from), end(to))
}

/// The word for the level of a target.
pub(super) fn level_word(target: &FaultTarget) -> &'static str {
    match target {
        FaultTarget::Place(place) => word(place.level),
        FaultTarget::Leader(level)
        | FaultTarget::AFollower(level)
        | FaultTarget::Coordinator(level)
        | FaultTarget::Random(level) => word(*level),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        BlockAnswer, FaultAction, PartitionFault, PartitionShape, PowerOffFault, PressureFault, Taken,
    };

    #[test]
    fn faults_aimed_at_the_leader_or_a_follower_depend_on_who_leads_and_others_do_not() {
        let off = |target| FaultAction::PowerOff(PowerOffFault { target });
        let leader = || FaultTarget::Leader(Level::Host);
        let cut = |shape| FaultAction::Partition(PartitionFault { shape, answer: BlockAnswer::Silence });
        let press = |node| FaultAction::Pressure(PressureFault { node, taken: Taken::Processor(0.5) });
        let random = || FaultTarget::Random(Level::Host);
        for depends in [
            off(leader()),
            off(FaultTarget::AFollower(Level::Rack)),
            cut(PartitionShape::Bridge(leader())),
            cut(PartitionShape::Between(random(), leader())),
            press(NodeTarget::AFollower),
        ] {
            assert!(depends.depends_on_leader(), "{depends:?}");
        }
        for free in
            [off(random()), cut(PartitionShape::Halves), press(NodeTarget::Named(history::NodeId::FIRST))]
        {
            assert!(!free.depends_on_leader(), "{free:?}");
        }
    }
}
