//! Removal of what the programs of a node made, whatever it is: folders that their owner may not enter, at any depth.
//!
//! A folder is emptied by moving the folders in it up to the top, so that neither descriptors nor the stack grow with the depth.
//! No link is followed. Others may remove the same at the same time: what is gone is gone.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::open_directory::OpenDirectory;

/// Removes a folder and all that is in it, if it is there.
///
/// # Errors
/// When something in it cannot be removed, or somebody makes more until the deadline.
pub(crate) fn remove_tree(path: &Path, deadline: Instant) -> io::Result<()> {
    let Some(folder) = there(open_to_its_owner(path))? else { return Ok(()) };
    Top { folder, moved: 0 }.empty(deadline)?;
    there(fs::remove_dir(path)).map(drop)
}

/// What was done, or none where that was there no more.
fn there<T>(done: io::Result<T>) -> io::Result<Option<T>> {
    match done {
        Ok(done) => Ok(Some(done)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The folder that all others are moved to.
struct Top {
    folder: OpenDirectory,
    /// Folders moved so far: part of the next one's name.
    moved: u64,
}

impl Top {
    fn empty(mut self, deadline: Instant) -> io::Result<()> {
        loop {
            let folders = only_folders(&self.folder)?;
            if folders.is_empty() {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
            for path in folders {
                self.flatten(&path)?;
                there(fs::remove_dir(&path))?;
            }
        }
    }

    /// Moves the folders in a folder to the top, and removes all else in it.
    fn flatten(&mut self, path: &Path) -> io::Result<()> {
        let Some(folder) = there(open_to_its_owner(path))? else { return Ok(()) };
        for inner in only_folders(&folder)? {
            // Its entry `..` changes, which needs the right to write in it.
            there(open_to_its_owner(&inner))?;
            there(fs::rename(inner, self.free_name()))?;
        }
        Ok(())
    }

    fn free_name(&mut self) -> PathBuf {
        loop {
            let path = self.folder.path().join(format!("removed-{}", self.moved));
            self.moved += 1;
            if path.symlink_metadata().is_err() {
                return path;
            }
        }
    }
}

/// The folders in a folder. All else in it is removed.
fn only_folders(folder: &OpenDirectory) -> io::Result<Vec<PathBuf>> {
    let mut folders = Vec::new();
    for entry in there(fs::read_dir(folder.path()))?.into_iter().flatten() {
        let entry = entry?;
        match there(entry.file_type())?.is_some_and(|kind| kind.is_dir()) {
            true => folders.push(entry.path()),
            false => drop(there(fs::remove_file(entry.path()))?),
        }
    }
    Ok(folders)
}

/// Opens a folder, and lets its owner do all in it.
fn open_to_its_owner(path: &Path) -> io::Result<OpenDirectory> {
    let folder = OpenDirectory::open(path)?;
    // Where that is refused, so is what follows, and says so.
    let _ = fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700));
    Ok(folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nix::fcntl::{OFlag, open, openat};
    use nix::sys::stat::{Mode, mkdirat};
    use std::os::fd::OwnedFd;
    use std::time::Duration;

    fn removed(path: &Path) -> io::Result<()> {
        remove_tree(path, Instant::now() + Duration::from_secs(60))
    }

    /// A folder in a folder, and so on, deeper than a path is long and than a process has descriptors.
    fn nest(top: &Path, depth: usize) {
        let flags = OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let mut folder: OwnedFd = open(top, flags, Mode::empty()).expect("the top");
        for _ in 0..depth {
            mkdirat(&folder, "a", Mode::S_IRWXU).expect("a folder");
            folder = openat(&folder, "a", flags, Mode::empty()).expect("opened");
        }
    }

    #[test]
    fn a_tree_deeper_than_there_are_descriptors_is_removed() {
        let outside = tempfile::tempdir().expect("a folder");
        let tree = outside.path().join("tree");
        fs::create_dir(&tree).expect("a folder");
        nest(&tree, 10_000);
        removed(&tree).expect("removed");
        assert!(!tree.exists());
    }

    #[test]
    fn folders_that_their_owner_may_not_enter_are_removed_with_what_is_in_them() {
        let outside = tempfile::tempdir().expect("a folder");
        let tree = outside.path().join("tree");
        fs::create_dir_all(tree.join("removed-0/closed/deeper")).expect("a folder");
        fs::write(tree.join("removed-0/closed/file"), "x").expect("a file");
        fs::write(tree.join("removed-1"), "x").expect("a file");
        for (folder, mode) in
            [("removed-0/closed/deeper", 0o500), ("removed-0/closed", 0), ("removed-0", 0o500)]
        {
            fs::set_permissions(tree.join(folder), fs::Permissions::from_mode(mode)).expect("its mode");
        }
        removed(&tree).expect("removed");
        assert!(!tree.exists());
    }

    #[test]
    fn what_a_link_leads_to_stays() {
        let outside = tempfile::tempdir().expect("a folder");
        let (tree, mine) = (outside.path().join("tree"), outside.path().join("mine"));
        for folder in [&tree, &mine] {
            fs::create_dir(folder).expect("a folder");
        }
        fs::write(mine.join("file"), "x").expect("a file");
        fs::create_dir(tree.join("a")).expect("a folder");
        for link in ["link", "a/link"] {
            std::os::unix::fs::symlink(&mine, tree.join(link)).expect("a link");
        }
        assert!(removed(&tree.join("link")).is_err(), "it is no folder");
        removed(&tree).expect("removed");
        assert!(!tree.exists() && mine.join("file").exists());
        removed(&tree).expect("it is gone already");
    }
}
