//! What the files of a snapshot held before they were changed: each block once, in one file beside the volume, so that it can
//! be written back.
//!
//! Owns which blocks those are and how they are written down. The names of a snapshot, and the way back, are `snapshot`'s.
//!
//! Nothing here refuses anything to a program. Where a block cannot be kept, the snapshot is lost and removed, and the
//! volume goes on.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::block_log::BLOCK_BYTES;
use crate::store::{Object, Seek};

/// The file of blocks, in the folder of a snapshot.
const BLOCKS: &str = "blocks";
/// Bytes of a run of blocks at most: 1 MiB.
const RUN_BYTES_MAX: u64 = 256 * BLOCK_BYTES;
/// Bytes before each run: the file's number, where the run begins, its length.
const HEAD_BYTES: usize = 20;

/// Where the names of a snapshot stand in its folder. Without that file there is no snapshot.
pub(crate) fn names_path(folder: &Path) -> PathBuf {
    folder.join("names")
}

/// A file as it was at the snapshot.
#[derive(Debug)]
struct AtSnapshot {
    size: u64,
    /// A bit for each block that is kept.
    kept: Vec<u64>,
}

impl AtSnapshot {
    fn is_kept(&self, block: u64) -> bool {
        let word = usize::try_from(block / 64).ok().and_then(|word| self.kept.get(word));
        word.is_some_and(|word| word >> (block % 64) & 1 == 1)
    }

    fn mark(&mut self, block: u64) {
        let Ok(word) = usize::try_from(block / 64) else { return };
        if self.kept.len() <= word {
            self.kept.resize(word + 1, 0);
        }
        self.kept[word] |= 1 << (block % 64);
    }

    /// The next run of blocks that are not kept, as bytes, from `from` on and before `to`, which lies within the file.
    fn next_run(&self, from: u64, to: u64) -> Option<(u64, u64)> {
        let mut blocks = from / BLOCK_BYTES..to.div_ceil(BLOCK_BYTES);
        let first = blocks.find(|block| !self.is_kept(*block))?;
        let most = first + RUN_BYTES_MAX / BLOCK_BYTES;
        let end = blocks.find(|block| *block == most || self.is_kept(*block));
        let end = end.unwrap_or_else(|| to.div_ceil(BLOCK_BYTES));
        Some((first * BLOCK_BYTES, (end * BLOCK_BYTES).min(self.size)))
    }
}

/// The blocks kept since a snapshot.
#[derive(Debug)]
pub(crate) struct Undo {
    folder: PathBuf,
    blocks: File,
    end: u64,
    files: BTreeMap<u64, AtSnapshot>,
    is_lost: bool,
}

impl Undo {
    /// None kept yet, of files of these numbers and sizes, in the folder of their snapshot.
    pub(crate) fn begin(folder: &Path, files: impl Iterator<Item = (u64, u64)>) -> io::Result<Undo> {
        let blocks = File::create(folder.join(BLOCKS))?;
        let files = files.map(|(number, size)| (number, AtSnapshot { size, kept: Vec::new() })).collect();
        Ok(Undo { folder: folder.to_owned(), blocks, end: 0, files, is_lost: false })
    }

    /// Whether the snapshot has this file: then its content stays, whatever becomes of its names.
    pub(crate) fn holds(&self, number: u64) -> bool {
        self.files.contains_key(&number)
    }

    /// A file is about to change between `from` and `to`: keeps what it held there at the snapshot, unless it is kept.
    pub(crate) fn keep(&mut self, number: u64, object: &impl Object, from: u64, to: u64) {
        if self.is_lost {
            return;
        }
        if self.try_to_keep(number, object, from, to).is_err() {
            self.is_lost = true;
            // Where even that fails, what comes back differs from the snapshot, which is found out then.
            let _ = fs::remove_file(names_path(&self.folder));
        }
    }

    fn try_to_keep(&mut self, number: u64, object: &impl Object, from: u64, to: u64) -> io::Result<()> {
        let Some(file) = self.files.get_mut(&number) else { return Ok(()) };
        let to = to.min(file.size);
        let mut at = from;
        while let Some((begin, end)) = next_data(object, at, to) {
            let mut run = begin;
            while let Some((begin, end)) = file.next_run(run, end) {
                append(&self.blocks, &mut self.end, (number, begin), object, end - begin)?;
                (begin / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES)).for_each(|block| file.mark(block));
                // Also where a run ends with the file.
                run = end.next_multiple_of(BLOCK_BYTES);
            }
            at = end;
        }
        Ok(())
    }
}

/// The next part with data between `at` and `to`, where that is far. A hole need not be kept: it is zeros before, and reads as
/// zeros once the file is cut there or the hole is made again; what is written into it later finds it not kept.
fn next_data(object: &impl Object, at: u64, to: u64) -> Option<(u64, u64)> {
    if at >= to {
        return None;
    }
    if to - at <= RUN_BYTES_MAX {
        return Some((at, to));
    }
    let begin = match object.seek(at, Seek::Data) {
        Ok(begin) if begin < to => begin.max(at),
        Ok(_) => return None,
        Err(error) if error.raw_os_error() == Some(libc::ENXIO) => return None,
        // A store that cannot tell has data everywhere.
        Err(_) => return Some((at, to)),
    };
    let end = object.seek(begin, Seek::Hole).ok().filter(|end| *end > begin).map_or(to, |end| end.min(to));
    Some((begin, end))
}

fn append(
    blocks: &File,
    end: &mut u64,
    (number, offset): (u64, u64),
    object: &impl Object,
    bytes: u64,
) -> io::Result<()> {
    // At most a megabyte.
    let length = bytes as usize;
    let mut run = vec![0; HEAD_BYTES + length];
    run[..8].copy_from_slice(&number.to_le_bytes());
    run[8..16].copy_from_slice(&offset.to_le_bytes());
    run[16..HEAD_BYTES].copy_from_slice(&(length as u32).to_le_bytes());
    // What lies beyond the object's end was a hole when it was cut there, or else it would be kept.
    object.read(offset, &mut run[HEAD_BYTES..])?;
    blocks.write_all_at(&run, *end)?;
    *end += run.len() as u64;
    Ok(())
}

/// A run of blocks of a file, as they were.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Run {
    pub(crate) number: u64,
    pub(crate) offset: u64,
    pub(crate) content: Vec<u8>,
}

/// The runs that a folder holds.
pub(crate) struct Runs(BufReader<File>);

impl Runs {
    pub(crate) fn of(folder: &Path) -> io::Result<Runs> {
        let file = OpenOptions::new().read(true).open(folder.join(BLOCKS))?;
        Ok(Runs(BufReader::with_capacity(1 << 20, file)))
    }

    fn read(&mut self) -> io::Result<Option<Run>> {
        let mut head = [0; HEAD_BYTES];
        match self.0.read(&mut head)? {
            0 => return Ok(None),
            read => self.0.read_exact(&mut head[read..])?,
        }
        let number = |from: usize| {
            let mut bytes = [0; 8];
            bytes.copy_from_slice(&head[from..from + 8]);
            u64::from_le_bytes(bytes)
        };
        let length = u64::from(u32::from_le_bytes([head[16], head[17], head[18], head[19]]));
        if length > RUN_BYTES_MAX {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "a run of blocks is too long"));
        }
        let mut content = vec![0; length as usize];
        self.0.read_exact(&mut content)?;
        Ok(Some(Run { number: number(0), offset: number(8), content }))
    }
}

impl Iterator for Runs {
    type Item = io::Result<Run>;

    fn next(&mut self) -> Option<io::Result<Run>> {
        self.read().transpose()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Flush, FolderStore, Store};

    const TIB: u64 = 1 << 40;

    fn runs(folder: &Path) -> Vec<(u64, usize, u8)> {
        let runs = Runs::of(folder).expect("a file").map(|run| run.expect("a run"));
        runs.map(|run| (run.offset, run.content.len(), run.content[0])).collect()
    }

    #[test]
    fn a_block_is_kept_once_and_no_further_than_the_file_reached() {
        let (store, folder) =
            (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let object = FolderStore::new(store.path(), Flush::Pretended).create(7).expect("an object");
        object.write(0, &[1; 10_000]).expect("written");
        let mut undo = Undo::begin(folder.path(), [(7, 10_000)].into_iter()).expect("begun");
        undo.keep(7, &object, 4_000, 4_001);
        object.write(4_000, &[2]).expect("written");
        undo.keep(7, &object, 0, 20_000);
        undo.keep(7, &object, 0, 20_000);
        undo.keep(8, &object, 0, 20_000);
        assert_eq!(runs(folder.path()), [(0, 4_096, 1), (4_096, 5_904, 1)]);
        assert!(undo.holds(7) && !undo.holds(8));
    }

    #[test]
    fn of_a_file_of_a_tebibyte_only_its_data_is_kept() {
        let (store, folder) =
            (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let object = FolderStore::new(store.path(), Flush::Pretended).create(7).expect("an object");
        object.set_size(TIB).expect("its size");
        object.write(512 << 30, &[3; 4096]).expect("written");
        let mut undo = Undo::begin(folder.path(), [(7, TIB)].into_iter()).expect("begun");
        undo.keep(7, &object, 0, TIB);
        object.set_size(0).expect("cut");
        // A hole then, and written to now.
        undo.keep(7, &object, 4_096, 4_097);
        assert_eq!(runs(folder.path()), [(512 << 30, 4_096, 3), (4_096, 4_096, 0)]);
    }

    #[test]
    fn where_a_block_cannot_be_kept_the_snapshot_is_gone() {
        let (store, folder) =
            (tempfile::tempdir().expect("a folder"), tempfile::tempdir().expect("a folder"));
        let object = FolderStore::new(store.path(), Flush::Pretended).create(7).expect("an object");
        object.write(0, &[1; 100]).expect("written");
        fs::write(names_path(folder.path()), "names").expect("written");
        let mut undo = Undo::begin(folder.path(), [(7, 100)].into_iter()).expect("begun");
        undo.blocks = File::open(folder.path().join(BLOCKS)).expect("only to be read");
        undo.keep(7, &object, 0, 1);
        assert!(!names_path(folder.path()).exists());
    }
}
