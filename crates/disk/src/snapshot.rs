//! A snapshot of a volume, and the return to it: the same names, attributes, times and content, byte by byte, whatever was
//! done since.
//!
//! The snapshot lies in a folder beside the volume: its names with all that they lead to, but for content, and a checksum of
//! every file's content. The content stays where it is. From the snapshot on, the volume keeps each block of it before the
//! first change (`undo`), and removes no file of it. To return is to write those blocks back, and to remove what came since.
//!
//! The return is checked against the checksums, which know nothing of what was kept: a block that was changed unseen is found.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crc32fast::Hasher;
use serde::{Deserialize, Serialize};

use crate::Refusal;
use crate::block_log::BLOCK_BYTES;
use crate::image::{Image, tree_of};
use crate::store::{Object, Seek, Store};
use crate::undo::{Runs, Undo, names_path};
use crate::volume::{Limits, Volume};

/// Bytes that are read at once for a checksum.
const READ_BYTES: u64 = 64 * BLOCK_BYTES;
/// A block of a hole.
static ZEROS: [u8; BLOCK_BYTES as usize] = [0; BLOCK_BYTES as usize];

/// What can go wrong with a snapshot.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// A file of the snapshot, or the volume's own store.
    #[error("{path}: {source}")]
    File {
        /// The folder.
        path: PathBuf,
        /// What the operating system answered.
        source: io::Error,
    },
    /// What is to be remembered cannot be made durable first.
    #[error("the volume before the snapshot: {0}")]
    Volume(Refusal),
    /// There is no snapshot, because none was taken or a block of it could not be kept.
    #[error("{path}: no snapshot; a block of it could not be stored, or none was taken")]
    Gone {
        /// The folder.
        path: PathBuf,
    },
    /// Its files are not what they should be.
    #[error("{path}: not a snapshot: {why}")]
    Form {
        /// The folder.
        path: PathBuf,
        /// In words.
        why: String,
    },
    /// What came back is not what was there.
    #[error("{path}: object {number} differs from the snapshot after the return")]
    Differs {
        /// The folder.
        path: PathBuf,
        /// The object's number.
        number: u64,
    },
    /// What the volume is has no snapshots.
    #[error("{what} has no snapshots")]
    NotPossible { what: &'static str },
}

/// What the file of names holds.
#[derive(Debug, Serialize, Deserialize)]
struct Remembered {
    next: u64,
    objects: Vec<Image>,
    /// Of every file, by its number.
    checksums: BTreeMap<u64, u32>,
}

impl Remembered {
    /// Every file with its size.
    fn files(&self) -> impl Iterator<Item = (u64, u64)> {
        self.objects.iter().filter_map(|image| Some((image.number, image.file_size()?)))
    }
}

impl<S: Store> Volume<S> {
    /// Takes all of it as durable and remembers it in a folder, which must be there and be changed by nobody else. From then on
    /// the volume can be returned to this, by [`Volume::at_snapshot`]. It must not be mounted; nobody has a file of it open
    /// afterwards.
    ///
    /// # Errors
    /// When something cannot be read or written; then there is no snapshot.
    pub fn take_snapshot(&self, folder: &Path) -> Result<(), SnapshotError> {
        let failed = |source| SnapshotError::File { path: folder.to_owned(), source };
        self.take_all_as_durable();
        // There is nothing to be lost, and what no name leads to goes.
        self.power_off(None).map_err(SnapshotError::Volume)?;
        let mut state = self.lock();
        let numbers = state.tree.numbers();
        let mut remembered = Remembered {
            next: state.tree.next_number(),
            objects: numbers.iter().filter_map(|number| Image::of(&state.tree, *number)).collect(),
            checksums: BTreeMap::new(),
        };
        let files: Vec<(u64, u64)> = remembered.files().collect();
        for (number, size) in files.iter().copied() {
            let sum = self.store.open(number).and_then(|object| checksum(&object, size)).map_err(failed)?;
            remembered.checksums.insert(number, sum);
        }
        let form =
            |why: postcard::Error| SnapshotError::Form { path: folder.to_owned(), why: why.to_string() };
        let names = postcard::to_stdvec(&remembered).map_err(form)?;
        let undo = Undo::begin(folder, files.into_iter()).map_err(failed)?;
        // Last: without it there is no snapshot.
        fs::write(names_path(folder), names).map_err(failed)?;
        state.undo = Some(undo);
        Ok(())
    }

    /// The volume over this store as it was when the snapshot in `folder` was taken, whatever was done to it since, and by
    /// whatever process. It can be returned again.
    ///
    /// # Errors
    /// When there is no snapshot any more, or what came back is not what was there. The store is of no further use then.
    pub fn at_snapshot(store: S, limits: Limits, folder: &Path) -> Result<Volume<S>, SnapshotError> {
        let failed = |source| SnapshotError::File { path: folder.to_owned(), source };
        let remembered = read(folder)?;
        let sizes: BTreeMap<u64, u64> = remembered.files().collect();
        write_back(&store, &sizes, folder)?;
        for (number, size) in &sizes {
            let object = store.open(*number).map_err(failed)?;
            let is = (object.size().map_err(failed)?, checksum(&object, *size).map_err(failed)?);
            if is != (*size, remembered.checksums.get(number).copied().unwrap_or_default()) {
                return Err(SnapshotError::Differs { path: folder.to_owned(), number: *number });
            }
        }
        let tree = tree_of(&remembered.objects, remembered.next).ok_or_else(|| SnapshotError::Form {
            path: folder.to_owned(),
            why: "its names lead nowhere".to_owned(),
        })?;
        let undo = Undo::begin(folder, sizes.into_iter()).map_err(failed)?;
        Ok(Volume::with_tree(store, limits, tree, Some(undo)))
    }
}

fn read(folder: &Path) -> Result<Remembered, SnapshotError> {
    let path = || folder.to_owned();
    match fs::read(names_path(folder)) {
        Ok(names) => postcard::from_bytes(&names)
            .map_err(|why| SnapshotError::Form { path: path(), why: why.to_string() }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(SnapshotError::Gone { path: path() }),
        Err(source) => Err(SnapshotError::File { path: path(), source }),
    }
}

/// Removes what came since, and writes back what was kept. Done twice it does no more: the blocks stay until it is over.
fn write_back<S: Store>(store: &S, sizes: &BTreeMap<u64, u64>, folder: &Path) -> Result<(), SnapshotError> {
    let failed = |source| SnapshotError::File { path: folder.to_owned(), source };
    for number in store.numbers().map_err(failed)? {
        if !sizes.contains_key(&number) {
            store.remove(number).map_err(failed)?;
        }
    }
    for (number, size) in sizes {
        let object = store.open(*number).map_err(failed)?;
        if object.size().map_err(failed)? != *size {
            object.set_size(*size).map_err(failed)?;
        }
    }
    let mut written = BTreeSet::new();
    let mut open: Option<(u64, S::Object)> = None;
    for run in Runs::of(folder).map_err(failed)? {
        let run = run.map_err(failed)?;
        let end = run.offset.checked_add(run.content.len() as u64);
        let size = sizes.get(&run.number).copied();
        if end.is_none_or(|end| size.is_none_or(|size| end > size)) {
            let why = format!("a block of object {} lies outside of it", run.number);
            return Err(SnapshotError::Form { path: folder.to_owned(), why });
        }
        let object = match open.take() {
            Some((number, object)) if number == run.number => object,
            _ => store.open(run.number).map_err(failed)?,
        };
        object.write(run.offset, &run.content).map_err(failed)?;
        written.insert(run.number);
        open = Some((run.number, object));
    }
    // What is begun next must not wait for the machine's disk to take this.
    written.iter().try_for_each(|number| store.open(*number)?.sync(true)).map_err(failed)
}

/// A checksum of the first `size` bytes. Blocks of zeros do not count, so that a hole and what was written back into it are
/// the same.
fn checksum(object: &impl Object, size: u64) -> io::Result<u32> {
    let mut sum = Hasher::new();
    let mut at = 0;
    while at < size {
        let begin = match object.seek(at, Seek::Data) {
            Ok(begin) => begin.max(at),
            Err(error) if error.raw_os_error() == Some(libc::ENXIO) => break,
            Err(_) => at,
        };
        let from = begin - begin % BLOCK_BYTES;
        if from >= size {
            break;
        }
        let end = (from + READ_BYTES).min(size);
        // At most a quarter of a megabyte.
        let mut content = vec![0; (end - from) as usize];
        let read = object.read(from, &mut content)?;
        if read < content.len() {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "content ends before its size"));
        }
        for (block, bytes) in (from / BLOCK_BYTES..).zip(content.chunks(BLOCK_BYTES as usize)) {
            if *bytes != ZEROS[..bytes.len()] {
                sum.update(&block.to_le_bytes());
                sum.update(bytes);
            }
        }
        at = end;
    }
    Ok(sum.finalize())
}
