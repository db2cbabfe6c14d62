//! Whether VMs run where they may: looked at from the outside, without a line of what decides.
//!
//! Owns what is a violation. It is how a defect of the decisions is found, so it shares nothing with them but the types.

use std::collections::BTreeMap;

use history::{HostId, NodeId};

use crate::cluster::Cluster;
use crate::rules::{Bond, Group, Strength};

/// Something that must not be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Violation {
    /// VMs on a host need more memory than it has.
    Memory {
        host: HostId,
        /// What they need.
        needed_bytes: u64,
        /// What it has.
        has_bytes: u64,
    },
    /// More VMs on a host than it may run.
    Full {
        host: HostId,
        /// As many.
        vms: usize,
        /// As it may.
        most: usize,
    },
    /// VMs share what a rule that must hold says they do not.
    Together {
        rule: usize,
        /// One of them.
        one: NodeId,
        other: NodeId,
    },
    /// A VM runs where a rule that must hold does not let it.
    Outside {
        rule: usize,
        vm: NodeId,
        /// Where it runs.
        host: HostId,
    },
}

/// Everything that must not be, as the VMs run now.
#[must_use]
pub fn violations(cluster: &Cluster) -> Vec<Violation> {
    let mut running: BTreeMap<HostId, Vec<NodeId>> = BTreeMap::new();
    for (vm, of) in cluster.vms.numbered() {
        if let Some(host) = of.at {
            running.entry(host).or_default().push(vm);
        }
    }
    let mut found = Vec::new();
    for (host, vms) in &running {
        let capacity = cluster.hosts[*host].capacity;
        let needed_bytes = vms.iter().map(|vm| cluster.vms[*vm].memory_bytes).sum();
        if let Some(has_bytes) = capacity.memory_bytes.filter(|has| *has < needed_bytes) {
            found.push(Violation::Memory { host: *host, needed_bytes, has_bytes });
        }
        if let Some(most) = capacity.vms.filter(|most| *most < vms.len()) {
            found.push(Violation::Full { host: *host, vms: vms.len(), most });
        }
    }
    let must = cluster.rules.iter().enumerate().filter(|(_, rule)| rule.strength == Strength::Must);
    for (rule, of) in must {
        let placed = |vms: &[NodeId]| -> Vec<(NodeId, HostId)> {
            vms.iter().filter_map(|vm| Some((*vm, cluster.vms[*vm].at?))).collect()
        };
        match &of.bond {
            Bond::Apart { vms, by } => {
                let mut first_there: BTreeMap<String, NodeId> = BTreeMap::new();
                for (vm, host) in placed(vms) {
                    let path = &cluster.hosts[host].path;
                    let names = match by {
                        Group::Host => path.len(),
                        Group::Rack => path.len() - 1,
                        Group::Zone => 2.min(path.len()),
                    };
                    match first_there.get(&path[..names].join("/")) {
                        Some(one) => found.push(Violation::Together { rule, one: *one, other: vm }),
                        None => drop(first_there.insert(path[..names].join("/"), vm)),
                    }
                }
            }
            Bond::Within { vms, hosts } => {
                let outside = placed(vms).into_iter().filter(|(_, host)| !hosts.contains(host));
                found.extend(outside.map(|(vm, host)| Violation::Outside { rule, vm, host }));
            }
        }
    }
    found
}
