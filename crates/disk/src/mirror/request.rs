//! What a host without a component asks the host of the one that serves: every operation of a mounted volume, and its answer.
//!
//! Owns the words and carrying them out on what serves; who carries them over the network, and what becomes of one whose answer
//! is lost on the way, is for the carrier. They are written as the messages between components are, in postcard's encoding.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::Refusal;
use crate::attributes::{Attributes, Change, Kind, Status};
use crate::files::Files;
use crate::mirror::operation::New;
use crate::store::{Seek, Space};
use crate::succession::MOVED;
use crate::tree::RenameKind;
use crate::volume::Scope;

/// Bytes of one read at most, as the kernel asks for them: what is read for a stranger is held to it.
const READ_BYTES_MAX: u32 = 4 << 20;

/// An operation of [`Files`], by its name there.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Request<'a> {
    LookUp {
        directory: u64,
        #[serde(with = "serde_bytes")]
        name: &'a [u8],
    },
    Forget {
        number: u64,
        times: u64,
    },
    Status(u64),
    Change {
        number: u64,
        change: Change,
        now: SystemTime,
    },
    Make {
        directory: u64,
        #[serde(with = "serde_bytes")]
        name: &'a [u8],
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
    Target(u64),
    List(u64),
    Extended {
        number: u64,
        #[serde(with = "serde_bytes")]
        name: &'a [u8],
    },
    ListExtended(u64),
    SetExtended {
        number: u64,
        #[serde(with = "serde_bytes")]
        name: &'a [u8],
        #[serde(with = "serde_bytes")]
        value: Option<&'a [u8]>,
        must_exist: Option<bool>,
        now: SystemTime,
    },
    Space,
    Open(u64),
    Release(u64),
    Read {
        number: u64,
        offset: u64,
        bytes: u32,
    },
    Write {
        number: u64,
        offset: u64,
        #[serde(with = "serde_bytes")]
        content: &'a [u8],
        through: Option<Scope>,
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
    Seek {
        number: u64,
        offset: u64,
        to: Seek,
    },
    Sync {
        number: u64,
        scope: Scope,
    },
}

/// What an operation gives.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum Answered {
    Nothing,
    Status(Status),
    Bytes(#[serde(with = "serde_bytes")] Vec<u8>),
    Names(Vec<(Vec<u8>, u64, Kind)>),
    Words(Vec<Vec<u8>>),
    Space(Space),
    Offset(u64),
}

/// An answer: what the operation gives, or the number of what it is refused with.
pub(crate) type Answer = Result<Answered, i32>;

/// Carries out a request that arrived, on what serves, and returns the answer as it is to be sent.
///
/// A request that cannot be read is refused with `EIO`; one that is to be asked elsewhere, because service has moved from
/// here, with [`MOVED`].
#[must_use]
pub fn answer(files: &dyn Files, request: &[u8]) -> Vec<u8> {
    let request: Result<Request<'_>, _> = postcard::from_bytes(request);
    let done = match (request, files.next()) {
        (_, Some(_)) => Err(MOVED),
        (Err(_), None) => Err(Refusal::EIO),
        (Ok(request), None) => {
            request.carry_out(files).map_err(|refusal| if files.moves_on(refusal) { MOVED } else { refusal })
        }
    };
    let answer: Answer = done.map_err(|refusal| refusal as i32);
    // Only running out of memory could keep it from being written; an answer that is none is read as EIO.
    postcard::to_allocvec(&answer).unwrap_or_default()
}

impl Request<'_> {
    fn carry_out(self, files: &dyn Files) -> Result<Answered, Refusal> {
        let os = OsStr::from_bytes;
        let nothing = |()| Answered::Nothing;
        match self {
            Request::LookUp { directory, name } => files.look_up(directory, os(name)).map(Answered::Status),
            Request::Forget { number, times } => {
                files.forget(number, times);
                Ok(Answered::Nothing)
            }
            Request::Status(number) => files.status(number).map(Answered::Status),
            Request::Change { number, change, now } => {
                files.change(number, &change, now).map(Answered::Status)
            }
            Request::Make { directory, name, new, attributes } => {
                files.make(directory, os(name), &new.to_inode(), attributes).map(Answered::Status)
            }
            Request::Link { number, directory, name, now } => {
                files.link(number, directory, os(name), now).map(Answered::Status)
            }
            Request::Remove { directory, name, is_directory, now } => {
                files.remove(directory, os(name), is_directory, now).map(nothing)
            }
            Request::Rename { directory, name, new_directory, new_name, kind, now } => {
                files.rename((directory, os(name)), (new_directory, os(new_name)), kind, now).map(nothing)
            }
            Request::SetExtended { number, name, value, must_exist, now } => {
                files.set_extended(number, os(name), value, must_exist, now).map(nothing)
            }
            Request::Open(number) => files.open(number).map(nothing),
            Request::Release(number) => {
                files.release(number);
                Ok(Answered::Nothing)
            }
            Request::Write { number, offset, content, through, by_unprivileged, now } => {
                files.write(number, offset, content, through, by_unprivileged, now).map(nothing)
            }
            Request::Allocate { number, mode, offset, bytes, now } => {
                files.allocate(number, mode, offset, bytes, now).map(nothing)
            }
            Request::Sync { number, scope } => files.sync(number, scope).map(nothing),
            asks => asks.look(files),
        }
    }

    /// Those that change nothing.
    fn look(self, files: &dyn Files) -> Result<Answered, Refusal> {
        match self {
            Request::Target(number) => files.target(number).map(|target| Answered::Bytes(target.into_vec())),
            Request::List(directory) => {
                let raw = |(name, number, kind): (OsString, u64, Kind)| (name.into_vec(), number, kind);
                files.list(directory).map(|names| Answered::Names(names.into_iter().map(raw).collect()))
            }
            Request::Extended { number, name } => {
                files.extended(number, OsStr::from_bytes(name)).map(Answered::Bytes)
            }
            Request::ListExtended(number) => {
                let raw = |names: Vec<OsString>| names.into_iter().map(OsString::into_vec).collect();
                files.list_extended(number).map(|names| Answered::Words(raw(names)))
            }
            Request::Space => files.space().map(Answered::Space),
            Request::Read { number, offset, bytes } => {
                let mut content = vec![0; bytes.min(READ_BYTES_MAX) as usize];
                let read = files.read(number, offset, &mut content)?;
                content.truncate(read);
                Ok(Answered::Bytes(content))
            }
            Request::Seek { number, offset, to } => files.seek(number, offset, to).map(Answered::Offset),
            // All others have been carried out.
            _ => Err(Refusal::EIO),
        }
    }
}
