//! Virtual disks: a node's volume is a file system of our own, which at a power-off loses everything that was not made
//! durable.
//!
//! The name space lives in memory (`tree`), the files' content in a [`Store`] under it. Both remember how things stood
//! when they were last made durable: names in a log of operations (`name_log`), content as the blocks that have been
//! overwritten since (`block_log`). [`Volume`] puts the three together and knows no FUSE and no clock; `fuse` alone
//! speaks to the kernel, `mount` alone mounts.
//!
//! # What is durable when
//!
//! As much is lost as a careful reading of the manuals allows, but nothing that every Linux file system for databases
//! keeps, because databases rely on it:
//!
//! * `fsync(file)`: its content, size, mode, owner, extended attributes, and its names: creations, links and renames of
//!   this file, with what they depend on. POSIX promises no names; ext4, XFS, Btrfs and F2FS keep them.
//! * `fdatasync(file)`: content and size; names only of a file that has no durable name yet, which could not be found
//!   again otherwise, and of one whose size is not the durable one: ext4 commits the transaction of the new size, and all
//!   before it, and XFS forces the log up to the inode's last change.
//! * `fsync(directory)`: all changes of names in it, and what they depend on.
//! * `O_SYNC`, `O_DSYNC`: as if `fsync`, `fdatasync` followed each write.
//! * `sync_file_range`: nothing, as its manual page says. `sync` and `syncfs`: nothing, because the kernel does not tell a
//!   file system in user space of them.
//! * `rename` happens at a power-off either whole or not at all.
//!
//! A volume stands on a [`Disk`] of its host, which may be given a [`Defect`]; what that does to operations is on the
//! first page of `medium`. While a disk loses flushes, what was synced becomes durable with the first sync that it obeys
//! again, as a drive's cache goes out whole. What programs have read before lies in the kernel's memory and is read there,
//! as on any machine whose disk has died.
//!
//! A volume can be remembered and returned to that (`snapshot`), with all that a power-off does not take back: time stamps, and
//! what was synced.
//!
//! Time stamps are not taken back at a power-off. Changes beyond [`Limits`] are made durable, the oldest first, as a kernel writes
//! back what fills its memory; of a file whose size was not the durable one, with its names.

mod admission;
mod adoption;
mod attributes;
mod block_log;
mod content;
mod cpu;
mod dirt;
mod disk;
mod files;
mod fuse;
mod image;
mod loss;
mod lost_flush;
mod medium;
pub mod mirror;
mod mount;
mod name_log;
mod on_disk;
mod owed;
mod power;
mod probe;
mod snapshot;
mod store;
mod succession;
mod sync_habit;
mod tree;
mod turns;
mod undo;
mod volume;
mod waits;

pub use attributes::{Attributes, Change, Kind, Status};
pub use block_log::{BLOCK_BYTES, SECTOR_BYTES};
pub use cpu::{CpuTime, cpu_time_within_syncs};
pub use disk::{DefectGuard, Disk, DiskGroup, DiskTraffic, ModelledSyncs};
pub use files::Files;
pub use medium::{Access, Admitted, Corruption, Defect, SyncTimes};
pub use mount::{Mount, MountError, MountPoint, prepare, serve_unmounted, try_out};
pub use on_disk::{DefectEffects, OnDisk};
pub use probe::{Probe, ProbeError, Seen, Tried};
pub use snapshot::SnapshotError;
pub use store::{Flush, FolderStore, Object, Seek, Space, Store};
pub use succession::{MOVED, ask};
pub use tree::{ROOT, RenameKind};
pub use volume::{Limits, Lost, NewInode, Scope, Volume};
pub use waits::{Living, Waits, Work, elsewhere};

/// What an operation on a volume is refused with: the number that the program asking for it gets.
pub type Refusal = nix::errno::Errno;
