//! Where the content of files lies: a store of numbered objects, and the one that keeps them as files in a folder.
//!
//! Knows nothing of names, of what is durable, or of FUSE.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Refusal;
use crate::cpu::within_a_sync;
use crate::medium::{Access, Admitted};

/// A place for the content of files.
pub trait Store: Send + Sync + 'static {
    /// An open object.
    type Object: Object;

    /// Makes an empty object.
    ///
    /// # Errors
    /// When it cannot be made, or there is one already.
    fn create(&self, number: u64) -> io::Result<Self::Object>;

    /// Opens an object.
    ///
    /// # Errors
    /// When there is none.
    fn open(&self, number: u64) -> io::Result<Self::Object>;

    /// Makes an object of a file that lies on the same file system, and is gone from its place afterwards. No byte is
    /// copied.
    ///
    /// # Errors
    /// When it cannot be moved, or this store has no way to do so.
    fn adopt(&self, number: u64, file: &Path) -> io::Result<()> {
        let _ = (number, file);
        Err(io::ErrorKind::Unsupported.into())
    }

    /// Removes an object; those who have it open keep it.
    ///
    /// # Errors
    /// When it cannot be removed.
    fn remove(&self, number: u64) -> io::Result<()>;

    /// The numbers of all objects.
    ///
    /// # Errors
    /// When they cannot be listed, or this store has no way to do so.
    fn numbers(&self) -> io::Result<Vec<u64>> {
        Err(io::ErrorKind::Unsupported.into())
    }

    /// How much room there is.
    ///
    /// # Errors
    /// When it cannot be found out.
    fn space(&self) -> io::Result<Space>;

    /// Whether nothing is wrong with what it stands on; then [`Store::admit`] would only cost time.
    fn is_sound(&self) -> bool {
        true
    }

    /// An operation is about to come. Waits for as long as what the store stands on takes, so nobody calls this with a
    /// lock held.
    ///
    /// # Errors
    /// What the operation is refused with.
    fn admit(&self, access: Access) -> Result<Admitted, Refusal> {
        let _ = access;
        Ok(Admitted::Truly)
    }

    /// Something of so many bytes is made durable. Waits for as long as what the store stands on takes, where that is not
    /// the machine's own disk, so nobody calls this with a lock held.
    ///
    /// # Errors
    /// As [`Store::admit`].
    fn take_sync_time(&self, bytes: u64) -> Result<(), Refusal> {
        let _ = bytes;
        Ok(())
    }

    /// Something became durable that no sync covers that was done.
    fn note_kept_more(&self) {}

    /// What was read is on its way to whoever asked: the last chance for it to get wrong.
    ///
    /// # Errors
    /// `EIO` where that is noticed.
    fn hand_out(&self, content: &mut [u8]) -> Result<(), Refusal> {
        let _ = content;
        Ok(())
    }

    /// From here on nobody waits in [`Store::admit`], those included who do now: they get `EIO`. Until it is called with
    /// `false`.
    fn interrupt(&self, interrupted: bool) {
        let _ = interrupted;
    }
}

/// The content of one file.
pub trait Object: Send + Sync + 'static {
    /// Reads at `offset` until `buffer` is full or the object ends.
    ///
    /// # Errors
    /// What the store below says.
    fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize>;

    /// Writes all of `content` at `offset`.
    ///
    /// # Errors
    /// What the store below says; part may be written.
    fn write(&self, offset: u64, content: &[u8]) -> io::Result<()>;

    /// Cuts or stretches it.
    ///
    /// # Errors
    /// What the store below says.
    fn set_size(&self, size: u64) -> io::Result<()>;

    /// Its size in bytes.
    ///
    /// # Errors
    /// What the store below says.
    fn size(&self) -> io::Result<u64>;

    /// Brings it to the medium, with metadata or only what reading it needs.
    ///
    /// # Errors
    /// What the store below says.
    fn sync(&self, data_only: bool) -> io::Result<()>;

    /// A sync of what was just written here is to be expected at once: a store in which it takes time may begin. Makes
    /// nothing durable.
    fn expect_sync(&self, offset: u64, bytes: u64) {
        let _ = (offset, bytes);
    }

    /// fallocate(2) with its mode.
    ///
    /// # Errors
    /// What the store below says.
    fn allocate(&self, mode: i32, offset: u64, bytes: u64) -> io::Result<()>;

    /// The next data, or the next hole, from `offset` on (lseek(2)).
    ///
    /// # Errors
    /// `ENXIO` beyond the end.
    fn seek(&self, offset: u64, to: Seek) -> io::Result<u64>;

    /// Space taken, in units of 512 bytes.
    ///
    /// # Errors
    /// What the store below says.
    fn sectors(&self) -> io::Result<u64>;
}

/// What a seek looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Seek {
    Data,
    Hole,
}

/// Room in a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Space {
    pub block_bytes: u32,
    /// Blocks in all.
    pub blocks: u64,
    pub blocks_free: u64,
    /// Blocks that somebody without privilege may take.
    pub blocks_available: u64,
    /// Objects in all.
    pub objects: u64,
    /// Objects that may still be made.
    pub objects_free: u64,
}

/// What a sync costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    /// What the machine's own disk takes: every sync is passed on to it.
    Real,
    /// Nothing. The volume loses at a power-off what it must, but the machine's own crash may take more.
    Pretended,
}

/// Objects as files in a folder, named by their numbers.
#[derive(Debug)]
pub struct FolderStore {
    folder: PathBuf,
    flush: Flush,
}

impl FolderStore {
    /// A store in a folder, which must be there, be empty, and be changed by nobody else.
    #[must_use]
    pub fn new(folder: &Path, flush: Flush) -> FolderStore {
        FolderStore { folder: folder.to_owned(), flush }
    }

    fn path(&self, number: u64) -> PathBuf {
        self.folder.join(number.to_string())
    }
}

/// An object of a [`FolderStore`].
#[derive(Debug)]
pub struct FolderObject {
    file: File,
    flush: Flush,
}

impl Store for FolderStore {
    type Object = FolderObject;

    fn create(&self, number: u64) -> io::Result<FolderObject> {
        let file = OpenOptions::new().read(true).write(true).create_new(true).open(self.path(number))?;
        Ok(FolderObject { file, flush: self.flush })
    }

    fn open(&self, number: u64) -> io::Result<FolderObject> {
        let file = OpenOptions::new().read(true).write(true).open(self.path(number))?;
        Ok(FolderObject { file, flush: self.flush })
    }

    fn adopt(&self, number: u64, file: &Path) -> io::Result<()> {
        std::fs::rename(file, self.path(number))
    }

    fn remove(&self, number: u64) -> io::Result<()> {
        std::fs::remove_file(self.path(number))
    }

    fn numbers(&self) -> io::Result<Vec<u64>> {
        let number = |entry: io::Result<std::fs::DirEntry>| {
            let name = entry?.file_name();
            let number = name.to_str().and_then(|name| name.parse().ok());
            number.ok_or_else(|| io::Error::new(io::ErrorKind::InvalidData, format!("{name:?} is no object")))
        };
        std::fs::read_dir(&self.folder)?.map(number).collect()
    }

    fn space(&self) -> io::Result<Space> {
        let found = nix::sys::statvfs::statvfs(&self.folder)?;
        Ok(Space {
            // File systems have blocks of at most a few megabytes.
            block_bytes: u32::try_from(found.fragment_size()).unwrap_or(u32::MAX),
            blocks: found.blocks(),
            blocks_free: found.blocks_free(),
            blocks_available: found.blocks_available(),
            objects: found.files(),
            objects_free: found.files_free(),
        })
    }
}

impl Object for FolderObject {
    fn read(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let mut read = 0;
        while read < buffer.len() {
            match self.file.read_at(&mut buffer[read..], offset + read as u64) {
                Ok(0) => break,
                Ok(bytes) => read += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(read)
    }

    fn write(&self, offset: u64, content: &[u8]) -> io::Result<()> {
        self.file.write_all_at(content, offset)
    }

    fn set_size(&self, size: u64) -> io::Result<()> {
        self.file.set_len(size)
    }

    fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn sync(&self, data_only: bool) -> io::Result<()> {
        match (self.flush, data_only) {
            (Flush::Pretended, _) => Ok(()),
            (Flush::Real, true) => within_a_sync(|| self.file.sync_data()),
            (Flush::Real, false) => within_a_sync(|| self.file.sync_all()),
        }
    }

    fn expect_sync(&self, offset: u64, bytes: u64) {
        if self.flush == Flush::Pretended {
            return;
        }
        if let (Ok(offset), Ok(bytes)) = (signed(offset), signed(bytes)) {
            // The disk works while the request for the sync is on its way. Only begins: what goes wrong stays with the
            // file's mapping, and the sync reports it.
            within_a_sync(|| {
                // SAFETY: sync_file_range(2) takes no pointers; the descriptor is open for as long as `self` lives.
                unsafe {
                    libc::sync_file_range(self.file.as_raw_fd(), offset, bytes, libc::SYNC_FILE_RANGE_WRITE);
                }
            });
        }
    }

    fn allocate(&self, mode: i32, offset: u64, bytes: u64) -> io::Result<()> {
        let (offset, bytes) = (signed(offset)?, signed(bytes)?);
        // SAFETY: fallocate(2) takes no pointers; the descriptor is open for as long as `self` lives.
        let result = unsafe { libc::fallocate(self.file.as_raw_fd(), mode, offset, bytes) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    fn seek(&self, offset: u64, to: Seek) -> io::Result<u64> {
        let whence = match to {
            Seek::Data => libc::SEEK_DATA,
            Seek::Hole => libc::SEEK_HOLE,
        };
        // SAFETY: lseek(2) takes no pointers. It moves the descriptor's position, which nothing here uses.
        let found = unsafe { libc::lseek(self.file.as_raw_fd(), signed(offset)?, whence) };
        u64::try_from(found).map_err(|_| io::Error::last_os_error())
    }

    fn sectors(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.blocks())
    }
}

fn signed(number: u64) -> io::Result<i64> {
    i64::try_from(number).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))
}

/// The objects that are open, each once.
#[derive(Debug)]
pub(crate) struct OpenObjects<O>(BTreeMap<u64, Arc<O>>);

impl<O: Object> OpenObjects<O> {
    pub(crate) fn new() -> OpenObjects<O> {
        OpenObjects(BTreeMap::new())
    }

    /// The object; opened for this once if nobody has it open.
    pub(crate) fn get(&self, store: &impl Store<Object = O>, number: u64) -> io::Result<Arc<O>> {
        match self.0.get(&number) {
            Some(object) => Ok(object.clone()),
            None => store.open(number).map(Arc::new),
        }
    }

    /// Keeps the object open.
    pub(crate) fn hold(&mut self, number: u64, object: Arc<O>) {
        self.0.insert(number, object);
    }

    /// No longer.
    pub(crate) fn let_go(&mut self, number: u64) {
        self.0.remove(&number);
    }
}
