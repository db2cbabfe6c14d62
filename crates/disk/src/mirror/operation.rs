//! What is said between components: every change of a volume, and what a component that was away is told to catch up.
//!
//! Owns the messages, how they are written, and carrying them out on a component's volume. When which is said is for
//! `peers`.
//!
//! A message is postcard's encoding (postcard.jamesmunns.com/wire-format) after its length in four bytes, the least first.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::Refusal;
use crate::attributes::{Attributes, Change, Kind};
use crate::image::Image;
use crate::medium::Access;
use crate::store::Store;
use crate::tree::RenameKind;
use crate::volume::{NewInode, Scope, Volume};

/// Bytes of a message at most: a request of the kernel has a megabyte, and a directory of 10,000 names less.
pub(crate) const MESSAGE_BYTES_MAX: usize = 64 << 20;
/// Bytes before a message that tell its length.
pub(crate) const LENGTH_BYTES: usize = 4;

/// A message from the component that serves to another.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Message<'a> {
    /// Counts from 1; answers name it.
    pub(crate) sequence: u64,
    #[serde(borrow)]
    pub(crate) operation: Operation<'a>,
}

/// What a component is told to do. Objects have the same numbers on all components.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum Operation<'a> {
    Make {
        directory: u64,
        #[serde(with = "serde_bytes")]
        name: &'a [u8],
        number: u64,
        #[serde(borrow)]
        new: New<'a>,
        attributes: Attributes,
    },
    Link {
        number: u64,
        directory: u64,
        #[serde(with = "serde_bytes")]
        name: &'a [u8],
        now: SystemTime,
    },
    Remove {
        directory: u64,
        #[serde(with = "serde_bytes")]
        name: &'a [u8],
        is_directory: bool,
        now: SystemTime,
    },
    Rename {
        directory: u64,
        #[serde(with = "serde_bytes")]
        name: &'a [u8],
        new_directory: u64,
        #[serde(with = "serde_bytes")]
        new_name: &'a [u8],
        kind: RenameKind,
        now: SystemTime,
    },
    Change {
        number: u64,
        change: Change,
        now: SystemTime,
    },
    SetExtended {
        number: u64,
        #[serde(with = "serde_bytes")]
        name: &'a [u8],
        #[serde(with = "serde_bytes")]
        value: Option<&'a [u8]>,
        now: SystemTime,
    },
    Write {
        number: u64,
        offset: u64,
        #[serde(with = "serde_bytes")]
        content: &'a [u8],
        by_unprivileged: bool,
        now: SystemTime,
    },
    Allocate {
        number: u64,
        mode: i32,
        offset: u64,
        bytes: u64,
        now: SystemTime,
    },
    Sync {
        number: u64,
        scope: Scope,
    },
    /// Catching up begins: what is there is durable from here on.
    Begin,
    /// An object as it is, without content.
    Object(Image),
    /// Content as it is, of a file that is known.
    Content {
        number: u64,
        from: u64,
        #[serde(with = "serde_bytes")]
        content: &'a [u8],
    },
    /// Catching up ends: all is durable, and what no name leads to is gone.
    End,
}

/// What a new object is.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) enum New<'a> {
    File,
    Directory,
    SymbolicLink(#[serde(with = "serde_bytes")] &'a [u8]),
    Device(Kind, u32),
}

impl<'a> New<'a> {
    pub(crate) fn of(new: &'a NewInode) -> New<'a> {
        match new {
            NewInode::File => New::File,
            NewInode::Directory => New::Directory,
            NewInode::SymbolicLink(target) => New::SymbolicLink(target.as_bytes()),
            NewInode::Device(kind, device) => New::Device(*kind, *device),
        }
    }

    pub(crate) fn to_inode(&self) -> NewInode {
        match self {
            New::File => NewInode::File,
            New::Directory => NewInode::Directory,
            New::SymbolicLink(target) => NewInode::SymbolicLink(OsString::from_vec(target.to_vec())),
            New::Device(kind, device) => NewInode::Device(*kind, *device),
        }
    }
}

/// Writes something with its length before it.
pub(crate) fn framed(message: &impl Serialize, room: usize) -> Result<Vec<u8>, postcard::Error> {
    let mut frame = Vec::with_capacity(LENGTH_BYTES + room);
    frame.resize(LENGTH_BYTES, 0);
    let mut frame = postcard::to_extend(message, frame)?;
    // Far below four gigabytes.
    let length = (frame.len() - LENGTH_BYTES) as u32;
    frame[..LENGTH_BYTES].copy_from_slice(&length.to_le_bytes());
    Ok(frame)
}

impl Operation<'_> {
    /// How many bytes it carries, to make room for.
    pub(crate) fn payload_bytes(&self) -> usize {
        match self {
            Operation::Write { content, .. } | Operation::Content { content, .. } => content.len() + 64,
            _ => 256,
        }
    }

    /// Carries it out. What a component refuses that the one that serves did is a difference between them.
    pub(crate) fn carry_out<S: Store>(&self, volume: &Volume<S>) -> Result<(), Refusal> {
        let os = OsStr::from_bytes;
        match self {
            Operation::Make { directory, name, number, new, attributes } => {
                let made = volume.make_numbered(
                    *directory,
                    os(name),
                    Some(*number),
                    &new.to_inode(),
                    *attributes,
                )?;
                // Nobody here knows of it.
                volume.forget(made.inode, 1);
                Ok(())
            }
            Operation::Link { number, directory, name, now } => {
                volume.link(*number, *directory, os(name), *now)?;
                volume.forget(*number, 1);
                Ok(())
            }
            Operation::Remove { directory, name, is_directory, now } => {
                volume.remove(*directory, os(name), *is_directory, *now)
            }
            Operation::Rename { directory, name, new_directory, new_name, kind, now } => {
                volume.rename((*directory, os(name)), (*new_directory, os(new_name)), *kind, *now)
            }
            Operation::Change { number, change, now } => nameless(volume.change(*number, change, *now)),
            Operation::SetExtended { number, name, value, now } => {
                nameless(volume.set_extended(*number, os(name), *value, None, *now))
            }
            Operation::Write { number, offset, content, by_unprivileged, now } => {
                nameless(volume.write(*number, *offset, content, None, *by_unprivileged, *now))
            }
            Operation::Allocate { number, mode, offset, bytes, now } => {
                nameless(volume.allocate(*number, *mode, *offset, *bytes, *now))
            }
            Operation::Sync { number, scope } => nameless(volume.sync(*number, *scope)),
            Operation::Begin => {
                // A disk that takes nothing says so before anything is sent that others would wait for.
                volume.admit(Access::Change)?;
                volume.begin_copy();
                Ok(())
            }
            Operation::Object(image) => volume.install(image),
            Operation::Content { number, from, content } => volume.install_content(*number, *from, content),
            Operation::End => volume.end_copy(),
        }
    }
}

/// An object that has lost its last name for good is gone here, and lives on where it is open.
fn nameless<T>(result: Result<T, Refusal>) -> Result<(), Refusal> {
    match result {
        Ok(_) | Err(Refusal::ESTALE) => Ok(()),
        Err(refusal) => Err(refusal),
    }
}
