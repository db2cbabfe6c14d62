//! A virtual disk over a folder, which loses at a power-off what was not synced.
//!
//! Owns its mounts from boot to boot. Files on it are the business of the node's init, because the lab must not use a mount
//! that it serves.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use disk::mirror::Dirt;
use disk::{DefectEffects, Disk, FolderStore, Limits, Lost, Mount, MountPoint, OnDisk, SnapshotError};

use crate::mirrored::OpenError;
use crate::rollback::{PowerOffs, Rollback};

/// A virtual disk over a folder.
#[derive(Debug)]
pub struct VirtualDisk {
    volume: Arc<disk::Volume<OnDisk<FolderStore>>>,
    rollback: Rollback,
    past: Mutex<Past>,
}

#[derive(Debug, Default)]
struct Past {
    cpu: Duration,
    last_loss: Option<Result<Lost, String>>,
    /// Why power-offs could not take back what was not durable, of which nobody has been told yet.
    failed_rollbacks: Vec<String>,
}

impl VirtualDisk {
    /// An empty disk over an empty folder, owned by `user`, that stands on a disk of a host.
    #[must_use]
    pub fn new(folder: &Path, user: u32, power_offs: PowerOffs, on: Disk) -> VirtualDisk {
        let store = OnDisk::in_folder(folder, on, true);
        let volume = disk::Volume::new(store, Limits::default(), user, user, SystemTime::now());
        VirtualDisk::of(volume, power_offs)
    }

    /// The disk over this folder as it was at a snapshot, whatever was done to it since.
    ///
    /// # Errors
    /// When there is no such snapshot, or what came back is not what was there.
    pub fn at_snapshot(
        folder: &Path,
        snapshot: &Path,
        power_offs: PowerOffs,
        on: Disk,
    ) -> Result<VirtualDisk, SnapshotError> {
        let store = OnDisk::in_folder(folder, on, true);
        Ok(VirtualDisk::of(disk::Volume::at_snapshot(store, Limits::default(), snapshot)?, power_offs))
    }

    fn of(volume: disk::Volume<OnDisk<FolderStore>>, power_offs: PowerOffs) -> VirtualDisk {
        let rollback = Rollback::new(power_offs);
        VirtualDisk { volume: Arc::new(volume), rollback, past: Mutex::default() }
    }

    /// Remembers all of it, durable or not, in a folder. No boot may be under way.
    pub(crate) fn take_snapshot(&self, folder: &Path) -> Result<(), SnapshotError> {
        self.volume.take_snapshot(folder)
    }

    fn past(&self) -> std::sync::MutexGuard<'_, Past> {
        self.past.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// CPU time of serving all mounts that have ended.
    pub(crate) fn cpu(&self) -> Duration {
        self.past().cpu
    }

    /// What the last power-off took.
    pub(crate) fn last_loss(&self) -> Option<Result<Lost, String>> {
        self.past().last_loss.clone()
    }

    /// The disk it stands on.
    pub(crate) fn disk(&self) -> Disk {
        self.volume.store().disk().clone()
    }

    /// What its operations have met on that disk.
    pub(crate) fn defect_effects(&self) -> DefectEffects {
        self.volume.store().defect_effects()
    }

    /// Takes everything on it as durable now.
    pub(crate) fn take_all_as_durable(&self) {
        self.volume.take_all_as_durable();
    }

    /// Whether the disk it stands on has no defect.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.volume.store().disk().is_sound()
    }

    /// Moves onto it what was made in a folder beside its own, durable from the start.
    ///
    /// # Errors
    /// What the folder's file system says.
    pub fn adopt(&self, folder: &Path) -> io::Result<()> {
        self.volume.adopt(folder)
    }

    /// Gets ready to be mounted for one boot.
    ///
    /// # Errors
    /// When it cannot be served, or the last power-off did not take what it should have taken.
    pub fn prepare(&self) -> Result<(MountPoint, Mount), OpenError> {
        if let Some(Err(why)) = self.last_loss() {
            return Err(OpenError::InDoubt { why });
        }
        Ok(disk::prepare(self.volume.clone())?)
    }

    /// How often the oldest that was not durable became so, because more was not than is remembered.
    pub(crate) fn written_back(&self) -> u64 {
        self.volume.written_back()
    }

    /// Its node is about to lose its power and its host is not: what was synced is in the drive's cache at least.
    pub fn drive_keeps_its_power(&self) {
        self.volume.drive_keeps_its_power();
    }

    /// The boot with this mount is over, and so are its processes: takes back what was not durable.
    ///
    /// # Errors
    /// When the folder's file system refuses; then the disk's content is in doubt.
    pub fn lose(&self, mount: &Mount) -> io::Result<()> {
        let lost = self.rollback.of(&self.volume, &mut Dirt::new());
        self.past().cpu += mount.cpu_time();
        self.note(lost)
    }

    fn note(&self, lost: Result<Lost, disk::Refusal>) -> io::Result<()> {
        let told = lost.map_err(|refusal| refusal.to_string());
        let mut past = self.past();
        past.failed_rollbacks.extend(told.clone().err());
        past.last_loss = Some(told);
        lost.map(drop).map_err(io::Error::from)
    }

    /// Why power-offs could not take back what was not durable since this was last asked.
    pub(crate) fn take_failed_rollbacks(&self) -> Vec<String> {
        std::mem::take(&mut self.past().failed_rollbacks)
    }
}

#[cfg(test)]
mod tests {
    use history::NodeId;

    use super::*;
    use crate::node_volume::NodeVolume;

    #[test]
    fn a_disk_that_could_not_be_brought_back_is_not_mounted_again() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let group = disk::DiskGroup::new(&["d1".to_owned()], None);
        let volume = VirtualDisk::new(folder.path(), 0, PowerOffs::default(), group.capacity[0].clone());
        assert!(volume.note(Err(disk::Refusal::EIO)).is_err());
        assert!(matches!(volume.prepare(), Err(OpenError::InDoubt { .. })));
    }

    #[test]
    fn a_rollback_that_failed_is_told_once_with_the_volume_and_the_error_whoever_cut_the_power() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let group = disk::DiskGroup::new(&["d1".to_owned()], None);
        let volume = VirtualDisk::new(folder.path(), 0, PowerOffs::default(), group.capacity[0].clone());
        assert!(volume.note(Ok(Lost::default())).is_ok());
        assert!(volume.note(Err(disk::Refusal::EIO)).is_err());
        let volume = NodeVolume::Virtual(Box::new(volume));
        let told: Vec<(String, String)> = volume
            .take_failed_rollbacks(NodeId::new(1))
            .into_iter()
            .map(|(part, why)| (part.in_words(), why))
            .collect();
        assert_eq!(told, [("the volume of n2".to_owned(), disk::Refusal::EIO.to_string())]);
        assert!(volume.take_failed_rollbacks(NodeId::new(1)).is_empty());
    }
}
