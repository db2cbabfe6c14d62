//! A volume: names and attributes over a store. Content is in `content`, the power-off in `loss`.
//!
//! Knows no FUSE and no clock: whoever calls says what time it is. One lock for all of it; only reading and syncing
//! content, which may take long, happen outside.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

use crate::Refusal;
use crate::attributes::{Attributes, Change, Kind, MODE_BITS, SET_GROUP, Status};
use crate::block_log::BLOCK_BYTES;
use crate::medium::Access;
use crate::owed::Owed;
use crate::store::{Object, OpenObjects, Space, Store};
use crate::tree::{Body, FileBody, ROOT, RenameKind, Tree};
use crate::undo::Undo;

/// How much that is not durable a volume remembers. Beyond it the oldest is made durable, as a kernel writes back what
/// fills its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Overwritten blocks of 4096 bytes.
    pub blocks_max: usize,
    /// Operations on names.
    pub operations_max: usize,
}

impl Default for Limits {
    fn default() -> Limits {
        // 64 MiB; and more operations than a database does between two syncs.
        Limits { blocks_max: 16_384, operations_max: 4_096 }
    }
}

/// How much a sync covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Scope {
    /// Content and what reading it needs, as fdatasync(2).
    Data,
    /// Everything about the object, as fsync(2).
    All,
}

/// A new object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewInode {
    /// An ordinary file.
    File,
    Directory,
    /// A symbolic link and where it leads.
    SymbolicLink(OsString),
    /// A pipe, socket or device, with the device's number.
    Device(Kind, u32),
}

/// What a power-off took back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Lost {
    /// Files with content that was not durable.
    pub files: u64,
    /// Blocks of 4096 bytes that got their durable content back.
    pub blocks_restored: u64,
    /// Bytes by which files got shorter.
    pub bytes_cut: u64,
    /// Operations on names taken back: creations, links, renames, removals.
    pub operations: u64,
    /// Objects that got their durable mode, owner or extended attributes back.
    pub attributes: u64,
    /// Sectors of a torn last write that survived.
    pub sectors_survived: u64,
}

/// A volume over a store.
#[derive(Debug)]
pub struct Volume<S: Store> {
    pub(crate) store: S,
    pub(crate) limits: Limits,
    state: Mutex<State<S::Object>>,
}

/// Everything that changes.
#[derive(Debug)]
pub(crate) struct State<O> {
    pub(crate) tree: Tree,
    pub(crate) open: OpenObjects<O>,
    /// Files with content that is not durable, by the order of their first change.
    pub(crate) dirty: BTreeMap<u64, u64>,
    pub(crate) next_dirty: u64,
    pub(crate) blocks_kept: usize,
    /// The last write: file, from, to.
    pub(crate) last_write: Option<(u64, u64, u64)>,
    /// A copy is arriving: what has no name yet, or for the moment, is not forgotten.
    pub(crate) keeps_nameless: bool,
    /// Files of which the copy has brought something that is not on the medium yet.
    pub(crate) copied: BTreeSet<u64>,
    /// What syncs cover that were answered and not done, by object.
    pub(crate) owed: BTreeMap<u64, Owed>,
    /// How often the oldest became durable because more was not than is remembered.
    written_back: u64,
    /// What was kept since the snapshot, where one was taken.
    pub(crate) undo: Option<Undo>,
}

impl<O> State<O> {
    /// Whether a snapshot has this object: then its content stays.
    pub(crate) fn is_in_snapshot(&self, number: u64) -> bool {
        self.undo.as_ref().is_some_and(|undo| undo.holds(number))
    }
}

/// The number that a program gets for what the store below said.
pub(crate) fn refusal(error: &std::io::Error) -> Refusal {
    Refusal::from_raw(error.raw_os_error().unwrap_or(libc::EIO))
}

impl<S: Store> Volume<S> {
    /// An empty volume over an empty store, its root directory owned by `user` and `group`.
    pub fn new(store: S, limits: Limits, user: u32, group: u32, now: SystemTime) -> Volume<S> {
        Volume::with_tree(store, limits, Tree::new(Attributes::new(0o755, user, group, now)), None)
    }

    /// A volume with these names, whose content is in the store; all of it is durable.
    pub(crate) fn with_tree(store: S, limits: Limits, tree: Tree, undo: Option<Undo>) -> Volume<S> {
        let state = State {
            tree,
            open: OpenObjects::new(),
            dirty: BTreeMap::new(),
            next_dirty: 0,
            blocks_kept: 0,
            last_write: None,
            keeps_nameless: false,
            copied: BTreeSet::new(),
            owed: BTreeMap::new(),
            written_back: 0,
            undo,
        };
        Volume { store, limits, state: Mutex::new(state) }
    }

    /// The store its content lies in.
    pub fn store(&self) -> &S {
        &self.store
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State<S::Object>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The object that a name leads to, which the caller then knows of until it says [`Volume::forget`].
    ///
    /// # Errors
    /// `ENOENT` and what else path_resolution(7) names.
    pub fn look_up(&self, directory: u64, name: &OsStr) -> Result<Status, Refusal> {
        let mut state = self.lock();
        let number = match name.as_encoded_bytes() {
            b"." => directory,
            b".." => state.tree.parent(directory),
            _ => state.tree.find(directory, name)?,
        };
        state.tree.get_mut(number)?.lookups += 1;
        self.status_of(&state, number)
    }

    /// The caller no longer knows of the object, as often as it says.
    pub fn forget(&self, number: u64, times: u64) {
        let mut state = self.lock();
        if let Ok(inode) = state.tree.get_mut(number) {
            inode.lookups = inode.lookups.saturating_sub(times);
            self.release_if_unneeded(&mut state, number);
        }
    }

    /// What stat(2) tells of an object.
    ///
    /// # Errors
    /// `ESTALE` when there is none.
    pub fn status(&self, number: u64) -> Result<Status, Refusal> {
        self.status_of(&self.lock(), number)
    }

    fn status_of(&self, state: &State<S::Object>, number: u64) -> Result<Status, Refusal> {
        let inode = state.tree.get(number)?;
        let (size, sectors, device) = match &inode.body {
            Body::File(file) => {
                let taken = state.open.get(&self.store, number).and_then(|object| object.sectors());
                (file.size, taken.map_err(|error| refusal(&error))?, 0)
            }
            Body::Directory(_) => (BLOCK_BYTES, 8, 0),
            Body::SymbolicLink(target) => (target.len() as u64, 0, 0),
            Body::Device(device) => (0, 0, *device),
        };
        let (kind, attributes, links) = (inode.kind, inode.attributes, inode.links());
        Ok(Status { inode: number, kind, attributes, size, sectors, links, device })
    }

    /// Changes mode, owner, times, size.
    ///
    /// # Errors
    /// `ESTALE`, `EINVAL` for the size of what has none, and what the store says.
    pub fn change(&self, number: u64, change: &Change, now: SystemTime) -> Result<Status, Refusal> {
        self.admit(Access::Change)?;
        let mut state = self.lock();
        if let Some(size) = change.size {
            self.resize(&mut state, number, size, now)?;
        }
        let inode = state.tree.get_mut(number)?;
        if change.mode.is_some() || change.user.is_some() || change.group.is_some() {
            inode.keep();
        }
        let attributes = &mut inode.attributes;
        if let Some(mode) = change.mode {
            // Cut to twelve bits, so nothing is lost.
            attributes.mode = (mode & MODE_BITS) as u16;
        }
        attributes.user = change.user.unwrap_or(attributes.user);
        attributes.group = change.group.unwrap_or(attributes.group);
        attributes.accessed = change.accessed.unwrap_or(attributes.accessed);
        attributes.modified = change.modified.unwrap_or(attributes.modified);
        attributes.changed = now;
        if change.mode.is_none() && (change.size.is_some() || change.user.is_some() || change.group.is_some())
        {
            inode.drop_privileges();
        }
        self.status_of(&state, number)
    }

    /// Makes an object under a new name. The caller knows of it, as after a look-up.
    ///
    /// # Errors
    /// `EEXIST`, `ENOENT` in a removed directory, `ENAMETOOLONG`, and what the store says.
    pub fn make(
        &self,
        directory: u64,
        name: &OsStr,
        new: &NewInode,
        attributes: Attributes,
    ) -> Result<Status, Refusal> {
        self.make_numbered(directory, name, None, new, attributes)
    }

    /// The same with the number that the object has elsewhere, where this is a copy.
    pub(crate) fn make_numbered(
        &self,
        directory: u64,
        name: &OsStr,
        number: Option<u64>,
        new: &NewInode,
        mut attributes: Attributes,
    ) -> Result<Status, Refusal> {
        self.admit(Access::Grow)?;
        let mut state = self.lock();
        let parent = state.tree.get(directory)?.attributes;
        let (kind, body) = match new {
            NewInode::File => (Kind::File, Body::File(FileBody::default())),
            NewInode::Directory => (Kind::Directory, Body::Directory(BTreeMap::new())),
            NewInode::SymbolicLink(target) => (Kind::SymbolicLink, Body::SymbolicLink(target.clone())),
            NewInode::Device(kind, device) => (*kind, Body::Device(*device)),
        };
        if parent.mode & SET_GROUP != 0 {
            // What is made in such a directory belongs to its group, and a directory passes that on (inode(7)).
            attributes.group = parent.group;
            if kind == Kind::Directory {
                attributes.mode |= SET_GROUP;
            }
        }
        let number = state.tree.create((directory, name), number, kind, attributes, body)?;
        if kind == Kind::File
            && let Err(error) = self.store.create(number)
        {
            // Nothing else knows of it yet: the name goes, and with it the object.
            let _ = state.tree.remove(directory, name, false);
            state.tree.release(number);
            return Err(refusal(&error));
        }
        state.tree.get_mut(number)?.lookups += 1;
        self.touch(&mut state, directory, attributes.changed);
        self.hold_to_limits(&mut state)?;
        self.status_of(&state, number)
    }

    /// Gives an object another name. The caller knows of it once more.
    ///
    /// # Errors
    /// As link(2).
    pub fn link(
        &self,
        number: u64,
        directory: u64,
        name: &OsStr,
        now: SystemTime,
    ) -> Result<Status, Refusal> {
        self.admit(Access::Grow)?;
        let mut state = self.lock();
        state.tree.link(number, directory, name)?;
        let inode = state.tree.get_mut(number)?;
        inode.lookups += 1;
        inode.attributes.changed = now;
        self.touch(&mut state, directory, now);
        self.hold_to_limits(&mut state)?;
        self.status_of(&state, number)
    }

    /// Takes a name from a file, or from an empty directory.
    ///
    /// # Errors
    /// As unlink(2) and rmdir(2).
    pub fn remove(
        &self,
        directory: u64,
        name: &OsStr,
        is_directory: bool,
        now: SystemTime,
    ) -> Result<(), Refusal> {
        self.admit(Access::Change)?;
        let mut state = self.lock();
        let number = state.tree.remove(directory, name, is_directory)?;
        state.tree.get_mut(number)?.attributes.changed = now;
        self.touch(&mut state, directory, now);
        self.release_if_unneeded(&mut state, number);
        self.hold_to_limits(&mut state)
    }

    /// Renames.
    ///
    /// # Errors
    /// As rename(2).
    pub fn rename(
        &self,
        from: (u64, &OsStr),
        to: (u64, &OsStr),
        kind: RenameKind,
        now: SystemTime,
    ) -> Result<(), Refusal> {
        self.admit(Access::Change)?;
        let mut state = self.lock();
        let (moved, replaced) = state.tree.rename(from, to, kind)?;
        for number in [Some(moved), replaced].into_iter().flatten() {
            state.tree.get_mut(number)?.attributes.changed = now;
        }
        self.touch(&mut state, from.0, now);
        self.touch(&mut state, to.0, now);
        if let Some(replaced) = replaced {
            self.release_if_unneeded(&mut state, replaced);
        }
        self.hold_to_limits(&mut state)
    }

    fn touch(&self, state: &mut State<S::Object>, directory: u64, now: SystemTime) {
        if let Ok(inode) = state.tree.get_mut(directory) {
            inode.attributes.modified = now;
            inode.attributes.changed = now;
        }
    }

    /// Where a symbolic link leads.
    ///
    /// # Errors
    /// `EINVAL` for anything else.
    pub fn target(&self, number: u64) -> Result<OsString, Refusal> {
        match &self.lock().tree.get(number)?.body {
            Body::SymbolicLink(target) => Ok(target.clone()),
            _ => Err(Refusal::EINVAL),
        }
    }

    /// The names in a directory, with the number and kind of what each leads to; `.` and `..` first.
    ///
    /// # Errors
    /// `ENOTDIR`, `ESTALE`.
    pub fn list(&self, directory: u64) -> Result<Vec<(OsString, u64, Kind)>, Refusal> {
        let state = self.lock();
        let own = state.tree.entries(directory)?;
        let dots = [(".", directory), ("..", state.tree.parent(directory))];
        let dots = dots.map(|(name, number)| (OsString::from(name), number, Kind::Directory));
        let names = own.iter().map(|(name, number)| {
            let kind = state.tree.get(*number).map_or(Kind::File, |inode| inode.kind);
            (name.clone(), *number, kind)
        });
        Ok(dots.into_iter().chain(names).collect())
    }

    /// An extended attribute.
    ///
    /// # Errors
    /// `ENODATA` when it has none of that name; `EOPNOTSUPP` for any but the `user.` ones.
    pub fn extended(&self, number: u64, name: &OsStr) -> Result<Vec<u8>, Refusal> {
        let state = self.lock();
        only_of_users(name)?;
        state.tree.get(number)?.extended.get(name).cloned().ok_or(Refusal::ENODATA)
    }

    /// Names of all extended attributes.
    ///
    /// # Errors
    /// `ESTALE`.
    pub fn list_extended(&self, number: u64) -> Result<Vec<OsString>, Refusal> {
        Ok(self.lock().tree.get(number)?.extended.keys().cloned().collect())
    }

    /// Sets an extended attribute, or with `None` removes it. `must_exist` says whether it must be there already, or must
    /// not.
    ///
    /// # Errors
    /// As setxattr(2) and removexattr(2).
    pub fn set_extended(
        &self,
        number: u64,
        name: &OsStr,
        value: Option<&[u8]>,
        must_exist: Option<bool>,
        now: SystemTime,
    ) -> Result<(), Refusal> {
        only_of_users(name)?;
        self.admit(Access::Change)?;
        let mut state = self.lock();
        let inode = state.tree.get_mut(number)?;
        match (inode.extended.contains_key(name), must_exist) {
            (true, Some(false)) => return Err(Refusal::EEXIST),
            (false, Some(true)) => return Err(Refusal::ENODATA),
            _ => {}
        }
        inode.keep();
        match value {
            Some(value) => drop(inode.extended.insert(name.to_owned(), value.to_owned())),
            None => drop(inode.extended.remove(name)),
        }
        inode.attributes.changed = now;
        Ok(())
    }

    /// Room in the volume.
    ///
    /// # Errors
    /// What the store says.
    pub fn space(&self) -> Result<Space, Refusal> {
        self.store.space().map_err(|error| refusal(&error))
    }

    /// Forgets an object that nothing needs any more, and removes its content.
    pub(crate) fn release_if_unneeded(&self, state: &mut State<S::Object>, number: u64) {
        let Ok(inode) = state.tree.get(number) else { return };
        let content = match &inode.body {
            Body::File(file) => Some((file.log.kept(), file.dirty_since)),
            _ => None,
        };
        if number == ROOT || state.keeps_nameless || !state.tree.release(number) {
            return;
        }
        if let Some((blocks, dirty_since)) = content {
            state.blocks_kept = state.blocks_kept.saturating_sub(blocks);
            if let Some(since) = dirty_since {
                state.dirty.remove(&since);
            }
            state.open.let_go(number);
            state.owed.remove(&number);
            if !state.is_in_snapshot(number) {
                // Content that stays behind takes room and does no other harm; it goes with the volume.
                let _ = self.store.remove(number);
            }
        }
    }

    /// Makes changes of names durable, and removes what nothing needs any more.
    pub(crate) fn names_are_durable(&self, state: &mut State<S::Object>, operations: BTreeSet<u64>) {
        if operations.is_empty() {
            return;
        }
        for number in state.tree.make_durable(operations) {
            self.release_if_unneeded(state, number);
        }
    }

    /// Makes the oldest changes durable while there are more than the limits allow.
    pub(crate) fn hold_to_limits(&self, state: &mut State<S::Object>) -> Result<(), Refusal> {
        while state.tree.waiting() > self.limits.operations_max
            && let Some(oldest) = state.tree.oldest()
        {
            self.names_are_durable(state, BTreeSet::from([oldest]));
            state.written_back += 1;
            self.note_kept_more(state);
        }
        while state.blocks_kept > self.limits.blocks_max
            && let Some(oldest) = state.dirty.values().next().copied()
        {
            self.content_is_durable(state, oldest)?;
            state.written_back += 1;
            self.note_kept_more(state);
        }
        Ok(())
    }

    /// Something became durable without a sync. Where syncs are owed it may be more than a disk keeps that loses flushes.
    pub(crate) fn note_kept_more(&self, state: &State<S::Object>) {
        if !state.owed.is_empty() {
            self.store.note_kept_more();
        }
    }

    /// How often the oldest that was not durable became so without a sync, because more was not than is remembered.
    #[must_use]
    pub fn written_back(&self) -> u64 {
        self.lock().written_back
    }
}

fn only_of_users(name: &OsStr) -> Result<(), Refusal> {
    if name.as_encoded_bytes().starts_with(b"user.") { Ok(()) } else { Err(Refusal::EOPNOTSUPP) }
}
