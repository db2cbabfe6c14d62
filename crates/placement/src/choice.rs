//! Which host a VM is started on: what stands against each, and the order of those that are left.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

use history::{HostId, NodeId};

use crate::cluster::Cluster;
use crate::reasons::{Better, Decision, Left, Obstacle, StartReason};
use crate::rules::Strength;

/// What a host has of a VM's volume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Holds {
    /// A component that is up to date, the best of them first.
    UpToDate(usize),
    /// One that is behind and may be promoted by force, the best of them first.
    Behind(usize),
    /// No component.
    Nothing,
}

/// Where a VM's data is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Data {
    /// On a disk that goes wherever the VM goes.
    Anywhere,
    /// On hosts of its own; others reach it over the network.
    On {
        /// Hosts with power that have some of it.
        holds: BTreeMap<HostId, Holds>,
    },
}

/// A VM that is off and is to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Which.
    pub vm: NodeId,
    /// What it has left behind.
    pub left: Left,
    /// Where its data is.
    pub data: Data,
    /// Hosts that may have it; all when absent.
    pub only: Option<Vec<HostId>>,
    /// Hosts that were tried just now, in vain.
    pub tried: BTreeSet<HostId>,
}

/// A host that can have the VM.
#[derive(Debug, Clone, Copy)]
struct Candidate {
    host: HostId,
    holds: Holds,
    is_for_storage: bool,
    /// Rules that should hold and would not.
    broken: usize,
    /// VMs on it.
    vms: usize,
    /// Names shared with the host that was left.
    names_shared: usize,
}

/// Where each of these VMs is started, those that come first by rank first; each is taken to be where it was put when the
/// next is looked at.
#[must_use]
pub fn start(cluster: &Cluster, wanted: &[Wanted]) -> Vec<Decision> {
    let mut cluster = cluster.clone();
    let mut order: Vec<&Wanted> = wanted.iter().collect();
    order.sort_by_key(|wanted| (cluster.vms[wanted.vm].rank, wanted.vm));
    let decide = |wanted: &Wanted| {
        let decision = start_one(&cluster, wanted);
        if let Decision::Start { vm, host, .. } = &decision {
            cluster.put(*vm, *host);
        }
        decision
    };
    order.into_iter().map(decide).collect()
}

/// Hosts that can have the VM, the best first.
#[must_use]
pub fn hosts_in_order(cluster: &Cluster, wanted: &Wanted) -> Vec<HostId> {
    let can = cluster.hosts.ids().filter(|host| obstacle(cluster, wanted, *host).is_none());
    let candidates = can.map(|host| candidate(cluster, wanted, host)).collect();
    order(candidates, wanted.left).into_iter().map(|of| of.host).collect()
}

fn start_one(cluster: &Cluster, wanted: &Wanted) -> Decision {
    let vm = wanted.vm;
    let mut candidates = Vec::new();
    let mut obstacles = Vec::new();
    for host in cluster.hosts.ids() {
        match obstacle(cluster, wanted, host) {
            Some(obstacle) => obstacles.push((host, obstacle)),
            None => candidates.push(candidate(cluster, wanted, host)),
        }
    }
    let mut best = order(candidates, wanted.left);
    let candidates = best.len();
    best.truncate(2);
    let Some(first) = best.first() else { return Decision::Wait { vm, obstacles } };
    let broken = cluster.breaches(vm, first.host, Strength::Should);
    let reason = StartReason {
        left: wanted.left,
        candidates,
        better: best.get(1).map(|second| better(first, second, wanted.left)),
        broken: broken.iter().map(|breach| breach.rule).collect(),
        obstacles,
    };
    Decision::Start { vm, host: first.host, reason }
}

/// What the VM's data has to say of a host.
fn holds(wanted: &Wanted, host: HostId) -> Holds {
    match &wanted.data {
        Data::Anywhere => Holds::Nothing,
        Data::On { holds } => holds.get(&host).copied().unwrap_or(Holds::Nothing),
    }
}

fn is_for_storage(cluster: &Cluster, wanted: &Wanted, host: HostId) -> bool {
    wanted.data != Data::Anywhere && cluster.hosts[host].is_for_storage
}

fn obstacle(cluster: &Cluster, wanted: &Wanted, host: HostId) -> Option<Obstacle> {
    if !cluster.hosts[host].is_on {
        return Some(Obstacle::NoPower);
    }
    if cluster.hosts[host].is_isolated {
        return Some(Obstacle::Isolated);
    }
    // A VM whose data is elsewhere may run where it ran; any other left its host because that is lost.
    let is_left = wanted.data == Data::Anywhere && wanted.left == Left::Host;
    let is_excluded = wanted.only.as_ref().is_some_and(|only| !only.contains(&host));
    if is_excluded || (wanted.only.is_none() && is_left && cluster.vms[wanted.vm].last == host) {
        return Some(Obstacle::LeftThere);
    }
    if wanted.tried.contains(&host) {
        return Some(Obstacle::Tried);
    }
    if matches!(&wanted.data, Data::On { holds } if holds.is_empty()) {
        return Some(Obstacle::NoData);
    }
    if group(holds(wanted, host), is_for_storage(cluster, wanted, host), wanted.left).is_none() {
        return Some(Obstacle::ForStorage);
    }
    cluster.obstacle(wanted.vm, host)
}

impl Cluster {
    /// What stands against a VM on a host with power: its capacity, or a rule that must hold.
    #[must_use]
    pub fn obstacle(&self, vm: NodeId, host: HostId) -> Option<Obstacle> {
        let capacity = self.hosts[host].capacity;
        if let Some(most) = capacity.vms.filter(|most| self.others_on(host, vm).count() >= *most) {
            return Some(Obstacle::Full { vms: most });
        }
        if let Some(all) = capacity.memory_bytes {
            let taken: u64 = self.others_on(host, vm).map(|other| self.vms[other].memory_bytes).sum();
            let (free_bytes, needed_bytes) = (all.saturating_sub(taken), self.vms[vm].memory_bytes);
            if free_bytes < needed_bytes {
                return Some(Obstacle::Memory { free_bytes, needed_bytes });
            }
        }
        let breach = self.breaches(vm, host, Strength::Must).into_iter().next()?;
        Some(Obstacle::Rule { rule: breach.rule, with: breach.with })
    }
}

fn candidate(cluster: &Cluster, wanted: &Wanted, host: HostId) -> Candidate {
    Candidate {
        host,
        holds: holds(wanted, host),
        is_for_storage: is_for_storage(cluster, wanted, host),
        broken: cluster.breaches(wanted.vm, host, Strength::Should).len(),
        vms: cluster.others_on(host, wanted.vm).count(),
        names_shared: cluster.names_shared(host, cluster.vms[wanted.vm].last),
    }
}

/// After the loss of a host, the data's place counts more than the way there, but what is there for storage runs nodes last.
/// Where the way to the data was lost, only the data's own place needs none, and comes first whatever it is there for.
fn group(holds: Holds, is_for_storage: bool, left: Left) -> Option<u8> {
    match (holds, is_for_storage, left) {
        (Holds::UpToDate(_), _, Left::Volume) => Some(0),
        (Holds::UpToDate(_) | Holds::Behind(_), false, _) => Some(1),
        (Holds::Nothing, false, _) => Some(2),
        (Holds::UpToDate(_) | Holds::Behind(_), true, _) => Some(3),
        (Holds::Nothing, true, _) => None,
    }
}

/// The best first.
fn order(mut candidates: Vec<Candidate>, left: Left) -> Vec<Candidate> {
    candidates.sort_by_key(|of| {
        let group = group(of.holds, of.is_for_storage, left);
        let place = (of.broken, of.holds, of.vms, Reverse(of.names_shared), of.host);
        (group, of.is_for_storage, kind(of.holds), place)
    });
    candidates
}

/// Rules count less than data that is up to date, and more than which of several such components is the best.
fn kind(holds: Holds) -> u8 {
    match holds {
        Holds::UpToDate(_) => 0,
        Holds::Behind(_) => 1,
        Holds::Nothing => 2,
    }
}

/// By what the first of two candidates comes before the second.
fn better(first: &Candidate, second: &Candidate, left: Left) -> Better {
    let group = |of: &Candidate| group(of.holds, of.is_for_storage, left);
    if first.is_for_storage != second.is_for_storage && group(first) != Some(0) {
        Better::NotForStorage
    } else if group(first) != group(second) || kind(first.holds) != kind(second.holds) {
        Better::Data
    } else if first.is_for_storage != second.is_for_storage {
        Better::NotForStorage
    } else if first.broken != second.broken {
        Better::Rules
    } else if first.holds != second.holds {
        Better::Data
    } else if first.vms != second.vms {
        Better::FewerVms
    } else if first.names_shared != second.names_shared {
        Better::Nearer
    } else {
        Better::Order
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hosts as `u` up to date, `b` behind or `-`, `s` where they are there for storage, VMs on them and names shared; and
    /// their order, with what makes the first the best.
    fn check(hosts: &str, left: Left, expected: &[usize], why: Better) {
        let mut rank = 0;
        let candidate = |(host, text): (usize, &str)| {
            let signs: Vec<char> = text.chars().collect();
            let digit = |place: usize| signs[place].to_digit(10).expect("a digit") as usize;
            rank += 1;
            let holds = match signs[0] {
                'u' => Holds::UpToDate(rank),
                'b' => Holds::Behind(rank),
                _ => Holds::Nothing,
            };
            let (is_for_storage, vms, names_shared) = (signs[1] == 's', digit(2), digit(3));
            let host = HostId::new(host);
            Candidate { host, holds, is_for_storage, broken: 0, vms, names_shared }
        };
        let all = hosts.split_whitespace().enumerate().map(candidate);
        let candidates = all.filter(|of| group(of.holds, of.is_for_storage, left).is_some()).collect();
        let ordered = order(candidates, left);
        assert_eq!(ordered.iter().map(|of| of.host.index()).collect::<Vec<_>>(), expected, "{hosts}");
        assert_eq!(better(&ordered[0], &ordered[1], left), why, "{hosts}");
    }

    #[test]
    fn without_a_mirror_the_host_with_the_fewest_nodes_comes_first_and_of_those_the_nearest() {
        check("-n12 -n02 -n03 -n03", Left::Host, &[2, 3, 1, 0], Better::Order);
        check("-n12 -n02 -n03", Left::Host, &[2, 1, 0], Better::Nearer);
        check("-n13 -n02", Left::Host, &[1, 0], Better::FewerVms);
    }

    #[test]
    fn after_the_loss_of_a_host_the_data_comes_first_and_what_is_there_for_storage_last() {
        check("-n02 un12 us02 -s02", Left::Host, &[1, 0, 2], Better::Data);
        check("-n02 us02", Left::Host, &[0, 1], Better::NotForStorage);
        check("bn02 un02 -n02", Left::Host, &[1, 0, 2], Better::Data);
    }

    #[test]
    fn where_the_way_to_the_data_is_lost_the_data_itself_comes_first_even_where_it_is_there_for_storage() {
        check("-n02 us02", Left::Volume, &[1, 0], Better::Data);
        check("-n02 us02 un12", Left::Volume, &[2, 1, 0], Better::NotForStorage);
        check("bn02 us02 -n02", Left::Volume, &[1, 0, 2], Better::Data);
        check("bs02 -n02", Left::Volume, &[1, 0], Better::NotForStorage);
    }
}
