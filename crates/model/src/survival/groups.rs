//! Survival of databases that keep data in groups of replicas, each group with a quorum of its own.
//!
//! Sources: Ongaro and Ousterhout, "In Search of an Understandable Consensus Algorithm" (2014), for majorities; the
//! Apache Cassandra documentation, "Dynamo", for consistency levels.

use super::ground::Ground;
use super::{Action, Data, Outcome, Service};
use crate::deployment::{Deployment, Quorum};

pub(super) fn outcome(
    deployment: &Deployment,
    ground: &Ground<'_>,
    groups: &[Vec<usize>],
    quorum: Quorum,
) -> Outcome {
    let is_on: Vec<bool> =
        (0..deployment.nodes.len()).map(|node| ground.node_is_on(deployment, node)).collect();
    let view = View { deployment, ground, is_on };
    let service = groups.iter().map(|group| view.service(group, quorum)).min();
    let data = groups.iter().map(|group| view.data(group, quorum)).min();
    Outcome {
        service: service.unwrap_or(Service::Unavailable),
        data: data.unwrap_or(Data::Kept),
        action: Action::None,
    }
}

struct View<'a> {
    deployment: &'a Deployment,
    ground: &'a Ground<'a>,
    is_on: Vec<bool>,
}

impl View<'_> {
    fn on(&self, node: usize) -> bool {
        self.is_on.get(node).copied().unwrap_or(false)
    }

    fn hears(&self, one: usize, other: usize) -> bool {
        self.ground.hear_each_other(self.deployment.host_of(one), self.deployment.host_of(other))
    }

    fn reaches(&self, client: &[String], node: usize) -> bool {
        self.ground.hear_each_other(client, self.deployment.host_of(node))
    }

    fn data(&self, group: &[usize], quorum: Quorum) -> Data {
        let acknowledged = match quorum {
            Quorum::Majority => group.len() / 2 + 1,
            Quorum::Counted { write, .. } => write.of(group.len()),
        };
        let lost = group.iter().filter(|node| !self.on(**node)).count();
        // Whoever acknowledged, one of them is left: unless so many failed that they may have been all.
        if lost < acknowledged { Data::Kept } else { Data::OnFailedOnly }
    }

    fn service(&self, group: &[usize], quorum: Quorum) -> Service {
        let one_client = |client: &Vec<String>| match quorum {
            Quorum::Majority => self.by_majority(client, group),
            Quorum::Counted { read, write } => {
                self.by_count(client, group, read.of(group.len()), write.of(group.len()))
            }
        };
        self.deployment.clients.iter().map(one_client).min().unwrap_or(Service::Unavailable)
    }

    /// A leader must hear a majority, itself included, and the client must reach somebody who reaches the leader: any
    /// node forwards.
    fn by_majority(&self, client: &[String], group: &[usize]) -> Service {
        let majority = group.len() / 2 + 1;
        let leads = |leader: &&usize| {
            self.on(**leader)
                && group.iter().filter(|node| self.on(**node) && self.hears(**leader, **node)).count()
                    >= majority
        };
        let mut gateways =
            (0..self.deployment.nodes.len()).filter(|node| self.on(*node) && self.reaches(client, *node));
        let leaders: Vec<usize> = group.iter().filter(leads).copied().collect();
        let served = gateways.any(|gateway| leaders.iter().any(|leader| self.hears(gateway, *leader)));
        if served { Service::ReadsAndWrites } else { Service::Unavailable }
    }

    /// Any node that the client reaches coordinates.
    fn by_count(&self, client: &[String], group: &[usize], read: usize, write: usize) -> Service {
        let coordinators =
            (0..self.deployment.nodes.len()).filter(|node| self.on(*node) && self.reaches(client, *node));
        let heard = |coordinator: usize| {
            group.iter().filter(|node| self.on(**node) && self.hears(coordinator, **node)).count()
        };
        let most = coordinators.map(heard).max();
        match most.map(|heard| (heard >= read, heard >= write)) {
            Some((true, true)) => Service::ReadsAndWrites,
            Some((true, false)) => Service::ReadsOnly,
            Some((false, true)) => Service::WritesOnly,
            _ => Service::Unavailable,
        }
    }
}
