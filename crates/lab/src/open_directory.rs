//! A directory that is meant whatever becomes of the path that led to it.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use nix::fcntl::{OFlag, open};
use nix::sys::stat::Mode;

/// A directory held open: whatever becomes of the path that led to it, this one is meant.
pub(crate) struct OpenDirectory(OwnedFd);

impl OpenDirectory {
    /// Opens it, not through a link.
    pub(crate) fn open(path: &Path) -> io::Result<OpenDirectory> {
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_NOFOLLOW | OFlag::O_CLOEXEC;
        Ok(OpenDirectory(open(path, flags, Mode::empty())?))
    }

    /// A path of it for this process, as long as it is open.
    pub(crate) fn path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.0.as_raw_fd()))
    }
}
