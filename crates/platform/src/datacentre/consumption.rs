//! What the nodes have used of the machine: processor time over all their boots, and memory now.

use std::collections::BTreeMap;
use std::time::Duration;

use history::PerNode;
use lab::accounting::NamespaceUse;

use super::Datacentre;
use crate::vm::Vm;

impl Datacentre {
    /// CPU time of all VMs so far, and of the node that controls their cluster.
    ///
    /// # Errors
    /// When `/proc` cannot be read.
    pub fn cpu_of_vms(&self) -> std::io::Result<Duration> {
        let by_namespace = lab::accounting::use_by_pid_namespace()?;
        Ok(self.vms.iter().chain(&self.control).map(|vm| used_by(vm, &by_namespace).cpu).sum())
    }

    /// What the processes of each VM have used so far, earlier boots included, and what they hold now.
    ///
    /// # Errors
    /// When `/proc` cannot be read.
    pub fn use_by_vm(&self) -> std::io::Result<PerNode<NamespaceUse>> {
        let by_namespace = lab::accounting::use_by_pid_namespace()?;
        Ok(self.vms.iter().map(|vm| used_by(vm, &by_namespace)).collect())
    }
}

/// What a VM has used in all its boots, and what it holds now.
fn used_by(vm: &Vm, by_namespace: &BTreeMap<u64, NamespaceUse>) -> NamespaceUse {
    let live = vm.pid_namespace().and_then(|namespace| by_namespace.get(&namespace)).copied();
    let mut used = live.unwrap_or_default();
    used.cpu += vm.cpu_of_past_boots();
    used
}
