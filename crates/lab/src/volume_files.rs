//! Single files of a node's volume, written and read by its init for the lab.
//!
//! The lab cannot do that itself: it may be the one who serves the volume, and a process that uses a file system that it
//! serves cannot always be killed. The volume is the node's to fill with what it likes, so files are opened as the node's
//! user, beneath a descriptor, and no link is followed.

use std::fs::File;
use std::io::{self, Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path};

use nix::dir::Dir;
use nix::fcntl::{AtFlags, PosixFadviseAdvice, posix_fadvise, renameat};
use nix::sys::stat::{SFlag, fstatat};
use nix::unistd::{Gid, Uid, UnlinkatFlags, setfsgid, setfsuid, unlinkat};

use crate::beneath;
use crate::canary;
use crate::protocol::{Answer, FileAction, NODE_USER};

/// The most that is read of a file. What engines read are lines of a few kilobytes.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Folders within folders that are gone into.
const DEPTH_MAX: usize = 64;

/// A node's volume, to its init.
pub(crate) struct VolumeFiles {
    volume: OwnedFd,
    users_mapped: bool,
}

impl VolumeFiles {
    /// The volume whose root is `volume`.
    pub(crate) fn new(volume: OwnedFd, users_mapped: bool) -> VolumeFiles {
        VolumeFiles { volume, users_mapped }
    }

    /// Does it, and tells how it went.
    pub(crate) fn answer(&self, number: u64, path: &Path, action: &FileAction) -> Answer {
        match self.act(path, action) {
            Ok(content) => Answer::FileDone { number, content },
            Err(error) => Answer::FileFailed { number, error: error.raw_os_error(), why: error.to_string() },
        }
    }

    fn act(&self, path: &Path, action: &FileAction) -> io::Result<String> {
        if !path.components().all(|part| matches!(part, Component::Normal(_))) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a path within the volume"));
        }
        let _user = AsNodeUser::begin(self.users_mapped);
        match action {
            FileAction::Write { content } => self.write(path, content).map(|()| String::new()),
            FileAction::Read => read(beneath::open_file(&self.volume, path)?),
            FileAction::Remove => {
                let (folder, name) = self.place_of(path)?;
                unlinkat(&folder, name, UnlinkatFlags::NoRemoveDir)?;
                File::from(folder).sync_all().map(|()| String::new())
            }
            FileAction::Forget => forget(self.volume.as_fd(), path, 0).map(|()| String::new()),
            FileAction::Canary { order } => {
                let root = beneath::open_folder(&self.volume, Path::new(""))?;
                canary::obey(&File::from(root), *order)
            }
            FileAction::Find => match self.find(path) {
                Ok(()) => Ok("yes".to_owned()),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(String::new()),
                Err(error) => Err(error),
            },
        }
    }

    /// The folder that a path's last name stands in, and that name.
    fn place_of<'a>(&self, path: &'a Path) -> io::Result<(OwnedFd, &'a Path)> {
        let name = path.file_name().ok_or_else(|| io::Error::from(io::ErrorKind::InvalidInput))?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Ok((beneath::open_folder(&self.volume, folder)?, Path::new(name)))
    }

    fn find(&self, path: &Path) -> io::Result<()> {
        let (folder, name) = self.place_of(path)?;
        fstatat(&folder, name, AtFlags::AT_SYMLINK_NOFOLLOW)?;
        Ok(())
    }

    fn write(&self, path: &Path, content: &str) -> io::Result<()> {
        let (folder, name) = self.place_of(path)?;
        let unfinished = name.with_extension("unfinished");
        match unlinkat(&folder, &unfinished, UnlinkatFlags::NoRemoveDir) {
            Ok(()) | Err(nix::Error::ENOENT) => {}
            Err(error) => return Err(error.into()),
        }
        let mut file = beneath::create_file(&folder, &unfinished)?;
        file.write_all(content.as_bytes())?;
        file.sync_all()?;
        renameat(&folder, &unfinished, &folder, name)?;
        File::from(folder).sync_all()
    }
}

/// While it lasts, files are opened and made as the node's user, with no right beyond that user's (setfsuid(2)). In a lab
/// of an ordinary user there is but one user.
struct AsNodeUser {
    users_mapped: bool,
}

impl AsNodeUser {
    fn begin(users_mapped: bool) -> AsNodeUser {
        if users_mapped {
            setfsgid(Gid::from_raw(NODE_USER));
            setfsuid(Uid::from_raw(NODE_USER));
        }
        AsNodeUser { users_mapped }
    }
}

impl Drop for AsNodeUser {
    fn drop(&mut self) {
        if self.users_mapped {
            setfsuid(Uid::from_raw(0));
            setfsgid(Gid::from_raw(0));
        }
    }
}

fn read(file: File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "larger than 1 MiB"));
    }
    String::from_utf8(bytes).map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))
}

/// Pages that are mapped or being written stay, as they do for everybody who asks so.
fn forget(folder: impl AsFd, path: &Path, depth: usize) -> io::Result<()> {
    if depth > DEPTH_MAX {
        return Err(io::Error::other(format!("folders more than {DEPTH_MAX} deep")));
    }
    let kind = if path.as_os_str().is_empty() {
        SFlag::S_IFDIR
    } else {
        let found = fstatat(&folder, path, AtFlags::AT_SYMLINK_NOFOLLOW)?;
        SFlag::from_bits_truncate(found.st_mode) & SFlag::S_IFMT
    };
    if kind == SFlag::S_IFREG {
        let file = beneath::open_file(&folder, path)?;
        posix_fadvise(&file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED)?;
    } else if kind == SFlag::S_IFDIR {
        let mut listing = Dir::from_fd(beneath::open_folder(&folder, path)?)?;
        let mut names = Vec::new();
        for entry in listing.iter() {
            names.push(entry?.file_name().to_owned());
        }
        for name in names.iter().filter(|name| !matches!(name.to_bytes(), b"." | b"..")) {
            let name = Path::new(std::ffi::OsStr::from_bytes(name.to_bytes()));
            match forget(listing.as_fd(), name, depth + 1) {
                // Removed since it was listed.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                other => other?,
            }
        }
    }
    Ok(())
}
