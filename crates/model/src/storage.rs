//! What nodes keep their data on, as far as survival needs it: disks in groups, volumes, the components of a mirror.
//!
//! Owns these types. What a failed disk does is in `survival`, which hosts two copies share in `crowded`.

use history::{HostId, NodeId, PerNode};

/// The disks of every host, all hosts alike, and the volume of each node.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Storage {
    /// Groups of a host's disks.
    pub groups: Vec<DiskGroup>,
    /// By node. A node without one keeps its data on something that no disk's failure reaches.
    pub volumes: PerNode<Volume>,
    /// Hosts that are there for components: the platform starts nodes on them last.
    pub for_storage: Vec<HostId>,
}

/// Disks of a host that fail together with the one before them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskGroup {
    /// The cache disk before them, where there is one.
    pub cache: Option<String>,
    /// Those that hold something.
    pub capacity: Vec<String>,
}

/// A node's volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    /// With the same content, each on a disk of a host. A node on the host of one is served by that, on any other by the
    /// first, over the network.
    pub components: Vec<Component>,
    /// The host of the component that service has moved to while the node ran, where it has.
    pub served_from: Option<HostId>,
    /// Whether they are lost to the node when their host is. One that is not outlives its host and is had from everywhere.
    pub fails_with_host: bool,
    /// When a sync is acknowledged.
    pub acknowledge: Acknowledge,
    /// From which component the node may be started elsewhere.
    pub promotion: Promotion,
}

/// Where a component of a volume is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Component {
    pub host: HostId,
    /// The capacity disk it lies on.
    pub disk: String,
}

/// When a sync of a mirrored volume is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Acknowledge {
    /// When it is durable on every component that can be reached.
    Sync,
    /// When every such component has received it: what reached one is carried out there even when the node's host is gone.
    Semi,
    /// When it is durable on the node's own.
    Async,
}

/// From which component a node may be started on another host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Promotion {
    /// Only one that has everything.
    UpToDate,
    /// From any, at the price of what that one lacks.
    Forced,
}

impl Volume {
    /// A volume that is not mirrored and outlives its host.
    #[must_use]
    pub fn alone(host: HostId, disk: &str) -> Volume {
        let components = vec![Component { host, disk: disk.to_owned() }];
        let (acknowledge, promotion) = (Acknowledge::Sync, Promotion::UpToDate);
        Volume { components, served_from: None, fails_with_host: false, acknowledge, promotion }
    }

    /// Whether it has several components.
    #[must_use]
    pub fn is_mirrored(&self) -> bool {
        self.components.len() > 1
    }

    /// The component that serves a node on this host, as long as nothing else has failed.
    #[must_use]
    pub fn serving(&self, host: HostId) -> Option<&Component> {
        let on = |host: HostId| self.components.iter().find(|component| component.host == host);
        self.served_from.and_then(on).or_else(|| on(host)).or(self.components.first())
    }
}

impl Storage {
    /// The volume of a node.
    #[must_use]
    pub fn volume(&self, node: NodeId) -> Option<&Volume> {
        self.volumes.get(node).filter(|volume| !volume.components.is_empty())
    }

    /// The capacity disks behind a cache disk of that name.
    #[must_use]
    pub fn behind(&self, cache: &str) -> &[String] {
        let group = self.groups.iter().find(|group| group.cache.as_deref() == Some(cache));
        group.map_or(&[], |group| &group.capacity)
    }

    /// Every disk that holds a component: host, disk, the cache disk before it, in order and once.
    #[must_use]
    pub fn disks_in_use(&self) -> Vec<(HostId, &str, Option<&str>)> {
        let cache = |disk: &String| {
            let group = self.groups.iter().find(|group| group.capacity.contains(disk));
            group.and_then(|group| group.cache.as_deref())
        };
        let components = self.volumes.iter().flat_map(|volume| &volume.components);
        let mut disks: Vec<_> = components.map(|of| (of.host, of.disk.as_str(), cache(&of.disk))).collect();
        disks.sort_unstable();
        disks.dedup();
        disks
    }
}
