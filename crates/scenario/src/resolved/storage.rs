//! How nodes' volumes are mirrored and on what, as the rest of the program sees it.
//!
//! Owns these types, not how they are read from YAML. What mirroring does is the business of the crate `disk`.

use std::time::Duration;

use history::{HostId, PerNode};
use serde::Serialize;

pub(crate) const TUNED: &str = "tuned";

/// How nodes' volumes are mirrored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Storage {
    /// Components of each volume.
    pub replicas: u32,
    /// When a sync is acknowledged.
    pub acknowledge: Acknowledge,
    /// What components do not share.
    pub apart: Apart,
    /// How long a component is missed before it is rebuilt elsewhere.
    pub rebuild_after: Duration,
    /// How long a component's answer is waited for.
    pub timeout: Duration,
    /// How long a node waits for the host that serves its volume over the network before the volume counts as lost there.
    pub unreachable_after: Duration,
    /// Whether a component that lacks something may be promoted.
    pub promote: Promotion,
    /// On what.
    pub class: StorageClass,
    /// For each node, hosts: where its volume's components are, its own host first where that holds
    /// one.
    pub components: PerNode<Vec<HostId>>,
    /// Hosts that alone may hold components, in the site's order; none where every host may.
    pub hosts: Vec<HostId>,
    /// Those of them that no node is placed on.
    pub for_storage: Vec<HostId>,
}

impl Storage {
    /// Whether volumes are made of components that talk over the network: several of each, or on hosts of their own.
    #[must_use]
    pub fn is_mirrored(&self) -> bool {
        self.replicas > 1 || !self.hosts.is_empty()
    }
}

/// When a sync is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Acknowledge {
    /// When every live component has made it durable.
    Sync,
    /// When the node's own component has, and every live one has received it.
    Semi,
    /// When the node's own component has.
    Async,
}

impl Acknowledge {
    /// As written in a scenario.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Acknowledge::Sync => "sync",
            Acknowledge::Semi => "semi",
            Acknowledge::Async => "async",
        }
    }
}

/// What components of a volume do not share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Apart {
    /// A host.
    Hosts,
    /// A rack; a zone without racks is one.
    Racks,
}

/// Which component may serve after a loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Promotion {
    /// One that has all that was acknowledged.
    UpToDate,
    /// The best there is.
    Forced,
}

/// On what components lie.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct StorageClass {
    pub name: String,
    /// Whether the log of extents has a device of its own, which needs no flush.
    pub metadata_on_own_device: bool,
    /// Whether a sync is passed on to the machine's disk.
    pub flush: bool,
    /// Bytes under way to a component before writes wait.
    pub buffer_bytes: u64,
}

impl StorageClass {
    pub(crate) fn basic(name: &str) -> StorageClass {
        StorageClass {
            name: name.to_owned(),
            metadata_on_own_device: false,
            flush: true,
            buffer_bytes: 1 << 20,
        }
    }

    pub(crate) fn tuned() -> StorageClass {
        StorageClass {
            name: TUNED.to_owned(),
            metadata_on_own_device: true,
            flush: false,
            buffer_bytes: 10 << 20,
        }
    }
}
