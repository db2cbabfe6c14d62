//! The content of a volume's files: reading, writing, sizes, and what makes them durable.

use std::sync::Arc;
use std::time::SystemTime;

use crate::Refusal;
use crate::admission::{self, Question};
use crate::attributes::Kind;
use crate::block_log::BLOCK_BYTES;
use crate::medium::{Access, Admitted};
use crate::store::{Object, Seek, Store};
use crate::tree::{Body, FileBody};
use crate::volume::{Scope, State, Volume, refusal};

impl<S: Store> Volume<S> {
    fn object(&self, state: &State<S::Object>, number: u64) -> Result<Arc<S::Object>, Refusal> {
        state.open.get(&self.store, number).map_err(|error| refusal(&error))
    }

    /// Opens a file or directory: what it consists of stays, even without a name, until it is released.
    ///
    /// # Errors
    /// `ESTALE`, and what the store says.
    pub fn open(&self, number: u64) -> Result<(), Refusal> {
        let mut state = self.lock();
        if state.tree.get(number)?.kind == Kind::File {
            let object = self.object(&state, number)?;
            state.open.hold(number, object);
        }
        state.tree.get_mut(number)?.handles += 1;
        Ok(())
    }

    /// Ends one opening.
    pub fn release(&self, number: u64) {
        let mut state = self.lock();
        let Ok(inode) = state.tree.get_mut(number) else { return };
        inode.handles = inode.handles.saturating_sub(1);
        if inode.handles == 0 {
            state.open.let_go(number);
            self.release_if_unneeded(&mut state, number);
        }
    }

    /// Reads at `offset` into `buffer`; fewer bytes at the file's end.
    ///
    /// # Errors
    /// `EISDIR`, `EINVAL` for what has no content, and what the store says.
    pub fn read(&self, number: u64, offset: u64, buffer: &mut [u8]) -> Result<usize, Refusal> {
        self.admit(Access::Read)?;
        let read = self.look_at(number, offset, buffer)?;
        self.store.hand_out(&mut buffer[..read])?;
        Ok(read)
    }

    /// The same of what lies there, whatever is wrong with the disk below, and while it has no power: for the lab's own looks.
    ///
    /// # Errors
    /// As [`Volume::read`].
    pub fn look_at(&self, number: u64, offset: u64, buffer: &mut [u8]) -> Result<usize, Refusal> {
        let object = {
            let state = self.lock();
            file(&state, number)?;
            self.object(&state, number)?
        };
        object.read(offset, buffer).map_err(|error| refusal(&error))
    }

    /// Asks the store to let an operation through that cannot be done in appearance only.
    pub(crate) fn admit(&self, access: Access) -> Result<(), Refusal> {
        if self.store.is_sound() {
            return Ok(());
        }
        match admission::question(access) {
            Question::Put => self.store.admit(access).map(drop),
            Question::WasPut => Ok(()),
            Question::Ends => Err(Refusal::EAGAIN),
        }
    }

    /// The same for what is written between `from` and `to`: it takes room where the file ends before, or has a hole there, unless
    /// the room was set aside.
    fn admit_between(&self, number: u64, from: u64, to: u64) -> Result<(), Refusal> {
        if self.store.is_sound() {
            return Ok(());
        }
        let takes_room = {
            let state = self.lock();
            let FileBody { size, room, .. } = file(&state, number)?;
            let is_set_aside = room.0 <= from && to <= room.1;
            // A store that cannot tell has data everywhere.
            let has_hole = || {
                let object = self.object(&state, number)?;
                Ok::<_, Refusal>(object.seek(from, Seek::Hole).is_ok_and(|hole| hole < to))
            };
            !is_set_aside && (*size < to || has_hole()?)
        };
        self.admit(if takes_room { Access::Grow } else { Access::Change })
    }

    /// Writes `content` at `offset`. With `through`, it is durable when this returns, as far as the scope goes.
    /// `by_unprivileged` takes set-user and set-group bits away.
    ///
    /// # Errors
    /// `EFBIG`, and what the store says.
    pub fn write(
        &self,
        number: u64,
        offset: u64,
        content: &[u8],
        through: Option<Scope>,
        by_unprivileged: bool,
        now: SystemTime,
    ) -> Result<(), Refusal> {
        let end = offset.checked_add(content.len() as u64).ok_or(Refusal::EFBIG)?;
        self.admit_between(number, offset, end)?;
        let mut state = self.lock();
        file(&state, number)?;
        let object = self.object(&state, number)?;
        self.keep(&mut state, number, &object, offset, end)?;
        state.last_write = Some((number, offset, end));
        let written = object.write(offset, content);
        let inode = state.tree.get_mut(number)?;
        inode.attributes.modified = now;
        inode.attributes.changed = now;
        if by_unprivileged {
            inode.drop_privileges();
        }
        let mut is_sync_expected = false;
        if let Body::File(file) = &mut inode.body {
            is_sync_expected = file.habit.written();
            file.is_synced_with_write = false;
            file.unsynced_bytes = file.unsynced_bytes.saturating_add(content.len() as u64);
            // Part may have been written where writing failed.
            file.size = match &written {
                Ok(()) => file.size.max(end),
                Err(_) => object.size().unwrap_or(file.size),
            };
        }
        written.map_err(|error| refusal(&error))?;
        self.hold_to_limits(&mut state)?;
        drop(state);
        match through {
            Some(scope) => {
                self.sync(number, scope)?;
                self.note_synced_with_write(number);
                Ok(())
            }
            None => {
                if is_sync_expected && self.store.is_sound() {
                    object.expect_sync(offset, content.len() as u64);
                }
                Ok(())
            }
        }
    }

    /// Keeps the content of what is about to change between `from` and `to`, as far as it is durable.
    fn keep(
        &self,
        state: &mut State<S::Object>,
        number: u64,
        object: &S::Object,
        from: u64,
        to: u64,
    ) -> Result<(), Refusal> {
        self.keep_for_snapshot(state, number, object, (from, to));
        let next = state.next_dirty;
        let file = file_mut(state, number)?;
        let mut kept = 0;
        for (block, bytes) in file.log.wanted(from, to) {
            let mut content = vec![0; bytes].into_boxed_slice();
            object.read(block * BLOCK_BYTES, &mut content).map_err(|error| refusal(&error))?;
            file.log.keep(block, content);
            kept += 1;
        }
        let is_first = file.dirty_since.is_none();
        if is_first {
            file.dirty_since = Some(next);
        }
        state.blocks_kept += kept;
        if is_first {
            state.dirty.insert(next, number);
            state.next_dirty += 1;
        }
        Ok(())
    }

    /// Keeps what a snapshot needs of what is about to change.
    fn keep_for_snapshot(
        &self,
        state: &mut State<S::Object>,
        number: u64,
        object: &S::Object,
        (from, to): (u64, u64),
    ) {
        if let Some(undo) = &mut state.undo {
            undo.keep(number, object, from, to);
        }
    }

    /// Keeps what is about to become zeros between `from` and `to`, however far apart they are. Holes need not be kept: they
    /// are zeros before and after. Returns whether it was kept: more than is remembered is not, so that memory is not filled
    /// with it first.
    fn keep_data(
        &self,
        state: &mut State<S::Object>,
        number: u64,
        object: &S::Object,
        from: u64,
        to: u64,
    ) -> Result<bool, Refusal> {
        let (mut data, mut blocks, mut at) = (Vec::new(), 0, from);
        while at < to {
            let begin = match object.seek(at, Seek::Data) {
                Ok(begin) if begin < to => begin,
                Ok(_) => break,
                Err(error) if error.raw_os_error() == Some(libc::ENXIO) => break,
                // A store that cannot tell has data everywhere.
                Err(_) => at,
            };
            let end =
                object.seek(begin, Seek::Hole).ok().filter(|end| *end > begin).map_or(to, |end| end.min(to));
            blocks += (end - begin).div_ceil(BLOCK_BYTES);
            if blocks > self.limits.blocks_max as u64 {
                return Ok(false);
            }
            data.push((begin, end));
            at = end;
        }
        for (begin, end) in data {
            self.keep(state, number, object, begin, end)?;
        }
        Ok(true)
    }

    /// Cuts or stretches a file.
    pub(crate) fn resize(
        &self,
        state: &mut State<S::Object>,
        number: u64,
        size: u64,
        now: SystemTime,
    ) -> Result<(), Refusal> {
        let old = file(state, number)?.size;
        let object = self.object(state, number)?;
        // A write before it is the last one no more: nothing of it is torn.
        state.last_write = None;
        let cut_blocks = old.saturating_sub(size) / BLOCK_BYTES;
        if cut_blocks > self.limits.blocks_max as u64 {
            // More than is remembered: durable at once, so that memory is not filled with it first.
            self.keep_for_snapshot(state, number, &object, (size, old));
            object.set_size(size).map_err(|error| refusal(&error))?;
            file_mut(state, number)?.size = size;
            self.content_is_durable(state, number)?;
            self.note_kept_more(state);
        } else {
            self.keep(state, number, &object, size, old)?;
            object.set_size(size).map_err(|error| refusal(&error))?;
            file_mut(state, number)?.size = size;
        }
        if size < old {
            file_mut(state, number)?.room = (0, 0);
        }
        let attributes = &mut state.tree.get_mut(number)?.attributes;
        attributes.modified = now;
        attributes.changed = now;
        self.hold_to_limits(state)
    }

    /// fallocate(2): room, holes and zeros.
    ///
    /// # Errors
    /// `EOPNOTSUPP` for the modes that move content, and what the store says.
    pub fn allocate(
        &self,
        number: u64,
        mode: i32,
        offset: u64,
        bytes: u64,
        now: SystemTime,
    ) -> Result<(), Refusal> {
        let end = offset.checked_add(bytes).ok_or(Refusal::EFBIG)?;
        let known = libc::FALLOC_FL_KEEP_SIZE | libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE;
        if mode & !known != 0 {
            return Err(Refusal::EOPNOTSUPP);
        }
        let gives_back = mode & libc::FALLOC_FL_PUNCH_HOLE != 0;
        self.admit(if gives_back { Access::Change } else { Access::Grow })?;
        let mut state = self.lock();
        file(&state, number)?;
        let object = self.object(&state, number)?;
        let makes_zeros = mode & (libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_ZERO_RANGE) != 0;
        if makes_zeros {
            state.last_write = None;
            self.keep_for_snapshot(&mut state, number, &object, (offset, end));
        }
        self.keep(&mut state, number, &object, offset, offset)?;
        let is_kept = !makes_zeros || self.keep_data(&mut state, number, &object, offset, end)?;
        object.allocate(mode, offset, bytes).map_err(|error| refusal(&error))?;
        let inode = state.tree.get_mut(number)?;
        inode.attributes.modified = now;
        inode.attributes.changed = now;
        if let Body::File(file) = &mut inode.body
            && mode & libc::FALLOC_FL_KEEP_SIZE == 0
        {
            file.size = file.size.max(end);
        }
        set_room_aside(file_mut(&mut state, number)?, (offset, end), gives_back);
        if !is_kept {
            // As when a file is cut by more than is remembered.
            self.content_is_durable(&mut state, number)?;
            self.note_kept_more(&state);
        }
        self.hold_to_limits(&mut state)
    }

    /// The next data or hole from `offset` on.
    ///
    /// # Errors
    /// `ENXIO` beyond the end.
    pub fn seek(&self, number: u64, offset: u64, to: Seek) -> Result<u64, Refusal> {
        let object = {
            let state = self.lock();
            file(&state, number)?;
            self.object(&state, number)?
        };
        object.seek(offset, to).map_err(|error| refusal(&error))
    }

    /// Makes an object durable: a file's content, its attributes and names; a directory's names and its own. What
    /// changes while this goes on may or may not be covered.
    ///
    /// # Errors
    /// What the store says; then nothing has become durable.
    pub fn sync(&self, number: u64, scope: Scope) -> Result<(), Refusal> {
        if !self.store.is_sound() && self.store.admit(Access::Sync)? == Admitted::InAppearance {
            return self.owe(number, scope);
        }
        self.pay_owed()?;
        self.sync_truly(number, scope)
    }

    /// Whether the sync that the kernel asks for after such a write has been done with it.
    pub(crate) fn is_synced_with_write(&self, number: u64, scope: Scope) -> bool {
        let data_only = scope == Scope::Data;
        let mut state = self.lock();
        state.tree.waiting_of(number, data_only).is_empty()
            && is_done_with_write(&mut state, number, data_only)
    }

    fn sync_truly(&self, number: u64, scope: Scope) -> Result<(), Refusal> {
        let data_only = scope == Scope::Data;
        let (begun, operations, kept, bytes) = {
            let mut state = self.lock();
            let operations = state.tree.waiting_of(number, data_only && !has_another_size(&state, number));
            if operations.is_empty() && is_done_with_write(&mut state, number, data_only) {
                return Ok(());
            }
            let (begun, bytes) = match &mut state.tree.get_mut(number)?.body {
                Body::File(file) => {
                    file.habit.synced();
                    let bytes = std::mem::take(&mut file.unsynced_bytes);
                    (Some(file.log.begin_sync(file.size)), bytes)
                }
                _ => (None, 0),
            };
            let object = begun.map(|sync| Ok((sync, self.object(&state, number)?))).transpose()?;
            let kept = if data_only { None } else { state.tree.get_mut(number)?.kept.take() };
            (object, operations, kept, bytes)
        };
        let synced = self.store.take_sync_time(bytes).and_then(|()| match &begun {
            Some((_, object)) => object.sync(data_only).map_err(|error| refusal(&error)),
            None => Ok(()),
        });
        if let Err(refused) = synced {
            let mut state = self.lock();
            if let Ok(inode) = state.tree.get_mut(number) {
                // What was durable before is older than what has been kept meanwhile.
                inode.kept = kept.or_else(|| inode.kept.take());
            }
            return Err(refused);
        }
        let mut state = self.lock();
        if let Some((sync, _)) = begun {
            self.end_sync(&mut state, number, sync);
        }
        self.names_are_durable(&mut state, operations);
        Ok(())
    }

    /// The kernel asks for a sync after every write of an opening with `O_SYNC` or `O_DSYNC`, although the write has said
    /// that it is one. That one sync is no further work for the disk.
    pub(crate) fn note_synced_with_write(&self, number: u64) {
        let mut state = self.lock();
        let Ok(file) = file_mut(&mut state, number) else { return };
        file.is_synced_with_write = file.log.is_clean(file.size);
    }

    pub(crate) fn end_sync(&self, state: &mut State<S::Object>, number: u64, sync: u64) {
        let Ok(file) = file_mut(state, number) else { return };
        let before = file.log.kept();
        file.log.end_sync(sync);
        let (gone, size) = (before - file.log.kept(), file.size);
        // A file that has grown since the sync began, or of which a block was overwritten, is still dirty.
        let clean = file.log.is_clean(size).then(|| file.dirty_since.take()).flatten();
        state.blocks_kept = state.blocks_kept.saturating_sub(gone);
        if let Some(since) = clean {
            state.dirty.remove(&since);
        }
    }

    /// Takes a file's content as durable without asking the store, and where that is of another size its names: a later
    /// `fdatasync` finds the size durable and would not keep what was named before the file grew.
    pub(crate) fn content_is_durable(
        &self,
        state: &mut State<S::Object>,
        number: u64,
    ) -> Result<(), Refusal> {
        let operations = state.tree.waiting_of(number, !has_another_size(state, number));
        let file = file_mut(state, number)?;
        let sync = file.log.begin_sync(file.size);
        self.end_sync(state, number, sync);
        self.names_are_durable(state, operations);
        Ok(())
    }

    /// Takes everything as it is now as durable, names and content: the moment from which the volume's losses count. The
    /// store is not asked to sync.
    pub fn take_all_as_durable(&self) {
        let mut state = self.lock();
        state.owed.clear();
        for number in state.dirty.values().copied().collect::<Vec<u64>>() {
            // Every one of these is a file that is there.
            let _ = self.content_is_durable(&mut state, number);
        }
        for number in state.tree.numbers() {
            if let Ok(inode) = state.tree.get_mut(number) {
                inode.kept = None;
            }
        }
        while let Some(oldest) = state.tree.oldest() {
            self.names_are_durable(&mut state, [oldest].into());
        }
    }
}

/// Remembers the room that was set aside last, with what touches it; none where some was given back.
fn set_room_aside(file: &mut FileBody, (from, to): (u64, u64), gives_back: bool) {
    let (known_from, known_to) = file.room;
    let touches = from <= known_to && known_from <= to;
    file.room = match (gives_back, touches) {
        (true, _) => (0, 0),
        (false, true) => (from.min(known_from), to.max(known_to)),
        (false, false) => (from, to),
    };
}

/// Whether a file has another size than what is durable of it. The sync of its data then needs its inode, and with it the names
/// that were given to it before: ext4 commits the transaction of the inode's size, and all before it; XFS forces the log up to
/// the inode.
pub(crate) fn has_another_size<O>(state: &State<O>, number: u64) -> bool {
    file(state, number).is_ok_and(|file| file.log.durable_size() != file.size)
}

/// Whether a sync is the one that the kernel asks for after a write that was synced with it, and finds nothing to do.
fn is_done_with_write<O>(state: &mut State<O>, number: u64, data_only: bool) -> bool {
    let Ok(inode) = state.tree.get_mut(number) else { return false };
    let are_attributes_durable = data_only || inode.kept.is_none();
    let Body::File(file) = &mut inode.body else { return false };
    std::mem::take(&mut file.is_synced_with_write) && are_attributes_durable && file.log.is_clean(file.size)
}

fn file<O>(state: &State<O>, number: u64) -> Result<&FileBody, Refusal> {
    match &state.tree.get(number)?.body {
        Body::File(file) => Ok(file),
        Body::Directory(_) => Err(Refusal::EISDIR),
        _ => Err(Refusal::EINVAL),
    }
}

fn file_mut<O>(state: &mut State<O>, number: u64) -> Result<&mut FileBody, Refusal> {
    match &mut state.tree.get_mut(number)?.body {
        Body::File(file) => Ok(file),
        Body::Directory(_) => Err(Refusal::EISDIR),
        _ => Err(Refusal::EINVAL),
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;

    use super::*;
    use crate::attributes::Attributes;
    use crate::store::{Flush, FolderStore};
    use crate::tree::ROOT;
    use crate::volume::{Limits, NewInode};

    const NOW: SystemTime = SystemTime::UNIX_EPOCH;
    const TIB: u64 = 1 << 40;
    const PUNCH: i32 = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;

    /// A volume with a file of 1 TiB, of which only the blocks at these offsets have content, and all of it durable.
    fn sparse(folder: &std::path::Path, blocks_max: usize, offsets: &[u64]) -> (Volume<FolderStore>, u64) {
        let store = FolderStore::new(folder, Flush::Pretended);
        let volume = Volume::new(store, Limits { blocks_max, ..Limits::default() }, 0, 0, NOW);
        let attributes = Attributes::new(0o600, 0, 0, NOW);
        let file = volume.make(ROOT, OsStr::new("f"), &NewInode::File, attributes).expect("a file").inode;
        volume.write(file, TIB - 1, &[0], None, false, NOW).expect("its size");
        for offset in offsets {
            volume.write(file, *offset, &[7; 4096], None, false, NOW).expect("written");
        }
        volume.sync(file, Scope::All).expect("synced");
        (volume, file)
    }

    fn byte_at(volume: &Volume<FolderStore>, file: u64, offset: u64) -> u8 {
        let mut byte = [9];
        assert_eq!(volume.read(file, offset, &mut byte), Ok(1));
        byte[0]
    }

    #[test]
    fn of_a_file_of_a_tebibyte_that_becomes_one_hole_only_its_data_is_kept_and_comes_back() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let offsets = [0, 512 << 30, TIB - 8192];
        let (volume, file) = sparse(folder.path(), 16, &offsets);
        volume.allocate(file, PUNCH, 0, TIB, NOW).expect("punched");
        assert!(volume.lock().blocks_kept <= 5, "{} blocks kept", volume.lock().blocks_kept);
        // Written where there was a hole: that comes back as a hole.
        volume.write(file, 1 << 30, &[8; 4096], None, false, NOW).expect("written");
        assert!(offsets.iter().all(|offset| byte_at(&volume, file, *offset) == 0));
        volume.power_off(None).expect("power-off");
        assert!(offsets.iter().all(|offset| byte_at(&volume, file, *offset) == 7));
        assert_eq!(byte_at(&volume, file, 1 << 30), 0);
    }

    #[test]
    fn a_hole_over_more_data_than_is_remembered_is_durable_at_once() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (volume, file) = sparse(folder.path(), 2, &[0, 1 << 20, 2 << 20]);
        volume.allocate(file, PUNCH, 0, TIB, NOW).expect("punched");
        assert_eq!(volume.lock().blocks_kept, 0);
        volume.power_off(None).expect("power-off");
        assert_eq!([0, 1 << 20, 2 << 20].map(|offset| byte_at(&volume, file, offset)), [0, 0, 0]);
    }

    #[test]
    fn what_is_written_back_of_a_file_that_has_grown_keeps_the_name_it_was_given_before() {
        for syncs in [false, true] {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let offsets = [0, 1 << 20, 2 << 20];
            let (volume, file) = sparse(folder.path(), 2, &offsets);
            let [old, new] = ["f", "g"].map(|name| (ROOT, OsStr::new(name)));
            volume.rename(old, new, crate::tree::RenameKind::Replace, NOW).expect("renamed");
            volume.write(file, TIB, &[8], None, false, NOW).expect("appended");
            for offset in offsets {
                volume.write(file, offset, &[8; 4096], None, false, NOW).expect("written");
            }
            assert_eq!(volume.written_back(), 1);
            if syncs {
                volume.sync(file, Scope::Data).expect("synced");
            }
            volume.power_off(None).expect("power-off");
            assert_eq!(volume.look_up(ROOT, new.1).expect("found").inode, file);
            assert_eq!(volume.look_up(ROOT, old.1).err(), Some(Refusal::ENOENT));
        }
    }
}
