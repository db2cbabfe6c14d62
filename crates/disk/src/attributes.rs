//! What an object of a volume is besides its name and content: kind, mode, owner, times.

use std::time::SystemTime;

use serde::{Deserialize, Serialize};

/// Kind of object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Kind {
    /// Ordinary file.
    File,
    Directory,
    SymbolicLink,
    /// Named pipe.
    Pipe,
    Socket,
    CharacterDevice,
    BlockDevice,
}

/// Mode, owner and times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attributes {
    /// Permissions with the set-user, set-group and sticky bits: the lowest twelve.
    pub mode: u16,
    /// Owner.
    pub user: u32,
    pub group: u32,
    /// When it was last read, as far as anybody set it: reading does not.
    pub accessed: SystemTime,
    /// When its content last changed.
    pub modified: SystemTime,
    /// When anything about it last changed.
    pub changed: SystemTime,
}

/// All mode bits that are kept.
pub(crate) const MODE_BITS: u32 = 0o7777;
/// Set-user and set-group.
pub(crate) const SET_USER: u16 = 0o4000;
/// Set-group.
pub(crate) const SET_GROUP: u16 = 0o2000;
/// Execution by the group: without it, set-group means something else (inode(7)).
pub(crate) const GROUP_EXECUTES: u16 = 0o010;

impl Attributes {
    /// A new object's.
    #[must_use]
    pub fn new(mode: u32, user: u32, group: u32, now: SystemTime) -> Attributes {
        // Cut to twelve bits, so nothing is lost.
        let mode = (mode & MODE_BITS) as u16;
        Attributes { mode, user, group, accessed: now, modified: now, changed: now }
    }

    /// The mode without what lets a program run as its owner or group.
    pub(crate) fn without_privileges(&self) -> u16 {
        let set_group = if self.mode & GROUP_EXECUTES == 0 { 0 } else { SET_GROUP };
        self.mode & !(SET_USER | set_group)
    }
}

/// What is to change about an object; what is `None` stays.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Change {
    /// Permissions.
    pub mode: Option<u32>,
    /// Owner.
    pub user: Option<u32>,
    pub group: Option<u32>,
    /// Size in bytes.
    pub size: Option<u64>,
    /// Time of the last reading.
    pub accessed: Option<SystemTime>,
    /// Time of the last change of content.
    pub modified: Option<SystemTime>,
}

/// What stat(2) tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// The object's number.
    pub inode: u64,
    pub kind: Kind,
    /// Mode, owner, times.
    pub attributes: Attributes,
    /// Size in bytes.
    pub size: u64,
    /// Space taken, in units of 512 bytes.
    pub sectors: u64,
    /// Names it has; for a directory also its own `.` and its children's `..`.
    pub links: u32,
    /// Device number, of a device.
    pub device: u32,
}
