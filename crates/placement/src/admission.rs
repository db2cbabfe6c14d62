//! Admission: whether every VM would find a place if hosts were lost.
//!
//! Owns the question on paper, with the same decisions that are made when it happens.

use history::{HostId, NodeId};

use crate::choice::{Data, Wanted, start};
use crate::cluster::Cluster;
use crate::reasons::{Decision, Left, Obstacle};

/// A VM that would stay off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stranded {
    /// Which.
    pub vm: NodeId,
    /// What would stand against each host, in their order.
    pub obstacles: Vec<(HostId, Obstacle)>,
}

/// VMs that would stay off if these hosts were lost at once.
#[must_use]
pub fn stranded_by(cluster: &Cluster, lost: &[HostId]) -> Vec<Stranded> {
    let mut cluster = cluster.clone();
    for host in lost {
        cluster.hosts[*host].is_on = false;
    }
    let mut wanted = Vec::new();
    for (vm, of) in cluster.vms.numbered_mut() {
        if of.at.is_some_and(|host| lost.contains(&host)) {
            of.at = None;
            let tried = Default::default();
            wanted.push(Wanted { vm, left: Left::Host, data: Data::Anywhere, only: None, tried });
        }
    }
    let stays_off = |decision| match decision {
        Decision::Wait { vm, obstacles } => Some(Stranded { vm, obstacles }),
        Decision::Start { .. } | Decision::Move { .. } => None,
    };
    start(&cluster, &wanted).into_iter().filter_map(stays_off).collect()
}
