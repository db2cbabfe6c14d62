//! What a VM keeps its data on: a virtual disk that loses at a power-off what was not synced, or a plain directory.
//!
//! Owns which of the two it is, its mounts from boot to boot, and what each power-off took. Files on it are the business
//! of the node's init, because the lab must not use a mount that it serves.

mod component;
mod conversation;
mod initiator;
pub mod mirrored;
mod moving;
pub mod on_disks;
pub mod opening;
pub mod place;
mod rebuild;
pub mod result;
mod resync;
pub mod rollback;
mod silence;
pub mod standing;
pub mod syncs;
mod target;
mod threads;
pub mod watch;

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use disk::mirror::Dirt;
use disk::{Disk, Flush, FolderStore, Limits, Lost, Mount, MountError, MountPoint, OnDisk};
use history::Verdict;

use mirrored::MirroredDisk;
use rollback::{PowerOffs, Rollback};

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
}

impl VirtualDisk {
    /// An empty disk over an empty folder, owned by `user`, that stands on a disk of a host.
    #[must_use]
    pub fn new(folder: &Path, user: u32, power_offs: PowerOffs, on: Disk) -> VirtualDisk {
        // Syncs are passed on to the machine's disk: a commit costs what it costs there.
        let store = OnDisk::new(FolderStore::new(folder, Flush::Real), on);
        let volume = disk::Volume::new(store, Limits::default(), user, user, SystemTime::now());
        let rollback = Rollback::new(power_offs);
        VirtualDisk { volume: Arc::new(volume), rollback, past: Mutex::default() }
    }

    fn past(&self) -> std::sync::MutexGuard<'_, Past> {
        self.past.lock().unwrap_or_else(PoisonError::into_inner)
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
    /// When it cannot be served.
    pub fn prepare(&self) -> Result<(MountPoint, Mount), MountError> {
        disk::prepare(self.volume.clone())
    }

    /// The boot with this mount is over, and so are its processes: takes back what was not durable.
    ///
    /// # Errors
    /// When the folder's file system refuses; then the disk's content is in doubt.
    pub fn lose(&self, mount: &Mount) -> io::Result<()> {
        let lost = self.rollback.of(&self.volume, &mut Dirt::new());
        let mut past = self.past();
        past.cpu += mount.cpu_time();
        past.last_loss = Some(lost.map_err(|refusal| refusal.to_string()));
        lost.map(drop).map_err(io::Error::from)
    }
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
            NodeVolume::Virtual(disk) => disk.past().cpu,
            NodeVolume::Mirrored(disk) => disk.cpu(),
        }
    }

    /// The host's disk it stands on; none for a directory.
    #[must_use]
    pub fn disk(&self) -> Option<Disk> {
        match self {
            NodeVolume::Directory => None,
            NodeVolume::Virtual(disk) => Some(disk.volume.store().disk().clone()),
            NodeVolume::Mirrored(disk) => disk.disk(),
        }
    }

    /// Takes everything on it as durable now.
    pub fn take_all_as_durable(&self) {
        match self {
            NodeVolume::Directory => {}
            NodeVolume::Virtual(disk) => disk.volume.take_all_as_durable(),
            NodeVolume::Mirrored(disk) => disk.take_all_as_durable(),
        }
    }

    /// What the last power-off took, as evidence; nothing for a directory, or before any.
    #[must_use]
    pub fn last_loss(&self, node: &str) -> Option<(Verdict, String)> {
        let last_loss = match self {
            NodeVolume::Directory => None,
            NodeVolume::Virtual(disk) => disk.past().last_loss.clone(),
            NodeVolume::Mirrored(disk) => disk.last_loss(),
        };
        Some(loss_in_words(&format!("the volume of {node}"), &last_loss?))
    }
}

/// What a power-off took, as evidence.
fn loss_in_words(what: &str, lost: &Result<Lost, String>) -> (Verdict, String) {
    match lost {
        Ok(lost) => (Verdict::Pass, in_words(what, lost)),
        Err(why) => {
            (Verdict::Unknown, format!("{what} could not be brought back to what was durable: {why}"))
        }
    }
}

fn in_words(what: &str, lost: &Lost) -> String {
    let mut parts = Vec::new();
    let mut say = |count: u64, one: &str, many: &str| {
        if count > 0 {
            parts.push(format!("{count} {}", if count == 1 { one } else { many }));
        }
    };
    say(lost.blocks_restored, "overwritten block of 4 KiB", "overwritten blocks of 4 KiB");
    say(lost.bytes_cut, "appended byte", "appended bytes");
    say(lost.operations, "change of names", "changes of names");
    say(lost.attributes, "change of mode, owner or attributes", "changes of mode, owner or attributes");
    let torn = match lost.sectors_survived {
        0 => String::new(),
        sectors => format!("; of its last write {sectors} sectors survived"),
    };
    if parts.is_empty() {
        return format!("{what} lost nothing: all was synced{torn}");
    }
    format!("{what} lost what was not synced: {}{torn}", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(lost: Lost, expected: &str) {
        assert_eq!(in_words("the volume of n1", &lost), expected);
    }

    #[test]
    fn a_loss_is_told_by_what_was_lost() {
        check(Lost::default(), "the volume of n1 lost nothing: all was synced");
        check(
            Lost { blocks_restored: 3, bytes_cut: 1, files: 2, ..Lost::default() },
            "the volume of n1 lost what was not synced: 3 overwritten blocks of 4 KiB, 1 appended byte",
        );
        check(
            Lost { operations: 1, sectors_survived: 5, ..Lost::default() },
            "the volume of n1 lost what was not synced: 1 change of names; of its last write 5 sectors survived",
        );
    }
}
