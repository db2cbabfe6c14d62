//! What was made beside a volume, on the file system below it, becomes part of the volume: its names are taken over, its
//! files moved, and nothing is copied. All of it is durable from the start.
//!
//! For what is made before anything counts, a database's first files: through the mount each of them costs a tenth of a
//! millisecond of CPU time more. Owns the walk; moving a file is the store's business.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use crate::attributes::{Attributes, Kind};
use crate::store::Store;
use crate::tree::{Body, FileBody, ROOT};
use crate::volume::Volume;

/// One thing found in the folder.
struct Found {
    kind: Kind,
    attributes: Attributes,
    body: Body,
}

impl<S: Store> Volume<S> {
    /// Moves everything in `folder` into the root directory: files, directories and symbolic links, with their modes,
    /// owners and times. The folder, which must lie on the store's own file system and be in nobody's use, is empty
    /// afterwards. The volume may be mounted.
    ///
    /// # Errors
    /// What the file system below says; `AlreadyExists` when a name is taken; `Unsupported` for devices, pipes, sockets
    /// and files with several names. What was moved before is on the volume then.
    pub fn adopt(&self, folder: &Path) -> io::Result<()> {
        self.adopt_into(ROOT, folder)
    }

    fn adopt_into(&self, directory: u64, folder: &Path) -> io::Result<()> {
        let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
        // Objects are numbered alike whatever order the file system below has.
        entries.sort_by_key(fs::DirEntry::file_name);
        for entry in entries {
            let path = entry.path();
            let Found { kind, attributes, body } = look_at(&path)?;
            let number = {
                let mut state = self.lock();
                let place = (directory, entry.file_name());
                let place = (place.0, place.1.as_os_str());
                let number = state.tree.create(place, None, kind, attributes, body)?;
                if kind == Kind::File
                    && let Err(error) = self.store.adopt(number, &path)
                {
                    // The name goes, and with it the object; content it has none.
                    let _ = state.tree.remove(directory, place.1, false);
                    return Err(error);
                }
                let operations = state.tree.waiting_of(number, false);
                self.names_are_durable(&mut state, operations);
                number
            };
            match kind {
                Kind::Directory => {
                    self.adopt_into(number, &path)?;
                    fs::remove_dir(&path)?;
                }
                Kind::SymbolicLink => fs::remove_file(&path)?,
                _ => {}
            }
        }
        Ok(())
    }
}

fn look_at(path: &Path) -> io::Result<Found> {
    let metadata = fs::symlink_metadata(path)?;
    let refused =
        |why: &str| io::Error::new(io::ErrorKind::Unsupported, format!("{}: {why}", path.display()));
    let (kind, body) = if metadata.is_dir() {
        (Kind::Directory, Body::Directory(BTreeMap::new()))
    } else if metadata.is_symlink() {
        (Kind::SymbolicLink, Body::SymbolicLink(fs::read_link(path)?.into_os_string()))
    } else if !metadata.is_file() {
        return Err(refused("not a file, directory or symbolic link"));
    } else if metadata.nlink() > 1 {
        // Moved twice, it would be two files that change together.
        return Err(refused("it has several names"));
    } else {
        (Kind::File, Body::File(FileBody::durable(metadata.len())))
    };
    let mut attributes =
        Attributes::new(metadata.mode(), metadata.uid(), metadata.gid(), metadata.modified()?);
    attributes.accessed = metadata.accessed()?;
    Ok(Found { kind, attributes, body })
}
