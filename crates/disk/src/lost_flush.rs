//! Syncs that are answered and not done, as by a drive that says that its cache is on the medium.
//!
//! The next sync that is done does them too. What they cover is gone when the drive loses its power before, and only then.

use std::mem::take;

use crate::Refusal;
use crate::content::has_another_size;
use crate::owed::Owed;
use crate::store::{Object, Store};
use crate::tree::Body;
use crate::volume::{Scope, State, Volume, refusal};

impl<S: Store> Volume<S> {
    /// A sync of an object is answered and not done.
    pub(crate) fn owe(&self, number: u64, scope: Scope) -> Result<(), Refusal> {
        let mut state = self.lock();
        let data_only = scope == Scope::Data;
        let operations = state.tree.waiting_of(number, data_only && !has_another_size(&state, number));
        let before = state.owed.get(&number).and_then(|owed| owed.seal);
        let inode = state.tree.get_mut(number)?;
        let attributes = (!data_only && inode.kept.is_some()).then(|| inode.present());
        let (seal, dropped) = match &mut inode.body {
            Body::File(file) => {
                let kept = file.log.kept();
                let seal = file.log.begin_sync_in_place_of(before, file.size);
                (Some(seal), kept - file.log.kept())
            }
            _ => (None, 0),
        };
        state.blocks_kept = state.blocks_kept.saturating_sub(dropped);
        owe_too(&mut state, number, Owed { data_only, seal, operations, attributes });
        Ok(())
    }

    /// Does the syncs that were answered and not done. One that is refused is owed on.
    pub(crate) fn pay_owed(&self) -> Result<(), Refusal> {
        let all_owed = take(&mut self.lock().owed);
        let mut all_paid = Ok(());
        for (number, owed) in all_owed {
            let done = self.put_on_the_medium(number, owed.data_only);
            let mut state = self.lock();
            match done {
                Ok(()) => self.settle(&mut state, number, owed),
                // It is gone by now, and there is nothing to keep.
                Err(Refusal::ESTALE) => {}
                Err(refusal) => {
                    let newer = state.owed.remove(&number);
                    owe_too(&mut state, number, owed);
                    newer.into_iter().for_each(|newer| owe_too(&mut state, number, newer));
                    all_paid = all_paid.and(Err(refusal));
                }
            }
        }
        all_paid
    }

    /// The power is cut of whoever uses the volume, and not of the drive: that has what was synced in its cache, and puts it on the
    /// medium in the end.
    pub fn drive_keeps_its_power(&self) {
        let mut state = self.lock();
        for (number, owed) in take(&mut state.owed) {
            self.settle(&mut state, number, owed);
        }
    }

    fn put_on_the_medium(&self, number: u64, data_only: bool) -> Result<(), Refusal> {
        let (object, bytes) = {
            let mut state = self.lock();
            let bytes = match &mut state.tree.get_mut(number)?.body {
                Body::File(file) => Some(take(&mut file.unsynced_bytes)),
                _ => None,
            };
            let object = bytes.map(|_| state.open.get(&self.store, number)).transpose();
            (object.map_err(|error| refusal(&error))?, bytes.unwrap_or_default())
        };
        self.store.take_sync_time(bytes)?;
        object.map_or(Ok(()), |object| object.sync(data_only)).map_err(|error| refusal(&error))
    }

    /// What it covers is durable.
    fn settle(&self, state: &mut State<S::Object>, number: u64, owed: Owed) {
        if let Some(seal) = owed.seal {
            self.end_sync(state, number, seal);
        }
        // Where they are durable by now, it is by a later sync.
        if let (Some(attributes), Ok(inode)) = (owed.attributes, state.tree.get_mut(number))
            && inode.kept.is_some()
        {
            inode.kept = (!attributes.is_like(&inode.present())).then_some(attributes);
        }
        self.names_are_durable(state, owed.operations);
    }
}

/// Owes it, beside what is owed of the same object since before.
fn owe_too<O>(state: &mut State<O>, number: u64, owed: Owed) {
    let owed = match state.owed.remove(&number) {
        Some(older) => older.and(owed),
        None => owed,
    };
    state.owed.insert(number, owed);
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::path::Path;
    use std::time::SystemTime;

    use super::*;
    use crate::attributes::Attributes;
    use crate::disk::DiskGroup;
    use crate::medium::Defect;
    use crate::on_disk::OnDisk;
    use crate::store::FolderStore;
    use crate::tree::{ROOT, RenameKind};
    use crate::volume::{Limits, NewInode};

    const NOW: SystemTime = SystemTime::UNIX_EPOCH;

    type OnADisk = Volume<OnDisk<FolderStore>>;

    /// A volume on a sound disk with a durable file `f` that holds 1.
    fn on_a_disk(folder: &Path) -> (OnADisk, u64) {
        let group = DiskGroup::new(&["d1".to_owned()], None);
        let store = OnDisk::in_folder(folder, group.capacity[0].clone(), false);
        let volume = Volume::new(store, Limits::default(), 0, 0, NOW);
        let attributes = Attributes::new(0o600, 0, 0, NOW);
        let file = volume.make(ROOT, OsStr::new("f"), &NewInode::File, attributes).expect("a file").inode;
        write(&volume, file, 1);
        volume.sync(file, Scope::All).expect("synced");
        (volume, file)
    }

    fn write(volume: &OnADisk, file: u64, byte: u8) {
        volume.write(file, 0, &[byte], None, false, NOW).expect("written");
    }

    fn found(volume: &OnADisk, file: u64) -> u8 {
        let mut found = [0];
        volume.look_at(file, 0, &mut found).expect("read");
        found[0]
    }

    fn rename(volume: &OnADisk, from: &str, to: &str) {
        let (from, to) = ((ROOT, OsStr::new(from)), (ROOT, OsStr::new(to)));
        volume.rename(from, to, RenameKind::Replace, NOW).expect("renamed");
    }

    fn is_there(volume: &OnADisk, name: &str) -> bool {
        volume.look_up(ROOT, OsStr::new(name)).is_ok()
    }

    /// What a file holds and whether a second name is there, after a lost sync of both and changes of both that nobody synced.
    fn check(goes_on: impl FnOnce(&OnADisk), wanted: (u8, [bool; 3])) {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (volume, file) = on_a_disk(folder.path());
        let loses_flushes = volume.store().disk().impose(Defect::LoseFlush);
        for byte in [2, 3] {
            write(&volume, file, byte);
            volume.sync(file, Scope::Data).expect("in appearance");
        }
        rename(&volume, "f", "g");
        volume.sync(file, Scope::All).expect("in appearance");
        write(&volume, file, 4);
        rename(&volume, "g", "h");
        drop(loses_flushes);
        goes_on(&volume);
        volume.power_off(None).expect("power-off");
        let names = ["f", "g", "h"].map(|name| is_there(&volume, name));
        assert_eq!((found(&volume, file), names), wanted);
    }

    #[test]
    fn what_a_lost_flush_covers_is_gone_when_the_drive_loses_its_power() {
        check(|_| (), (1, [true, false, false]));
    }

    #[test]
    fn what_a_lost_flush_covers_is_there_when_the_drive_keeps_its_power_and_nothing_that_came_since() {
        check(|volume| volume.drive_keeps_its_power(), (3, [false, true, false]));
    }

    #[test]
    fn a_sync_that_is_done_does_the_lost_ones_too_and_covers_nothing_that_came_since() {
        let other = |volume: &OnADisk| {
            let attributes = Attributes::new(0o600, 0, 0, NOW);
            let other = volume.make(ROOT, OsStr::new("other"), &NewInode::File, attributes).expect("a file");
            volume.sync(other.inode, Scope::Data).expect("synced");
        };
        check(other, (3, [false, true, false]));
    }

    #[test]
    fn a_mode_that_was_synced_in_appearance_comes_with_the_rest_and_one_that_was_not_does_not() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (volume, file) = on_a_disk(folder.path());
        let to = |mode: u32| crate::Change { mode: Some(mode), ..crate::Change::default() };
        let loses_flushes = volume.store().disk().impose(Defect::LoseFlush);
        volume.change(file, &to(0o640), NOW).expect("changed");
        volume.sync(file, Scope::All).expect("in appearance");
        volume.change(file, &to(0o644), NOW).expect("changed");
        drop(loses_flushes);
        volume.drive_keeps_its_power();
        volume.power_off(None).expect("power-off");
        assert_eq!(volume.status(file).expect("there").attributes.mode & 0o777, 0o640);
    }
}
