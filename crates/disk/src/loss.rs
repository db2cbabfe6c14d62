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
    /// As [`Volume::power_off`].
    pub fn power_off_of_component(
        &self,
        mut coin: Option<&mut dyn FnMut() -> bool>,
        dirt: &mut Dirt,
    ) -> Result<Lost, Refusal> {
        let mut state = self.lock();
        let mut lost = Lost::default();
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
            if let (Some(coin), Some((_, from, to))) =
                (coin.as_deref_mut(), last_write.filter(|(written, ..)| *written == number))
            {
                lost.sectors_survived += self.tear(&state, number, &mut back, (from, to), coin)?;
            }
            for block in back.blocks.keys() {
                dirt.mark_content(number, block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES);
            }
            dirt.mark_content(number, size.min(back.size), size.max(back.size));
            self.restore(&state, number, &back)?;
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
        Ok(lost)
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
