//! Hosts, VMs and rules as they are at a moment.
//!
//! Owns what is free. What follows from it is decided elsewhere.

use history::{HostId, NodeId, PerHost, PerNode};

use crate::rules::Rule;

/// What a host has for VMs; no bound where nothing is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Capacity {
    /// Memory of all VMs on it together.
    pub memory_bytes: Option<u64>,
    /// VMs at most.
    pub vms: Option<usize>,
}

/// A physical machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Host {
    /// Names from the region down to its own.
    pub path: Vec<String>,
    /// What it has.
    pub capacity: Capacity,
    /// Whether it has power.
    pub is_on: bool,
    /// Whether it has power and reaches no other host.
    pub is_isolated: bool,
    /// Whether it is there for storage: VMs run there only where no other host can have them.
    pub is_for_storage: bool,
}

/// A virtual machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vm {
    /// What it takes of its host.
    pub memory_bytes: u64,
    /// Who is started first: the lower number; of equals the first in order.
    pub rank: usize,
    /// Where it runs or is being started; none while it is off.
    pub at: Option<HostId>,
    /// Where it is being moved to while it runs: it takes its room there already, beside that where it is.
    pub moves_to: Option<HostId>,
    /// Where it ran last.
    pub last: HostId,
    /// Where it belongs: where it ran at the beginning.
    pub home: HostId,
}

impl Vm {
    /// Hosts that it takes room of, each once.
    pub(crate) fn places(&self) -> impl Iterator<Item = HostId> {
        self.at.into_iter().chain(self.moves_to.filter(|to| self.at != Some(*to)))
    }
}

/// All of it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Cluster {
    pub hosts: PerHost<Host>,
    pub vms: PerNode<Vm>,
    /// What keeps VMs apart or together.
    pub rules: Vec<Rule>,
}

impl Cluster {
    /// VMs that take room of a host, without one that is to be put there or moved away.
    pub fn others_on(&self, host: HostId, vm: NodeId) -> impl Iterator<Item = NodeId> {
        let on = move |(number, of): (NodeId, &Vm)| {
            let takes_room = of.places().any(|place| place == host);
            (number != vm && takes_room).then_some(number)
        };
        self.vms.numbered().filter_map(on)
    }

    /// How many names the paths of two hosts share, from the region down.
    pub(crate) fn names_shared(&self, one: HostId, other: HostId) -> usize {
        let pair = self.hosts[one].path.iter().zip(&self.hosts[other].path);
        pair.take_while(|(one, other)| one == other).count()
    }

    /// The VM is there from now on.
    pub(crate) fn put(&mut self, vm: NodeId, host: HostId) {
        self.vms[vm].at = Some(host);
        self.vms[vm].last = host;
    }
}
