//! The power-off of a volume: everything that is not durable is taken back.

use crate::Refusal;
use crate::block_log::{BLOCK_BYTES, Blocks, Restoration};
use crate::mirror::Dirt;
use crate::store::{Object, Store};
use crate::tree::Body;
use crate::volume::{Lost, State, Volume, refusal};

impl<S: Store> Volume<S> {
    /// Takes back everything that is not durable. Nobody knows of any object or has one open afterwards; no request may
    /// be under way. With a coin, the last write is torn: each of its sectors for which the coin says so survives.
    ///
    /// # Errors
    /// When the store cannot be brought back; then the volume's content is not to be relied on.
    pub fn power_off(&self, coin: Option<&mut dyn FnMut() -> bool>) -> Result<Lost, Refusal> {
        self.power_off_of_component(coin, &mut Dirt::new())
    }

    /// The same on one component of several. What is other than it was before is marked in `dirt`, which a real component
    /// would find in its log of extents being written.
    ///
    /// # Errors
    /// As [`Volume::power_off`]; then everything is marked.
    pub fn power_off_of_component(
        &self,
        coin: Option<&mut dyn FnMut() -> bool>,
        dirt: &mut Dirt,
    ) -> Result<Lost, Refusal> {
        let taken_back = self.take_back(coin, dirt);
        if taken_back.is_err() {
            // Nobody can tell what is other than it was.
            dirt.add(&self.everything());
        }
        taken_back
    }

    /// Takes back what can be taken back: what the store refuses for one file ends nothing for the others.
    fn take_back(
        &self,
        mut coin: Option<&mut dyn FnMut() -> bool>,
        dirt: &mut Dirt,
    ) -> Result<Lost, Refusal> {
        let mut state = self.lock();
        let mut lost = Lost::default();
        let mut refused = None;
        let dirty = std::mem::take(&mut state.dirty);
        let last_write = state.last_write.take();
        state.owed.clear();
        for number in dirty.into_values() {
            let Ok(inode) = state.tree.get_mut(number) else { continue };
            let Body::File(file) = &mut inode.body else { continue };
            file.dirty_since = None;
            let size = file.size;
            let mut back = file.log.take_back();
            file.size = back.size;
            file.room = (file.room.0.min(back.size), file.room.1.min(back.size));
            if let (Some(coin), Some((_, from, to))) =
                (coin.as_deref_mut(), last_write.filter(|(written, ..)| *written == number))
            {
                match self.tear(&state, number, &mut back, (from, to), coin) {
                    Ok(sectors) => lost.sectors_survived += sectors,
                    Err(reason) => refused = refused.or(Some(reason)),
                }
            }
            for block in back.blocks.keys() {
                dirt.mark_content(number, block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES);
            }
            dirt.mark_content(number, size.min(back.size), size.max(back.size));
            if let Err(reason) = self.restore(&state, number, &back) {
                refused = refused.or(Some(reason));
                continue;
            }
            lost.files += 1;
            lost.blocks_restored += back.blocks.len() as u64;
            lost.bytes_cut += size.saturating_sub(back.size);
        }
        state.blocks_kept = 0;
        let (operations, attributes, gone) = state.tree.take_back(dirt);
        lost.operations = operations as u64;
        lost.attributes = attributes as u64;
        state.open = crate::store::OpenObjects::new();
        state.keeps_nameless = false;
        for number in gone {
            dirt.mark_whole(number);
            if !state.is_in_snapshot(number) {
                // Not every object has content, and what stays behind takes room and does no other harm.
                let _ = self.store.remove(number);
            }
        }
        match refused {
            Some(reason) => Err(reason),
            None => Ok(lost),
        }
    }

    fn tear(
        &self,
        state: &State<S::Object>,
        number: u64,
        back: &mut Restoration,
        (from, to): (u64, u64),
        coin: &mut dyn FnMut() -> bool,
    ) -> Result<u64, Refusal> {
        let object = state.open.get(&self.store, number).map_err(|error| refusal(&error))?;
        let mut now = Blocks::new();
        for block in from / BLOCK_BYTES..to.div_ceil(BLOCK_BYTES) {
            let mut content = vec![0; BLOCK_BYTES as usize];
            let read = object.read(block * BLOCK_BYTES, &mut content).map_err(|error| refusal(&error))?;
            content.truncate(read);
            now.insert(block, content.into_boxed_slice());
        }
        Ok(back.tear(from, to, &now, coin))
    }

    fn restore(&self, state: &State<S::Object>, number: u64, back: &Restoration) -> Result<(), Refusal> {
        let restored = state.open.get(&self.store, number).and_then(|object| {
            object.set_size(back.size)?;
            for (block, content) in &back.blocks {
                object.write(block * BLOCK_BYTES, content)?;
            }
            Ok(())
        });
        restored.map_err(|error| refusal(&error))
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::time::SystemTime;

    use super::*;
    use crate::attributes::Attributes;
    use crate::store::{Flush, FolderStore};
    use crate::tree::ROOT;
    use crate::volume::{Limits, NewInode};

    const NOW: SystemTime = SystemTime::UNIX_EPOCH;

    fn make(volume: &Volume<FolderStore>, name: &str) -> u64 {
        let attributes = Attributes::new(0o600, 0, 0, NOW);
        volume.make(ROOT, OsStr::new(name), &NewInode::File, attributes).expect("a file").inode
    }

    fn content(volume: &Volume<FolderStore>, file: u64) -> Vec<u8> {
        let mut found = [0; 8];
        let read = volume.read(file, 0, &mut found).expect("read");
        found[..read].to_vec()
    }

    #[test]
    fn a_file_that_cannot_be_brought_back_is_reported_and_keeps_no_other_from_being_brought_back() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let store = FolderStore::new(folder.path(), Flush::Pretended);
        let volume = Volume::new(store, Limits::default(), 0, 0, NOW);
        let files = ["a", "b", "c"].map(|name| make(&volume, name));
        for file in files {
            volume.write(file, 0, b"old", None, false, NOW).expect("written");
        }
        volume.take_all_as_durable();
        for file in files {
            volume.write(file, 0, b"new", None, false, NOW).expect("written");
        }
        make(&volume, "unsynced");
        std::fs::remove_file(folder.path().join(files[1].to_string())).expect("its content goes");

        let mut dirt = Dirt::new();
        assert_eq!(volume.power_off_of_component(None, &mut dirt), Err(Refusal::ENOENT));

        assert_eq!([files[0], files[2]].map(|file| content(&volume, file)), [b"old", b"old"]);
        assert_eq!(volume.look_up(ROOT, OsStr::new("unsynced")), Err(Refusal::ENOENT));
        assert!(files.iter().all(|file| dirt.holds_object(*file)), "all of it is in doubt");
    }
}
