//! The volumes of VMs: what each is made of when the datacentre is built, and what becomes of all of them at once.
//!
//! Owns the choice. What a volume does is `storage`'s.

use std::sync::Arc;
use std::time::Duration;

use faults::Lie;
use history::{HostId, NodeId, PerHost};
use lab::protocol::{NODE_USER, NodeSetUp};
use storage::{HostPlace, MirroredDisk, NodeVolume, Plan, PowerOffs, VirtualDisk};

use super::{BuildSettings, Datacentre, DatacentreError, Host};
use crate::folders::Folders;

/// How long components may take to have all that was prepared.
const COMPONENTS_SETTLE: Duration = Duration::from_secs(60);

/// What the nodes' volumes hold before the first boot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VolumeContent {
    /// Nothing.
    Empty,
    /// What they held when their snapshots were taken that lie beside them.
    AtSnapshot,
}

impl Datacentre {
    /// A node's volume, with what is to be on it.
    pub(super) fn node_volume(
        &self,
        set_up: &NodeSetUp,
        node: NodeId,
        (scenario, settings): (&scenario::Scenario, &BuildSettings<'_>),
    ) -> Result<NodeVolume, DatacentreError> {
        // In a lab of an ordinary user, whoever has another number inside is root's number to those who serve.
        let user = if settings.users_mapped { NODE_USER } else { 0 };
        let is_torn = settings.volumes == scenario::Volumes::Torn;
        let torn_by = is_torn.then(|| settings.seed.wrapping_add(node.index() as u64));
        let power_offs = PowerOffs { torn_by, keep_unsynced: settings.planted.contains(&Lie::NoRollback) };
        let storage = scenario.database.storage.as_ref();
        let mirrored = storage
            .filter(|storage| storage.is_mirrored())
            .filter(|_| settings.volumes != scenario::Volumes::Directory);
        if let Some(storage) = mirrored {
            let folder = &set_up.volume;
            let failed = |source| DatacentreError::Component { place: set_up.name.clone(), source };
            let place = |(number, host): (HostId, &Host)| {
                let namespace = host.attachment.namespace.try_clone()?;
                let disk = self.disks.for_volume(number, node.index());
                Ok(Arc::new(HostPlace { name: host.name(), namespace, address: host.address, disk }))
            };
            let hosts: std::io::Result<PerHost<Arc<HostPlace>>> = self.hosts.numbered().map(place).collect();
            let plan = Plan { folder, node, storage, hosts: hosts.map_err(failed)?, user, power_offs };
            return Ok(NodeVolume::Mirrored(MirroredDisk::make(&plan).map_err(failed)?));
        }
        if settings.volumes == scenario::Volumes::Directory {
            return Ok(NodeVolume::Directory);
        }
        let host = scenario.database.nodes[node];
        let earlier =
            scenario.database.nodes.iter().take(node.index()).filter(|other| **other == host).count();
        let on = self.disks.for_volume(host, earlier);
        if settings.planted.contains(&Lie::SyncedLost) {
            // Never healed: the defect of a lie lasts as long as its disk.
            std::mem::forget(on.impose(disk::Defect::LoseFlush));
        }
        let disk = match settings.content {
            VolumeContent::Empty => VirtualDisk::new(&set_up.volume, user, power_offs, on),
            VolumeContent::AtSnapshot => {
                let snapshot = settings.folders.snapshot_of(&set_up.name)?;
                let failed = |source| DatacentreError::Snapshot { node: set_up.name.clone(), source };
                VirtualDisk::at_snapshot(&set_up.volume, &snapshot, power_offs, on).map_err(failed)?
            }
        };
        Ok(NodeVolume::Virtual(Box::new(disk)))
    }

    /// Cuts the power of all VMs and remembers their volumes with all that is on them, durable or not, beside them.
    ///
    /// # Errors
    /// When a volume has no snapshots, or its cannot be written.
    pub fn take_snapshots(&self, folders: &Folders) -> Result<(), DatacentreError> {
        self.take_volumes_as_durable();
        for (number, vm) in self.vms.numbered() {
            self.power_off_vm(number)?;
            let failed = |source| DatacentreError::Snapshot { node: vm.name().to_owned(), source };
            vm.volume().take_snapshot(&folders.snapshot_of(vm.name())?).map_err(failed)?;
        }
        Ok(())
    }

    /// Takes everything on the volumes as durable: what was prepared is taken to lie on the disks for long.
    pub fn take_volumes_as_durable(&self) {
        for vm in &self.vms {
            // One that does not settle has components that lack something, which is told as it comes.
            let settled = vm.volume().mirrored().is_none_or(|disk| disk.settle(COMPONENTS_SETTLE));
            if settled {
                vm.volume().take_all_as_durable();
            }
        }
    }
}

/// Whether nodes have virtual disks of one component and nothing on them, on which a new database can be put without going
/// through the mount.
pub(super) fn is_new_virtual_disk(scenario: &scenario::Scenario, settings: &BuildSettings<'_>) -> bool {
    let storage = scenario.database.storage.as_ref();
    let mirrored = storage.is_some_and(scenario::Storage::is_mirrored);
    let is_virtual = settings.volumes != scenario::Volumes::Directory && !mirrored;
    // What a cluster's pods begin with is on their volumes only.
    is_virtual && settings.content == VolumeContent::Empty && settings.containers.is_none()
}
