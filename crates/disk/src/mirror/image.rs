//! Objects of a volume as they are, read on one component and put in place on another.
//!
//! What is put in place goes past the logs of what is not durable: a component that is catching up is not to be relied on
//! before it has caught up, and then all of it is durable.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::time::SystemTime;

use crate::Refusal;
use crate::attributes::{Attributes, Kind};
use crate::dirt::Dirt;
use crate::image::{Image, ImageBody};
use crate::medium::{Access, Admitted};
use crate::store::{Object, Store};
use crate::tree::{Body, FileBody};
use crate::volume::{State, Volume, refusal};

impl<S: Store> Volume<S> {
    /// The object that has a name.
    pub(crate) fn number_of(&self, directory: u64, name: &OsStr) -> Option<u64> {
        self.lock().tree.find(directory, name).ok()
    }

    /// A file's size; `None` for anything else, or nothing.
    pub(crate) fn size_of(&self, number: u64) -> Option<u64> {
        match &self.lock().tree.get(number).ok()?.body {
            Body::File(file) => Some(file.size),
            _ => None,
        }
    }

    /// Everything there is.
    pub(crate) fn everything(&self) -> Dirt {
        let mut dirt = Dirt::new();
        for number in self.lock().tree.numbers() {
            dirt.mark_whole(number);
        }
        dirt
    }

    /// An object without its content; `None` when there is none.
    pub(crate) fn image(&self, number: u64) -> Option<Image> {
        Image::of(&self.lock().tree, number)
    }

    /// A copy begins to arrive: all that is here is durable, and what loses its name stays until the copy is whole.
    pub(crate) fn begin_copy(&self) {
        self.note_kept_more(&self.lock());
        self.take_all_as_durable();
        self.lock().keeps_nameless = true;
    }

    /// Puts an object in place.
    pub(crate) fn install(&self, image: &Image) -> Result<(), Refusal> {
        self.admit(Access::Grow)?;
        let mut state = self.lock();
        self.make_room(&mut state, image.number, image.kind)?;
        let os = |bytes: &[u8]| OsStr::from_bytes(bytes).to_owned();
        match &image.body {
            ImageBody::File { size } => self.install_size(&mut state, image.number, *size)?,
            ImageBody::Directory { names } => {
                let mut entries = BTreeMap::new();
                for (name, number, kind) in names {
                    if state.tree.get(*number).is_err() {
                        self.make_room(&mut state, *number, *kind)?;
                    }
                    entries.insert(os(name), *number);
                }
                state.tree.get_mut(image.number)?.body = Body::Directory(entries);
                state.tree.recount();
            }
            ImageBody::SymbolicLink(target) => {
                let target = OsString::from_vec(target.clone());
                state.tree.get_mut(image.number)?.body = Body::SymbolicLink(target);
            }
            ImageBody::Device(device) => {
                state.tree.get_mut(image.number)?.body = Body::Device(*device);
            }
        }
        let inode = state.tree.get_mut(image.number)?;
        inode.attributes = image.attributes;
        inode.extended = image.extended();
        inode.kept = None;
        Ok(())
    }

    /// An object of this number and kind, whatever it was before.
    fn make_room(&self, state: &mut State<S::Object>, number: u64, kind: Kind) -> Result<(), Refusal> {
        if state.tree.get(number).is_ok_and(|inode| inode.kind == kind) {
            return Ok(());
        }
        let body = match kind {
            Kind::File => Body::File(FileBody::default()),
            Kind::Directory => Body::Directory(BTreeMap::new()),
            Kind::SymbolicLink => Body::SymbolicLink(OsString::new()),
            _ => Body::Device(0),
        };
        let nothing = Attributes::new(0, 0, 0, SystemTime::UNIX_EPOCH);
        state.tree.insert(Some(number), kind, nothing, body);
        if kind == Kind::File && self.store.open(number).is_err() {
            self.store.create(number).map_err(|error| refusal(&error))?;
        }
        Ok(())
    }

    fn install_size(&self, state: &mut State<S::Object>, number: u64, size: u64) -> Result<(), Refusal> {
        state.copied.insert(number);
        let object = state.open.get(&self.store, number).map_err(|error| refusal(&error))?;
        object.set_size(size).map_err(|error| refusal(&error))?;
        if let Body::File(file) = &mut state.tree.get_mut(number)?.body {
            (file.size, file.room) = (size, (0, 0));
        }
        self.content_is_durable(state, number)
    }

    /// Puts content in place, of a file whose size is known. What lies beyond its end by now is left out.
    pub(crate) fn install_content(&self, number: u64, from: u64, content: &[u8]) -> Result<(), Refusal> {
        self.admit(Access::Grow)?;
        self.store.take_sync_time(content.len() as u64)?;
        let mut state = self.lock();
        let Ok(inode) = state.tree.get(number) else { return Ok(()) };
        let Body::File(file) = &inode.body else { return Err(Refusal::EINVAL) };
        let room = file.size.saturating_sub(from);
        let fitting = &content[..content.len().min(usize::try_from(room).unwrap_or(usize::MAX))];
        let object = state.open.get(&self.store, number).map_err(|error| refusal(&error))?;
        object.write(from, fitting).map_err(|error| refusal(&error))?;
        // Here and not all at the end, which somebody waits for.
        object.sync(false).map_err(|error| refusal(&error))?;
        state.copied.remove(&number);
        self.content_is_durable(&mut state, number)
    }

    /// The copy is whole: what no name leads to goes, and all else is durable.
    pub(crate) fn end_copy(&self) -> Result<(), Refusal> {
        if !self.store.is_sound() && self.store.admit(Access::Sync)? == Admitted::InAppearance {
            // What came past the logs cannot be taken back.
            self.store.note_kept_more();
        }
        let copied = {
            let mut state = self.lock();
            state.keeps_nameless = false;
            state.tree.recount();
            let numbers = state.tree.numbers();
            for number in &numbers {
                self.release_if_unneeded(&mut state, *number);
            }
            std::mem::take(&mut state.copied)
        };
        for number in copied {
            if self.size_of(number).is_some() {
                let object = {
                    let state = self.lock();
                    state.open.get(&self.store, number).map_err(|error| refusal(&error))?
                };
                object.sync(false).map_err(|error| refusal(&error))?;
            }
        }
        self.take_all_as_durable();
        Ok(())
    }
}
