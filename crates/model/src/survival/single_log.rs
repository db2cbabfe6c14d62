//! Survival of a database with one write-ahead log: a leader, and standbys of which some must acknowledge.
//!
//! Sources: PostgreSQL documentation, "Synchronous Replication": a commit waits for as many standbys as it was told to,
//! for ever if need be, and reads go on. A promoted standby waits for no more than are there to answer: that is what
//! this project's engine sets.

use super::ground::Ground;
use super::{Action, Data, Outcome, Service};
use crate::commit::Acknowledgements;
use crate::deployment::{Deployment, Takeover};

const LEADER: usize = 0;

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
    ground: &Ground<'_>,
    acknowledgements: Acknowledgements,
    takeover: Takeover,
) -> Outcome {
    let count = deployment.nodes.len();
    let is_on: Vec<bool> = (0..count).map(|node| ground.node_is_on(deployment, node)).collect();
    let wanted_before = wanted(acknowledgements, count.saturating_sub(1));
    let standbys_lost = is_on.iter().skip(1).filter(|on| !**on).count();
    let leader_is_on = is_on.first().copied().unwrap_or(false);
    // Whoever acknowledged, one of them is left: unless as many standbys failed as a commit waited for.
    let kept = leader_is_on || standbys_lost < wanted_before;
    let data = if kept { Data::Kept } else { Data::OnFailedOnly };
    let stay: Vec<Option<usize>> =
        deployment.nodes.iter().zip(&is_on).map(|(host, on)| on.then_some(*host)).collect();
    let view = View { deployment, ground };
    match takeover {
        Takeover::Restart if is_on.contains(&false) => {
            let hosts = ground.hosts_after_restart(deployment);
            let action = if hosts.iter().any(Option::is_some) { Action::Restarted } else { Action::None };
            Outcome { service: view.service(&hosts, LEADER, wanted_before), data, action }
        }
        Takeover::Promote if !leader_is_on && is_on.contains(&true) => {
            let on = is_on.iter().filter(|on| **on).count();
            let wanted_after = wanted(acknowledgements, on - 1).min(wanted_before);
            let candidates = (0..count).filter(|node| is_on[*node]);
            let worst = candidates.map(|leader| view.service(&stay, leader, wanted_after)).min();
            Outcome {
                service: worst.unwrap_or(Service::Unavailable),
                data: if kept { Data::Kept } else { Data::MayBeLost },
                action: Action::Promoted,
            }
        }
        _ => Outcome { service: view.service(&stay, LEADER, wanted_before), data, action: Action::None },
    }
}

/// The site after failures, as nodes and clients see each other.
struct View<'a> {
    deployment: &'a Deployment,
    ground: &'a Ground<'a>,
}

impl View<'_> {
    fn path(&self, host: usize) -> &[String] {
        &self.deployment.hosts[host]
    }

    /// What clients get with these nodes on these hosts, one of them leading and waiting for so many standbys.
    fn service(&self, hosts: &[Option<usize>], leader: usize, wanted: usize) -> Service {
        let writes = hosts.get(leader).copied().flatten().filter(|place| {
            let standbys = hosts.iter().enumerate().filter(|(node, _)| *node != leader);
            let heard = standbys.filter(|(_, host)| {
                host.is_some_and(|host| self.ground.hear_each_other(self.path(*place), self.path(host)))
            });
            heard.count() >= wanted
        });
        let one_client = |client: &Vec<String>| {
            let reaches = |host: usize| self.ground.hear_each_other(client, self.path(host));
            if writes.is_some_and(reaches) {
                Service::ReadsAndWrites
            } else if hosts.iter().flatten().any(|host| reaches(*host)) {
                Service::ReadsOnly
            } else {
                Service::Unavailable
            }
        };
        self.deployment.clients.iter().map(one_client).min().unwrap_or(Service::Unavailable)
    }
}
