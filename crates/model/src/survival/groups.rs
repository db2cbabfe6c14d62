//! Survival of databases that keep data in groups of replicas, each group with a quorum of its own.
//!
//! A client whose consistency level speaks of its own data centre, which is its region here, asks coordinators there alone,
//! as drivers do. Sources: Ongaro and Ousterhout, "In Search of an Understandable Consensus Algorithm" (2014), for
//! majorities; the Apache Cassandra documentation, "Dynamo", for consistency levels, and that of its drivers for the choice
//! of coordinators.

use std::collections::BTreeMap;

use history::NodeId;

use super::aftermath::{Aftermath, Stands};
use super::{Action, Data, Outcome, Service};
use crate::deployment::{Deployment, Level, Quorum};

pub(super) fn outcome(
    deployment: &Deployment,
    aftermath: &Aftermath<'_>,
    groups: &[Vec<NodeId>],
    (quorums, synced): (&[Quorum], bool),
) -> Outcome {
    let view = View { deployment, aftermath, stands: aftermath.stands() };
    let asked = || groups.iter().flat_map(|group| quorums.iter().map(move |quorum| (group, *quorum)));
    let service = asked().map(|(group, quorum)| view.service(group, quorum)).min();
    let data = asked().map(|(group, quorum)| view.data(group, quorum, synced)).min();
    Outcome {
        service: service.unwrap_or(Service::Unavailable),
        data: data.unwrap_or(Data::Kept),
        action: Action::None,
    }
}

struct View<'a> {
    deployment: &'a Deployment,
    aftermath: &'a Aftermath<'a>,
    stands: Stands,
}

impl View<'_> {
    fn on(&self, node: NodeId) -> bool {
        self.stands.get(node).is_some_and(Option::is_some)
    }

    fn hears(&self, one: NodeId, other: NodeId) -> bool {
        self.aftermath.hear_each_other(self.deployment.host_of(one), self.deployment.host_of(other))
    }

    fn reaches(&self, client: &[String], node: NodeId) -> bool {
        self.aftermath.hear_each_other(client, self.deployment.host_of(node))
    }

    /// Whoever acknowledged, one of them is left: unless so many failed that they may have been all. Where a write is
    /// acknowledged before it is synced, they come back without it if all of them lose their power at once.
    fn data(&self, group: &[NodeId], quorum: Quorum, synced: bool) -> Data {
        let of_group = |failed: &dyn Fn(NodeId) -> bool| -> Vec<NodeId> {
            group.iter().copied().filter(|node| failed(*node)).collect()
        };
        if !synced && self.may_be_all(&of_group(&|node| self.aftermath.has_no_power(node)), group, quorum) {
            return Data::MayBeLost;
        }
        if self.may_be_all(&of_group(&|node| !self.aftermath.keeps(node)), group, quorum) {
            return Data::OnFailedOnly;
        }
        Data::Kept
    }

    /// Whether these nodes of a group may be all that acknowledged a write.
    fn may_be_all(&self, nodes: &[NodeId], group: &[NodeId], quorum: Quorum) -> bool {
        match quorum {
            Quorum::Majority => Level::Quorum.is_met(&self.by_region(nodes), &self.by_region(group), None),
            Quorum::Counted { write, .. } => self.deployment.clients.iter().any(|client| {
                let coordinators = self.coordinators(client, write, |_| true);
                coordinators.iter().any(|at| self.meets(write, nodes, group, *at))
            }),
        }
    }

    /// How many of these nodes stand in each region.
    fn by_region(&self, nodes: &[NodeId]) -> BTreeMap<&str, usize> {
        let mut count = BTreeMap::new();
        for region in nodes.iter().filter_map(|node| self.deployment.host_of(*node).first()) {
            *count.entry(region.as_str()).or_default() += 1;
        }
        count
    }

    /// Whether these of a group's nodes are enough for a level, asked by a coordinator.
    fn meets(&self, level: Level, nodes: &[NodeId], group: &[NodeId], coordinator: NodeId) -> bool {
        let local = self.deployment.host_of(coordinator).first().map(String::as_str);
        level.is_met(&self.by_region(nodes), &self.by_region(group), local)
    }

    /// Nodes that a client may ask at a level: those of its own region where the level is local, if there are any at all.
    fn coordinators(&self, client: &[String], level: Level, may: impl Fn(NodeId) -> bool) -> Vec<NodeId> {
        let all = self.deployment.nodes.ids();
        let is_local = |node: &NodeId| self.deployment.host_of(*node).first() == client.first();
        let own_only = level.is_local() && all.clone().any(|node| is_local(&node));
        all.filter(|node| (!own_only || is_local(node)) && may(*node)).collect()
    }

    fn service(&self, group: &[NodeId], quorum: Quorum) -> Service {
        let one_client = |client: &Vec<String>| match quorum {
            Quorum::Majority => self.by_majority(client, group),
            Quorum::Counted { read, write } => {
                match (self.by_count(client, group, read), self.by_count(client, group, write)) {
                    (true, true) => Service::ReadsAndWrites,
                    (true, false) => Service::ReadsOnly,
                    (false, true) => Service::WritesOnly,
                    (false, false) => Service::Unavailable,
                }
            }
        };
        self.deployment.clients.iter().map(one_client).min().unwrap_or(Service::Unavailable)
    }

    /// A leader must hear a majority, itself included, and the client must reach somebody who reaches the leader: any
    /// node forwards.
    fn by_majority(&self, client: &[String], group: &[NodeId]) -> Service {
        let majority = group.len() / 2 + 1;
        let leads = |leader: &&NodeId| {
            self.on(**leader)
                && group.iter().filter(|node| self.on(**node) && self.hears(**leader, **node)).count()
                    >= majority
        };
        let mut gateways =
            self.deployment.nodes.ids().filter(|node| self.on(*node) && self.reaches(client, *node));
        let leaders: Vec<NodeId> = group.iter().filter(leads).copied().collect();
        let served = gateways.any(|gateway| leaders.iter().any(|leader| self.hears(gateway, *leader)));
        if served { Service::ReadsAndWrites } else { Service::Unavailable }
    }

    /// Any node that the client reaches coordinates.
    fn by_count(&self, client: &[String], group: &[NodeId], level: Level) -> bool {
        let reached = |node: NodeId| self.on(node) && self.reaches(client, node);
        let served = |coordinator: &NodeId| {
            let heard = |node: &NodeId| self.on(*node) && self.hears(*coordinator, *node);
            let heard: Vec<NodeId> = group.iter().copied().filter(heard).collect();
            self.meets(level, &heard, group, *coordinator)
        };
        self.coordinators(client, level, reached).iter().any(served)
    }
}
