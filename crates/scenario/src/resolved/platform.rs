//! What the platform under the database must keep to, as the rest of the program sees it.
//!
//! Owns these types and how they are told to the core that decides, the crate `placement`.

use std::time::Duration;

use history::{HostId, NodeId, PerNode};
use placement::{Capacity, Cluster, Drs, Rule, Vm};
use serde::Serialize;

use super::{Database, Site};

/// What VMs and hosts have, and which rules hold. By default nothing is short and nothing is ruled.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct VmPlatform {
    /// Memory of each host, and what a node's VM takes of it.
    pub memory: Option<Memory>,
    /// Nodes that a host may run at most.
    pub host_nodes: Option<u32>,
    /// Nodes that are started first, the first first.
    pub priority: Vec<NodeId>,
    /// The rules, with indexes of nodes and of the site's hosts.
    pub rules: Vec<Rule>,
    /// Whether the loss of any one host must leave no node without a place.
    pub admits_one_host_failure: bool,
    /// Whether running nodes are moved without anybody asking.
    pub drs: Drs,
    /// What corrects the nodes' wall clocks.
    pub time_service: Option<TimeService>,
    /// What is done with the nodes of a host that reaches no other host; nobody looks when absent.
    pub isolation: Option<IsolationResponse>,
}

/// What is done with the nodes of a host that reaches no other host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum IsolationResponse {
    /// They run on.
    LeaveRunning,
    /// They are switched off, and what follows the loss of a host follows.
    PowerOff,
}

/// A time service on each node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct TimeService {
    /// How it corrects.
    pub how: ClockCorrection,
    /// How often it compares the clock.
    pub poll: Duration,
    /// How long it has seen the clock wrong before it corrects it.
    pub notice: Duration,
}

/// How a time service corrects a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClockCorrection {
    /// At once.
    Step,
    /// By letting it run a little faster or slower.
    Slew,
}

/// Memory of hosts and VMs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Memory {
    /// What each host has for VMs.
    pub host_bytes: u64,
    /// What each node's VM takes.
    pub node_bytes: u64,
}

impl VmPlatform {
    /// The site at the beginning, as the core that decides on placement sees it: every node runs where it was placed.
    #[must_use]
    pub fn cluster(&self, site: &Site, database: &Database) -> Cluster {
        let mut cluster = self.cluster_of(site.hosts.iter().map(super::Host::path), &database.nodes);
        for host in database.storage.iter().flat_map(|storage| &storage.for_storage) {
            cluster.hosts[*host].is_for_storage = true;
        }
        cluster
    }

    pub(crate) fn cluster_of(
        &self,
        hosts: impl Iterator<Item = Vec<String>>,
        nodes: &PerNode<HostId>,
    ) -> Cluster {
        let capacity = Capacity {
            memory_bytes: self.memory.map(|memory| memory.host_bytes),
            vms: self.host_nodes.map(|most| most as usize),
        };
        let vm = |(node, host): (NodeId, &HostId)| Vm {
            memory_bytes: self.memory.map_or(0, |memory| memory.node_bytes),
            rank: self.priority.iter().position(|first| *first == node).unwrap_or(self.priority.len()),
            at: Some(*host),
            moves_to: None,
            last: *host,
            home: *host,
        };
        Cluster {
            hosts: hosts
                .map(|path| placement::Host {
                    path,
                    capacity,
                    is_on: true,
                    is_isolated: false,
                    is_for_storage: false,
                })
                .collect(),
            vms: nodes.numbered().map(vm).collect(),
            rules: self.rules.clone(),
        }
    }
}
