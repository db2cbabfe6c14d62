//! Opening files below a folder that somebody else writes in: beneath a descriptor, no link followed, no other mount
//! entered, nothing but plain files and folders.
//!
//! Owns these rules. Who may see what, the caller's user decides. Source: openat2(2), Linux 5.6.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;

use nix::fcntl::{OFlag, OpenHow, ResolveFlag, openat2};
use nix::sys::stat::Mode;

fn open(folder: impl AsFd, path: &Path, flags: OFlag, mode: Mode) -> io::Result<OwnedFd> {
    let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
    let resolve = ResolveFlag::RESOLVE_BENEATH
        | ResolveFlag::RESOLVE_NO_SYMLINKS
        | ResolveFlag::RESOLVE_NO_MAGICLINKS
        | ResolveFlag::RESOLVE_NO_XDEV;
    let how = OpenHow::new().flags(flags | OFlag::O_CLOEXEC | OFlag::O_NOCTTY).mode(mode).resolve(resolve);
    Ok(openat2(folder, path, how)?)
}

/// Opens a folder.
///
/// # Errors
/// `ELOOP` for a link on the way, `EXDEV` for a way out, `ENOTDIR` for anything but a folder.
pub(crate) fn open_folder(folder: impl AsFd, path: &Path) -> io::Result<OwnedFd> {
    open(folder, path, OFlag::O_RDONLY | OFlag::O_DIRECTORY, Mode::empty())
}

/// Opens a plain file for reading, without waiting for anybody: a pipe has nobody at its other end.
///
/// # Errors
/// As [`open_folder`]; `InvalidInput` for anything but a plain file.
pub(crate) fn open_file(folder: impl AsFd, path: &Path) -> io::Result<File> {
    let file = File::from(open(folder, path, OFlag::O_RDONLY | OFlag::O_NONBLOCK, Mode::empty())?);
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, format!("{}: not a plain file", path.display())))
}

/// Makes a file that was not there.
///
/// # Errors
/// As [`open_folder`]; `AlreadyExists`.
pub(crate) fn create_file(folder: impl AsFd, path: &Path) -> io::Result<File> {
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_EXCL;
    open(folder, path, flags, Mode::from_bits_truncate(0o600)).map(File::from)
}

/// Opens a file to append to, made if need be.
///
/// # Errors
/// As [`open_folder`].
pub(crate) fn append_to_file(folder: impl AsFd, path: &Path) -> io::Result<File> {
    let flags = OFlag::O_WRONLY | OFlag::O_CREAT | OFlag::O_APPEND;
    open(folder, path, flags, Mode::from_bits_truncate(0o644)).map(File::from)
}
