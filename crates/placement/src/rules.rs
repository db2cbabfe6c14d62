//! Rules: VMs that keep apart, VMs that stay within hosts; must and should.
//!
//! Owns what a rule can say. Whether it is broken is for `breaches`.

use history::{HostId, NodeId};
use serde::Serialize;

/// Whether a rule may be broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Strength {
    /// Never: rather than that, a VM stays off.
    Must,
    /// Where nothing else is to be had.
    Should,
}

/// What VMs that keep apart do not share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Group {
    Host,
    /// A rack: all of a host's path but its own name.
    Rack,
    /// A zone: the first two names of it.
    Zone,
}

/// What a rule demands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Bond {
    /// No two of these VMs share a group.
    Apart {
        vms: Vec<NodeId>,
        /// What they do not share.
        by: Group,
    },
    /// These VMs run on these hosts.
    Within { vms: Vec<NodeId>, hosts: Vec<HostId> },
}

/// Which nodes belong together or apart, and how firmly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Rule {
    /// What it demands.
    pub bond: Bond,
    /// Whether it may be broken.
    pub strength: Strength,
}
