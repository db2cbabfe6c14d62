//! Rules that one VM would break on one host while the others stand as they do.

use history::{HostId, NodeId};

use crate::cluster::Cluster;
use crate::rules::{Bond, Group, Strength};

/// How a VM on a host would break a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Breach {
    pub(crate) rule: usize,
    /// The VM it would share a group with.
    pub(crate) with: Option<NodeId>,
}

impl Cluster {
    /// The group that a host stands in.
    pub(crate) fn group(&self, host: HostId, by: Group) -> &[String] {
        let path = &self.hosts[host].path;
        match by {
            Group::Host => path,
            Group::Rack => &path[..path.len().saturating_sub(1)],
            Group::Zone => &path[..path.len().min(2)],
        }
    }

    /// The rules of a strength that the VM would break on the host.
    pub(crate) fn breaches(&self, vm: NodeId, host: HostId, strength: Strength) -> Vec<Breach> {
        let rules = self.rules.iter().enumerate().filter(|(_, rule)| rule.strength == strength);
        rules.filter_map(|(number, rule)| self.breach((number, &rule.bond), vm, host)).collect()
    }

    fn breach(&self, (rule, bond): (usize, &Bond), vm: NodeId, host: HostId) -> Option<Breach> {
        match bond {
            Bond::Within { vms, hosts } => {
                let breaks = vms.contains(&vm) && !hosts.contains(&host);
                breaks.then_some(Breach { rule, with: None })
            }
            Bond::Apart { vms, by } if vms.contains(&vm) => {
                let group = self.group(host, *by);
                let shares = |other: &&NodeId| {
                    let mut places = self.vms[**other].places();
                    **other != vm && places.any(|place| self.group(place, *by) == group)
                };
                vms.iter().find(shares).map(|with| Breach { rule, with: Some(*with) })
            }
            Bond::Apart { .. } => None,
        }
    }
}
