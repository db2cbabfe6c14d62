//! Survival of a database with one log whose leader the nodes elect by majority: a single Raft group.
//!
//! Owns who may lead after failures, whether it can commit, and what a new leader may not have. Clients speak to the
//! leader itself, for reads as for writes; nobody forwards. Source: Ongaro and Ousterhout, "In Search of an
//! Understandable Consensus Algorithm" (2014), sections 5.2 and 5.4; section 9.6 of Ongaro's dissertation for the vote
//! before the vote, by which a leader that hears a majority stays.

use super::ground::Ground;
use super::{Action, Data, Outcome, Service};
use crate::commit::Acknowledgements;
use crate::deployment::{Deployment, Takeover};

/// The node that leads when the failures strike.
const LEADER: usize = 0;

/// Nodes that must have a write before it is acknowledged, the leader among them.
#[must_use]
pub fn copies(acknowledgements: Acknowledgements, nodes: usize) -> usize {
    let majority = nodes / 2 + 1;
    match acknowledgements {
        Acknowledgements::None => 1,
        Acknowledgements::Any(count) => majority.max(count.saturating_add(1).min(nodes)),
        Acknowledgements::All => nodes,
    }
}

pub(super) fn outcome(
    deployment: &Deployment,
    ground: &Ground<'_>,
    acknowledgements: Acknowledgements,
    takeover: Takeover,
) -> Outcome {
    let nodes = deployment.nodes.iter();
    let stay: Vec<Option<usize>> = nodes.map(|host| ground.host_is_on[*host].then_some(*host)).collect();
    let copies = copies(acknowledgements, stay.len());
    let at_once = View { deployment, ground, hosts: &stay };
    let data = at_once.data(copies);
    if takeover == Takeover::Restart && stay.contains(&None) {
        let hosts = ground.hosts_after_restart(deployment);
        let action = if hosts.iter().any(Option::is_some) { Action::Restarted } else { Action::None };
        let later = View { deployment, ground, hosts: &hosts };
        // Whoever came to lead meanwhile leads on.
        let leaders = if stay[LEADER].is_some() { later.leaders() } else { later.eligible() };
        return Outcome { service: later.service(&leaders, copies), data, action };
    }
    Outcome { service: at_once.service(&at_once.leaders(), copies), data, action: Action::None }
}

/// The nodes on these hosts, as they and the clients hear each other.
struct View<'a> {
    deployment: &'a Deployment,
    ground: &'a Ground<'a>,
    hosts: &'a [Option<usize>],
}

impl View<'_> {
    /// Nodes that a node hears, itself included; none when it has no power.
    fn heard_by(&self, node: usize) -> Vec<usize> {
        let Some(here) = self.hosts.get(node).copied().flatten() else { return Vec::new() };
        let hosts = &self.deployment.hosts;
        let hears = |other: &usize| {
            self.hosts[*other].is_some_and(|there| {
                *other == node || self.ground.hear_each_other(&hosts[here], &hosts[there])
            })
        };
        (0..self.hosts.len()).filter(hears).collect()
    }

    fn majority(&self) -> usize {
        self.hosts.len() / 2 + 1
    }

    /// Nodes that a majority could elect.
    fn eligible(&self) -> Vec<usize> {
        (0..self.hosts.len()).filter(|node| self.heard_by(*node).len() >= self.majority()).collect()
    }

    /// Nodes of which one leads: the leader while it hears a majority, else any that could be elected.
    fn leaders(&self) -> Vec<usize> {
        let eligible = self.eligible();
        if eligible.contains(&LEADER) { vec![LEADER] } else { eligible }
    }

    fn service(&self, leaders: &[usize], copies: usize) -> Service {
        let serves = |client: &Vec<String>, leader: usize| {
            let place = self.hosts.get(leader).copied().flatten();
            let reached =
                place.is_some_and(|host| self.ground.hear_each_other(client, &self.deployment.hosts[host]));
            reached && self.heard_by(leader).len() >= copies
        };
        let every_client = |leader: &usize| {
            let clients = &self.deployment.clients;
            !clients.is_empty() && clients.iter().all(|client| serves(client, *leader))
        };
        if !leaders.is_empty() && leaders.iter().all(every_client) {
            Service::ReadsAndWrites
        } else {
            Service::Unavailable
        }
    }

    fn data(&self, copies: usize) -> Data {
        let is_on = |node: usize| self.hosts.get(node).is_some_and(Option::is_some);
        let others_lost = (1..self.hosts.len()).filter(|node| !is_on(*node)).count();
        // With one copy, whoever is elected without the leader's vote goes on without its last writes.
        let without_it = |node: usize| {
            let voters = self.heard_by(node).into_iter().filter(|voter| *voter != LEADER).count();
            node != LEADER && voters >= self.majority()
        };
        let another_leads = !self.eligible().contains(&LEADER) && (0..self.hosts.len()).any(without_it);
        if copies < self.majority() && another_leads {
            Data::MayBeLost
        } else if is_on(LEADER) || others_lost + 1 < copies {
            Data::Kept
        } else {
            Data::OnFailedOnly
        }
    }
}
