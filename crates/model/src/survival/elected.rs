//! Survival of a database with one log whose leader the nodes elect by majority: a single Raft group.
//!
//! Owns who may lead after failures, whether it can commit, and what a new leader may not have. Clients speak to the
//! leader itself, for reads as for writes; nobody forwards. Source: Ongaro and Ousterhout, "In Search of an
//! Understandable Consensus Algorithm" (2014), sections 5.2 and 5.4; section 9.6 of Ongaro's dissertation for the vote
//! before the vote, by which a leader that hears a majority stays.

use history::{HostId, NodeId};

use super::aftermath::{Aftermath, Stands};
use super::{Action, Data, Outcome, Service};
use crate::commit::Acknowledgements;
use crate::deployment::{Deployment, Takeover};

/// The node that leads when the failures strike.
const LEADER: NodeId = NodeId::FIRST;

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
    aftermath: &Aftermath<'_>,
    acknowledgements: Acknowledgements,
    takeover: Takeover,
) -> Outcome {
    let stay = aftermath.stands();
    let copies = copies(acknowledgements, stay.len());
    let at_once = View { deployment, aftermath, stands: &stay };
    let data = at_once.data(copies);
    if takeover == Takeover::Restart && aftermath.any_lost() {
        let stands = aftermath.stands_after_restart();
        let is_started = |node: NodeId| stay[node].is_none() && stands[node].is_some();
        let action = if stands.ids().any(is_started) { Action::Restarted } else { Action::None };
        let later = View { deployment, aftermath, stands: &stands };
        // Whoever came to lead meanwhile leads on.
        let leaders = if stay[LEADER].is_some() { later.leaders() } else { later.eligible() };
        let is_lacking = !at_once.eligible().contains(&LEADER) && later.may_lack(copies);
        let data = if is_lacking { Data::MayBeLost } else { data };
        return Outcome { service: later.service(&leaders, copies), data, action };
    }
    Outcome { service: at_once.service(&at_once.leaders(), copies), data, action: Action::None }
}

/// The nodes where they run, as they and the clients hear each other.
struct View<'a> {
    deployment: &'a Deployment,
    aftermath: &'a Aftermath<'a>,
    stands: &'a Stands,
}

impl View<'_> {
    fn host(&self, node: NodeId) -> Option<HostId> {
        self.stands.get(node).copied().flatten().map(|stand| stand.host)
    }

    /// Whether somebody may be elected who lacks what was acknowledged: too few had it, or some of them were started from
    /// components that lacked it. The worst is taken: as many as possible of those who had it have forgotten it or cannot
    /// vote.
    fn may_lack(&self, copies: usize) -> bool {
        let is_stale = |node: NodeId| self.stands[node].is_some_and(|stand| stand.is_stale);
        let wins_without = |candidate: NodeId| {
            let voters = self.heard_by(candidate);
            // Those who would remember, had they had it. The leader had it.
            let remember: Vec<NodeId> = voters.iter().copied().filter(|node| !is_stale(*node)).collect();
            let elsewhere = self.stands.len() - remember.len();
            let leader = usize::from(remember.contains(&LEADER));
            let holders = copies.saturating_sub(elsewhere).max(leader);
            let can_lack = is_stale(candidate) || (candidate != LEADER && holders < remember.len());
            can_lack && voters.len() >= holders + self.majority()
        };
        self.stands.ids().any(wins_without)
    }

    /// Nodes that a node hears, itself included; none when it has no power.
    fn heard_by(&self, node: NodeId) -> Vec<NodeId> {
        let Some(here) = self.host(node) else { return Vec::new() };
        let hosts = &self.deployment.hosts;
        let hears = |other: &NodeId| {
            self.host(*other).is_some_and(|there| {
                *other == node || self.aftermath.hear_each_other(&hosts[here], &hosts[there])
            })
        };
        self.stands.ids().filter(hears).collect()
    }

    fn majority(&self) -> usize {
        self.stands.len() / 2 + 1
    }

    /// Nodes that a majority could elect.
    fn eligible(&self) -> Vec<NodeId> {
        self.stands.ids().filter(|node| self.heard_by(*node).len() >= self.majority()).collect()
    }

    /// Nodes of which one leads: the leader while it hears a majority, else any that could be elected.
    fn leaders(&self) -> Vec<NodeId> {
        let eligible = self.eligible();
        if eligible.contains(&LEADER) { vec![LEADER] } else { eligible }
    }

    fn service(&self, leaders: &[NodeId], copies: usize) -> Service {
        let serves = |client: &Vec<String>, leader: NodeId| {
            let place = self.host(leader);
            let reached = place
                .is_some_and(|host| self.aftermath.hear_each_other(client, &self.deployment.hosts[host]));
            reached && self.heard_by(leader).len() >= copies
        };
        let every_client = |leader: &NodeId| {
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
        let others_lost = self.stands.ids().skip(1).filter(|node| !self.aftermath.keeps(*node)).count();
        if !self.eligible().contains(&LEADER) && self.may_lack(copies) {
            Data::MayBeLost
        } else if self.aftermath.keeps(LEADER) || others_lost + 1 < copies {
            Data::Kept
        } else {
            Data::OnFailedOnly
        }
    }
}
