//! The places that are measured: a volume as a node has it, a folder of the file system below, the same folder as the peer
//! shows it.
//!
//! Owns their making and their end, all in a mount namespace of this process's. This process serves the volumes and never
//! uses them.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use anyhow::Context;
use disk::{Disk, Flush, FolderStore, Limits, Mount, OnDisk, Volume};
use nix::mount::{MntFlags, MsFlags, mount, umount2};
use nix::sched::{CloneFlags, unshare};
use tempfile::TempDir;

use super::passthrough::{Mirrored, Passthrough};

/// Takes this process, which must have one thread, into a mount namespace of its own.
///
/// # Errors
/// When the kernel refuses.
pub fn enter_own_mounts() -> anyhow::Result<()> {
    let (user, group) = (nix::unistd::geteuid(), nix::unistd::getegid());
    if user.is_root() {
        unshare(CloneFlags::CLONE_NEWNS)?;
    } else {
        unshare(CloneFlags::CLONE_NEWUSER | CloneFlags::CLONE_NEWNS)?;
        fs::write("/proc/self/setgroups", "deny")?;
        // As themselves: PostgreSQL refuses root.
        fs::write("/proc/self/uid_map", format!("{user} {user} 1"))?;
        fs::write("/proc/self/gid_map", format!("{group} {group} 1"))?;
    }
    mount(None::<&str>, "/", None::<&str>, MsFlags::MS_REC | MsFlags::MS_PRIVATE, None::<&str>)?;
    Ok(())
}

/// A folder beside the build's own, which is on a disk where the temporary folder may be in memory.
///
/// # Errors
/// When it cannot be made.
pub fn folder() -> anyhow::Result<TempDir> {
    let target = crate::target_directory();
    fs::create_dir_all(&target).with_context(|| format!("make {}", target.display()))?;
    tempfile::Builder::new()
        .prefix("bench-disk-")
        .tempdir_in(&target)
        .with_context(|| format!("make a folder in {}", target.display()))
}

/// Bytes that a file of the sequential write takes of the machine's memory, twice on a mount, and as much again.
const BACKED_BYTES: usize = 3 << 29;

/// Has the machine own the memory that the next job will fill. A virtual machine's free memory may not be backed by its
/// host; then its first use costs more than everything that is to be measured (2 s of CPU time a GB where this was found).
pub fn back_memory() {
    let mut memory = vec![0_u8; BACKED_BYTES];
    for byte in memory.iter_mut().step_by(4096) {
        *byte = 1;
    }
    std::hint::black_box(&memory);
}

/// A place to measure in, until it is dropped.
#[derive(Debug)]
pub struct Place {
    kind: Kind,
    /// Where programs find it, each part of the path open to everybody.
    pub path: PathBuf,
    // Order matters: what is mounted goes before what it lies in.
    _shown: TempDir,
    _content: TempDir,
}

#[derive(Debug)]
enum Kind {
    Volume(Mount),
    Folder,
    Mirrored(Mirrored),
}

impl Place {
    /// A volume, its root belonging to `owner`.
    ///
    /// # Errors
    /// When it cannot be mounted.
    pub fn volume(flush: Flush, owner: (u32, u32)) -> anyhow::Result<Place> {
        let (content, shown, path) = folders()?;
        let store = OnDisk::new(FolderStore::new(content.path(), flush), Disk::alone("d1"));
        let volume = Volume::new(store, Limits::default(), owner.0, owner.1, SystemTime::now());
        let (point, mount) = disk::prepare(Arc::new(volume))?;
        point.mount_over(&path)?;
        Ok(Place { kind: Kind::Volume(mount), path, _shown: shown, _content: content })
    }

    /// A folder of the file system below, belonging to `owner`.
    ///
    /// # Errors
    /// When it cannot be made or bound.
    pub fn folder(owner: (u32, u32)) -> anyhow::Result<Place> {
        let (content, shown, path) = folders()?;
        give(content.path(), owner)?;
        mount(Some(content.path()), &path, None::<&str>, MsFlags::MS_BIND, None::<&str>)
            .with_context(|| format!("bind {}", path.display()))?;
        Ok(Place { kind: Kind::Folder, path, _shown: shown, _content: content })
    }

    /// A folder of the file system below, belonging to `owner`, as the peer shows it.
    ///
    /// # Errors
    /// When it cannot be mounted.
    pub fn mirrored(peer: &Passthrough, owner: (u32, u32)) -> anyhow::Result<Place> {
        let (content, shown, path) = folders()?;
        give(content.path(), owner)?;
        let mirrored = peer.mount(content.path(), &path, owner)?;
        Ok(Place { kind: Kind::Mirrored(mirrored), path, _shown: shown, _content: content })
    }

    /// Whether who serves it is a child process of this one.
    #[must_use]
    pub fn is_served_by_a_child(&self) -> bool {
        matches!(self.kind, Kind::Mirrored(_))
    }

    /// CPU seconds of who serves it, so far.
    ///
    /// # Errors
    /// When nobody serves it any more.
    pub fn serving_cpu_s(&self) -> anyhow::Result<f64> {
        match &self.kind {
            Kind::Volume(mount) => Ok(mount.cpu_time().as_secs_f64()),
            Kind::Folder => Ok(0.0),
            Kind::Mirrored(mirrored) => mirrored.cpu_s(),
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // Where it stays mounted, it goes with the namespace.
        let _ = umount2(&self.path, MntFlags::MNT_DETACH);
    }
}

fn give(folder: &Path, owner: (u32, u32)) -> anyhow::Result<()> {
    if nix::unistd::geteuid().is_root() {
        chown(folder, Some(owner.0), Some(owner.1))?;
    }
    Ok(())
}

/// Where the content lies, and where it is shown.
fn folders() -> anyhow::Result<(TempDir, TempDir, PathBuf)> {
    let content = folder()?;
    let shown = tempfile::Builder::new().prefix("holdfast-bench-").tempdir().context("a folder")?;
    open_to_all(shown.path())?;
    let path = shown.path().join("place");
    fs::create_dir(&path)?;
    Ok((content, shown, path))
}

/// Everybody may enter a folder and read it.
///
/// # Errors
/// When it is not this user's.
pub fn open_to_all(folder: &Path) -> anyhow::Result<()> {
    Ok(fs::set_permissions(folder, fs::Permissions::from_mode(0o755))?)
}
