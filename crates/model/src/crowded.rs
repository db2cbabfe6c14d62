//! Hosts with which several copies of the same data die.

use history::{HostId, NodeId};

use crate::deployment::Deployment;

/// A host with which several copies of the same data die.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crowded {
    pub host: HostId,
    /// Nodes that stand on it.
    pub nodes: Vec<NodeId>,
    /// Other nodes of which a component lies on it.
    pub mirrors: Vec<NodeId>,
}

/// Every host on which copies of several nodes' data lie, one of them a mirror's. Nodes hold replicas of the same data.
#[must_use]
pub fn crowded(deployment: &Deployment) -> Vec<Crowded> {
    let of_host = |host: HostId| {
        let nodes: Vec<NodeId> =
            deployment.nodes.ids().filter(|node| deployment.nodes[*node] == host).collect();
        let lies_here = |node: &NodeId| {
            let volume = deployment.storage.volume(*node).filter(|volume| volume.is_mirrored());
            let here = volume.is_some_and(|volume| volume.components.iter().any(|of| of.host == host));
            here && !nodes.contains(node)
        };
        let mirrors: Vec<NodeId> = deployment.nodes.ids().filter(lies_here).collect();
        (!mirrors.is_empty() && nodes.len() + mirrors.len() > 1).then_some(Crowded { host, nodes, mirrors })
    };
    deployment.hosts.ids().filter_map(of_host).collect()
}
