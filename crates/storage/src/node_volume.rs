//! What a VM keeps its data on: a virtual disk that loses at a power-off what was not synced, or a plain directory.
//!
//! Owns which of the two it is, its mounts from boot to boot, and what each power-off took. Files on it are the business
//! of the node's init, because the lab must not use a mount that it serves.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use disk::{DefectEffects, Disk, SnapshotError};
use history::{HostId, NodeId, Verdict};

use crate::loss::loss_in_words;
use crate::mirrored::MirroredDisk;
use crate::part::VolumePart;
use crate::virtual_disk::VirtualDisk;
use crate::whereabouts::Whereabouts;

/// A VM's volume.
#[derive(Debug)]
pub enum NodeVolume {
    /// A plain directory: a power-off takes nothing back.
    Directory,
    /// A virtual disk.
    Virtual(Box<VirtualDisk>),
    /// One with components on several hosts.
    Mirrored(Arc<MirroredDisk>),
}

impl NodeVolume {
    /// The mirrored volume, where it is one.
    #[must_use]
    pub fn mirrored(&self) -> Option<&MirroredDisk> {
        match self {
            NodeVolume::Mirrored(disk) => Some(disk),
            _ => None,
        }
    }

    /// CPU time of serving all mounts that have ended.
    #[must_use]
    pub fn cpu_of_past_mounts(&self) -> Duration {
        match self {
            NodeVolume::Directory => Duration::ZERO,
            NodeVolume::Virtual(disk) => disk.cpu(),
            NodeVolume::Mirrored(disk) => disk.cpu(),
        }
    }

    /// Where its unsynced data is, as far as it has components.
    #[must_use]
    pub fn whereabouts(&self) -> Whereabouts {
        match self {
            NodeVolume::Directory => Whereabouts::default(),
            NodeVolume::Virtual(disk) => Whereabouts::of_one(disk.written_back()),
            NodeVolume::Mirrored(disk) => Whereabouts::of(&disk.states(), disk.written_back()),
        }
    }

    /// The host's disk it stands on; none for a directory.
    #[must_use]
    pub fn disk(&self) -> Option<Disk> {
        match self {
            NodeVolume::Directory => None,
            NodeVolume::Virtual(disk) => Some(disk.disk()),
            NodeVolume::Mirrored(disk) => disk.disk(),
        }
    }

    /// Its node is about to lose its power, and the host that it is served from is not.
    pub fn drive_keeps_its_power(&self) {
        match self {
            NodeVolume::Directory => {}
            NodeVolume::Virtual(disk) => disk.drive_keeps_its_power(),
            NodeVolume::Mirrored(disk) => disk.drive_keeps_its_power(),
        }
    }

    /// Takes everything on it as durable now.
    pub fn take_all_as_durable(&self) {
        match self {
            NodeVolume::Directory => {}
            NodeVolume::Virtual(disk) => disk.take_all_as_durable(),
            NodeVolume::Mirrored(disk) => disk.take_all_as_durable(),
        }
    }

    /// Remembers all of it in a folder, to be returned to later. Its node must have no power.
    ///
    /// # Errors
    /// When that cannot be written, or this is no virtual disk of one component.
    pub fn take_snapshot(&self, folder: &Path) -> Result<(), SnapshotError> {
        match self {
            NodeVolume::Directory => Err(SnapshotError::NotPossible { what: "a plain directory" }),
            NodeVolume::Virtual(disk) => disk.take_snapshot(folder),
            NodeVolume::Mirrored(_) => Err(SnapshotError::NotPossible { what: "a mirrored volume" }),
        }
    }

    /// What the last power-off took, as evidence; nothing for a directory, or before any.
    #[must_use]
    pub fn last_loss(&self, node: &str) -> Option<(Verdict, String)> {
        let last_loss = match self {
            NodeVolume::Directory => None,
            NodeVolume::Virtual(disk) => disk.last_loss(),
            NodeVolume::Mirrored(disk) => disk.last_loss(),
        };
        Some(loss_in_words(&format!("the volume of {node}"), &last_loss?))
    }

    /// Each time it, or a component of it, could not be brought back to what was durable since this was last asked, and why.
    /// `vm` is whose it is.
    #[must_use]
    pub fn take_failed_rollbacks(&self, vm: NodeId) -> Vec<(VolumePart, String)> {
        let failed: Vec<(Option<(usize, String)>, String)> = match self {
            NodeVolume::Directory => Vec::new(),
            NodeVolume::Virtual(disk) => {
                disk.take_failed_rollbacks().into_iter().map(|why| (None, why)).collect()
            }
            NodeVolume::Mirrored(disk) => {
                let failed = disk.take_failed_rollbacks().into_iter();
                failed.map(|(component, why)| (Some(component), why)).collect()
            }
        };
        failed.into_iter().map(|(component, why)| (VolumePart { vm, component }, why)).collect()
    }

    /// Names of the disks that it, or a component of it, lies on.
    #[must_use]
    pub fn disks(&self) -> BTreeSet<String> {
        match self {
            NodeVolume::Mirrored(mirrored) => mirrored.disks(),
            _ => self.disk().iter().map(|disk| disk.name().to_owned()).collect(),
        }
    }

    /// What of it lies on one of these disks. `vm` is whose it is.
    #[must_use]
    pub fn parts_on(&self, vm: NodeId, disks: &BTreeSet<String>) -> Vec<VolumePart> {
        let NodeVolume::Mirrored(mirrored) = self else {
            let is_there = self.disk().is_some_and(|under| disks.contains(under.name()));
            return is_there.then_some(VolumePart { vm, component: None }).into_iter().collect();
        };
        let components = mirrored.components_on(disks).into_iter();
        components.map(|component| VolumePart { vm, component: Some(component) }).collect()
    }

    /// What operations of it have met on its disk so far.
    #[must_use]
    pub fn defect_effects_on(&self, part: &VolumePart) -> Option<DefectEffects> {
        match (self, &part.component) {
            (NodeVolume::Directory, _) => None,
            (NodeVolume::Virtual(disk), _) => Some(disk.defect_effects()),
            (NodeVolume::Mirrored(disk), component) => disk.defect_effects_on(component.as_ref()?.0),
        }
    }

    /// What the power-off of these hosts has just taken from components on them, as evidence; but for the one that served,
    /// of which the volume itself tells. `vm` is whose it is.
    #[must_use]
    pub fn losses_of_copies(&self, vm: NodeId, hosts: &[HostId]) -> Vec<(Verdict, String)> {
        let copies =
            self.mirrored().map(|mirrored| mirrored.copies_on(hosts)).unwrap_or_default().into_iter();
        copies
            .map(|(component, lost)| {
                loss_in_words(&VolumePart { vm, component: Some(component) }.in_words(), &lost)
            })
            .collect()
    }
}
