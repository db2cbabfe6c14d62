//! Survival of a database with one write-ahead log: a leader, and standbys of which some must acknowledge.
//!
//! Sources: PostgreSQL documentation, "Synchronous Replication": a commit waits for as many standbys as it was told to,
//! for ever if need be, and reads go on. A promoted standby waits for no more than are there to answer: that is what
//! this project's engine sets.

use history::{HostId, NodeId};

use super::aftermath::{Aftermath, Stands};
use super::{Action, Data, Outcome, Service};
use crate::commit::Acknowledgements;
use crate::deployment::{Deployment, Takeover};

const LEADER: NodeId = NodeId::FIRST;

/// Acknowledgements that a commit waits for when so many standbys could give them.
fn wanted(acknowledgements: Acknowledgements, standbys: usize) -> usize {
    match acknowledgements {
        Acknowledgements::None => 0,
        Acknowledgements::Any(count) => count.min(standbys),
        Acknowledgements::All => standbys,
    }
}

pub(super) fn outcome(
    deployment: &Deployment,
    aftermath: &Aftermath<'_>,
    acknowledgements: Acknowledgements,
    takeover: Takeover,
) -> Outcome {
    let count = deployment.nodes.len();
    let stay = aftermath.stands();
    let wanted_before = wanted(acknowledgements, count.saturating_sub(1));
    let lost = |lives: &dyn Fn(NodeId) -> bool| deployment.others().filter(|node| !lives(*node)).count();
    // Whoever acknowledged, one of them is left: unless as many standbys failed as a commit waited for.
    let kept = aftermath.keeps(LEADER) || lost(&|node| aftermath.keeps(node)) < wanted_before;
    let data = if kept { Data::Kept } else { Data::OnFailedOnly };
    let leader_runs = stay.first().is_some_and(Option::is_some);
    let view = View { deployment, aftermath };
    match takeover {
        Takeover::Restart if aftermath.any_lost() => {
            let stands = aftermath.stands_after_restart();
            let is_started = |node: &NodeId| stay[*node].is_none() && stands[*node].is_some();
            let action = if deployment.nodes.ids().any(|node| is_started(&node)) {
                Action::Restarted
            } else {
                Action::None
            };
            // What a leader has lost its standbys may have: they cannot follow it, and acknowledge nothing.
            let is_behind = stands[LEADER].is_some_and(|stand| stand.is_stale);
            let service = if is_behind && wanted_before > 0 {
                view.service(&stands, None, wanted_before)
            } else {
                view.service(&stands, Some(LEADER), wanted_before)
            };
            Outcome { service, data: if is_behind { Data::MayBeLost } else { data }, action }
        }
        Takeover::Promote if !leader_runs && stay.iter().any(Option::is_some) => {
            let on = stay.iter().flatten().count();
            let wanted_after = wanted(acknowledgements, on - 1).min(wanted_before);
            let candidates = deployment.nodes.ids().filter(|node| stay[*node].is_some());
            let worst = candidates.map(|leader| view.service(&stay, Some(leader), wanted_after)).min();
            // A mirror of the lost leader helps nobody: the platform goes on without it.
            let promoted_has_all = lost(&|node| stay[node].is_some()) < wanted_before;
            Outcome {
                service: worst.unwrap_or(Service::Unavailable),
                data: if promoted_has_all { Data::Kept } else { Data::MayBeLost },
                action: Action::Promoted,
            }
        }
        _ => {
            Outcome { service: view.service(&stay, Some(LEADER), wanted_before), data, action: Action::None }
        }
    }
}

/// The site after failures, as nodes and clients see each other.
struct View<'a> {
    deployment: &'a Deployment,
    aftermath: &'a Aftermath<'a>,
}

impl View<'_> {
    fn path(&self, host: HostId) -> &[String] {
        &self.deployment.hosts[host]
    }

    /// What clients get with these nodes running, one of them, or none, leading and waiting for so many standbys.
    fn service(&self, stands: &Stands, leader: Option<NodeId>, wanted: usize) -> Service {
        let place = leader.and_then(|leader| stands.get(leader).copied().flatten());
        let writes = place.map(|stand| stand.host).filter(|place| {
            let standbys = stands.numbered().filter(|(node, _)| Some(*node) != leader);
            let heard = standbys.filter(|(_, stand)| {
                stand.is_some_and(|stand| {
                    self.aftermath.hear_each_other(self.path(*place), self.path(stand.host))
                })
            });
            heard.count() >= wanted
        });
        let one_client = |client: &Vec<String>| {
            let reaches = |host: HostId| self.aftermath.hear_each_other(client, self.path(host));
            if writes.is_some_and(reaches) {
                Service::ReadsAndWrites
            } else if stands.iter().flatten().any(|stand| reaches(stand.host)) {
                Service::ReadsOnly
            } else {
                Service::Unavailable
            }
        };
        self.deployment.clients.iter().map(one_client).min().unwrap_or(Service::Unavailable)
    }
}
