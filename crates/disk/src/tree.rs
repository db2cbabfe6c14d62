//! The name space of a volume: which names lead to which objects, and what those are besides their content.
//!
//! Pure. Every change of names goes into the name log; taking the log back takes the changes back. Content is somebody
//! else's: a file here has a size and a log of overwritten blocks.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::{OsStr, OsString};

use serde::{Deserialize, Serialize};

use crate::Refusal;
use crate::attributes::{Attributes, Kind};
use crate::block_log::BlockLog;
use crate::dirt::Dirt;
use crate::name_log::{NameChange, NameLog, Operation};
use crate::sync_habit::SyncHabit;

/// Number of the directory that a volume begins with.
pub const ROOT: u64 = 1;
/// Bytes of a name at most, as on every Linux file system.
const NAME_BYTES_MAX: usize = 255;
/// Names of one object at most, as on ext4.
const NAMES_MAX: u32 = 65_000;

/// What a rename does when the new name is taken (renameat2(2)).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RenameKind {
    /// It replaces what was there.
    Replace,
    /// It is refused.
    KeepExisting,
    /// Both change places.
    Exchange,
}

/// What an object consists of, by kind.
#[derive(Debug)]
pub(crate) enum Body {
    /// A file's size and what it was.
    File(FileBody),
    /// A directory's names.
    Directory(BTreeMap<OsString, u64>),
    /// Where a symbolic link leads.
    SymbolicLink(OsString),
    /// A device's number; zero for pipes and sockets.
    Device(u32),
}

/// What is known of a file's content.
#[derive(Debug, Default)]
pub(crate) struct FileBody {
    pub(crate) size: u64,
    pub(crate) log: BlockLog,
    pub(crate) habit: SyncHabit,
    /// Bytes written since the last sync began.
    pub(crate) unsynced_bytes: u64,
    /// Whether the last write was synced with it, and no sync was asked for since.
    pub(crate) is_synced_with_write: bool,
    /// Its place among the changed files, oldest first; none when all of it is durable.
    pub(crate) dirty_since: Option<u64>,
    /// From where to where fallocate(2) has set room aside.
    pub(crate) room: (u64, u64),
}

impl FileBody {
    /// A file of which all `size` bytes are durable.
    pub(crate) fn durable(size: u64) -> FileBody {
        let mut body = FileBody { size, ..FileBody::default() };
        let sync = body.log.begin_sync(size);
        body.log.end_sync(sync);
        body
    }
}

/// Mode, owner and extended attributes as they were at a moment: that of the last sync, mostly.
#[derive(Debug, Clone)]
pub(crate) struct Kept {
    attributes: Attributes,
    extended: BTreeMap<OsString, Vec<u8>>,
}

impl Kept {
    /// Whether nothing but time stamps is different.
    pub(crate) fn is_like(&self, other: &Kept) -> bool {
        let told = |of: &Attributes| (of.mode, of.user, of.group);
        told(&self.attributes) == told(&other.attributes) && self.extended == other.extended
    }
}

/// One object.
#[derive(Debug)]
pub(crate) struct Inode {
    pub kind: Kind,
    /// Mode, owner, times.
    pub attributes: Attributes,
    /// Extended attributes.
    pub(crate) extended: BTreeMap<OsString, Vec<u8>>,
    pub(crate) kept: Option<Kept>,
    pub(crate) body: Body,
    /// Names that lead to it now.
    names: u32,
    /// Directories directly in it.
    directories: u32,
    parent: u64,
    named_durably: bool,
    /// How often the kernel was told of it and has not forgotten.
    pub(crate) lookups: u64,
    /// How often it is open.
    pub(crate) handles: u64,
}

impl Inode {
    /// Keeps mode, owner and extended attributes, before they change.
    pub(crate) fn keep(&mut self) {
        if self.kept.is_none() {
            self.kept = Some(self.present());
        }
    }

    /// Mode, owner and extended attributes as they are.
    pub(crate) fn present(&self) -> Kept {
        Kept { attributes: self.attributes, extended: self.extended.clone() }
    }

    /// What a write by somebody without privilege does to a program that runs as its owner (write(2)).
    pub(crate) fn drop_privileges(&mut self) {
        let dropped = self.attributes.without_privileges();
        if self.kind == Kind::File && dropped != self.attributes.mode {
            self.keep();
            self.attributes.mode = dropped;
        }
    }

    /// Brings them back.
    fn restore(&mut self) -> bool {
        let Some(kept) = self.kept.take() else { return false };
        self.attributes = kept.attributes;
        self.extended = kept.extended;
        true
    }

    /// Links as stat(2) counts them.
    pub(crate) fn links(&self) -> u32 {
        match self.body {
            Body::Directory(_) if self.names > 0 => 2 + self.directories,
            _ => self.names,
        }
    }
}

/// The name space.
#[derive(Debug)]
pub(crate) struct Tree {
    inodes: BTreeMap<u64, Inode>,
    next: u64,
    log: NameLog,
}

impl Tree {
    pub(crate) fn new(root: Attributes) -> Tree {
        let mut tree = Tree { inodes: BTreeMap::new(), next: ROOT, log: NameLog::default() };
        let number = tree.insert(None, Kind::Directory, root, Body::Directory(BTreeMap::new()));
        if let Some(root) = tree.inodes.get_mut(&number) {
            root.names = 1;
            root.parent = ROOT;
            root.named_durably = true;
        }
        tree
    }

    /// `number` is that of the object elsewhere, where it is a copy; the next free one otherwise.
    pub(crate) fn insert(
        &mut self,
        number: Option<u64>,
        kind: Kind,
        attributes: Attributes,
        body: Body,
    ) -> u64 {
        let number = number.unwrap_or(self.next);
        self.next = self.next.max(number + 1);
        let inode = Inode {
            kind,
            attributes,
            extended: BTreeMap::new(),
            kept: None,
            body,
            names: 0,
            directories: 0,
            parent: 0,
            named_durably: false,
            lookups: 0,
            handles: 0,
        };
        self.inodes.insert(number, inode);
        number
    }

    pub(crate) fn get(&self, number: u64) -> Result<&Inode, Refusal> {
        self.inodes.get(&number).ok_or(Refusal::ESTALE)
    }

    pub(crate) fn get_mut(&mut self, number: u64) -> Result<&mut Inode, Refusal> {
        self.inodes.get_mut(&number).ok_or(Refusal::ESTALE)
    }

    pub(crate) fn entries(&self, directory: u64) -> Result<&BTreeMap<OsString, u64>, Refusal> {
        match &self.get(directory)?.body {
            Body::Directory(entries) => Ok(entries),
            _ => Err(Refusal::ENOTDIR),
        }
    }

    pub(crate) fn find(&self, directory: u64, name: &OsStr) -> Result<u64, Refusal> {
        if name.len() > NAME_BYTES_MAX {
            return Err(Refusal::ENAMETOOLONG);
        }
        self.entries(directory)?.get(name).copied().ok_or(Refusal::ENOENT)
    }

    pub(crate) fn parent(&self, directory: u64) -> u64 {
        self.inodes.get(&directory).map_or(ROOT, |inode| inode.parent)
    }

    /// Waiting changes of names.
    pub(crate) fn waiting(&self) -> usize {
        self.log.len()
    }

    /// Checks that a name may be given in a directory.
    fn free_place(&self, directory: u64, name: &OsStr) -> Result<(), Refusal> {
        match self.find(directory, name) {
            Ok(_) => Err(Refusal::EEXIST),
            // A directory that is removed but still open takes no new names.
            Err(Refusal::ENOENT) if self.get(directory)?.names == 0 => Err(Refusal::ENOENT),
            Err(Refusal::ENOENT) => Ok(()),
            Err(other) => Err(other),
        }
    }

    pub(crate) fn create(
        &mut self,
        (directory, name): (u64, &OsStr),
        number: Option<u64>,
        kind: Kind,
        attributes: Attributes,
        body: Body,
    ) -> Result<u64, Refusal> {
        self.free_place(directory, name)?;
        if number.is_some_and(|number| self.inodes.contains_key(&number)) {
            return Err(Refusal::EEXIST);
        }
        let number = self.insert(number, kind, attributes, body);
        self.perform(vec![(directory, name, Some(number))], false);
        Ok(number)
    }

    pub(crate) fn link(&mut self, object: u64, directory: u64, name: &OsStr) -> Result<(), Refusal> {
        self.free_place(directory, name)?;
        let inode = self.get(object)?;
        if inode.kind == Kind::Directory {
            return Err(Refusal::EPERM);
        }
        if inode.names == 0 {
            return Err(Refusal::ENOENT);
        }
        if inode.names >= NAMES_MAX {
            return Err(Refusal::EMLINK);
        }
        self.perform(vec![(directory, name, Some(object))], false);
        Ok(())
    }

    /// Takes a name away. Returns the object that had it.
    pub(crate) fn remove(
        &mut self,
        directory: u64,
        name: &OsStr,
        is_directory: bool,
    ) -> Result<u64, Refusal> {
        let object = self.find(directory, name)?;
        match (self.get(object)?.kind == Kind::Directory, is_directory) {
            (true, false) => return Err(Refusal::EISDIR),
            (false, true) => return Err(Refusal::ENOTDIR),
            (true, true) if !self.entries(object)?.is_empty() => return Err(Refusal::ENOTEMPTY),
            _ => {}
        }
        self.perform(vec![(directory, name, None)], false);
        Ok(object)
    }

    /// Renames. Returns the object moved and, where there was one, the object that had the new name.
    pub(crate) fn rename(
        &mut self,
        (directory, name): (u64, &OsStr),
        (new_directory, new_name): (u64, &OsStr),
        kind: RenameKind,
    ) -> Result<(u64, Option<u64>), Refusal> {
        let object = self.find(directory, name)?;
        let target = match self.find(new_directory, new_name) {
            Ok(target) => Some(target),
            Err(Refusal::ENOENT) if kind != RenameKind::Exchange => {
                self.free_place(new_directory, new_name)?;
                None
            }
            Err(refusal) => return Err(refusal),
        };
        let moves = self.get(object)?.kind == Kind::Directory;
        let above = |directory: u64| self.ancestors(directory).into_iter().chain([directory]);
        if moves && above(new_directory).any(|ancestor| ancestor == object) {
            return Err(Refusal::EINVAL);
        }
        let mut changes = vec![(directory, name, None), (new_directory, new_name, Some(object))];
        let mut moves_directory = moves && directory != new_directory;
        match (target, kind) {
            (Some(_), RenameKind::KeepExisting) => return Err(Refusal::EEXIST),
            (Some(target), _) if target == object => return Ok((object, Some(target))),
            (Some(target), RenameKind::Replace) => match (moves, self.get(target)?.kind == Kind::Directory) {
                (true, false) => return Err(Refusal::ENOTDIR),
                (false, true) => return Err(Refusal::EISDIR),
                (true, true) if !self.entries(target)?.is_empty() => return Err(Refusal::ENOTEMPTY),
                _ => {}
            },
            (Some(target), RenameKind::Exchange) => {
                let other_moves = self.get(target)?.kind == Kind::Directory;
                if other_moves && above(directory).any(|ancestor| ancestor == target) {
                    return Err(Refusal::EINVAL);
                }
                moves_directory |= other_moves && directory != new_directory;
                changes[0].2 = Some(target);
            }
            (None, _) => {}
        }
        self.perform(changes, moves_directory);
        Ok((object, target))
    }

    fn perform(&mut self, changes: Vec<(u64, &OsStr, Option<u64>)>, moves_directory: bool) {
        let changes = changes
            .into_iter()
            .map(|(directory, name, after)| {
                let before = self.set(directory, name, after);
                NameChange { directory, name: name.to_owned(), before, after }
            })
            .collect();
        self.log.record(Operation { changes, moves_directory });
    }

    /// Lets a name mean something else, or nothing. Returns what it meant.
    fn set(&mut self, directory: u64, name: &OsStr, object: Option<u64>) -> Option<u64> {
        let Some(Inode { body: Body::Directory(entries), .. }) = self.inodes.get_mut(&directory) else {
            return None;
        };
        let before = match object {
            Some(object) => entries.insert(name.to_owned(), object),
            None => entries.remove(name),
        };
        let mut directories: i64 = 0;
        if let Some(inode) = before.and_then(|before| self.inodes.get_mut(&before)) {
            inode.names = inode.names.saturating_sub(1);
            directories -= i64::from(inode.kind == Kind::Directory);
        }
        if let Some(inode) = object.and_then(|object| self.inodes.get_mut(&object)) {
            inode.names += 1;
            directories += i64::from(inode.kind == Kind::Directory);
            inode.parent = directory;
        }
        if let Some(inode) = self.inodes.get_mut(&directory) {
            inode.directories = inode.directories.saturating_add_signed(directories as i32);
        }
        before
    }

    /// A directory's parent, its parent, and so on.
    fn ancestors(&self, directory: u64) -> Vec<u64> {
        let mut above = Vec::new();
        let mut here = directory;
        while let Some(inode) = self.inodes.get(&here)
            && inode.parent != here
            && inode.parent != 0
        {
            here = inode.parent;
            above.push(here);
        }
        above
    }

    /// What a successful sync of an object makes durable, besides content: mode, owner and extended attributes, and these
    /// changes of names.
    pub(crate) fn waiting_of(&self, object: u64, data_only: bool) -> BTreeSet<u64> {
        let Ok(inode) = self.get(object) else { return BTreeSet::new() };
        if data_only && inode.named_durably {
            return BTreeSet::new();
        }
        let mut waiting = self.log.of_object(object);
        if inode.kind == Kind::Directory {
            waiting.extend(self.log.in_directory(object));
        }
        waiting
    }

    /// Makes these changes of names durable. Returns the objects they were about, which may be needed no more.
    pub(crate) fn make_durable(&mut self, operations: BTreeSet<u64>) -> Vec<u64> {
        if operations.is_empty() {
            return Vec::new();
        }
        let mut log = std::mem::take(&mut self.log);
        let durable = log.make_durable(operations, |directory| self.ancestors(directory));
        self.log = log;
        for object in
            durable.iter().flat_map(|operation| &operation.changes).filter_map(|change| change.after)
        {
            if let Some(inode) = self.inodes.get_mut(&object) {
                inode.named_durably = true;
            }
        }
        let touched: BTreeSet<u64> = durable.iter().flat_map(Operation::objects).collect();
        touched.into_iter().collect()
    }

    /// The oldest waiting change of names.
    pub(crate) fn oldest(&self) -> Option<u64> {
        self.log.oldest()
    }

    /// Forgets the object if nothing needs it any more: no name, no waiting change, nobody who has it open or knows of
    /// it. Returns whether it is gone.
    pub(crate) fn release(&mut self, object: u64) -> bool {
        let unneeded = self.inodes.get(&object).is_some_and(|inode| {
            inode.names == 0 && inode.lookups == 0 && inode.handles == 0 && !self.log.mentions(object)
        });
        unneeded && self.inodes.remove(&object).is_some()
    }

    /// Counts all names anew, after a directory was put in place as a whole.
    pub(crate) fn recount(&mut self) {
        let mut names: BTreeMap<u64, (u32, u64)> = BTreeMap::from([(ROOT, (1, ROOT))]);
        let mut directories: BTreeMap<u64, u32> = BTreeMap::new();
        let mut waiting = vec![ROOT];
        // From the root, because in a directory that no name leads to any more old names may stand.
        while let Some(directory) = waiting.pop() {
            let Ok(entries) = self.entries(directory) else { continue };
            for object in entries.values() {
                let counted = names.entry(*object).or_default();
                let is_first = counted.0 == 0;
                *counted = (counted.0 + 1, directory);
                if self.inodes.get(object).is_some_and(|of| of.kind == Kind::Directory) {
                    *directories.entry(directory).or_default() += 1;
                    if is_first {
                        waiting.push(*object);
                    }
                }
            }
        }
        for (number, inode) in &mut self.inodes {
            (inode.names, inode.parent) = names.get(number).copied().unwrap_or_default();
            inode.directories = directories.get(number).copied().unwrap_or_default();
            inode.named_durably = true;
        }
    }

    /// Takes back all waiting changes of names, and of modes, owners and extended attributes. Returns how many operations
    /// on names there were, on how many objects attributes were restored, and which objects are gone. What is other than
    /// it was before is marked in `dirt`.
    pub(crate) fn take_back(&mut self, dirt: &mut Dirt) -> (usize, usize, Vec<u64>) {
        let mut operations = 0;
        while let Some(operation) = self.log.take_newest() {
            operations += 1;
            for change in &operation.changes {
                dirt.mark_object(change.directory);
            }
            let moved = |object: &u64| {
                let is = |of: Option<u64>| of == Some(*object);
                operation.changes.iter().any(|change| is(change.before))
                    && operation.changes.iter().any(|change| is(change.after))
            };
            for object in operation.objects() {
                match moved(&object) {
                    true => dirt.mark_object(object),
                    // It comes back or goes, and elsewhere its content is not or no longer there.
                    false => dirt.mark_whole(object),
                }
            }
            for change in operation.changes.iter().rev() {
                self.set(change.directory, &change.name, change.before);
            }
        }
        let mut restored = 0;
        for (number, inode) in &mut self.inodes {
            if inode.restore() {
                restored += 1;
                dirt.mark_object(*number);
            }
            inode.lookups = 0;
            inode.handles = 0;
        }
        let gone: Vec<u64> =
            self.inodes.iter().filter(|(_, inode)| inode.names == 0).map(|(number, _)| *number).collect();
        for number in &gone {
            self.inodes.remove(number);
        }
        (operations, restored, gone)
    }

    /// Numbers given from here on are at least this.
    pub(crate) fn number_from(&mut self, least: u64) {
        self.next = self.next.max(least);
    }

    /// The number that the next object gets.
    pub(crate) fn next_number(&self) -> u64 {
        self.next
    }

    /// Every object's number.
    pub(crate) fn numbers(&self) -> Vec<u64> {
        self.inodes.keys().copied().collect()
    }
}
