//! Moves of VMs that run: back where they belong, out of a broken rule, from full hosts to empty ones.
//!
//! Owns which moves are worth it. How a VM is moved while it runs is not its business.

use history::{HostId, NodeId};

use crate::cluster::Cluster;
use crate::reasons::{Decision, MoveReason};
use crate::rules::Strength;

/// How much VMs are moved without anybody asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Drs {
    /// Not at all.
    #[default]
    Off,
    /// Where a rule is broken, and back to the host that a VM belongs to.
    Conservative,
    /// That, and to make hosts equally loaded.
    Eager,
}

/// Moves to make now, in this order; each is possible when those before it are done.
#[must_use]
pub fn rebalance(cluster: &Cluster, drs: Drs) -> Vec<Decision> {
    let mut cluster = cluster.clone();
    let mut moves = Vec::new();
    if drs == Drs::Off {
        return moves;
    }
    // Each VM moves once at most, so this ends.
    for vm in cluster.vms.ids() {
        // One that is on its way is left alone.
        let (Some(from), None) = (cluster.vms[vm].at, cluster.vms[vm].moves_to) else { continue };
        // Nothing can be moved away from a host that reaches no other.
        if cluster.hosts[from].is_isolated {
            continue;
        }
        let home = cluster.vms[vm].home;
        let next = repair(&cluster, vm, from).or_else(|| {
            let (old, new) = (broken(&cluster, vm, from), broken(&cluster, vm, home));
            let goes = home != from && new <= old && may_run(&cluster, vm, home);
            goes.then_some((home, MoveReason::GoesHome))
        });
        let next = next.or_else(|| (drs == Drs::Eager).then(|| even_out(&cluster, vm, from)).flatten());
        if let Some((to, reason)) = next {
            cluster.put(vm, to);
            moves.push(Decision::Move { vm, from, to, reason });
        }
    }
    moves
}

fn may_run(cluster: &Cluster, vm: NodeId, host: HostId) -> bool {
    let of = &cluster.hosts[host];
    let is_its_own = !of.is_for_storage || host == cluster.vms[vm].home;
    of.is_on && !of.is_isolated && is_its_own && cluster.obstacle(vm, host).is_none()
}

/// Rules that the VM breaks there: those that must hold, those that should.
fn broken(cluster: &Cluster, vm: NodeId, host: HostId) -> (usize, usize) {
    let count = |strength| cluster.breaches(vm, host, strength).len();
    (count(Strength::Must), count(Strength::Should))
}

fn vms_on(cluster: &Cluster, host: HostId, vm: NodeId) -> usize {
    cluster.others_on(host, vm).count()
}

/// A host where fewer rules are broken, where any is broken here.
fn repair(cluster: &Cluster, vm: NodeId, from: HostId) -> Option<(HostId, MoveReason)> {
    let of = |strength| cluster.breaches(vm, from, strength).into_iter().next();
    let rule = of(Strength::Must).or_else(|| of(Strength::Should))?.rule;
    let now = broken(cluster, vm, from);
    let fits =
        |host: &HostId| *host != from && may_run(cluster, vm, *host) && broken(cluster, vm, *host) < now;
    let hosts = cluster.hosts.ids().filter(fits);
    let best = hosts.min_by_key(|host| (broken(cluster, vm, *host), vms_on(cluster, *host, vm), *host))?;
    Some((best, MoveReason::RepairsRule { rule }))
}

/// The emptiest host, where it has two VMs less than this one and no rule speaks against it; never away from home.
fn even_out(cluster: &Cluster, vm: NodeId, from: HostId) -> Option<(HostId, MoveReason)> {
    if cluster.vms[vm].home == from {
        return None;
    }
    let vms_here = vms_on(cluster, from, vm) + 1;
    let now = broken(cluster, vm, from);
    let fits = |host: &HostId| {
        may_run(cluster, vm, *host)
            && broken(cluster, vm, *host) <= now
            && vms_on(cluster, *host, vm) + 2 <= vms_here
    };
    let hosts = cluster.hosts.ids().filter(fits);
    let best = hosts.min_by_key(|host| (vms_on(cluster, *host, vm), *host))?;
    Some((best, MoveReason::Balances { vms_here, vms_there: vms_on(cluster, best, vm) }))
}
